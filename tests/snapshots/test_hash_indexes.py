"""HASH index files are checked before they are used: known keys never get a second bucket. No JVM."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.hash_index import decode_hashes, encode_hashes
from lakelsm.format.index.index_manifest import IndexFileMeta, IndexManifestEntry, encode_index_manifest
from lakelsm.format.snapshot import CHECKSUMS_KEY
from lakelsm.snapshots.manifest_scan import read_index_entries
from tests.compact.local_table import LocalTable

ROWS = [(key, f"v{key}") for key in range(10)]


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    """Ten keys in buckets of four."""
    table = LocalTable(tmp_path / "t", bucket="-1", dynamic_bucket__target_row_num="4")
    table.write(*ROWS)
    return table


def indexes(table: LocalTable) -> list[IndexManifestEntry]:
    return read_index_entries(table.store.file_io, table.store.paths, table.latest)


def path_of(table: LocalTable, bucket: int) -> Path:
    (entry,) = (entry for entry in indexes(table) if entry.bucket == bucket)
    return table.root / "index" / entry.file.file_name


def rewrite(table: LocalTable, change: Callable[[list[IndexManifestEntry]], list[IndexManifestEntry]]) -> None:
    """Give the newest snapshot other index entries, without checksums, as another engine does."""
    name = table.latest.index_manifest
    assert name is not None
    entries = [replace(entry, file=replace(entry.file, checksum=None)) for entry in change(indexes(table))]
    rewrite_snapshot(table, indexManifest=name)
    (table.root / "manifest" / name).write_bytes(encode_index_manifest(entries))


def rewrite_snapshot(table: LocalTable, **changes: object) -> None:
    """Change keys of the newest snapshot (None: remove), without checksums, as another engine does."""
    path = table.root / "snapshot" / f"snapshot-{table.latest.id}"
    document = {**json.loads(path.read_bytes()), **changes, CHECKSUMS_KEY: None}
    path.write_text(json.dumps({key: value for key, value in document.items() if value is not None}))


def test_keys_of_a_valid_index_stay_in_their_buckets(table: LocalTable) -> None:
    table.write(*((key, "again") for key in range(12)))
    assert table.rows() == [(key, "again") for key in range(12)]
    assert sum(entry.file.row_count for entry in indexes(table)) == 12


def test_a_missing_index_file_is_named_with_its_bucket_and_the_remedy(table: LocalTable) -> None:
    path = path_of(table, 1)
    path.unlink()
    with pytest.raises(CorruptTableError, match=rf"{path} of table {table.root}, bucket 1 is missing\. Restore"):
        table.write((1, "x"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-4],
        lambda data: data + b"\0\0\0\1",
        lambda data: b"",
        lambda data: data[:-1],
    ],
    ids=["cut", "longer", "empty", "no whole hashes"],
)
def test_an_index_file_of_another_size_is_refused(table: LocalTable, damage: Callable[[bytes], bytes]) -> None:
    path = path_of(table, 0)
    path.write_bytes(damage(path.read_bytes()))
    before = table.latest.id
    with pytest.raises(CorruptTableError, match=str(path)):
        table.write((1, "x"))
    assert table.latest.id == before


def test_a_row_count_that_contradicts_the_size_is_refused(table: LocalTable) -> None:
    rewrite(table, lambda found: [replace(e, file=replace(e.file, row_count=3)) for e in found])
    with pytest.raises(CorruptTableError, match="has 4 hashes in 16 bytes instead of 3 hashes in 16 bytes"):
        table.write((1, "x"))


def test_the_index_file_of_another_bucket_is_refused_if_hashes_then_have_two_buckets(table: LocalTable) -> None:
    rewrite(table, list)
    path_of(table, 0).write_bytes(path_of(table, 1).read_bytes())
    with pytest.raises(CorruptTableError, match="4 key hashes occur more than once"):
        table.write((1, "x"))


def test_a_duplicate_hash_in_a_file_is_refused(table: LocalTable) -> None:
    rewrite(table, list)
    path = path_of(table, 0)
    hashes = decode_hashes(path.read_bytes())
    path.write_bytes(encode_hashes(np.array([hashes[0], *hashes[:-1]], np.int32)))
    with pytest.raises(CorruptTableError, match="1 key hashes occur more than once"):
        table.write((1, "x"))


def test_two_index_files_of_one_bucket_are_refused(table: LocalTable) -> None:
    rewrite(table, lambda found: [*found, replace(found[1], bucket=found[0].bucket)])
    with pytest.raises(CorruptTableError, match=r"table .*, bucket 0 has two HASH index files \("):
        table.write((1, "x"))


@pytest.mark.parametrize("bucket", [-1, -2, 40_000])
def test_an_index_file_of_an_impossible_bucket_is_refused(table: LocalTable, bucket: int) -> None:
    rewrite(table, lambda found: [replace(found[0], bucket=bucket), *found[1:]])
    with pytest.raises(CorruptTableError, match="is not a number from 0 to 32767"):
        table.write((1, "x"))


def test_a_missing_index_manifest_is_refused(table: LocalTable) -> None:
    (table.root / "manifest" / str(table.latest.index_manifest)).unlink()
    with pytest.raises(CorruptTableError, match="is missing, but snapshot 1 names it"):
        table.write((1, "x"))


@pytest.mark.parametrize("emptied", [False, True], ids=["key missing", "no entries"])
def test_a_table_with_dynamic_buckets_and_no_index_refuses_writes(table: LocalTable, emptied: bool) -> None:
    if emptied:
        rewrite(table, lambda found: [])
    else:
        rewrite_snapshot(table, indexManifest=None)
    with pytest.raises(CorruptTableError, match=r"^Table .*: snapshot 1 has 3 data files in dynamic buckets and no HASH"):
        table.write((1, "x"))
    table.overwrite((1, "x"), (2, "y"))
    table.write((2, "z"))
    assert table.rows() == [(1, "x"), (2, "z")]


def test_an_emptied_table_has_no_index_and_accepts_writes(table: LocalTable) -> None:
    table.overwrite()
    assert table.latest.index_manifest is None
    table.write(*ROWS)
    assert table.rows() == ROWS


def test_index_files_of_other_kinds_are_kept(table: LocalTable) -> None:
    other = IndexManifestEntry(0, indexes(table)[0].partition, 0, IndexFileMeta("btree", "global-index-1", 7, 3))
    rewrite(table, lambda found: [*found, other])
    table.write((77, "x"))
    assert other in indexes(table)
    assert table.rows() == [*ROWS, (77, "x")]


def test_the_partition_is_named_by_its_values(tmp_path: Path) -> None:
    table = LocalTable(
        tmp_path / "t", "p STRING NOT NULL, id INT NOT NULL", ("p", "id"), ("p",), bucket="-1"
    )
    table.write(("a", 1), ("b", 1))
    for name in os.listdir(table.root / "index"):
        (table.root / "index" / name).unlink()
    with pytest.raises(CorruptTableError, match=r"table \S+, partition p=b, bucket 0 is missing"):
        table.write(("b", 1))


def test_other_hashes_of_the_same_number_are_detected_by_the_checksum(table: LocalTable) -> None:
    path = path_of(table, 1)
    path.write_bytes(bytes(byte ^ 0x55 for byte in path.read_bytes()))
    with pytest.raises(CorruptTableError, match=f"{path} of table {table.root}, bucket 1 is damaged: its checksum"):
        table.write((1, "x"))
    table.overwrite(*ROWS)
    assert all(entry.file.checksum is not None for entry in indexes(table))
