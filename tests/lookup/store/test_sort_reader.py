"""Files of sort stores, opened and read: only the needed parts, and no damaged ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptStoreError
from lakelsm.format.row.bucket_hash import hash_bytes
from lakelsm.format.row.row_bytes import RowBytes
from lakelsm.lookup.store.lookup_store import BlockCache
from lakelsm.lookup.store.sort_block import BlockCompression, BlockForm
from lakelsm.lookup.store.sort_reader import SortFileReader
from lakelsm.lookup.store.sort_writer import SortFileWriter
from tests.lookup.store.test_sort_writer import written

DIGEST = b"m" * 16
ENTRIES = [(b"%06d" % number, b"value %d" % number) for number in range(120)]
FORM = BlockForm(300, compression=BlockCompression.ZSTD, bloom_fpp=0.05)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "f.sort"
    file.write_bytes(written(ENTRIES, FORM, DIGEST))
    yield file


def read_all(path: Path, digest: bytes | None = DIGEST) -> int:
    reader = SortFileReader(path, BlockCache(1 << 20), digest)
    try:
        return sum(len(block) for block in reader.blocks(range(len(reader.last_keys.starts))))
    finally:
        reader.close()


def test_cached_blocks_are_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[tuple[int, int]] = []
    pread = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        reads.append((size, offset))
        return pread(descriptor, size, offset)

    reader = SortFileReader(path, BlockCache(1 << 20), DIGEST)
    monkeypatch.setattr(os, "pread", counted)
    found = [bytes(block) for block in reader.blocks([0, 1, 2, 5])]
    assert len(reads) == 4
    assert [bytes(block) for block in reader.blocks([0, 1, 2, 5])] == found
    assert [bytes(block) for block in reader.blocks([1])] == found[1:2]
    assert len(reads) == 4
    assert len(list(reader.blocks([1, 2, 3, 4, 5, 6]))) == 6
    assert len(reads) == 7
    reader.close()


def test_each_changed_byte_is_reported_with_its_part(path: Path) -> None:
    whole = path.read_bytes()
    for offset in [*range(0, len(whole) - 80, 5), *range(len(whole) - 80, len(whole))]:
        damaged = bytearray(whole)
        damaged[offset] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(CorruptStoreError, match=r"f\.sort: .*"):
            read_all(path)


def test_a_file_truncated_while_open_is_reported(path: Path) -> None:
    reader = SortFileReader(path, BlockCache(0), DIGEST)
    os.truncate(path, 10)
    with pytest.raises(CorruptStoreError, match="ends before byte"):
        list(reader.blocks([3]))
    reader.close()


def test_a_file_of_other_rows_or_without_a_digest_or_a_missing_file_is_not_opened(path: Path) -> None:
    with pytest.raises(CorruptStoreError, match="has other rows"):
        read_all(path, b"n" * 16)
    path.write_bytes(written(ENTRIES, FORM))
    with pytest.raises(CorruptStoreError, match="followed by 0 bytes instead of 20"):
        read_all(path)
    assert read_all(path, None) > 0
    path.unlink()
    with pytest.raises(CorruptStoreError, match="is missing"):
        read_all(path)


def test_a_bloom_filter_without_a_checksum_is_not_used(path: Path) -> None:
    reader = SortFileReader(path, BlockCache(0), DIGEST)
    assert reader.bloom is not None and reader.bloom.entries == len(ENTRIES)
    reader.close()
    path.write_bytes(written(ENTRIES, FORM))
    reader = SortFileReader(path, BlockCache(0))
    assert reader.bloom is None
    reader.close()


def test_an_index_that_is_compressed_is_read(path: Path) -> None:
    with path.open("wb") as file:
        writer = SortFileWriter(file, BlockForm(20, compression=BlockCompression.LZ4), DIGEST)
        writer.put(pa.array([b"k" * 500 + b"%03d" % n for n in range(9)]), pa.array([b"v"] * 9))
        writer.finish()
    assert read_all(path) > 9 * 500


def test_a_file_of_another_engine_is_verified_and_gets_a_bloom_filter_of_its_keys(path: Path) -> None:
    path.write_bytes(written(ENTRIES, FORM))
    reader = SortFileReader(path, BlockCache(0))
    seen: list[int] = []
    reader.verify(len(ENTRIES), 0.05, lambda keys, values: seen.extend((keys.lengths + values.lengths).tolist()))
    assert seen == [len(key) + len(value) for key, value in ENTRIES]
    assert reader.bloom is not None
    assert reader.bloom.may_have(hash_bytes(RowBytes.of(pa.array([key for key, _ in ENTRIES])))).all()
    others = pa.array([b"other %d" % number for number in range(1000)])
    assert reader.bloom.may_have(hash_bytes(RowBytes.of(others))).mean() < 0.15
    with pytest.raises(CorruptStoreError, match="has 120 entries instead of 119"):
        reader.verify(119, None, lambda keys, values: None)
    reader.close()
