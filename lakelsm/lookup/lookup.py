"""Lookups in a process: `Lookup`, its arguments, and the choice of its cache (`lookup.cache`)."""

from __future__ import annotations

import copy
import hashlib
import os
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm.arguments import (
    checked_location,
    checked_names,
    checked_projection,
    checked_timestamps,
    invalid_argument,
    wrong_argument,
)
from lakelsm.errors import InvalidInputError
from lakelsm.local.output_rows import output_rows, output_schema
from lakelsm.lookup.cache import Cache, LookupSpec, cache_state, matched
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.fresh_cache import FreshCache
from lakelsm.lookup.full.full_cache import FullCache
from lakelsm.lookup.lookup_definition import (
    DefinedLookup,
    checked_inner,
    checked_lookup,
)
from lakelsm.lookup.partial.partial_cache import PartialCache
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.service_access import published_addresses
from lakelsm.operation_log import operation_line
from lakelsm.options import LookupCache
from lakelsm.results import Staleness
from lakelsm.snapshots.table_store import TableStore
from lakelsm.text_table import html_table


class Lookup:
    """Finds rows of a table by key; `Table.lookup` opens it. Several threads may use it.

    It answers from one snapshot and refreshes itself. Close it, or use it in a ``with`` block: it keeps files on disk.
    """

    def __init__(self, fresh: FreshCache) -> None:
        self._fresh = fresh
        self._store = fresh.store

    def get(self, /, *key: Any, **named: Any) -> dict[str, Any] | None:
        """Return the row of a key by column, or None.

        The values of the key are given in the order of its columns, or by name, in any case. Raises InvalidInputError
        for NULL, for a value of another type, and for a key that may have several rows: `get_all` returns these.
        """
        with self._fresh.current() as current:
            if not current.defined.has_one_row_per_key:
                primary = ", ".join(current.defined.store.schema.primary_keys)
                raise InvalidInputError(
                    f"Table {self._store.name}: get needs the primary key ({primary}). A key of ({current.keys.text}) "
                    "may have several rows: use get_all."
                )
            rows = current.rows_of(key, named)
        return _shown(current.defined, rows[0]) if rows else None

    def get_all(self, /, *key: Any, **named: Any) -> list[dict[str, Any]]:
        """Return all rows of a key, in no particular order. The key is given as in `get`."""
        with self._fresh.current() as current:
            return [_shown(current.defined, row) for row in current.rows_of(key, named)]

    def get_many(self, keys: object, how: str = "left", timestamps: str = "ns") -> pa.Table:
        """Return the rows of many keys, in their order: the columns of the keys, then those looked up.

        ``keys`` are rows with the key's columns, in any case: a pyarrow Table, RecordBatch, RecordBatchReader or
        dataset, a pandas or Polars DataFrame, anything with the Arrow C stream interface. Or they are a list (or tuple or
        range or set): of values if the key has one column, of tuples in the order of its columns, or of dicts by
        column. Or they are a dict of columns, or, if the key has one column, a numpy, Arrow, pandas or Polars column.

        A key with several rows is repeated. ``how`` decides about keys that have no row or a NULL: 'left' returns NULL
        in the columns looked up, 'inner' leaves the keys out. Columns of the key are not returned twice.
        ``timestamps`` is the type of looked-up TIMESTAMP(7..9) columns, as in `Table.to_reader`. Raises InvalidInputError
        for columns and types other than the key's.
        """
        is_inner, form = checked_inner(how), checked_timestamps("timestamps", timestamps)
        with self._fresh.current() as current:
            defined, given = current.defined, current.keys.many(keys)
            found = current.find(given.stored)
        indexes = found.probes if given.indexes is None else given.indexes[found.probes]
        others = {name: label for name, label in zip(defined.columns, defined.labels) if name not in defined.key}
        shown = output_schema([*map(defined.store.schema.field, others)], all_nullable=True, timestamps=form)
        rows = output_rows(found.rows, shown).rename_columns(list(others.values()))
        key_positions, row_positions = matched(len(given.rows), indexes, is_inner)
        joined = given.rows if key_positions is None else given.rows.take(pa.array(key_positions))
        if row_positions is not None:
            rows = rows.combine_chunks().take(row_positions)
        for field, column in zip(rows.schema, rows.columns):
            joined = joined.append_column(field, column)
        return joined

    def refresh(self) -> None:
        """Refresh to the newest snapshot now, also in periods without refreshes."""
        with operation_line(self._store.name, "refresh lookup", only_failures=True):
            self._fresh.refresh()

    def staleness(self) -> Staleness:
        """Return which snapshot answers, and how old it is. It reads the newest snapshot, but does not refresh."""
        with self._fresh.acquire() as current:
            snapshot, newest = current.cache.snapshot, self._store.snapshots.latest()
            own, last = (0 if each is None else each.id for each in (snapshot, newest))
            millis = None if snapshot is None else snapshot.time_millis
            return Staleness(
                table=self._store.name,
                cache=current.cache.kind,
                snapshot_id=None if snapshot is None else snapshot.id,
                committed_at=None if millis is None else datetime.fromtimestamp(millis / 1000, timezone.utc),
                age_seconds=None if millis is None else max(self._fresh.environment.clock() - millis, 0) / 1000,
                newest_snapshot_id=None if newest is None else newest.id,
                snapshots_behind=last - own,
                seconds_since_look=self._fresh.seconds_since_look,
            )

    def close(self) -> None:
        """Close the lookup after running calls have ended. It answers no more; memory and disk space are freed."""
        self._fresh.close()

    def __enter__(self) -> Lookup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lookup({', '.join(f'{name}={value!r}' for name, value in self._state().items())})"

    def _repr_html_(self) -> str:
        """Return the same as an HTML table, for notebooks."""
        return html_table(((name, repr(value)) for name, value in self._state().items()), caption="Lookup")

    def _state(self) -> dict[str, object]:
        try:
            with self._fresh.acquire() as current:
                return {"table": self._store.name, **cache_state(current.cache)}
        except InvalidInputError:
            return {"table": self._store.name, "closed": True}


