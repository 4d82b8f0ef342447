"""Values whose type Arrow infers: a lossy inference is refused, and missing values of pandas are NULL."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError
from lakelsm.local.inferred_values import check_one_kind, plain_values

DAY, WALL = dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 5)
INSTANT = dt.datetime(2026, 1, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=9)))
MIXED: tuple[tuple[list[Any], str], ...] = (
    ([WALL, INSTANT], "with and without a time zone"),
    ([pd.Timestamp(WALL), pd.NaT, pd.Timestamp(INSTANT)], "with and without a time zone"),
    ([[WALL], [INSTANT]], "with and without a time zone"),
    ([{"a": [WALL]}, {"a": [INSTANT]}], "with and without a time zone"),
    ([DAY, WALL], "dates and timestamps are mixed"),
    (["a", b"b"], "bytes and texts are mixed"),
    ([1.5, True], "booleans and numbers are mixed"),
    ([dt.time(1, tzinfo=dt.timezone.utc)], "a time of day has a time zone"),
    ([pd.Timestamp("2026-01-01 00:00:00.000000001"), None], "nanoseconds of objects"),
)
FIT: tuple[list[Any], ...] = (
    [INSTANT, INSTANT.astimezone(dt.timezone.utc), None],
    [float("nan"), "a", None],
    [1, 2.5, np.int8(3)],
    [[1], [], None, np.array([2.5])],
    [{"a": 1}, {"b": "x"}],
    [],
)


def test_mixed_values_that_arrow_would_change_are_refused(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    days = catalog.create_table("db.days", "id INT, x DATE", primary_key="id")
    for values, message in MIXED:
        for each in (values, values[::-1]):
            with pytest.raises(ValueError, match=message):
                check_one_kind(each)
            rows = [{"id": at, "x": value} for at, value in enumerate(each)]
            frame = pd.DataFrame({"id": range(len(each)), "x": pd.Series(each, dtype=object)})
            for given in (rows, {"id": range(len(each)), "x": each}, frame):
                with pytest.raises(InvalidInputError, match=message):
                    catalog.create_table("db.t", given, primary_key="id", load=True)
            with pytest.raises(InvalidInputError, match=message):
                days.write(frame)
    assert catalog.list_tables() == ["db.days"] and days.count().rows == 0


def test_values_of_one_kind_are_accepted_and_missing_ones_are_null() -> None:
    for values in FIT:
        check_one_kind(values)
    assert plain_values([1, pd.NA, None, pd.NaT]) == [1, None, None, None]
    assert plain_values(same := [1, None]) is same


def test_a_table_is_created_from_pandas_records(tmp_path: Path) -> None:
    records = pd.DataFrame({"id": [1, 2], "at": pd.to_datetime(["2026-01-01", None])}).to_dict("records")
    table = Catalog(str(tmp_path)).create_table("db.t", records, primary_key="id", load=True)
    assert str(table.schema).splitlines()[1] == "at TIMESTAMP(6)"
    assert table.to_arrow()["at"].to_pylist() == [dt.datetime(2026, 1, 1), None]
