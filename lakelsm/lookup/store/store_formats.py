"""Which kind of store a table's options choose."""

from __future__ import annotations

from lakelsm.lookup.store.arrow_store import ArrowStoreFormat
from lakelsm.lookup.store.block_cache import BlockCache
from lakelsm.lookup.store.hash_store import HashStoreFormat
from lakelsm.lookup.store.lookup_store import StoreFormat
from lakelsm.lookup.store.sort_store import SortStoreFormat
from lakelsm.options import StoreKind, TableOptions

#: The part of `lookup.cache-max-memory-size` that blocks take.
_BLOCKS_SHARE = 2


def store_format(options: TableOptions) -> StoreFormat:
    """The format that `lookup.local-file-type` names. The stores that it opens share one cache of decoded blocks."""
    cache = BlockCache(options.lookup_cache_max_memory_size // _BLOCKS_SHARE)
    formats: dict[StoreKind, StoreFormat] = {
        StoreKind.ARROW: ArrowStoreFormat(),
        StoreKind.SORT: SortStoreFormat.of(options, cache),
        StoreKind.HASH: HashStoreFormat.of(options, cache),
    }
    return formats[options.lookup_local_file_type]
