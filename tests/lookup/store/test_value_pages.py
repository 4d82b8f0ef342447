"""Values of hash stores come out of their pages as they went in, whatever pages they lie in."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.lookup.store import value_pages
from lakelsm.lookup.store.lookup_store import BlockCache
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter
from lakelsm.lookup.store.value_pages import ValuePages, ValueWriter


def pages_of(
    path: Path, blocks: list[list[bytes]], *, page_words: int, compression: str, length: int | None, cache: BlockCache
) -> tuple[ValuePages, np.ndarray]:
    with StoreFileWriter(path) as file:
        writer = ValueWriter(file, page_words=page_words, compression=compression, length=length)
        places = [writer.add(pa.array(block, pa.binary())) for block in blocks]
        writer.finish()
        file.finish({})
    file, words = StoreFile(path), writer.words
    pages = ValuePages(file, cache, words=words, page_words=page_words, compression=compression, length=length)
    return pages, np.concatenate(places)


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("page_words", [1, 8, 100, 10_000])
@pytest.mark.parametrize("length", [None, 3])
@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_values_come_out_as_they_went_in(
    compression: str, page_words: int, length: int | None, at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_pages, "_AT_ONCE", at_once)
    chance = Random(5)

    def value() -> bytes:
        words = chance.randrange(1, 30) if length is None else length
        return chance.randbytes(8 * words) if chance.random() < 0.5 else bytes(8 * words)

    blocks = [[value() for _ in range(count)] for count in (1, 50, 7)]
    plain = [value for block in blocks for value in block]
    cache = BlockCache(5_000)
    pages, places = pages_of(
        tmp_path / "s", blocks, page_words=page_words, compression=compression, length=length, cache=cache
    )
    for asked in ([], [3], list(range(58)), [57, 0, 57, 57, 30], chance.choices(range(58), k=200)):
        found: dict[int, bytes] = {}
        for numbers, values in pages.values(places[asked]):
            found.update(zip(numbers.tolist(), values.to_pylist(), strict=True))
        assert [found[number] for number in range(len(asked))] == [plain[at] for at in asked]
    assert cache.bytes <= 5_000
    pages.close()
    assert cache.bytes == 0


def test_pages_that_compression_does_not_gain_by_are_kept_plain(tmp_path: Path) -> None:
    blocks = [[Random(1).randbytes(8_000), bytes(8_000)]]
    pages_of(tmp_path / "s", blocks, page_words=1_000, compression="zstd", length=1_000, cache=BlockCache(0))
    start, middle, end = StoreFile(tmp_path / "s").section("value-ends").array(np.int64).tolist()
    assert middle - start == 8_000 and end - middle < 100
