"""Tables choose their kind of lookup store by an option."""

from __future__ import annotations

import pytest

from lakelsm.lookup.store.arrow_store import ArrowStoreFormat
from lakelsm.lookup.store.hash_store import HashStoreFormat
from lakelsm.lookup.store.sort_store import SortStoreFormat
from lakelsm.lookup.store.store_formats import store_format
from lakelsm.options import StoreKind, TableOptions


@pytest.mark.parametrize(
    ("text", "kind"), [("arrow", ArrowStoreFormat), ("sort", SortStoreFormat), ("hash", HashStoreFormat)]
)
def test_each_kind_has_its_format(text: str, kind: type) -> None:
    assert isinstance(store_format(TableOptions.parse({"lookup.local-file-type": text})), kind)


def test_there_is_a_format_for_every_value_of_the_option_and_a_default() -> None:
    for kind in StoreKind:
        store_format(TableOptions.parse({"lookup.local-file-type": kind.value}))
    assert isinstance(store_format(TableOptions.parse({})), ArrowStoreFormat)


def test_the_options_of_hash_stores_are_those_of_the_table() -> None:
    options = {
        "lookup.local-file-type": "hash",
        "lookup.hash-load-factor": "0.5",
        "cache-page-size": "4 kb",
        "lookup.cache-spill-compression": "lz4",
        "lookup.cache.bloom.filter.fpp": "0.01",
        "lookup.cache-max-memory-size": "1 mb",
    }
    chosen = store_format(TableOptions.parse(options))
    assert isinstance(chosen, HashStoreFormat)
    assert (chosen.load_factor, chosen.page_bytes, chosen.compression, chosen.bloom_fpp) == (0.5, 4096, "lz4", 0.01)
    assert chosen.cache.max_bytes == 1 << 19
    without = store_format(TableOptions.parse(options | {"lookup.cache.bloom.filter.enabled": "false"}))
    assert isinstance(without, HashStoreFormat) and without.bloom_fpp is None
