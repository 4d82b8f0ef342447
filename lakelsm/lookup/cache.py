"""The protocol of caches (`Cache`), lookups (`LookupSpec`), its result (`FoundRows`), shared closing (`CountedCache`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from threading import Lock
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.output_rows import output_rows, output_schema
from lakelsm.predicate.predicate import Predicate, columns
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, same_layout, to_arrow

Longs: TypeAlias = npt.NDArray[np.int64]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class LookupSpec:
    """The columns of a table's rows that are found by a key. It pickles.

    ``store`` has the table's options with those of the call on top. ``key`` are the key's columns in the order in which
    values of a key are given, ``columns`` those of the rows that are found, as the table names them. ``predicate``
    (Paimon's cache row filter): only rows for which it is TRUE are found. ``buckets`` (None: all): rows of others need
    not be found.
    """

    store: TableStore
    key: tuple[str, ...]
    columns: tuple[str, ...]
    _: KW_ONLY
    predicate: Predicate | None = None
    buckets: frozenset[int] | None = None

    @property
    def read_columns(self) -> frozenset[str]:
        """The columns that rows must have to be found: those looked up, and those of the condition."""
        return frozenset(self.columns) | (frozenset() if self.predicate is None else columns(self.predicate))

    @property
    def by_primary_key(self) -> bool:
        """Whether a key has at most one row: its columns are those of the primary key, in any order.

        In a table whose primary key lacks a partition column each partition may have a row of a key.
        """
        schema = self.store.schema
        return set(self.key) == set(schema.primary_keys) and not schema.cross_partition

    @property
    def not_by_primary_key(self) -> str:
        """The text for errors of a cache that needs a key with at most one row."""
        keys = ", ".join(self.store.schema.primary_keys)
        why = f"answers lookups by the whole primary key ({keys}), not by ({', '.join(self.key)})"
        if self.store.schema.cross_partition:
            why = f"needs one row for each key, and the primary key ({keys}) lacks a partition column"
        return f"{why}: set 'lookup.cache' to 'full'."

    def on_newest_schema(self) -> LookupSpec:
        """The lookup on the newest schema of its table; options that it was opened with stay on top.

        Raises InvalidInputError where a column that it needs was dropped, renamed or got another type: the rows that it
        finds have one schema.
        """
        store = self.store
        newest = store.schemas.latest()
        if newest.id == store.schema.id:
            return self
        needed, now = {*self.key, *self.read_columns}, {field.id: field for field in newest.fields}
        for was in store.schema.fields:
            problem = _change(was, now.get(was.id)) if was.name in needed else None
            if problem is not None:
                raise InvalidInputError(
                    f"Table {store.name}: schema {newest.id} {problem} since the lookup was opened: open another one."
                )
        own = store.schemas.get(store.schema.id).options
        overrides = {key: text for key, text in store.schema.options.items() if own.get(key) != text}
        schema = newest.with_options({**newest.options, **overrides}) if overrides else newest
        return replace(self, store=store.with_schema(schema))


def _change(was: DataField, now: DataField | None) -> str | None:
    """What became of a column that a lookup needs; None: it is as before."""
    if now is None:
        return f"has no column {was.name!r} any more, which was there"
    if now.name != was.name:
        return f"calls column {was.name!r} {now.name!r}, which had its name"
    matches = same_layout(was.type, now.type)
    return None if matches else f"has column {was.name!r} as {now.type.sql()}, which was {was.type.sql()}"


@dataclass(frozen=True)
class FoundRows:
    """Rows that were found: ``probes[i]``, ascending, is the index, among the requested keys, of the key of row i."""

    probes: Longs
    rows: pa.Table

    @staticmethod
    def combined(parts: Sequence[FoundRows]) -> FoundRows:
        """What one or more lookups found of the same keys. Rows of a key come in the order of the parts."""
        if len(parts) == 1:
            return parts[0]
        probes = np.concatenate([part.probes for part in parts])
        rows = pa.concat_tables([part.rows for part in parts]).combine_chunks()
        order = np.argsort(probes, kind="stable")
        return FoundRows(probes[order], rows.take(pa.array(order)))


def matched(keys: int, probes: Longs, is_inner: bool) -> tuple[Longs | None, pa.Array | None]:
    """For each joined row the index of its key, ascending, and of its row among those found (NULL: none).

    ``probes``, ascending, are those of the keys of the rows found, among so many ``keys``. A key without a row is left
    out (``is_inner``) or stays. None stands for all in their order, each once.
    """
    rows = None
    if not is_inner:
        counts = np.bincount(probes, minlength=keys)
        if not counts.all():
            probes = np.repeat(np.arange(keys), np.maximum(counts, 1))
            has_row = counts[probes] > 0
            rows = pa.array(np.cumsum(has_row) - 1, mask=~has_row)
    is_each = len(probes) == keys and bool((probes == np.arange(keys)).all())
    return None if is_each else probes, rows


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did: ``changed`` has the keys whose rows may be others now (None: any key's may).

    ``rebuilt`` is the reason why the cache was loaded again (None: it was not).
    """

    snapshot: Snapshot | None
    _: KW_ONLY
    changed: pa.Table | None
    rebuilt: str | None = None


class Cache(Protocol):
    """Answers lookups of one `LookupSpec` as of one snapshot, until it is refreshed.

    Several threads may look up while one refreshes: each lookup sees one state.
    """

    #: 'full', 'partial' or 'remote'.
    kind: str
    spec: LookupSpec

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that answers (None: an empty table)."""

    @property
    def rows(self) -> int | None:
        """The number of rows that can be found (None: not known)."""
        return None

    @property
    def disk_bytes(self) -> int | None:
        """The size of its files on this machine (None: it has none)."""
        return None

    def find(self, keys: pa.Table) -> FoundRows:
        """The rows that `Table.read` shows, of each key.

        ``keys`` has the columns of ``spec.key`` in the table's stored types (`lakelsm.types.to_arrow`), no NULLs, in any
        order; a key may come twice. Rows have ``spec.columns`` in stored types.
        """

    def find_key(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows of one key as Python values as users get them; the key's are as `pa.Array.to_pylist` has them."""
        rows = self.find_plain(key)
        if rows is None:
            schema = self.spec.store.schema
            found = self.find(key_row(key, [schema.field(name) for name in self.spec.key]))
            rows = python_rows(found.rows, [schema.field(name) for name in self.spec.columns])
        return rows

    def find_plain(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """As `find_key`, in Python values, which takes a tenth of the time; None if only `find` can answer."""
        return None

    def refresh(self) -> Refreshed:
        """Take the table's newest snapshot."""

    def close(self) -> None:
        """Give memory and disk space back, the cache's directory included. It answers no more lookups."""


#: Opens a cache of the newest snapshot.
Opener: TypeAlias = Callable[[LookupSpec], Cache]
_Counted = TypeVar("_Counted", bound="CountedCache")


class CountedCache:
    """An open cache and the number of its users, the owner among them. It is closed when the last of them releases it.

    A user calls `acquire`, and then uses it in a ``with``, which releases it.
    """

    def __init__(self, spec: LookupSpec, opener: Opener, environment: Environment = SYSTEM) -> None:
        began = environment.monotonic()
        self.cache = opener(spec)
        self._table = spec.store.name
        self._environment = environment
        self._users = 1
        self._lock = Lock()
        self._log("open lookup", "a lookup was opened", began)

    def acquire(self) -> bool:
        """Add a user. False if the cache is closed."""
        with self._lock:
            if self._users:
                self._users += 1
            return self._users > 0

    def release(self) -> None:
        """Remove a user."""
        with self._lock:
            self._users -= 1
            is_last = self._users == 0
        if is_last:
            self.cache.close()

    def refresh(self) -> Refreshed:
        """See `Cache.refresh`."""
        before, began = self.cache.snapshot, self._environment.monotonic()
        refreshed = self.cache.refresh()
        if refreshed.snapshot != before or refreshed.rebuilt is not None:
            why = "" if refreshed.rebuilt is None else f" by loading it again, as {refreshed.rebuilt}"
            done = f"a lookup was refreshed from snapshot {None if before is None else before.id}{why}"
            self._log("refresh lookup", done, began)
        return refreshed

    def _log(self, operation: str, done: str, began: float) -> None:
        if _LOG.isEnabledFor(logging.INFO):
            state = {**cache_state(self.cache), "seconds": round(self._environment.monotonic() - began, 3)}
            text = f"{done} ({', '.join(f'{name} {value}' for name, value in state.items())})"
            fields = {"table": self._table, "operation": operation, "outcome": "done", **state}
            _LOG.info("Table %s: %s", self._table, text, extra=fields)

    def __enter__(self: _Counted) -> _Counted:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def cache_state(cache: Cache) -> dict[str, object]:
    """Kind, snapshot, rows and bytes of a cache for a text; rows and bytes where they are known."""
    snapshot, counts = cache.snapshot, {"rows": cache.rows, "bytes": cache.disk_bytes}
    known = {name: value for name, value in counts.items() if value is not None}
    return {"cache": cache.kind, "snapshot": None if snapshot is None else snapshot.id, **known}


def key_row(key: Sequence[Any], fields: Sequence[DataField]) -> pa.Table:
    """A key of these columns, whose values are as `pa.Array.to_pylist` has stored ones, as a row of stored types."""
    values = [pa.array([value], to_arrow(field.type)) for value, field in zip(key, fields, strict=True)]
    return pa.Table.from_arrays(values, [field.name for field in fields])


def python_rows(rows: pa.Table, fields: Sequence[DataField]) -> list[tuple[Any, ...]]:
    """These columns of rows, as Python values as users get them.

    Raises UnsupportedFeatureError for a time that Python does not have.
    """
    if not fields:
        return [()] * len(rows)
    try:
        return list(zip(*(column.to_pylist() for column in output_rows(rows, output_schema(fields)).columns)))
    except (ValueError, OverflowError) as error:
        raise no_python_time(error) from error


def no_python_time(error: Exception) -> UnsupportedFeatureError:
    """The error for a row that Python cannot have."""
    return UnsupportedFeatureError(
        f"a row has a time that Python does not have ({error}): look its key up as one of many, in Arrow, or leave the "
        "column out."
    )
