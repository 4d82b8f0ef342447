"""The caches that a server answers from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from lakelsm.errors import InvalidInputError, LookupServiceError
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import FoundRows, HeldCache, LookupSpec, Opener
from lakelsm.lookup.service.lookup_request import key_schema
from lakelsm.snapshots.table_store import TableStore

#: Schemas that clients may have at a time. The one not asked for longest goes first.
_MOST_SCHEMAS = 4
#: Columns, and characters of them, that messages show: they may come from outside.
_MOST_LISTED = 100
_SHOWN = 1000


class _ServedCache(HeldCache):
    """The cache of one schema, with some of its columns."""

    def __init__(self, store: TableStore, columns: tuple[str, ...], opener: Opener) -> None:
        super().__init__(LookupSpec(store, tuple(store.schema.primary_keys), columns), opener)
        self.schema = store.schema
        self.columns = columns


class ServedTable:
    """A table as a server has it: one cache for each schema that clients look up by.

    A cache has the columns that were asked for so far. One that is asked for more gives way to one that has them as well.
    Any number of threads may ask.
    """

    def __init__(self, store: TableStore, opener: Opener) -> None:
        self.store = store
        self._opener = opener
        self._lock = threading.Lock()
        self._caches: OrderedDict[int, _ServedCache] = OrderedDict()
        self._closed = False

    def key_schema(self, schema: int) -> pa.Schema:
        """The columns of the keys that clients with a schema look up by. Raises InvalidInputError where there is none."""
        served = self._caches.get(schema)
        return key_schema(self._store_with(schema).schema if served is None else served.schema)

    def find(self, schema: int, columns: Sequence[str], keys: pa.Table) -> tuple[FoundRows, Snapshot | None]:
        """The rows of some keys, and a snapshot of which they are or that is older.

        Raises InvalidInputError for columns that the schema lacks and for keys that are none of its.
        """
        with self._held(schema, columns) as served:
            _check_keys(keys, key_schema(served.schema))
            snapshot = served.cache.snapshot
            found = served.cache.find(keys)
            return FoundRows(found.probes, found.rows.select(list(columns))), snapshot

    def snapshot(self, schema: int, columns: Sequence[str], *, refreshed: bool) -> Snapshot | None:
        """The snapshot that answers for these columns, after a refresh if one is asked for."""
        if refreshed:
            with self._held(schema, columns) as served:
                self._refresh(schema, served)
        with self._held(schema, columns) as served:
            return served.cache.snapshot

    def refresh(self) -> None:
        """Take the newest snapshot in every cache."""
        with self._lock:
            every = list(self._caches.items())
        for schema, served in every:
            if served.hold():
                with served:
                    self._refresh(schema, served)

    def close(self) -> None:
        """Close every cache, those in use after their last lookup."""
        with self._lock:
            self._closed = True
            every = list(self._caches.values())
            self._caches.clear()
        for served in every:
            served.release()

    def _refresh(self, schema: int, served: _ServedCache) -> None:
        """Refresh one cache. One that cannot follow, as a column of it changed, gives way to one that nobody has asked
        for that column yet; the next client that does gets the error.
        """
        try:
            served.refresh()
        except InvalidInputError:
            with self._lock:
                if self._caches.get(schema) is not served:
                    return
                del self._caches[schema]
            served.release()

    @contextmanager
    def _held(self, schema: int, columns: Sequence[str]) -> Iterator[_ServedCache]:
        """The cache of a schema with these columns; opened if there is none."""
        replaced = []
        with self._lock:
            served = self._caches.get(schema)
            if served is None or not set(columns) <= set(served.columns):
                replaced += [] if served is None else [served]
                served = self._opened(schema, () if served is None else served.columns, columns)
                self._caches[schema] = served
            self._caches.move_to_end(schema)
            served.hold()
            if len(self._caches) > _MOST_SCHEMAS:
                replaced.append(self._caches.popitem(last=False)[1])
        with served:
            for each in replaced:
                each.release()
            yield served

    def _opened(self, schema_id: int, before: tuple[str, ...], columns: Sequence[str]) -> _ServedCache:
        if self._closed:
            raise LookupServiceError(f"The query service of table {self.store.name} has ended: start it again.")
        store = self._store_with(schema_id)
        known = store.schema.field_names
        for name in columns:
            if name not in known:
                raise InvalidInputError(f"Table {store.name} has no column {name!r} in schema {schema_id}.")
        return _ServedCache(store, tuple(name for name in known if name in {*before, *columns}), self._opener)

    def _store_with(self, schema_id: int) -> TableStore:
        if schema_id == self.store.schema.id:
            return self.store
        if schema_id not in self.store.schemas.ids():
            raise InvalidInputError(f"Table {self.store.name} has no schema {schema_id}: open the table again.")
        return self.store.with_schema(self.store.schemas.get(schema_id))


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
