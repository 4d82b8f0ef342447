"""A user's arguments of a lookup made into one that is open, with the cache that `lookup.cache` chooses."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from pathlib import Path

from lakelsm.arguments import checked_location, checked_names, checked_projection, wrong_argument
from lakelsm.lookup.cache import Cache, LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.full_cache import FullCache
from lakelsm.lookup.lookup import Lookup
from lakelsm.lookup.lookup_definition import checked_lookup
from lakelsm.lookup.partial.partial_cache import PartialCache
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.service_addresses import is_service_available
from lakelsm.options import LookupCache
from lakelsm.snapshots.table_store import TableStore

_FULL, _PARTIAL, _REMOTE = FullCache.kind, PartialCache.kind, RemoteCache.kind


def open_lookup(
    store: TableStore,
    *,
    columns: object,
    key: object,
    where: str | None,
    refresh: object,
    cache: str | None,
    options: object,
    directory: object,
) -> Lookup:
    """See `lakelsm.table.Table.lookup`."""
    names = checked_projection(columns)  # type: ignore[arg-type]
    chosen = None if names is None else tuple(names)
    definition, policy = checked_lookup(
        store, chosen, _key(key), where=where, refresh=refresh, cache=cache, options=options
    )
    shared = _directory(directory)
    if shared is not None and definition.of_table(store).store.options.lookup_cache is LookupCache.MEMORY:
        raise wrong_argument("directory", directory, "left out with a 'memory' cache: its files are in memory")
    return Lookup(store, definition, policy, partial(opened_cache, shared=shared))


def _key(key: object) -> tuple[str, ...] | None:
    if key is None:
        return None
    names = tuple(checked_names("key", key))
    if not names:
        raise wrong_argument("key", key, "a list of column names (leave it out for the primary key)")
    return names


def _directory(directory: object) -> Path | None:
    if directory is None:
        return None
    path = str(directory) if isinstance(directory, Path) else directory
    if not isinstance(path, str) or not os.path.isabs(path):
        raise wrong_argument("directory", directory, "the absolute path of a directory, such as '/var/tmp/customers'")
    return Path(checked_location("directory", path))


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
