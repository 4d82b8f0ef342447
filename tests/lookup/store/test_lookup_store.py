"""The layout of a store has a digest that identifies its files; shared blocks stay within a limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lakelsm.lookup.store.lookup_store import BlockCache, StoreLayout
from lakelsm.types import AtomicType, DataField

K = DataField(0, "k", AtomicType("INT", nullable=False))
V = DataField(1, "v", AtomicType("BIGINT"))
LAYOUT = StoreLayout((K,), (V,), rows_of="data-1.parquet")


def test_files_of_other_rows_columns_or_types_have_another_digest() -> None:
    others = [
        replace(LAYOUT, rows_of="data-2.parquet"),
        replace(LAYOUT, values=()),
        replace(LAYOUT, keys=(V,), values=(K,)),
        replace(LAYOUT, values=(replace(V, name="w"),)),
        replace(LAYOUT, values=(replace(V, type=AtomicType("INT")),)),
    ]
    assert len({layout.digest for layout in [LAYOUT, *others]}) == 6
    assert replace(LAYOUT).digest == LAYOUT.digest and len(LAYOUT.digest) == 16


def block(size: int) -> np.ndarray:
    return np.zeros(size, np.uint8)


def test_the_least_recently_used_block_is_dropped_at_the_limit() -> None:
    cache = BlockCache(100)
    for number in range(3):
        cache.put(1, number, block(30))
    assert cache.get(1, 0) is not None
    cache.put(1, 3, block(30))
    assert [cache.get(1, number) is not None for number in range(4)] == [True, False, True, True]
    assert cache.bytes == 90
    cache.put(1, 3, block(20))
    assert cache.bytes == 80
    cache.put(1, 4, block(101))
    assert cache.get(1, 4) is None and cache.bytes == 80


def test_a_closed_store_leaves_no_block() -> None:
    cache = BlockCache(100)
    one, other = cache.new_store(), cache.new_store()
    cache.put(one, 0, block(10))
    cache.put(other, 0, block(20))
    cache.drop(one)
    assert cache.get(one, 0) is None and cache.get(other, 0) is not None
    assert cache.bytes == 20
