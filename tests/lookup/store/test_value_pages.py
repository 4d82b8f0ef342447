"""Values of hash stores are read back unchanged, in pages of any size."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.lookup.store import value_pages
from lakelsm.lookup.store.lookup_store import BlockCache
from lakelsm.lookup.store.sort_block import BlockCompression
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter
from lakelsm.lookup.store.value_pages import ValuePages, ValueWriter


def pages_of(
    path: Path, blocks: list[list[bytes]], cache: BlockCache, *, page_bytes: int, compression: BlockCompression
) -> tuple[ValuePages, np.ndarray]:
    with StoreFileWriter(path) as file:
        writer = ValueWriter(file, page_bytes=page_bytes, compression=compression)
        positions = [writer.add(pa.array(block, pa.binary())) for block in blocks]
        writer.finish()
        file.finish({})
    return ValuePages(StoreFile(path), cache), np.concatenate(positions)


@pytest.mark.parametrize("compression", BlockCompression)
@pytest.mark.parametrize("page_bytes", [8, 64, 800, 80_000])
@pytest.mark.parametrize("at_once", [1, 100, 1 << 20])
def test_values_are_read_back_unchanged(
    compression: BlockCompression, page_bytes: int, at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_pages, "_AT_ONCE", at_once)
    chance = Random(5)

    def value() -> bytes:
        words = chance.randrange(1, 30)
        return chance.randbytes(8 * words) if chance.random() < 0.5 else bytes(8 * words)

    blocks = [[value() for _ in range(count)] for count in (1, 50, 7)]
    plain = [value for block in blocks for value in block]
    cache = BlockCache(5_000)
    pages, positions = pages_of(tmp_path / "s", blocks, cache, page_bytes=page_bytes, compression=compression)
    for searched in ([], [3], list(range(58)), [57, 0, 57, 57, 30], chance.choices(range(58), k=200)):
        found: dict[int, bytes] = {}
        for numbers, values in pages.values(positions[searched]):
            found.update(zip(numbers.tolist(), values.to_pylist(), strict=True))
        assert [found[number] for number in range(len(searched))] == [plain[at] for at in searched]
    assert cache.bytes <= 5_000
    pages.close()
    assert cache.bytes == 0


def test_pages_have_whole_values_and_are_not_compressed_if_that_saves_nothing(tmp_path: Path) -> None:
    blocks = [[Random(1).randbytes(3_992)] * 2 + [bytes(3_992)] * 3, [bytes(8_800), bytes(8)]]
    pages_of(tmp_path / "s", blocks, BlockCache(0), page_bytes=8_000, compression=BlockCompression.ZSTD)
    words, offsets = StoreFile(tmp_path / "s").section("value-pages").array(np.int64).reshape(-1, 2).T
    assert np.diff(words).tolist() == [1000, 1000, 500, 1101, 2]
    first, *others = np.diff(offsets).tolist()
    assert first < 8_000 and max(others) < 100
