"""lakelsm's own tables of snapshots and files."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.maintain.system_tables import layout_tables
from lakelsm.maintain.system_tables.layout_tables import HISTORY, LAYOUT
from lakelsm.maintain.system_tables.system_table import SystemTable, TableState
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, file, partition
from tests.masked_files import index_entry, with_index_files


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path)


def rows_of(system: SystemTable, table: CommitTable) -> pa.Table:
    store = TableStore.open(str(table.root))
    return system.rows(TableState(store, store.snapshots.latest()))


def test_each_snapshot_has_its_counts_and_what_it_did(table: CommitTable) -> None:
    table.append(add(file(rows=10)), changelog_entries=[add(file(rows=4))])
    table.append(add(file(rows=5)), add(file(rows=1), dt="b"))
    table.compact([add(file(rows=12, level=5))])
    table.overwrite(add(file(rows=3), dt="b"), partitions=["b"])
    found = rows_of(HISTORY, table).to_pylist()
    assert [row["snapshot_id"] for row in found] == [1, 2, 3, 4]
    assert [(row["commit_kind"], row["operation"], row["commit_user"]) for row in found] == [
        ("APPEND", "WRITE", "u"),
        ("APPEND", "WRITE", "u"),
        ("COMPACT", "COMPACT", "c"),
        ("OVERWRITE", "OVERWRITE", "o"),
    ]
    assert [(row["total_record_count"], row["delta_record_count"]) for row in found] == [
        (10, 10), (16, 6), (28, 12), (30, 2),
    ]
    assert [row["changelog_record_count"] for row in found] == [4, 0, 0, 0]
    assert [(row["added_file_count"], row["deleted_file_count"]) for row in found] == [(1, 0), (2, 0), (1, 0), (1, 1)]
    since = found[0]["commit_time"] - datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert since == timedelta(milliseconds=table.snapshots.get(1).time_millis)


def test_a_snapshot_that_expires_meanwhile_is_left_out_and_damage_is_told(
    table: CommitTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        table.append(add())
    real = layout_tables.read_delta_metas

    def expiring(file_io: Any, paths: Any, snapshot: Any) -> Any:
        if snapshot.id == 1:
            table.file_io.delete(paths.manifest(snapshot.delta_manifest_list))
            if expires:
                table.file_io.delete(paths.snapshot_file(1))
        return real(file_io, paths, snapshot)

    monkeypatch.setattr(layout_tables, "read_delta_metas", expiring)
    expires = False
    with pytest.raises(CorruptTableError):
        rows_of(HISTORY, table)
    expires = True
    assert rows_of(HISTORY, table).column("snapshot_id").to_pylist() == [2]


def test_each_live_file_has_its_place_and_its_counts(table: CommitTable) -> None:
    deleting = file("del.parquet", level=3, rows=7, seq=(20, 29))
    deleting.delete_row_count = 2
    table.append(add(file("a.parquet")), add(deleting, dt="x=1", bucket=1), add(file("n.parquet"), dt=None))
    found = {row["file_path"]: row for row in rows_of(LAYOUT, table).to_pylist()}
    root = table.paths.root
    assert set(found) == {
        f"{root}/dt=a/bucket-0/a.parquet",
        f"{root}/dt=x%3D1/bucket-1/del.parquet",
        f"{root}/dt=__DEFAULT_PARTITION__/bucket-0/n.parquet",
    }
    row = found[f"{root}/dt=x%3D1/bucket-1/del.parquet"]
    del row["file_path"], row["partition"]
    assert row == {
        "bucket": 1,
        "level": 3,
        "record_count": 7,
        "delete_record_count": 2,
        "file_size_in_bytes": 1000,
        "schema_id": 0,
        "min_sequence_number": 20,
        "max_sequence_number": 29,
        "masked_record_count": 0,
    }


def test_each_live_file_tells_how_many_of_its_rows_are_masked(table: CommitTable) -> None:
    table.append(add(file("a", level=3)), add(file("b", level=4)), add(file("other", level=3), bucket=1))
    counted = index_entry(table.root, {"a": [1, 2, 9], "gone": [0]}, partition("a"), 0)
    uncounted = index_entry(table.root, {"other": [4, 5]}, partition("a"), 1)
    ranges = tuple(replace(vector, cardinality=None) for vector in uncounted.file.dv_ranges or ())
    with_index_files(table, counted, replace(uncounted, file=replace(uncounted.file, dv_ranges=ranges)))
    rows = rows_of(LAYOUT, table).to_pylist()
    found = {row["file_path"].rsplit("/", 1)[-1]: row["masked_record_count"] for row in rows}
    assert found == {"a": 3, "b": 0, "other": 2}


def test_a_table_without_snapshots_has_no_rows_of_the_same_columns(table: CommitTable) -> None:
    for system in (HISTORY, LAYOUT):
        empty = rows_of(system, table)
        assert len(empty) == 0 and empty.schema == system.schema
