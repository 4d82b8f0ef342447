"""Columns and rows of a system table."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.environment import Environment
from lakelsm.errors import CorruptTableError
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.system_table import SystemTable, TableState, columns_of
from tests.commit.commit_table import CommitTable


def test_columns_have_the_names_types_and_nullability_of_the_ddl(tmp_path: Path) -> None:
    ddl = "name STRING NOT NULL, at TIMESTAMP(3), sizes ARRAY<INT>"
    table = SystemTable("some", ddl, lambda state: [["a"], [state.wall_clock(1000)], pa.array([[1, None]])])
    store = TableStore.open(str(CommitTable(tmp_path).root))
    rows = table.rows(TableState(store, None, Environment(local_offset=lambda seconds: 3600)))
    assert [(field.name, field.nullable) for field in rows.schema] == [("name", False), ("at", True), ("sizes", True)]
    assert rows.schema.field("at").type == pa.timestamp("ms")
    assert rows.to_pylist() == [{"name": "a", "at": dt.datetime(1970, 1, 1, 1, 0, 1), "sizes": [1, None]}]


@pytest.mark.parametrize("millis", [253_402_300_800_000, -62_135_596_800_001, 1 << 62])
def test_a_time_outside_the_calendar_is_damage(tmp_path: Path, millis: int) -> None:
    table = SystemTable("some", "at TIMESTAMP(3)", lambda state: [[0, None, millis]])
    store = TableStore.open(str(CommitTable(tmp_path).root))
    with pytest.raises(CorruptTableError, match="system table some has a at outside the years 1 to 9999"):
        table.rows(TableState(store, None))


def test_a_table_without_rows_has_its_columns() -> None:
    assert columns_of([], 2) == [(), ()]
    assert columns_of([(1, "a"), (2, "b")], 2) == [(1, 2), ("a", "b")]
