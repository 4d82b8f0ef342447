"""The deletion vectors of a bucket after a compaction: added, kept and dropped ones, in one index file."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from pyroaring import BitMap

from lakelsm.compact.bucket_vectors import IndexChanges, write_vectors
from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.index.index_manifest import DELETION_VECTORS_INDEX, IndexManifestEntry
from lakelsm.format.manifest import ManifestEntry
from lakelsm.runner.task_messages import MaskedPositions
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.manifest_scan import read_index_entries
from tests.compact.local_table import LocalTable, Row, only
from tests.compact.test_compactor import contents

TOP = 5


def numbered(*ids: int, text: str = "") -> list[Row]:
    return [(number, f"{text}{number}") for number in ids]


def table_at(root: Path, **options: str) -> LocalTable:
    """A table whose automatic compactions take level 0 and do not rewrite a much larger top level."""
    return LocalTable(root / "t", deletion_vectors__enabled="true", **options)


def with_top(root: Path, count: int = 2_000, **options: str) -> LocalTable:
    table = table_at(root, **options)
    table.write(*numbered(*range(count)))
    table.compact()
    assert table.levels() == [TOP]
    return table


def vectors_of(table: LocalTable) -> DeletionVectors:
    return deletion_vectors(table.store, table.latest)


def masked(table: LocalTable) -> dict[int, list[int]]:
    """Return the masked rows of live files by level; a level has at most one such file."""
    vectors, filesystem = vectors_of(table), table.store.file_io.filesystem()
    found = {}
    for entry, location in zip(table.live(), vectors.of(table.live())):
        if location is not None:
            found[entry.file.level] = list(location.read(filesystem, entry.file.row_count))
    return found


def index_entries(table: LocalTable) -> list[IndexManifestEntry]:
    store = table.store
    entries = read_index_entries(store.file_io, store.paths, table.latest)
    return [entry for entry in entries if entry.file.index_type == DELETION_VECTORS_INDEX]


def index_files(table: LocalTable) -> set[str]:
    return {path.name for path in table.root.rglob("index/*")}


@pytest.mark.parametrize("bitmap64", ["false", "true"])
def test_new_masked_rows_join_the_existing_vectors_in_one_index_file(tmp_path: Path, bitmap64: str) -> None:
    table = with_top(tmp_path, deletion_vectors__bitmap64=bitmap64)
    table.write(*numbered(3, 5, text="b"))
    assert table.compact(full=False).rows_masked == 2
    assert masked(table) == {TOP: [3, 5]}
    table.write(*numbered(4, 5, text="c"))
    assert table.compact(full=False).rows_masked == 1, "row 5 of the top level was masked before"
    assert masked(table) == {TOP: [3, 4, 5]}, "the runs of the two writes are merged"
    (entry,) = index_entries(table)
    data = Path(table.store.paths.index(entry.file.file_name)).read_bytes()
    assert (entry.file.file_size, entry.file.checksum, entry.file.row_count) == (len(data), zlib.crc32(data), 1)


def test_vectors_of_rewritten_files_are_dropped_with_an_index_file_without_vectors(tmp_path: Path) -> None:
    table = with_top(tmp_path)
    table.write(*numbered(3, text="b"))
    table.compact(full=False)
    (old,) = index_files(table)
    table.compact(full=True)
    assert (table.levels(), masked(table), index_entries(table)) == ([TOP], {}, [])
    assert index_files(table) == {old}, "older snapshots need it"
    assert len(table.rows()) == 2_000


def test_an_upgraded_file_keeps_its_vector(tmp_path: Path) -> None:
    table = with_top(tmp_path, compaction__small_file_ratio="0.00001")
    table.write(*numbered(*range(3_000, 5_000)))
    table.compact(full=False)
    table.delete((3_005, None))
    table.compact(full=False)
    assert (table.levels(), masked(table)) == ([4, TOP], {4: [5]})
    entries, names = index_entries(table), table.names()
    result = table.compact(full=True)
    assert (result.files_upgraded, result.files_written) == (1, 0)
    assert (table.levels(), table.names(), masked(table)) == ([TOP, TOP], names, {TOP: [5]})
    assert index_entries(table) == entries


def write(table: LocalTable, files: list[ManifestEntry], positions: MaskedPositions) -> IndexChanges:
    buckets = sorted({(entry.partition, entry.bucket) for entry in table.live()})
    names = AttemptNames.new(SYSTEM.new_uuid)
    return write_vectors(table.store, vectors_of(table), files, buckets, positions=positions, names=names)


def test_vectors_of_deleted_files_are_dropped_and_others_are_kept(tmp_path: Path) -> None:
    table = with_top(tmp_path)
    table.write(*numbered(3, text="b"))
    table.compact(full=False)
    (top,) = (entry for entry in table.live() if entry.file.level == TOP)
    (other,) = (entry for entry in table.live() if entry.file.level != TOP)
    bucket = top.partition, top.bucket
    added = write(table, [top, other], {bucket: {other.file.file_name: BitMap([0])}})
    (entry,) = added.adds
    assert entry.file.dv_ranges is not None
    assert {found.data_file_name: found.cardinality for found in entry.file.dv_ranges} == {
        top.file.file_name: 1,
        other.file.file_name: 1,
    }
    assert added.masked == 1
    left = write(table, [other], {bucket: {other.file.file_name: BitMap([0])}})
    assert [found.data_file_name for found in left.adds[0].file.dv_ranges or ()] == [other.file.file_name]
    none = write(table, [other], {})
    assert (none.adds, none.deletes, none.masked) == ([], index_entries(table), 0)


def test_each_bucket_has_an_index_file_and_unchanged_ones_are_kept(tmp_path: Path) -> None:
    columns, keys = "dt STRING NOT NULL, id INT NOT NULL, v STRING", ("dt", "id")
    table = LocalTable(tmp_path / "t", columns, keys, ("dt",), bucket="2", deletion_vectors__enabled="true")
    table.write(*[(day, number, "a") for day in "xy" for number in range(1_000)])
    table.compact()
    table.write(*[(day, number, "b") for day in "xy" for number in range(20)])
    table.compact(full=False)
    before = {(entry.partition, entry.bucket): entry.file.file_name for entry in index_entries(table)}
    assert len(before) == len(set(before.values())) == 4
    table.write(*[("x", number, "c") for number in range(40, 60)])
    table.compact(scope=only(table, ("x", 0)))
    after = {(entry.partition, entry.bucket): entry.file.file_name for entry in index_entries(table)}
    assert before.keys() == after.keys()
    assert len(set(before.values()) - set(after.values())) == 1


def damage(table: LocalTable) -> str:
    """Flip a bit of the only vector. Returns the name of its index file."""
    (entry,) = index_entries(table)
    path = Path(table.store.paths.index(entry.file.file_name))
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    return entry.file.file_name


@pytest.mark.parametrize("full", [False, True])
def test_a_damaged_vector_is_named_and_nothing_is_committed(tmp_path: Path, full: bool) -> None:
    table = with_top(tmp_path)
    table.write(*numbered(3, text="b"))
    table.compact(full=False)
    name = damage(table)
    table.write(*numbered(7, text="c"))
    before = contents(table.root)
    with pytest.raises(CorruptTableError, match=name):
        table.compact(full=full)
    assert contents(table.root) == before, "no snapshot, and no file of the attempt"


def test_a_compaction_that_loses_deletes_its_index_files(tmp_path: Path) -> None:
    table = with_top(tmp_path)
    table.write(*numbered(3, text="b"))
    rival = LocalTable(table.root)
    before = index_files(table)

    def interfere() -> None:
        table.runner.after_tasks = None
        rival.overwrite(*numbered(1))

    table.runner.after_tasks = interfere
    result = table.compact(full=False)
    assert result.status.value == "conflict"
    assert index_files(table) == before
    assert table.names() == table.data_files() & table.names()


@pytest.mark.parametrize("threshold", ["0 b", "1 mb"], ids=["beside", "embedded"])
def test_a_file_whose_bloom_filter_has_none_of_the_keys_is_not_opened(tmp_path: Path, threshold: str) -> None:
    filters = {"file_index__bloom_filter__columns": "id", "file_index__in_manifest_threshold": threshold}
    filters |= {"file_index__bloom_filter__id__items": "2000", "file_index__bloom_filter__id__fpp": "0.0001"}
    table = table_at(tmp_path, **filters)
    table.write(*numbered(*range(0, 4_000, 2)))
    table.compact()
    (top,) = table.live()
    table.write(*numbered(4, 7, 3_000, text="new"))
    table.compact(full=False)
    assert masked(table) == {TOP: [2, 1_500]}

    table.path_of(top).rename(tmp_path / "away")
    table.write(*numbered(9, 77, 2_001, text="new"))
    table.compact(full=False)
    (tmp_path / "away").rename(table.path_of(top))
    assert masked(table) == {TOP: [2, 1_500]}
    assert len(table.rows()) == 2_004
