"""System tables of data files, totals, manifests and index files."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.index_manifest import GlobalIndexMeta
from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.maintain.versions.tags import create_tag
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.file_tables import (
    BUCKETS,
    FILE_KEY_RANGES,
    FILES,
    LAYOUT,
    MANIFESTS,
    PARTITIONS,
    TABLE_INDEXES,
)
from lakelsm.system_tables.metadata_tables import COMMITS
from lakelsm.system_tables.system_table import TableState
from tests.commit.commit_table import CommitTable, add, delete, file, hash_index, partition, vector_index
from tests.maintain.expiry.expiry_table import ExpiryTable
from tests.masked_files import index_entry, with_index_files
from tests.system_tables.states import AT_UTC, shown, shown_state


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path)


def test_each_live_file_has_paimons_columns(table: CommitTable) -> None:
    known = file("a.orc", level=3, rows=7, seq=(20, 29), creation_time_millis=1234, file_source=FileSource.COMPACT)
    table.append(add(known, dt="x=1", bucket=1), add(file("b.parquet"), dt=None))
    second, first = sorted(shown(table, FILES), key=lambda row: row["level"])
    root = str(table.root)
    assert first == {
        "partition": "{x=1}",
        "bucket": 1,
        "file_path": f"{root}/dt=x%3D1/bucket-1/a.orc",
        "file_format": "orc",
        "schema_id": 0,
        "level": 3,
        "record_count": 7,
        "file_size_in_bytes": 1000,
        "min_key": "[1]",
        "max_key": "[9]",
        "null_value_counts": "{dt=null, id=null, v=null}",
        "min_value_stats": "{dt=null, id=null, v=null}",
        "max_value_stats": "{dt=null, id=null, v=null}",
        "min_sequence_number": 20,
        "max_sequence_number": 29,
        "creation_time": dt.datetime(1970, 1, 1, 0, 0, 1, 234_000),
        "deleteRowCount": 0,
        "file_source": "COMPACT",
        "first_row_id": None,
        "write_cols": None,
    }
    assert (second["partition"], second["file_source"], second["creation_time"]) == ("{null}", None, None)
    ranges = shown(table, FILE_KEY_RANGES)
    assert list(ranges[0]) == [*list(first)[:10], "first_row_id"]
    assert {row["file_path"]: row["max_key"] for row in ranges} == {row["file_path"]: "[9]" for row in (first, second)}


def test_files_are_those_of_the_chosen_snapshot(table: CommitTable) -> None:
    first = add(file("a"))
    table.append(first)
    table.append(add(file("b")))
    table.compact([delete(first)])
    assert [row["file_path"].rsplit("/", 1)[-1] for row in shown(table, FILES)] == ["b"]
    assert len(shown(table, FILES, 2)) == 2


def test_partitions_and_buckets_have_totals_of_live_files_sorted_by_text(table: CommitTable) -> None:
    removed = add(file("gone", rows=5, creation_time_millis=9000), dt="b", bucket=1)
    emptied = add(file("emptied"), dt="c")
    table.append(removed, emptied, add(file("x", rows=3, creation_time_millis=1000), dt="b", bucket=1))
    table.append(add(file("y", rows=2), dt="a"), add(file("z", rows=1), dt="b", bucket=0), add(dt=None))
    table.compact([delete(removed), delete(emptied)])
    found = shown(table, PARTITIONS)
    assert [row["partition"] for row in found] == ["dt=__DEFAULT_PARTITION__", "dt=a", "dt=b"]
    assert found[2] == {
        "partition": "dt=b",
        "record_count": 4,
        "file_size_in_bytes": 2000,
        "file_count": 2,
        "last_update_time": dt.datetime(1970, 1, 1, 0, 0, 9),
        "created_at": None,
        "created_by": None,
        "updated_by": None,
        "options": None,
        "total_buckets": 2,
        "done": False,
        "deleted_record_count": 0,
    }
    buckets = shown(table, BUCKETS)
    assert [(row["partition"], row["bucket"], row["record_count"], row["file_count"]) for row in buckets] == [
        ("{a}", 0, 2, 1), ("{b}", 0, 1, 1), ("{b}", 1, 3, 1), ("{null}", 0, 10, 1),
    ]
    assert len(shown(table, PARTITIONS, 1)) == 2


def test_masked_rows_are_counted_by_partition_if_vectors_are_enabled(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, options={"deletion-vectors.enabled": "true"})
    table.append(add(file("one")), add(file("two"), dt="b"), add(file("three"), dt="c"))
    unknown = vector_index("w", "two", dt="b")
    ranges = tuple(replace(each, cardinality=None) for each in unknown.file.dv_ranges or ())
    unknown = replace(unknown, file=replace(unknown.file, dv_ranges=ranges))
    with_index_files(table, vector_index("v", "one"), unknown)
    assert [row["deleted_record_count"] for row in shown(table, PARTITIONS)] == [3, None, 0]


def test_a_table_without_snapshots_has_the_columns_and_no_rows(table: CommitTable) -> None:
    state = TableState(TableStore.open(str(table.root)), None)
    for system in (FILES, FILE_KEY_RANGES, PARTITIONS, BUCKETS, LAYOUT, COMMITS):
        empty = system.rows(state)
        assert len(empty) == 0 and empty.schema == system.schema


def test_each_live_file_has_its_path_and_its_counts(table: CommitTable) -> None:
    deleting = file("del.parquet", level=3, rows=7, seq=(20, 29))
    deleting.delete_row_count = 2
    table.append(add(file("a.parquet")), add(deleting, dt="x=1", bucket=1), add(file("n.parquet"), dt=None))
    found = {row["file_path"]: row for row in shown(table, LAYOUT)}
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


def test_each_live_file_has_its_number_of_masked_rows(table: CommitTable) -> None:
    table.append(add(file("a", level=3)), add(file("b", level=4)), add(file("other", level=3), bucket=1))
    counted = index_entry(table.root, {"a": [1, 2, 9], "gone": [0]}, partition("a"), 0)
    uncounted = index_entry(table.root, {"other": [4, 5]}, partition("a"), 1)
    ranges = tuple(replace(vector, cardinality=None) for vector in uncounted.file.dv_ranges or ())
    with_index_files(table, counted, replace(uncounted, file=replace(uncounted.file, dv_ranges=ranges)))
    rows = shown(table, LAYOUT)
    found = {row["file_path"].rsplit("/", 1)[-1]: row["masked_record_count"] for row in rows}
    assert found == {"a": 3, "b": 0, "other": 2}


def test_each_manifest_of_a_snapshot_has_its_counts_and_the_bounds_of_its_partitions(table: CommitTable) -> None:
    table.append(add(dt="b"), add(dt="a"))
    table.append(add(dt=None))
    first, second = shown(table, MANIFESTS)
    assert (first["num_added_files"], first["num_deleted_files"], first["schema_id"]) == (2, 0, 0)
    assert (first["min_partition_stats"], first["max_partition_stats"]) == ("{a}", "{b}")
    assert (second["min_partition_stats"], second["min_row_id"]) == ("{null}", None)
    assert first["file_size"] == table.file_io.size(table.paths.manifest(first["file_name"]))
    assert len(shown(table, MANIFESTS, 1)) == 1


def test_manifests_of_the_changelog_follow_those_of_data(table: CommitTable) -> None:
    table.append(add(dt="a"), changelog_entries=[add(dt="b"), add(dt="c")])
    table.append(add(dt="d"), changelog_entries=[add(dt="e")])
    bounds = [(row["min_partition_stats"], row["max_partition_stats"]) for row in shown(table, MANIFESTS)]
    assert bounds == [("{a}", "{a}"), ("{d}", "{d}"), ("{e}", "{e}")]
    assert [row["num_added_files"] for row in shown(table, MANIFESTS, 1)] == [1, 2]


def test_a_tag_shows_no_changelog_manifests_of_an_expired_snapshot(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path, {"changelog-producer": "input"})
    for _ in range(3):
        table.append(table.new(), changelog_entries=[table.changelog()])
    create_tag(table.store, "kept", table.snapshots.get(1))
    tagged = table.store.tags.get("kept").snapshot
    assert len(shown_state(TableState(table.store, tagged, AT_UTC), MANIFESTS)) == 2
    table.expire_to(1)
    assert not table.file_io.exists(table.paths.manifest(tagged.changelog_manifest_list or ""))
    assert len(shown_state(TableState(table.store, tagged, AT_UTC), MANIFESTS)) == 1


def test_a_missing_changelog_list_of_a_retained_snapshot_is_damage(table: CommitTable) -> None:
    snapshot = table.append(add(), changelog_entries=[add()])
    table.file_io.delete(table.paths.manifest(snapshot.changelog_manifest_list or ""))
    with pytest.raises(CorruptTableError, match="manifest-list"):
        shown(table, MANIFESTS)


def test_each_index_file_has_its_vectors_and_the_columns_that_it_covers(table: CommitTable) -> None:
    table.append(add())
    assert shown(table, TABLE_INDEXES) == []
    vectors = vector_index("v", "one", "two")
    covered = GlobalIndexMeta(
        row_range_start=0, row_range_end=9, index_field_id=0, extra_field_ids=(1,), index_meta=None, source_meta=None
    )
    hashes = hash_index("h", dt="b", bucket=1)
    indexed = replace(hashes, file=replace(hashes.file, file_name="g", global_index=covered))
    dropped = replace(covered, index_field_id=99)
    unknown = replace(indexed, file=replace(indexed.file, file_name="u", global_index=dropped))
    with_index_files(table, vectors, hashes, indexed, unknown)
    found = {row["file_name"]: row for row in shown(table, TABLE_INDEXES)}
    ranges = [
        {"f0": "one", "f1": 1, "f2": 22, "_CARDINALITY": 3},
        {"f0": "two", "f1": 31, "f2": 22, "_CARDINALITY": 3},
    ]
    assert (found["v"]["partition"], found["v"]["bucket"], found["v"]["dv_ranges"]) == ("{a}", 0, ranges)
    assert found["h"] == {
        "partition": "{b}",
        "bucket": 1,
        "index_type": "HASH",
        "file_name": "h",
        "file_size": 8,
        "row_count": 2,
        "dv_ranges": None,
        "row_range_start": None,
        "row_range_end": None,
        "index_field_id": None,
        "index_field_name": None,
    }
    names = [field.name for field in table.schema.fields]
    assert (found["g"]["row_range_end"], found["g"]["index_field_name"]) == (9, f"{names[0]},{names[1]}")
    assert (found["u"]["index_field_id"], found["u"]["index_field_name"]) == (99, None)
