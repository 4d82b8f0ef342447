"""A user's arguments of a lookup made into one that is open."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from lakelsm.arguments import (
    checked_choice,
    checked_condition,
    checked_location,
    checked_names,
    checked_projection,
    checked_seconds,
    option_texts,
    wrong_argument,
)
from lakelsm.lookup.cache_choice import opened_cache
from lakelsm.lookup.lookup import Lookup
from lakelsm.lookup.lookup_definition import LookupDefinition, checked_lookup_options
from lakelsm.lookup.refresh_policy import RefreshPolicy
from lakelsm.options import LookupCache
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM

_CACHES = tuple(kind.value for kind in LookupCache)
_INTERVALS = ("lookup.continuous.discovery-interval", "continuous.discovery-interval")
#: The refresh of a lookup that looks for newer snapshots only when it is told to.
_NEVER = "never"


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
    definition = LookupDefinition(
        _names(checked_projection(columns)),  # type: ignore[arg-type]
        key=_key(key),
        where=checked_condition(where),
        options=call_options(options, cache, refresh),
    )
    place, policy = _directory(directory), call_policy(store, definition, refresh)
    if place is not None and definition.of_table(store).table.options.lookup_cache is LookupCache.MEMORY:
        raise wrong_argument("directory", directory, "left out with a 'memory' cache: its files are in memory")
    return Lookup(store, definition, policy, partial(opened_cache, shared=place), surroundings=SYSTEM)


def _names(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _key(key: object) -> tuple[str, ...] | None:
    if key is None:
        return None
    names = tuple(checked_names("key", key))
    if not names:
        raise wrong_argument("key", key, "a list of column names (leave it out for the primary key)")
    return names


def call_policy(store: TableStore, definition: LookupDefinition, refresh: object) -> RefreshPolicy:
    """How a lookup is kept fresh: as ``refresh`` says, or the options of the call and the table.

    Raises InvalidInputError where the table cannot answer the definition.
    """
    policy = RefreshPolicy.of(definition.of_table(store).table.options)
    return policy if refresh is None else replace(policy, interval=_interval(refresh))


def call_options(options: object, cache: str | None, refresh: object) -> Mapping[str, str]:
    """The options of the call, that of ``cache`` among them; none of them is said by another argument too."""
    texts = checked_lookup_options(option_texts("options", options))
    twice = [name for name in texts if cache is not None and name == "lookup.cache"]
    twice += [name for name in texts if refresh is not None and name in _INTERVALS]
    if twice:
        argument = "cache" if twice[0] == "lookup.cache" else "refresh"
        raise wrong_argument("options", options, f"without '{twice[0]}' where {argument} is given: pass one of the two")
    return texts if checked_choice("cache", cache, _CACHES) is None else {**texts, "lookup.cache": str(cache)}


def _interval(refresh: object) -> float | None:
    if isinstance(refresh, str) and refresh.strip().lower() == _NEVER:
        return None
    try:
        return checked_seconds("refresh", refresh)  # type: ignore[arg-type]
    except ValueError:
        wanted = f"seconds, a duration such as '10 s', 0 to look before each lookup, or '{_NEVER}'"
        raise wrong_argument("refresh", refresh, wanted) from None


def _directory(directory: object) -> Path | None:
    if directory is None:
        return None
    path = str(directory) if isinstance(directory, Path) else directory
    if not isinstance(path, str) or not os.path.isabs(path):
        raise wrong_argument("directory", directory, "the absolute path of a directory, such as '/var/tmp/customers'")
    return Path(checked_location("directory", path))
