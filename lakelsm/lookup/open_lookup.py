"""A user's arguments of a lookup made into one that is open."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from lakelsm.arguments import checked_location, checked_names, checked_projection, wrong_argument
from lakelsm.lookup.cache_choice import opened_cache
from lakelsm.lookup.lookup import Lookup
from lakelsm.lookup.lookup_definition import checked_lookup
from lakelsm.options import LookupCache
from lakelsm.snapshots.table_store import TableStore


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
