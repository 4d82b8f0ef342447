"""The caches that a server answers from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from lakelsm.errors import InvalidInputError, LookupServiceError
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import Cache, FoundRows, LookupSpec
from lakelsm.lookup.service.lookup_request import key_schema
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore

#: Opens the cache of a spec.
Opened = Callable[[LookupSpec], Cache]

#: Schemas that clients may have at a time. The one not asked for longest goes first.
_MOST_SCHEMAS = 4
#: Columns, and characters of them, that messages show: they may come from outside.
_MOST_LISTED = 100
_SHOWN = 1000


class _Cache:
    """An open cache and who uses it; ``retired``: it is closed when nobody does any more."""

    def __init__(self, table: Cache, schema: TableSchema, columns: tuple[str, ...]) -> None:
        self.table = table
        self.schema = schema
        self.columns = columns
        self.users = 0
        self.retired = False


class ServedTable:
    """A table as a server has it: one cache for each schema that clients look up by.

    A cache has the columns that were asked for so far. One that is asked for more gives way to one that has them as well.
    Any number of threads may ask.
    """

    def __init__(self, store: TableStore, opened: Opened) -> None:
        self.store = store
        self._opened = opened
        self._lock = threading.Lock()
        self._caches: OrderedDict[int, _Cache] = OrderedDict()
        self._closed = False

    def key_schema(self, schema: int) -> pa.Schema:
        """The columns of the keys that clients with a schema look up by. Raises InvalidInputError where there is none."""
        cache = self._caches.get(schema)
        return key_schema(self._store_with(schema).schema if cache is None else cache.schema)

    def find(self, schema: int, columns: Sequence[str], keys: pa.Table) -> tuple[FoundRows, Snapshot | None]:
        """The rows of some keys, and a snapshot of which they are or that is older.

        Raises InvalidInputError for columns that the schema lacks and for keys that are none of its.
        """
        with self._cache(schema, columns) as cache:
            _check_keys(keys, key_schema(cache.schema))
            snapshot = cache.table.snapshot
            found = cache.table.find(keys)
            return FoundRows(found.probes, found.rows.select(list(columns))), snapshot

    def snapshot(self, schema: int, columns: Sequence[str], *, refreshed: bool) -> Snapshot | None:
        """The snapshot that answers for these columns, after a refresh if one is asked for."""
        if refreshed:
            with self._cache(schema, columns) as cache:
                self._refreshed(schema, cache)
        with self._cache(schema, columns) as cache:
            return cache.table.snapshot

    def refresh(self) -> None:
        """Go on to the newest snapshot in every cache."""
        with self._lock:
            caches = list(self._caches.items())
            for _, cache in caches:
                cache.users += 1
        try:
            for schema, cache in caches:
                self._refreshed(schema, cache)
        finally:
            for _, cache in caches:
                self._released(cache)

    def close(self) -> None:
        """Close every cache, those in use when they are no more."""
        with self._lock:
            self._closed = True
            schemas = list(self._caches)
        for schema in schemas:
            self._retire(schema)

    def _refreshed(self, schema: int, cache: _Cache) -> None:
        """Go on in one cache. One that cannot, as a column of it is another now, gives way to one that nobody has asked
        for that column yet; who does is told.
        """
        try:
            cache.table.refresh()
        except InvalidInputError:
            with self._lock:
                if self._caches.get(schema) is not cache:
                    return
                del self._caches[schema]
            self._close_unused(cache)

    @contextmanager
    def _cache(self, schema: int, columns: Sequence[str]) -> Iterator[_Cache]:
        with self._lock:
            cache = self._caches.get(schema)
            if cache is None or not set(columns) <= set(cache.columns):
                replaced = cache
                cache = self._open(schema, () if cache is None else cache.columns, columns)
                self._caches[schema] = cache
            else:
                replaced = None
            self._caches.move_to_end(schema)
            cache.users += 1
            surplus = next(iter(self._caches)) if len(self._caches) > _MOST_SCHEMAS else None
        try:
            if replaced is not None:
                self._close_unused(replaced)
            if surplus is not None:
                self._retire(surplus)
            yield cache
        finally:
            self._released(cache)

    def _open(self, schema_id: int, before: tuple[str, ...], columns: Sequence[str]) -> _Cache:
        if self._closed:
            raise LookupServiceError(f"The query service of table {self.store.name} has ended: start it again.")
        store = self._store_with(schema_id)
        known = store.schema.field_names
        for name in columns:
            if name not in known:
                raise InvalidInputError(f"Table {store.name} has no column {name!r} in schema {schema_id}.")
        wanted = tuple(name for name in known if name in {*before, *columns})
        return _Cache(self._opened(LookupSpec(store, tuple(store.schema.primary_keys), wanted)), store.schema, wanted)

    def _store_with(self, schema_id: int) -> TableStore:
        if schema_id == self.store.schema.id:
            return self.store
        if schema_id not in self.store.schemas.ids():
            raise InvalidInputError(f"Table {self.store.name} has no schema {schema_id}: open the table again.")
        return self.store.with_schema(self.store.schemas.get(schema_id))

    def _retire(self, schema: int) -> None:
        with self._lock:
            cache = self._caches.pop(schema, None)
        if cache is not None:
            self._close_unused(cache)

    def _close_unused(self, cache: _Cache) -> None:
        with self._lock:
            cache.retired = True
            ends = cache.users == 0
        if ends:
            cache.table.close()

    def _released(self, cache: _Cache) -> None:
        with self._lock:
            cache.users -= 1
            ends = cache.retired and cache.users == 0
        if ends:
            cache.table.close()


def check_key_columns(given: pa.Schema, wanted: pa.Schema) -> None:
    """Raise InvalidInputError for keys of other columns than a cache takes."""
    if given.names != wanted.names or given.types != wanted.types:
        raise InvalidInputError(
            f"The keys have the columns {_listed(given)}, and those of the table have {_listed(wanted)}."
        )


def _check_keys(keys: pa.Table, wanted: pa.Schema) -> None:
    """Raise InvalidInputError for keys that a cache does not take; they come from outside."""
    check_key_columns(keys.schema, wanted)
    for name in wanted.names:
        if keys.column(name).null_count:
            raise InvalidInputError(f"A key has no value in column {name!r}: NULL is no key.")


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in list(schema)[:_MOST_LISTED])[:_SHOWN]
