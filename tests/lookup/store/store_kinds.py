"""The kinds of lookup stores, with the options that choose them."""

from __future__ import annotations

from lakelsm.lookup.partial.store_build import store_format
from lakelsm.lookup.store.lookup_store import StoreFormat
from lakelsm.options import TableOptions

#: Options of each kind, with blocks so small that few rows have many blocks.
KINDS = {
    "arrow": {"lookup.local-file-type": "arrow"},
    "sort": {"lookup.local-file-type": "sort", "cache-page-size": "128 b"},
    "sort, plain": {
        "lookup.local-file-type": "sort",
        "cache-page-size": "64 b",
        "lookup.cache-spill-compression": "none",
        "lookup.cache.bloom.filter.enabled": "false",
    },
    "hash": {"lookup.local-file-type": "hash", "cache-page-size": "128 b"},
    "hash, plain": {
        "lookup.local-file-type": "hash",
        "cache-page-size": "64 b",
        "lookup.cache-spill-compression": "none",
        "lookup.cache.bloom.filter.enabled": "false",
        "lookup.hash-load-factor": "0.99",
    },
}


def format_of(kind: str) -> StoreFormat:
    """Return the format of a kind of `KINDS`."""
    return store_format(TableOptions.parse(KINDS[kind]))
