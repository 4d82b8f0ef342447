"""Lookups in a process: the rows of a table by key, kept at hand and fresh."""

from __future__ import annotations

import copy
from datetime import datetime, timezone
from html import escape
from types import TracebackType
from typing import Any

import pyarrow as pa

from lakelsm.arguments import checked_timestamps
from lakelsm.errors import InvalidInputError
from lakelsm.local.shown_rows import shown_rows, shown_schema
from lakelsm.lookup.cache import Opener, cache_state, matched
from lakelsm.lookup.fresh_cache import DefinedCache, FreshCache, Rows
from lakelsm.lookup.lookup_definition import LookupDefinition, RefreshPolicy, checked_inner
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.results import Staleness
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM, Surroundings
from lakelsm.types import to_arrow


class Lookup:
    """Finds rows of a table by key: `Table.lookup` makes it. Several threads may use it.

    It answers as of one snapshot and goes on to newer ones by itself. Close it, or use it in a ``with``: it keeps files.
    """

    def __init__(
        self,
        store: TableStore,
        definition: LookupDefinition,
        policy: RefreshPolicy,
        opener: Opener,
        *,
        surroundings: Surroundings = SYSTEM,
    ) -> None:
        self._store = store
        self._surroundings = surroundings
        self._fresh = FreshCache(store, definition, policy, opener, surroundings=surroundings)
        with self._fresh.held() as opened:
            self._face = _Face(opened)

    def get(self, /, *key: Any, **named: Any) -> dict[str, Any] | None:
        """The row of a key by column, None where there is none.

        The key's values are given in the order of its columns, or by their names, in any case. Raises InvalidInputError
        for NULL, for a value of another type, and for a key that may have several rows: `get_all` finds these.
        """
        with self._fresh.current() as opened:
            face = self._face_of(opened)
            if not face.one_row:
                raise self._many_rows(face)
            rows = face.found(key, named)
        return face.shown(rows[0]) if rows else None

    def get_all(self, /, *key: Any, **named: Any) -> list[dict[str, Any]]:
        """All rows of a key, in no order. The key is given as in `get`."""
        with self._fresh.current() as opened:
            face = self._face_of(opened)
            rows = face.found(key, named)
        return [face.shown(row) for row in rows]

    def get_many(self, keys: object, how: str = "left", timestamps: str = "ns") -> pa.Table:
        """The rows of many keys, in their order: the columns of the keys as they are given, then those looked up.

        ``keys`` are rows of the key's columns, found in any case: a pyarrow Table, RecordBatch, RecordBatchReader or
        dataset, a pandas or Polars DataFrame, anything with the Arrow C stream interface. Or they are a list (or tuple or
        range): of values where the key has one column, of tuples in the order of its columns, or of dicts by column.

        A key with several rows comes as often. ``how`` says what becomes of a key without a row, as is one with NULL:
        'left' gives NULL in the columns looked up, 'inner' leaves it out. Columns of the key are not given again.
        ``timestamps`` is the type of the TIMESTAMP(7..9) looked up, as in `Table.to_reader`. Raises InvalidInputError for
        other columns or types than the key's.
        """
        is_inner, form = checked_inner(how), checked_timestamps("timestamps", timestamps)
        with self._fresh.current() as opened:
            face = self._face_of(opened)
            given = face.keys.many(keys)
            found = opened.find(given.stored)
        places = found.probes if given.places is None else given.places[found.probes]
        rows = shown_rows(found.rows, face.columns(form)).rename_columns(face.column_labels)
        at, rows_at = matched(len(given.rows), places, is_inner)
        joined = given.rows if at is None else given.rows.take(pa.array(at))
        if rows_at is not None:
            rows = rows.combine_chunks().take(rows_at)
        for field, column in zip(rows.schema, rows.columns):
            joined = joined.append_column(field, column)
        return joined

    def refresh(self) -> None:
        """Go on to the newest snapshot now, whatever the periods without a refresh."""
        self._fresh.refresh()

    def staleness(self) -> Staleness:
        """Which snapshot answers, and how old it is. It looks at the table, and does not refresh."""
        with self._fresh.held() as opened:
            snapshot, newest = opened.cache.snapshot, self._store.snapshots.latest()
            own, last = (0 if each is None else each.id for each in (snapshot, newest))
            now = self._surroundings.clock()
            return Staleness(
                table=self._store.name,
                cache=opened.cache.kind,
                snapshot_id=None if snapshot is None else snapshot.id,
                committed_at=None if snapshot is None else _utc(snapshot.time_millis),
                age_seconds=None if snapshot is None else max(now - snapshot.time_millis, 0) / 1000,
                newest_snapshot_id=None if newest is None else newest.id,
                snapshots_behind=last - own,
                seconds_since_look=self._fresh.seconds_since_look,
            )

    def close(self) -> None:
        """Give memory and disk space back; lookups that are under way end first. It answers no more."""
        self._fresh.close()

    def __enter__(self) -> Lookup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lookup({', '.join(f'{name}={value!r}' for name, value in self._state().items())})"

    def _repr_html_(self) -> str:
        """A table of the same, for notebooks."""
        rows = (f"<tr><th>{name}</th><td>{escape(repr(value))}</td></tr>" for name, value in self._state().items())
        return f"<table><caption>Lookup</caption>{''.join(rows)}</table>"

    def _state(self) -> dict[str, object]:
        try:
            with self._fresh.held() as held:
                return {"table": self._store.name, **cache_state(held.cache)}
        except InvalidInputError:
            return {"table": self._store.name, "closed": True}

    def _many_rows(self, face: _Face) -> InvalidInputError:
        keys = ", ".join(face.opened.defined.store.schema.primary_keys)
        return InvalidInputError(
            f"Table {self._store.name}: a key of {face.keys.text} may have several rows, as it is not the primary key "
            f"({keys}): get_all gives them all."
        )

    def _face_of(self, opened: DefinedCache) -> _Face:
        """How users see a cache: as before, while it is the same."""
        face = self._face
        if face.opened is not opened:
            self._face = face = _Face(opened)
        return face


class _Face:
    """How users see one cache: their names of its columns, and Arrow's types that they get."""

    def __init__(self, opened: DefinedCache) -> None:
        defined = opened.defined
        schema = defined.store.schema
        self.opened = opened
        self.keys = LookupKeys.of(schema, defined.key)
        self.single = self.keys.single()
        self.one_row = defined.one_row_a_key
        self.labels = defined.labels
        others = [(name, label) for name, label in zip(defined.columns, defined.labels) if name not in defined.key]
        self._fields = [schema.field(name) for name, _ in others]
        self.column_labels = [label for _, label in others]
        self._nested = any(pa.types.is_nested(to_arrow(schema.field(name).type)) for name in defined.columns)

    def columns(self, timestamps: str) -> pa.Schema:
        """The columns looked up, without those of the key."""
        return shown_schema(self._fields, all_nullable=True, timestamps=timestamps)

    def found(self, values: tuple[Any, ...], named: dict[str, Any]) -> Rows:
        """The rows of a key."""
        key = self.single(values, named)
        return [] if key is None else self.opened.find_one(key)

    def shown(self, row: tuple[Any, ...]) -> dict[str, Any]:
        """A row as it is handed out: the user may change it, and rows may be kept."""
        return dict(zip(self.labels, copy.deepcopy(row) if self._nested else row))


def _utc(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, timezone.utc)
