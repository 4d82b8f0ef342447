"""System tables of manifests and index files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.index_manifest import GlobalIndexMeta
from lakelsm.maintain.system_tables.manifest_tables import MANIFESTS, TABLE_INDEXES
from lakelsm.maintain.system_tables.system_table import TableState
from lakelsm.maintain.versions.tags import create_tag
from tests.commit.commit_table import CommitTable, add, hash_index, vector_index
from tests.maintain.expiry.expiry_table import ExpiryTable
from tests.maintain.system_tables.states import AT_UTC, shown, shown_state
from tests.masked_files import with_index_files


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path)


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
