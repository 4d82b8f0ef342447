"""Partition values of an overwrite: what is no value of the column is refused, never bent into one."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError
from lakelsm.plan.overwritten_partitions import checked_partition
from lakelsm.snapshots.table_store import TableStore

DAY = datetime.date(2025, 1, 1)
NOON = datetime.datetime(2025, 1, 1, 12)
UTC = datetime.timezone.utc
COLUMNS = "d DATE, n INT, b BOOLEAN, s STRING, t TIMESTAMP(6), l TIMESTAMP_LTZ(6), p DECIMAL(5, 2), f FLOAT"
NAMES = ["d", "n", "b", "s", "t", "l", "p", "f"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    warehouse: Path = tmp_path_factory.mktemp("partitions")
    Catalog(str(warehouse)).create_table(
        "db.t", f"{COLUMNS}, k INT", primary_key=[*NAMES, "k"], partition_by=NAMES, options={"bucket": 1}
    )
    return TableStore.open(str(warehouse / "db.db" / "t"))


@pytest.mark.parametrize(
    ("column", "value", "taken"),
    [
        ("d", DAY, DAY),
        ("d", "2025-01-01", DAY),
        ("d", datetime.date.min, datetime.date.min),
        ("n", 1.0, 1),
        ("n", np.int64(1), 1),
        ("n", "1", 1),
        ("b", "TRUE", True),
        ("t", NOON, NOON),
        ("t", pd.Timestamp(NOON), NOON),
        ("l", NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
        ("p", Decimal("1.5"), Decimal("1.50")),
        ("p", 1, Decimal("1.00")),
        ("f", 0.5, 0.5),
    ],
)
def test_values_of_the_columns_type_and_their_text_are_taken(
    store: TableStore, column: str, value: Any, taken: object
) -> None:
    assert checked_partition(store, {column: value}) == {column: taken}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("d", NOON),
        ("d", pd.NaT),
        ("d", 20089),
        ("d", 1.5),
        ("d", Decimal(1)),
        ("d", "2025-13-01"),
        ("n", 1.5),
        ("n", True),
        ("n", 2**31),
        ("n", "1.5"),
        ("b", 1),
        ("s", b"s"),
        ("s", 5),
        ("s", "\ud800"),
        ("t", NOON.replace(tzinfo=UTC)),
        ("t", 5),
        ("t", DAY),
        ("t", pd.Timestamp.max),
        ("l", NOON),
        ("p", "1.555"),
        ("p", 1.5),
        ("f", "x"),
        ("n", None),
        ("n", [1]),
    ],
)
def test_what_is_no_value_of_the_column_is_refused_and_named(store: TableStore, column: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=rf"partition value {column} is .*; it must be a "):
        checked_partition(store, {column: value})


@pytest.mark.parametrize("partition", ["d=2025-01-01", [("d", DAY)], {5: DAY}, {"\0": 1}, 5, {"k": 1}, {"d": 1, "D": 1}])
def test_what_is_no_mapping_of_partition_columns_is_refused(store: TableStore, partition: Any) -> None:
    with pytest.raises(InvalidInputError, match="partition"):
        checked_partition(store, partition)
