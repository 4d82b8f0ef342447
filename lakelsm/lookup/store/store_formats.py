"""Which kind of store a table's options choose."""

from __future__ import annotations

from lakelsm.lookup.store.block_cache import BlockCache
from lakelsm.lookup.store.hash_store import HashStoreFormat
from lakelsm.lookup.store.lookup_store import StoreFormat
from lakelsm.options import StoreKind, TableOptions


def store_format(options: TableOptions) -> StoreFormat:
    """The format that `lookup.local-file-type` names. Its stores share one cache of decoded blocks."""
    bloom_fpp = options.lookup_cache_bloom_filter_fpp if options.lookup_cache_bloom_filter_enabled else None
    if options.lookup_local_file_type is StoreKind.HASH:
        return HashStoreFormat(
            BlockCache(options.lookup_cache_max_memory_size),
            load_factor=options.lookup_hash_load_factor,
            page_bytes=options.cache_page_size,
            compression=options.lookup_cache_spill_compression,
            bloom_fpp=bloom_fpp,
        )
    raise NotImplementedError
