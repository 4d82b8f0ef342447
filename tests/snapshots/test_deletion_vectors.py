"""The deletion vectors of a snapshot: they are found by its index manifest alone, and a wrong one is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, file, hash_index, partition
from tests.masked_files import commit_vectors, index_entry, with_index_files


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    made = CommitTable(tmp_path)
    made.append(add(file("one", level=5)), add(file("two", level=4)), add(file("three", level=5), bucket=1))
    return made


def store_of(table: CommitTable) -> TableStore:
    return TableStore.open(str(table.root))


def latest(table: CommitTable) -> Snapshot:
    found = table.snapshots.latest()
    assert found is not None
    return found


def test_an_empty_table_and_a_snapshot_without_index_files_have_no_vectors(table: CommitTable) -> None:
    store = store_of(table)
    assert deletion_vectors(store, None) == DeletionVectors()
    assert deletion_vectors(store, latest(table)) == DeletionVectors()


def test_each_data_file_has_the_location_of_its_vector_and_vectors_of_missing_files_mask_nothing(
    table: CommitTable,
) -> None:
    first = index_entry(table.root, {"one": [1, 2], "gone": [3]}, partition("a"), 0)
    second = index_entry(table.root, {"three": [7]}, partition("a"), 1, bitmap64=True)
    store = store_of(table)
    with_index_files(table, first, second, hash_index("hashes"))
    vectors = deletion_vectors(store, latest(table))
    live = table.live()
    found = {entry.file.file_name: location for entry, location in zip(live, vectors.of(live))}
    assert found["two"] is None
    wanted = {"one": (first, [1, 2]), "three": (second, [7])}
    for name, (entry, positions) in wanted.items():
        location = found[name]
        assert location is not None and (location.data_file, location.cardinality) == (name, len(positions))
        assert location.index_path == f"{table.root}/index/{entry.file.file_name}"
        assert list(location.read(store.file_io.filesystem(), 10)) == positions
    assert set(vectors.of_bucket(partition("a"), 0)) == {"one", "gone"}
    assert vectors.of_bucket(partition("b"), 0) == {}
    assert [kept.file for kept in vectors.entries[partition("a"), 0]] == [first.file]


def test_each_snapshot_has_its_own_vectors(table: CommitTable) -> None:
    store = store_of(table)
    for count in (1, 2, 3):
        commit_vectors(store, index_entry(table.root, {"one": range(count)}, partition("a"), 0))
    counts = []
    for number in range(1, 5):
        location = deletion_vectors(store, store.snapshots.get(number)).of_bucket(partition("a"), 0).get("one")
        counts.append(location and location.cardinality)
    assert counts == [None, 1, 2, 3]


def test_several_index_files_of_a_bucket_are_read_but_two_vectors_of_a_file_are_refused_by_name(
    table: CommitTable,
) -> None:
    entries = [index_entry(table.root, {name: [1]}, partition("a"), 0) for name in ("one", "two", "one")]
    with_index_files(table, *entries[:2])
    assert set(deletion_vectors(store_of(table), latest(table)).of_bucket(partition("a"), 0)) == {"one", "two"}
    with_index_files(table, *entries)
    names = [entry.file.file_name for entry in entries]
    with pytest.raises(CorruptTableError, match=f"two deletion vectors of data file one, in .*{names[0]} .*{names[2]}"):
        deletion_vectors(store_of(table), latest(table))


def test_an_index_file_without_ranges_of_its_vectors_is_refused_by_name(table: CommitTable) -> None:
    entry = index_entry(table.root, {"one": [1]}, partition("a"), 0)
    with_index_files(table, replace(entry, file=replace(entry.file, dv_ranges=None)))
    with pytest.raises(CorruptTableError, match=f"index-manifest-theirs has no byte ranges .*{entry.file.file_name}"):
        deletion_vectors(store_of(table), latest(table))


def test_an_index_file_outside_of_the_table_is_refused(table: CommitTable) -> None:
    entry = index_entry(table.root, {"one": [1]}, partition("a"), 0)
    with_index_files(table, replace(entry, file=replace(entry.file, external_path="/elsewhere/index-1")))
    with pytest.raises(UnsupportedFeatureError, match=f"{entry.file.file_name} .*/elsewhere/index-1"):
        deletion_vectors(store_of(table), latest(table))


def test_an_index_file_that_is_a_link_out_of_the_table_is_refused(
    table: CommitTable, tmp_path_factory: pytest.TempPathFactory
) -> None:
    entry = index_entry(table.root, {"one": [1]}, partition("a"), 0)
    commit_vectors(store_of(table), entry)
    path = table.root / "index" / entry.file.file_name
    elsewhere = path.rename(tmp_path_factory.mktemp("elsewhere") / path.name)
    path.symlink_to(elsewhere)
    with pytest.raises(CorruptTableError, match=entry.file.file_name):
        deletion_vectors(store_of(table), latest(table))


def test_a_missing_index_manifest_is_named(table: CommitTable) -> None:
    commit_vectors(store_of(table), index_entry(table.root, {"one": [1]}, partition("a"), 0))
    name = latest(table).index_manifest
    (table.root / "manifest" / str(name)).unlink()
    with pytest.raises(CorruptTableError, match=f"{name} is missing, but snapshot 2 names it"):
        deletion_vectors(store_of(table), latest(table))
    assert deletion_vectors(store_of(table), table.snapshots.get(1)) == DeletionVectors()
