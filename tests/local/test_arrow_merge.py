"""Merges in this process keep every value of a row that they do not set."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import UnsupportedFeatureError
from tests.engines import TableEngine

COLUMNS = "id INT, n INT, at TIMESTAMP(9), t TIME, b VARBINARY(9), f FLOAT, r ROW<x INT, y ARRAY<DATE>>, c CHAR(2)"


def test_values_that_are_not_set_are_kept_to_the_nanosecond(local: TableEngine, tmp_path: Path) -> None:
    table = local.create(tmp_path, COLUMNS, ["id"])
    row = {"id": 1, "n": 1, "t": 3_600_001, "b": b"\x00\xff", "f": float("nan"), "r": {"x": None, "y": [None]}, "c": "é"}
    given = pa.Table.from_pylist([row]).append_column("at", pa.array([1_700_000_000_123_456_789], pa.timestamp("ns")))
    table.write(given.set_column(2, "t", pa.array([3_600_001], pa.time32("ms"))))
    before = table.to_arrow().drop_columns(["n"])
    result = table.merge({"id": [1]}, "id").when_matched_update({"n": "t.n + 1"}).execute()
    assert result.updated_rows == 1 and table.to_arrow(columns=["n"]).to_pylist() == [{"n": 2}]
    assert str(table.to_arrow().drop_columns(["n"]).to_pydict()) == str(before.to_pydict())


def test_nanoseconds_with_a_time_zone_are_refused(local: TableEngine, tmp_path: Path) -> None:
    table = local.create(tmp_path, "id INT, at TIMESTAMP_LTZ(9)", ["id"])
    with pytest.raises(UnsupportedFeatureError, match="nanoseconds of column 'at'"):
        table.merge({"id": [1]}, "id").when_not_matched_insert({"id": "s.id"}).execute()
