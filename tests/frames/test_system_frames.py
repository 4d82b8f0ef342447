"""What is in a table, as small DataFrames."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.errors import CorruptTableError
from lakelsm.frames import system_frames
from lakelsm.frames.system_frames import files_frame, snapshots_frame
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, file, partition
from tests.masked_files import index_entry, with_index_files
from tests.spark_frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Session:
    """A session whose DataFrames are the Arrow tables that they are made of."""

    @staticmethod
    def createDataFrame(table: pa.Table) -> pa.Table:
        return table


def frame(make: Any, *arguments: Any) -> pa.Table:
    return make(Session(), *arguments)


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path)


def store_of(table: CommitTable) -> TableStore:
    return TableStore.open(str(table.root))


def test_each_snapshot_has_its_counts_and_what_it_did(table: CommitTable) -> None:
    table.append(add(file(rows=10)), changelog_entries=[add(file(rows=4))])
    table.append(add(file(rows=5)), add(file(rows=1), dt="b"))
    table.compact([add(file(rows=12, level=5))])
    table.overwrite(add(file(rows=3), dt="b"), partitions=["b"])
    found = frame(snapshots_frame, store_of(table)).to_pylist()
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
    real = system_frames.read_delta_metas

    def expiring(file_io: Any, paths: Any, snapshot: Any) -> Any:
        if snapshot.id == 1:
            table.file_io.delete(paths.manifest(snapshot.delta_manifest_list))
            if expires:
                table.file_io.delete(paths.snapshot_file(1))
        return real(file_io, paths, snapshot)

    monkeypatch.setattr(system_frames, "read_delta_metas", expiring)
    expires = False
    with pytest.raises(CorruptTableError):
        frame(snapshots_frame, store_of(table))
    expires = True
    assert frame(snapshots_frame, store_of(table)).column("snapshot_id").to_pylist() == [2]


def test_each_live_file_has_its_place_and_its_counts(table: CommitTable) -> None:
    deleting = file("del.parquet", level=3, rows=7, seq=(20, 29))
    deleting.delete_row_count = 2
    table.append(add(file("a.parquet")), add(deleting, dt="x=1", bucket=1), add(file("n.parquet"), dt=None))
    store = store_of(table)
    found = {row["file_path"]: row for row in frame(files_frame, store, store.snapshots.latest()).to_pylist()}
    root = store.paths.root
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
    store = store_of(table)
    with_index_files(table, counted, replace(uncounted, file=replace(uncounted.file, dv_ranges=ranges)))
    rows = frame(files_frame, store, store.snapshots.latest()).to_pylist()
    found = {row["file_path"].rsplit("/", 1)[-1]: row["masked_record_count"] for row in rows}
    assert found == {"a": 3, "b": 0, "other": 2}


def test_a_table_without_snapshots_has_empty_frames_of_the_same_columns(table: CommitTable) -> None:
    store = store_of(table)
    empty = frame(snapshots_frame, store), frame(files_frame, store, None)
    table.append(add())
    for found, filled in zip(empty, (frame(snapshots_frame, store), frame(files_frame, store, store.snapshots.latest()))):
        assert len(found) == 0
        assert found.schema == filled.schema


def test_a_write_a_delete_an_overwrite_and_a_compaction_are_told_apart_and_partitions_by_their_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Catalog(str(tmp_path), spark).create_table(
        "db.told",
        "dt DATE, id INT, v STRING",
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "1", "write-only": "true", "overwrite-upgrade": "false", "changelog-producer": "input"},
    )
    day = date(2025, 12, 31)
    rows = [(day, 1, "a"), (day, 2, "b")]
    table.write(frame_of(spark, rows, "dt DATE, id INT, v STRING"))
    table.delete("id = 1")
    table.compact(full=True)
    table.overwrite(frame_of(spark, rows[:1], "dt DATE, id INT, v STRING"), {"dt": day})
    table.overwrite(spark.createDataFrame([], "dt DATE, id INT, v STRING"))
    told = ["commit_kind", "operation", "delta_record_count", "changelog_record_count"]
    counts = ["added_file_count", "deleted_file_count"]
    assert [tuple(row) for row in table.snapshots().select(*told, *counts).collect()] == [
        ("APPEND", "WRITE", 2, 2, 1, 0),
        ("APPEND", "DELETE", 1, 1, 1, 0),
        ("COMPACT", "COMPACT", -2, 0, 1, 2),
        ("OVERWRITE", "OVERWRITE", 0, 0, 1, 1),
        ("OVERWRITE", "OVERWRITE", 0, 0, 0, 0),
    ]
    assert {row.partition for row in table.files().collect()} == {"dt=2025-12-31"}
    assert {row.partition for row in table.buckets().collect()} == {"dt=2025-12-31"}
    table.overwrite(spark.createDataFrame([], "id INT, v STRING"), {"dt": day})
    assert table.read().count() == 0 and table.files().count() == 0
