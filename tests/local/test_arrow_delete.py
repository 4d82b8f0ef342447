"""Deletes in this process, by a condition and by keys, delete the same rows as on Spark."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.compact.local_table import LocalTable

COLUMNS = "id INT, v STRING NOT NULL, n INT"


def table_of(root: Path, columns: str = COLUMNS, key: tuple[str, ...] = ("id",), **options: str) -> Table:
    LocalTable(root, columns, key, **options)
    return Table.for_path(str(root))


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int32())})


def filled(root: Path, **options: str) -> Table:
    table = table_of(root, **options)
    for start in (0, 5):
        numbers = range(start, start + 10)
        table.write(
            pa.table({"id": pa.array(numbers, pa.int32()), "v": [f"{start}"] * 10, "n": pa.nulls(10, pa.int32())})
        )
    return table


LAYOUTS = [
    {},
    {"bucket": "3", "changelog_producer": "lookup"},
    {"bucket": "-1", "deletion_vectors__enabled": "true"},
]


@pytest.mark.parametrize("options", LAYOUTS, ids=str)
def test_matching_rows_are_deleted_and_counted(tmp_path: Path, options: dict[str, str]) -> None:
    table = filled(tmp_path, **options)
    result = table.delete("id >= 3 AND v = '0'", engine="local")
    assert result.matched_rows == 2 and result.rows == 2
    assert [row[0] for row in rows_of(table)] == [0, 1, 2, *range(5, 15)]
    assert table.delete("id = 3", engine="local").snapshot_id is None


@pytest.mark.parametrize("options", LAYOUTS, ids=str)
def test_rows_of_keys_are_deleted_and_missing_keys_are_ignored(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = filled(tmp_path, **options)
    result = table.delete(keys=ids(7, 7, 3, 99))
    assert result.matched_rows == 2
    assert [row[0] for row in rows_of(table)] == [k for k in range(15) if k not in (3, 7)]
    assert table.delete(keys=ids(7, 99)).snapshot_id is None
    assert table.delete(keys=ids()).snapshot_id is None


@settings(deadline=None, max_examples=20)
@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_the_rows_without_the_keys_remain(there: set[int], wanted: set[int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = table_of(Path(directory) / "t", "id INT, v INT NOT NULL", bucket="2")
        table.write(pa.table({"id": pa.array(sorted(there), pa.int32()), "v": pa.array(sorted(there), pa.int32())}))
        assert table.delete(keys=ids(*wanted)).rows == len(there & wanted)
        assert rows_of(table) == [(k, k) for k in sorted(there - wanted)]


def test_a_delete_writes_the_stored_row_kind(tmp_path: Path) -> None:
    local = LocalTable(tmp_path, "id INT, op STRING", rowkind__field="op")
    table = Table.for_path(str(tmp_path))
    table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "op": ["+I", "+I"]}))
    table.delete("id = 1", engine="local")
    (entry,) = (entry for entry in local.live() if entry.file.delete_row_count)
    assert local.stored(entry).select(["op", "_VALUE_KIND"]).to_pylist() == [{"op": "-D", "_VALUE_KIND": 3}]
    assert rows_of(table) == [(2, "+I")]


def test_keys_finer_than_microseconds_are_deleted_here(tmp_path: Path) -> None:
    table = table_of(tmp_path, "id TIMESTAMP(9), v INT")
    times = pa.array([1_000, 1_001, 2_000], pa.timestamp("ns"))
    table.write(pa.table({"id": times, "v": pa.array([1, 2, 3], pa.int32())}))
    assert table.delete(keys=pa.table({"id": times.slice(1, 1)})).matched_rows == 1
    assert table.to_arrow(columns=["v"]).to_pydict() == {"v": [1, 3]}


@pytest.mark.parametrize("wanted", [{"where": "id = 1", "engine": "local"}, {"keys": ids(1)}], ids=str)
def test_a_table_whose_merge_would_keep_the_rows_refuses_a_delete(tmp_path: Path, wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="first-row"):
        table_of(tmp_path, merge_engine="first-row").delete(**wanted)


def test_conflicting_arguments_are_refused(tmp_path: Path) -> None:
    table = filled(tmp_path)
    for arguments, message in (
        ({}, "where: expected an SQL condition"),
        ({"where": "id = 1", "keys": ids(1)}, "where: cannot be combined with keys"),
        ({"keys": ids(1), "engine": "spark"}, "engine: expected 'local' for rows of this type"),
        ({"keys": 1}, "keys: expected rows in memory"),
        ({"where": "id = 1", "engine": "flink"}, "engine"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            table.delete(**arguments)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeatureError, match="UUID"):
        table.delete("uuid() = v", engine="local")
    assert len(rows_of(table)) == 15


def test_a_repeated_delete_is_a_replay(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    columns, key = "id INT, day DATE", ["id", "day"]
    table = catalog.create_table("d.t", columns, primary_key=key, partition_by=["day"], options={"bucket": "1"})
    day = pa.array([datetime.date(2020, 1, 1)] * 2)
    table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "day": day}))
    keys = pa.table({"DAY": day.slice(0, 1), "ID": pa.array([1], pa.int32())})
    first = table.delete(keys=keys, commit_user="job", batch_id=7)
    assert (first.matched_rows, first.already_committed) == (1, False)
    assert table.delete(keys=keys, commit_user="job", batch_id=7).already_committed
    assert [row[0] for row in rows_of(table)] == [2]
