"""Lookups in a process: the rows of a table by key, kept at hand and fresh."""

from __future__ import annotations

import copy
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.arguments import checked_timestamps
from lakelsm.errors import InvalidInputError
from lakelsm.local.shown_rows import shown_rows, shown_schema
from lakelsm.lookup.fresh_table import FreshTable, OpenedTable, Opener
from lakelsm.lookup.lookup_definition import LookupDefinition, checked_inner
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.lookup.refresh_policy import RefreshPolicy
from lakelsm.lookup.row_cache import Rows
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
        self._table = FreshTable(store, definition, policy, opener, surroundings=surroundings)
        with self._table.held() as opened:
            self._face = _Face(opened)

    def get(self, /, *key: Any, **named: Any) -> dict[str, Any] | None:
        """The row of a key by column, None where there is none.

        The key's values are given in the order of its columns, or by their names, in any case. Raises InvalidInputError
        for NULL, for a value of another type, and for a key that may have several rows: `get_all` finds these.
        """
        with self._table.current() as opened:
            face = self._face_of(opened)
            if not face.one_row:
                raise self._many_rows(face)
            rows = face.found(key, named)
        return face.shown(rows[0]) if rows else None

    def get_all(self, /, *key: Any, **named: Any) -> list[dict[str, Any]]:
        """All rows of a key, in no order. The key is given as in `get`."""
        with self._table.current() as opened:
            face = self._face_of(opened)
            rows = face.found(key, named)
        return [face.shown(row) for row in rows]

    def get_many(self, keys: object, how: str = "left", timestamps: str = "ns") -> pa.Table:
        """The rows of many keys, in their order: the columns of the keys as they are given, then those looked up.

        ``keys`` are rows of the key's columns, found in any case: a pyarrow Table, RecordBatch, RecordBatchReader or
        dataset, a pandas or Polars DataFrame, anything with the Arrow C stream interface. A key with several rows comes
        as often. ``how`` says what becomes of a key without a row, as is one with NULL: 'left' gives NULL in the columns
        looked up, 'inner' leaves it out. Columns of the key are not given again. ``timestamps`` is the type of the
        TIMESTAMP(7..9) looked up, as in `Table.to_reader`. Raises InvalidInputError for other columns or types than the
        key's.
        """
        is_inner, form = checked_inner(how), checked_timestamps("timestamps", timestamps)
        with self._table.current() as opened:
            face = self._face_of(opened)
            given = face.keys.many(keys)
            found = opened.find(given.stored)
        places = found.probes if given.places is None else given.places[found.probes]
        rows = shown_rows(found.rows, face.columns(form)).rename_columns(face.column_labels)
        return _joined(given.rows, places, rows, is_inner)

    def refresh(self) -> None:
        """Go on to the newest snapshot now, whatever the periods without a refresh."""
        self._table.refresh()

    def staleness(self) -> Staleness:
        """Which snapshot answers, and how old it is. It looks at the table, and does not refresh."""
        with self._table.held() as opened:
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
                seconds_since_look=self._table.seconds_since_look,
            )

    def close(self) -> None:
        """Give memory and disk space back; lookups that are under way end first. It answers no more."""
        self._table.close()

    def __enter__(self) -> Lookup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lookup({self._store.name!r})"

    def _many_rows(self, face: _Face) -> InvalidInputError:
        keys = ", ".join(face.opened.defined.table.schema.primary_keys)
        return InvalidInputError(
            f"Table {self._store.name}: a key of {face.keys.text} may have several rows, as it is not the primary key "
            f"({keys}): get_all gives them all."
        )

    def _face_of(self, opened: OpenedTable) -> _Face:
        """How users see a cache: as before, while it is the same."""
        face = self._face
        if face.opened is not opened:
            self._face = face = _Face(opened)
        return face


class _Face:
    """How users see one cache: their names of its columns, and Arrow's types that they get."""

    def __init__(self, opened: OpenedTable) -> None:
        defined = opened.defined
        schema = defined.table.schema
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


def _joined(keys: pa.Table, probes: npt.NDArray[np.int64], rows: pa.Table, is_inner: bool) -> pa.Table:
    """Keys beside the rows of those at the places ``probes``, which ascend; each has all its rows."""
    if is_inner:
        taken = keys if _is_range(probes, len(keys)) else keys.take(pa.array(probes))
    elif _is_range(probes, len(keys)):
        taken = keys
    else:
        counts = np.bincount(probes, minlength=len(keys))
        repeated = np.repeat(np.arange(len(keys)), np.maximum(counts, 1))
        missed = counts[repeated] == 0
        places = np.cumsum(~missed) - 1
        taken = keys if len(repeated) == len(keys) else keys.take(pa.array(repeated))
        rows = rows.combine_chunks().take(pa.array(places, mask=missed))
    for name, column in zip(rows.column_names, rows.columns):
        taken = taken.append_column(rows.schema.field(name), column)
    return taken


def _is_range(places: npt.NDArray[np.int64], size: int) -> bool:
    """Whether some ascending places are all of them, once each."""
    return len(places) == size and bool((np.diff(places) == 1).all()) and (size == 0 or places[0] == 0)


def _utc(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, timezone.utc)
