"""The entries of a snapshot are read from its manifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.file_names import CommitFileNames
from lakelsm.format.index.index_manifest import IndexFileMeta, IndexManifestEntry, encode_index_manifest
from lakelsm.format.manifest import (
    EMPTY_STATS,
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    SimpleStats,
    encode_manifest,
    encode_manifest_list,
)
from lakelsm.format.manifest.manifest_list import summarize
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.snapshots.manifest_scan import (
    read_changelog_entries,
    read_delta_entries,
    read_index_entries,
    read_live_batches,
    read_live_counts,
    read_live_entries,
    read_manifest,
    read_manifest_metas,
)
from lakelsm.storage import LocalFileIO
from tests.format.manifest.manifest_samples import entry, golden_files, int_row, manifest_of_small_blocks

FILE_IO = LocalFileIO()


class MetadataTable:
    """Snapshots whose manifests hold given entries; no data files. ``lanes``: manifests of many blocks."""

    def __init__(self, root: Path, lanes: bool = False) -> None:
        self.paths = TablePaths(str(root))
        self._names = CommitFileNames("u")
        self._encode = manifest_of_small_blocks if lanes else encode_manifest

    def manifest(self, *entries: ManifestEntry) -> ManifestFileMeta:
        data = self._encode(list(entries))
        name = self._names.manifest()
        FILE_IO.write(self.paths.manifest(name), data)
        return summarize(name, len(data), entries, [])

    def snapshot(
        self,
        base: Sequence[ManifestFileMeta],
        delta: Sequence[ManifestFileMeta] = (),
        changelog: Sequence[ManifestFileMeta] | None = None,
    ) -> Snapshot:
        lists = [None if metas is None else self._list(metas) for metas in (base, delta, changelog)]
        (base_name, base_size), (delta_name, delta_size), changes = lists[0], lists[1], lists[2]
        return Snapshot(
            id=4,
            schema_id=0,
            base_manifest_list=base_name,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_name,
            delta_manifest_list_size=delta_size,
            changelog_manifest_list=changes[0] if changes else None,
            commit_user="u",
            commit_identifier=1,
            commit_kind=CommitKind.APPEND,
            time_millis=0,
            total_record_count=0,
            delta_record_count=0,
        )

    def _list(self, metas: Sequence[ManifestFileMeta]) -> tuple[str, int]:
        name, data = self._names.manifest_list(), encode_manifest_list(metas)
        FILE_IO.write(self.paths.manifest(name), data)
        return name, len(data)

    def live(self, snapshot: Snapshot, **filters: object) -> list[str]:
        entries = read_live_entries(FILE_IO, self.paths, snapshot, **filters)  # type: ignore[arg-type]
        assert all(item.kind == FileKind.ADD for item in entries)
        return [item.file.file_name for item in entries]


@pytest.fixture(params=[False, True], ids=["records", "lanes"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> MetadataTable:
    return MetadataTable(tmp_path, lanes=request.param)


def adds(count: int, prefix: str = "f") -> list[ManifestEntry]:
    return [
        entry(f"{prefix}{number}", bucket=number % 4, partition=int_row(number % 3))
        for number in range(count)
    ]


def delete(added: ManifestEntry) -> ManifestEntry:
    return replace(added, kind=FileKind.DELETE)


def test_live_files_are_the_added_files_without_the_deleted_ones(table: MetadataTable) -> None:
    old, new = adds(60), adds(50, "g")
    snapshot = table.snapshot(
        [table.manifest(*old[:30]), table.manifest(*old[30:])],
        [table.manifest(*(delete(item) for item in old[::2]), *new)],
    )
    expected = [item.file.file_name for item in old[1::2] + new]
    assert table.live(snapshot) == expected


def test_a_delete_cancels_in_any_position(table: MetadataTable) -> None:
    added = adds(40)
    snapshot = table.snapshot([table.manifest(*map(delete, added[:39]))], [table.manifest(*added)])
    assert table.live(snapshot) == ["f39"]


def test_an_upgraded_file_is_live_on_its_new_level_only(table: MetadataTable) -> None:
    old = adds(40)
    moved = [replace(item, file=item.file.upgraded(5)) for item in old]
    snapshot = table.snapshot([table.manifest(*old)], [table.manifest(*map(delete, old), *moved)])
    assert read_live_entries(FILE_IO, table.paths, snapshot) == moved


@pytest.mark.parametrize(
    "change",
    [
        {"level": 1},
        {"extra_files": ("x.index",)},
        {"embedded_index": b"x"},
        {"external_path": "file:/x"},
    ],
)
def test_a_delete_of_another_identity_cancels_nothing(
    table: MetadataTable, change: dict[str, object]
) -> None:
    added = adds(40)
    others = [delete(replace(item, file=replace(item.file, **change))) for item in added]  # type: ignore[arg-type]
    assert len(table.live(table.snapshot([table.manifest(*added, *others)]))) == 40


def test_the_same_name_in_another_bucket_or_partition_is_another_file(table: MetadataTable) -> None:
    added = adds(40)
    others = [delete(replace(item, bucket=item.bucket + 1)) for item in added[:20]]
    others += [delete(replace(item, partition=int_row(9))) for item in added[20:]]
    assert len(table.live(table.snapshot([table.manifest(*added, *others)]))) == 40


def test_entries_are_filtered_by_partition_bucket_and_manifest(table: MetadataTable) -> None:
    old = adds(60)
    metas = [table.manifest(*old[:30]), table.manifest(*old[30:], *map(delete, old[:6]))]
    snapshot = table.snapshot(metas)
    filtered: list[bytes] = []

    def partition_one(partitions: Sequence[bytes]) -> list[bool]:
        filtered.extend(partitions)
        return [partition == int_row(1) for partition in partitions]

    expected = [f"f{number}" for number in range(6, 60) if number % 3 == 1]
    assert table.live(snapshot, keep_partitions=partition_one) == expected
    assert len(filtered) == len(set(filtered)) * (len(filtered) // 3), "the filter gets distinct partitions"
    expected = [f"f{number}" for number in range(6, 60) if number % 4 == 2]
    assert table.live(snapshot, keep_buckets=lambda buckets, totals: buckets == 2 * (totals == 4)) == expected
    expected = [f"f{number}" for number in range(30, 60)]
    assert table.live(snapshot, keep_manifest=lambda meta: meta.num_deleted_files > 0) == expected
    assert table.live(snapshot, keep_buckets=lambda buckets, _: np.zeros(len(buckets), np.bool_)) == []


def test_a_scan_without_statistics_gives_the_same_files(table: MetadataTable) -> None:
    stats = SimpleStats(int_row(1), int_row(9), (0,))
    added = [replace(item, file=replace(item.file, value_stats=stats)) for item in adds(40)]
    snapshot = table.snapshot([table.manifest(*added)])
    assert read_live_entries(FILE_IO, table.paths, snapshot) == added
    bare = read_live_entries(FILE_IO, table.paths, snapshot, stats=False)
    assert [item.identity for item in bare] == [item.identity for item in added]
    assert all(item.file.value_stats in (EMPTY_STATS, stats) for item in bare)


def test_a_manifest_without_entries_by_its_counts_is_not_opened(table: MetadataTable) -> None:
    meta = ManifestFileMeta(
        "manifest-missing", 1, num_added_files=0, num_deleted_files=0, partition_stats=EMPTY_STATS, schema_id=0
    )
    assert table.live(table.snapshot([meta])) == []


def test_an_empty_table_has_no_entries(table: MetadataTable) -> None:
    snapshot = table.snapshot([])
    assert table.live(snapshot) == []
    assert read_delta_entries(FILE_IO, table.paths, snapshot) == []
    assert read_changelog_entries(FILE_IO, table.paths, snapshot) == []
    assert read_index_entries(FILE_IO, table.paths, snapshot) == []


def test_the_delta_has_adds_and_deletes_in_order(table: MetadataTable) -> None:
    old, new = adds(40), adds(40, "g")
    delta = [*map(delete, old), *new]
    snapshot = table.snapshot(
        [table.manifest(*old)], [table.manifest(*delta[:50]), table.manifest(*delta[50:])]
    )
    assert read_delta_entries(FILE_IO, table.paths, snapshot) == delta
    first = delta[0].partition
    some = read_delta_entries(
        FILE_IO, table.paths, snapshot, keep_partitions=lambda partitions: [one == first for one in partitions]
    )
    assert some == [item for item in delta if item.partition == first]
    metas = read_manifest_metas(FILE_IO, table.paths, snapshot)
    assert [read_manifest(FILE_IO, table.paths, meta) for meta in metas] == [old, delta[:50], delta[50:]]


def test_the_changelog_is_separate_from_the_data(table: MetadataTable) -> None:
    changes = adds(40, "changelog-")
    snapshot = table.snapshot([], [], [table.manifest(*changes)])
    assert read_changelog_entries(FILE_IO, table.paths, snapshot) == changes
    assert table.live(snapshot) == []


def test_index_files_are_those_of_the_one_index_manifest(table: MetadataTable) -> None:
    entries = [IndexManifestEntry(FileKind.ADD, int_row(), 0, IndexFileMeta("HASH", "index-u-0", 4, 1))]
    FILE_IO.write(table.paths.manifest("index-manifest-u-0"), encode_index_manifest(entries))
    snapshot = replace(table.snapshot([]), index_manifest="index-manifest-u-0")
    assert read_index_entries(FILE_IO, table.paths, snapshot) == entries


def test_a_missing_file_is_named(table: MetadataTable) -> None:
    meta = table.manifest(*adds(40))
    snapshot = replace(table.snapshot([meta]), index_manifest="index-manifest-missing")
    FILE_IO.delete(table.paths.manifest(meta.file_name))
    with pytest.raises(CorruptTableError, match=f"{meta.file_name} is missing"):
        table.live(snapshot)
    with pytest.raises(CorruptTableError, match="index-manifest-missing is missing, but snapshot 4"):
        read_index_entries(FILE_IO, table.paths, snapshot)
    with pytest.raises(CorruptTableError, match="manifest-list-missing is missing, but snapshot 4"):
        table.live(replace(snapshot, base_manifest_list="manifest-list-missing"))


def test_a_file_cut_between_two_blocks_is_named(table: MetadataTable) -> None:
    entries = adds(40)
    data = manifest_of_small_blocks(entries)
    path = table.paths.manifest("manifest-cut")
    FILE_IO.write(path, data)
    meta = summarize("manifest-cut", len(data), entries, [])
    snapshot = table.snapshot([meta])
    FILE_IO.write(path, data[: data.rindex(data[-16:], 0, -16) + 16])
    with pytest.raises(CorruptTableError, match=r"manifest-cut has .* bytes instead of"):
        table.live(snapshot)


def test_a_damaged_manifest_is_named(table: MetadataTable) -> None:
    meta = table.manifest(*adds(40))
    snapshot = table.snapshot([meta])
    FILE_IO.write(table.paths.manifest(meta.file_name), bytes(meta.file_size))
    with pytest.raises(CorruptTableError, match=meta.file_name):
        table.live(snapshot)


def test_live_files_of_every_golden_snapshot_exist_and_sum_up_to_its_rows(tmp_path: Path) -> None:
    snapshots = 0
    for name, path in golden_files(tmp_path, "*/snapshot/snapshot-*"):
        root = path.parents[1]
        snapshot = Snapshot.from_json(path.read_text(), name)
        live = read_live_entries(FILE_IO, TablePaths(str(root)), snapshot)
        on_disk = {file.name for file in root.rglob("bucket-*/data-*")}
        assert {item.file.file_name for item in live} <= on_disk, name
        assert sum(item.file.row_count for item in live) == snapshot.total_record_count, name
        delta = read_delta_entries(FILE_IO, TablePaths(str(root)), snapshot)
        signs = {FileKind.ADD: 1, FileKind.DELETE: -1}
        rows = sum(signs[FileKind(item.kind)] * item.file.row_count for item in delta)
        assert rows == snapshot.delta_record_count, name
        changes = read_changelog_entries(FILE_IO, TablePaths(str(root)), snapshot)
        assert sum(item.file.row_count for item in changes) == (snapshot.changelog_record_count or 0), name
        snapshots += 1
    assert snapshots > 40


def test_golden_index_files_belong_to_live_buckets(tmp_path: Path) -> None:
    for name, path in golden_files(tmp_path, "*/snapshot/LATEST"):
        root = path.parents[1]
        snapshot = Snapshot.from_json((root / "snapshot" / f"snapshot-{path.read_text()}").read_text(), name)
        paths = TablePaths(str(root))
        buckets = {(item.partition, item.bucket) for item in read_live_entries(FILE_IO, paths, snapshot)}
        for index in read_index_entries(FILE_IO, paths, snapshot):
            assert (index.partition, index.bucket) in buckets, name


def test_a_manifest_that_is_listed_twice_is_refused(table: MetadataTable) -> None:
    meta = table.manifest(*adds(3))
    for snapshot in (table.snapshot([meta, meta]), table.snapshot([meta], [meta])):
        with pytest.raises(CorruptTableError, match=f"of snapshot 4 name .*{meta.file_name} 2 times"):
            table.live(snapshot)
        with pytest.raises(CorruptTableError, match="2 times"):
            read_live_counts(FILE_IO, table.paths, snapshot)


def test_a_file_that_is_added_twice_is_refused_unless_both_were_deleted(table: MetadataTable) -> None:
    twice = adds(3)[0]
    other = replace(twice, bucket=twice.bucket + 1)
    with pytest.raises(CorruptTableError, match="Snapshot 4 adds data file 'f0' twice"):
        table.live(table.snapshot([table.manifest(*adds(3))], [table.manifest(twice)]))
    with pytest.raises(CorruptTableError, match="Snapshot 4 adds data file 'f0' twice"):
        read_live_batches(FILE_IO, table.paths, table.snapshot([table.manifest(*adds(3))], [table.manifest(twice)]))
    assert table.live(table.snapshot([table.manifest(twice, twice)], [table.manifest(delete(twice))])) == []
    assert table.live(table.snapshot([table.manifest(twice, other)])) == ["f0", "f0"]