def _shown(defined: DefinedLookup, row: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row for the user, who may change it: nested values are copied, because rows are cached."""
    return dict(zip(defined.labels, copy.deepcopy(row) if defined.is_nested else row))


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
        raise invalid_argument("directory", "a 'memory' cache has no files.", "Leave out the directory or the cache.")
    return Lookup(FreshCache(store, definition, policy, partial(opened_cache, shared=shared)))


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
    """Return the kind of cache that the table's options choose.

    'auto' chooses as Paimon does. For the whole primary key: the table's query service if there is one, else a
    partial cache. For other keys: a full cache.
    """
    option = spec.store.options.lookup_cache
    if option is LookupCache.AUTO and spec.by_primary_key:
        return PartialCache.kind if published_addresses(spec.store) is None else RemoteCache.kind
    return PartialCache.kind if option is LookupCache.PARTIAL else FullCache.kind


def opened_cache(spec: LookupSpec, shared: Path | None) -> Cache:
    """Open a cache of the table's newest snapshot. Its files are in memory, below a directory that processes share
    (``shared``), or in a private directory (None).
    """
    kind, options = chosen_cache(spec), spec.store.options
    if kind == RemoteCache.kind:
        return RemoteCache.open(spec)
    if options.lookup_cache is LookupCache.MEMORY:
        directory = CacheDirectory.in_memory(options.lookup_cache_max_memory_size)
    else:
        directory = CacheDirectory.private() if shared is None else CacheDirectory.shared(shared / cache_name(spec))
    try:
        return PartialCache.open(spec, directory) if kind == PartialCache.kind else FullCache.open(spec, directory)
    except BaseException:
        directory.close()
        raise


def cache_name(spec: LookupSpec) -> str:
    """Return a name for a directory. Two specs have the same name only if one cache answers both."""
    store = spec.store
    schema = (store.schema.id, store.schema.time_millis, sorted(store.schema.options.items()))
    wanted = (spec.key, spec.columns, spec.predicate, None if spec.buckets is None else sorted(spec.buckets))
    return hashlib.sha256(repr((store.paths.branch_root, schema, wanted)).encode()).hexdigest()[:32]
