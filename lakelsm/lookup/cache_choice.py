"""Which cache answers a lookup (`lookup.cache`), opened."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lakelsm.lookup.cache import Cache, LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.full_cache import FullCache
from lakelsm.lookup.partial.partial_cache import PartialCache
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.service_addresses import is_service_available
from lakelsm.options import LookupCache

_FULL, _PARTIAL, _REMOTE = FullCache.kind, PartialCache.kind, RemoteCache.kind


def chosen_cache(spec: LookupSpec) -> str:
    """The kind of cache that the table's options ask for.

    'auto' is Paimon's choice: by the whole primary key the table's query service where there is one, else files indexed
    on demand; by other keys all rows at hand.
    """
    asked = spec.store.options.lookup_cache
    if asked is LookupCache.AUTO and spec.by_primary_key:
        return _REMOTE if is_service_available(spec.store) else _PARTIAL
    return _PARTIAL if asked is LookupCache.PARTIAL else _FULL


def opened_cache(spec: LookupSpec, shared: Path | None) -> Cache:
    """A cache of the table's newest snapshot. Its files are in memory, below a directory that processes share
    (``shared``), or in a private one (None).
    """
    kind, options = chosen_cache(spec), spec.store.options
    if kind == _REMOTE:
        return RemoteCache.open(spec)
    if options.lookup_cache is LookupCache.MEMORY:
        directory = CacheDirectory.in_memory(options.lookup_cache_max_memory_size)
    else:
        directory = CacheDirectory.private() if shared is None else CacheDirectory.shared(shared / cache_name(spec))
    try:
        return PartialCache.open(spec, directory) if kind == _PARTIAL else FullCache.open(spec, directory)
    except BaseException:
        directory.close()
        raise


def cache_name(spec: LookupSpec) -> str:
    """A name of a directory that two specs share only where one cache answers both."""
    store = spec.store
    schema = (store.schema.id, store.schema.time_millis, sorted(store.schema.options.items()))
    asked = (spec.key, spec.columns, spec.predicate, None if spec.buckets is None else sorted(spec.buckets))
    return hashlib.sha256(repr((store.paths.branch_root, schema, asked)).encode()).hexdigest()[:32]
