"""The live files that a commit checks: those of its buckets or partitions, read once for each snapshot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.commit.live_files import LiveFiles, combine_index
from lakelsm.format.index.index_manifest import IndexFileMeta, IndexManifestEntry
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.types import DataType, parse_type
from tests.commit.commit_table import STRING, CommitTable, ReadingFileIO, add, delete, file, hash_index, partition


def names(entries: list[ManifestEntry]) -> list[str]:
    return sorted(entry.file.file_name for entry in entries)


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    """Partitions a and b with buckets 0 and 1, each in its own manifest; partition c with replaced files."""
    table = CommitTable(tmp_path / "t", file_io=ReadingFileIO())
    for at, (dt, bucket) in enumerate([("a", 0), ("a", 1), ("b", 0), ("b", 1)]):
        table.append(add(file(f"{dt}{bucket}", seq=(at * 10, at * 10 + 9)), dt=dt, bucket=bucket))
    replaced = add(file("replaced", seq=(50, 59)), dt="c")
    table.append(replaced)
    table.compact([delete(replaced), add(file("kept", level=5), dt="c")])
    return table


def live_files(table: CommitTable, partition_type: DataType = STRING) -> LiveFiles:
    fields = [replace(field, type=partition_type) if field.name == "dt" else field for field in table.schema.fields]
    return LiveFiles(replace(table.store, schema=replace(table.schema, fields=tuple(fields))))


def test_only_entries_of_requested_buckets_are_returned(table: CommitTable) -> None:
    snapshot = table.snapshots.latest()
    wanted = {partition("a"): [1], partition("b"): [0], partition("c"): [0]}
    assert names(live_files(table).of_buckets(snapshot, wanted)) == ["a1", "b0", "kept"]
    assert live_files(table).of_buckets(snapshot, {}) == []
    assert live_files(table).of_buckets(None, wanted) == []


def test_only_entries_of_requested_partitions_are_returned(table: CommitTable) -> None:
    snapshot = table.snapshots.latest()
    accepted = {partition("b"), partition("c")}
    assert names(live_files(table).of_partitions(snapshot, accepted.__contains__)) == ["b0", "b1", "kept"]
    assert names(live_files(table).of_partitions(snapshot, None)) == ["a0", "a1", "b0", "b1", "kept"]
    assert live_files(table).of_partitions(None, None) == []


def test_manifests_of_other_partitions_are_not_read(table: CommitTable) -> None:
    assert isinstance(table.file_io, ReadingFileIO)
    snapshot, counts = table.snapshots.latest(), []
    for kind in (STRING, parse_type("DECIMAL(4, 2)")):
        table.file_io.reads.clear()
        live_files(table, kind).of_partitions(snapshot, lambda stored: stored == partition("a"))
        counts.append(len(table.file_io.reads))
    assert counts[0] < counts[1], "bounds of decimals are not used: writers encode them differently"


def test_a_snapshot_is_read_once_and_its_successor_again(table: CommitTable) -> None:
    assert isinstance(table.file_io, ReadingFileIO)
    live, snapshot = live_files(table), table.snapshots.latest()
    first = live.of_partitions(snapshot, None)
    deltas = [live.delta(table.snapshots.get(at)) for at in (1, 2)]
    table.file_io.reads.clear()
    assert live.of_partitions(snapshot, None) is first
    assert [live.delta(table.snapshots.get(1)), live.delta(table.snapshots.get(2))] == deltas
    assert table.file_io.reads == ["snapshot-1", "snapshot-2"], "no manifest"
    newer = table.append(add(file("new", seq=(90, 99)), dt="a"))
    assert names(live.of_partitions(newer, None)) == [*names(first), "new"]
    assert names(live.delta(newer)) == ["new"]


def test_index_files_come_from_the_snapshots_index_manifest(table: CommitTable) -> None:
    entry = hash_index("i")
    snapshot = table.append(add(file("x", seq=(90, 99)), dt="a"), index_adds=[entry])
    assert live_files(table).index(snapshot) == [entry]
    assert live_files(table).index(None) == []


def other_index(name: str) -> IndexManifestEntry:
    return IndexManifestEntry(FileKind.ADD, partition("a"), 0, IndexFileMeta("btree", name, 1, 1))


def test_a_hash_index_replaces_the_one_of_its_bucket_and_other_types_are_identified_by_name() -> None:
    old, elsewhere, tree = hash_index("old"), hash_index("elsewhere", bucket=1), other_index("tree")
    new, more = hash_index("new"), other_index("more")
    previous = [old, elsewhere, tree]
    assert combine_index(previous, [], [new, more]) == [new, elsewhere, tree, more]
    assert combine_index(previous, [hash_index("whatever its name")], []) == [elsewhere, tree]
    assert combine_index(previous, [tree, old], [old]) == [elsewhere, old]
    assert combine_index([], [old], []) == []
