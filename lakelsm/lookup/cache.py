"""The protocol of caches: lookups (`LookupSpec`), their result (`FoundRows`), and counted use (`CountedCache`)."""

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
    """The rows and columns of a table that a lookup finds, and its key. It can be pickled.

    ``store`` has the table's options, overridden by those of the call. ``key`` are the key columns in the order in which
    values are given, ``columns`` those of the result; both have the table's names. ``predicate`` (Paimon's cache row
    filter): only rows for which it is TRUE are found. ``buckets`` (None: all): rows of other buckets need not be found.
    """

    store: TableStore
    key: tuple[str, ...]
    columns: tuple[str, ...]
    _: KW_ONLY
    predicate: Predicate | None = None
    buckets: frozenset[int] | None = None

    @property
    def read_columns(self) -> frozenset[str]:
        """The columns that a cache reads: those of the result and those of the condition."""
        return frozenset(self.columns) | (frozenset() if self.predicate is None else columns(self.predicate))

    @property
    def by_primary_key(self) -> bool:
        """Whether a key has at most one row: its columns are those of the primary key, in any order.

        In a table whose primary key lacks a partition column, each partition may have a row of a key.
        """
        schema = self.store.schema
        return set(self.key) == set(schema.primary_keys) and not schema.cross_partition

    @property
    def not_by_primary_key(self) -> str:
        """The end of the error of a cache that needs a key with at most one row."""
        keys = ", ".join(self.store.schema.primary_keys)
        why = f"answers lookups by the whole primary key ({keys}), not by ({', '.join(self.key)})"
        if self.store.schema.cross_partition:
            why = f"needs one row for each key, and the primary key ({keys}) lacks a partition column"
        return f"{why}. Set 'lookup.cache' to 'full'."

    def on_newest_schema(self) -> LookupSpec:
        """Return the lookup on the newest schema of its table. Options of the call still override the table's.

        Raises InvalidInputError if a needed column was dropped, renamed or changed its type: all rows that a lookup finds
        have one schema.
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
                    f"Table {store.name}: schema {newest.id} {problem}, and the lookup needs it. Open another lookup."
                )
        own = store.schemas.get(store.schema.id).options
        overrides = {key: text for key, text in store.schema.options.items() if own.get(key) != text}
        schema = newest.with_options({**newest.options, **overrides}) if overrides else newest
        return replace(self, store=store.with_schema(schema))


def _change(was: DataField, now: DataField | None) -> str | None:
    """Describe how a column that a lookup needs has changed; None if it has not."""
    if now is None:
        return f"has dropped column {was.name!r}"
    if now.name != was.name:
        return f"has renamed column {was.name!r} to {now.name!r}"
    matches = same_layout(was.type, now.type)
    return None if matches else f"has changed the type of column {was.name!r} from {was.type.sql()} to {now.type.sql()}"


@dataclass(frozen=True)
class FoundRows:
    """Found rows: ``probes[i]`` is the index of the key of row i among the requested keys. Probes ascend."""

    probes: Longs
    rows: pa.Table

    @staticmethod
    def combined(parts: Sequence[FoundRows]) -> FoundRows:
        """Combine what lookups of the same keys found. Rows of a key have the order of the parts."""
        if len(parts) == 1:
            return parts[0]
        probes = np.concatenate([part.probes for part in parts])
        rows = pa.concat_tables([part.rows for part in parts]).combine_chunks()
        order = np.argsort(probes, kind="stable")
        return FoundRows(probes[order], rows.take(pa.array(order)))


def matched(keys: int, probes: Longs, is_inner: bool) -> tuple[Longs | None, pa.Array | None]:
    """Return for each joined row the index of its key, ascending, and the position of its found row (NULL: none).

    ``probes`` are those of the found rows, ``keys`` is the number of keys. ``is_inner`` leaves out keys without a row.
    None instead of an array stands for all indexes or positions in order, each once.
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
    """The outcome of a refresh: ``changed`` has the keys whose rows may have changed (None: any key).

    ``rebuilt`` is the reason why the cache was loaded again (None: it was not).
    """

    snapshot: Snapshot | None
    _: KW_ONLY
    changed: pa.Table | None
    rebuilt: str | None = None


class Cache(Protocol):
    """Answers lookups of one `LookupSpec` from one snapshot, until it is refreshed.

    Threads may look up during a refresh: each lookup sees one state.
    """

    #: 'full', 'partial' or 'remote'.
    kind: str
    spec: LookupSpec

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that answers (None: the table is empty)."""

    @property
    def rows(self) -> int | None:
        """The number of rows that can be found (None: unknown)."""
        return None

    @property
    def disk_bytes(self) -> int | None:
        """The size of its files on this machine, in bytes (None: it has no files)."""
        return None

    def find(self, keys: pa.Table) -> FoundRows:
        """Find the rows of each key, as `Table.read` shows them.

        ``keys`` has the columns of ``spec.key`` in stored types (`lakelsm.types.to_arrow`), without NULLs, in any order;
        a key may be repeated. The rows have ``spec.columns`` in stored types.
        """

    def find_key(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the rows of one key, as Python values for the user. The key is as `pa.Array.to_pylist` returns it."""
        rows = self.find_plain(key)
        if rows is None:
            schema = self.spec.store.schema
            found = self.find(key_row(key, [schema.field(name) for name in self.spec.key]))
            rows = python_rows(found.rows, [schema.field(name) for name in self.spec.columns])
        return rows

    def find_plain(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """Do the same as `find_key` without arrays, in a tenth of the time. Return None if only `find` can answer."""
        return None

    def refresh(self) -> Refreshed:
        """Move to the table's newest snapshot."""

    def close(self) -> None:
        """Stop answering, and free memory, disk space and a private directory."""


#: Opens a cache of the newest snapshot.
Opener: TypeAlias = Callable[[LookupSpec], Cache]
_Counted = TypeVar("_Counted", bound="CountedCache")


class CountedCache:
    """An open cache with a count of its users; the owner is one of them. The last user that releases it closes it.

    A user calls `acquire`, and then uses the cache in a ``with`` block, which releases it.
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
        """Add a user. Return False if the cache is closed."""
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
            why = "" if refreshed.rebuilt is None else f"; it was loaded again because {refreshed.rebuilt}"
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
    """Return the kind, snapshot, rows and bytes of a cache for a text. Unknown counts are left out."""
    snapshot, counts = cache.snapshot, {"rows": cache.rows, "bytes": cache.disk_bytes}
    known = {name: value for name, value in counts.items() if value is not None}
    return {"cache": cache.kind, "snapshot": None if snapshot is None else snapshot.id, **known}


def key_row(key: Sequence[Any], fields: Sequence[DataField]) -> pa.Table:
    """Return a key of these columns as a row of stored types; the values are as `pa.Array.to_pylist` gives them."""
    values = [pa.array([value], to_arrow(field.type)) for value, field in zip(key, fields, strict=True)]
    return pa.Table.from_arrays(values, [field.name for field in fields])


def python_rows(rows: pa.Table, fields: Sequence[DataField]) -> list[tuple[Any, ...]]:
    """Return these columns of rows as Python values for the user.

    Raises UnsupportedFeatureError for a time that Python cannot represent.
    """
    if not fields:
        return [()] * len(rows)
    try:
        return list(zip(*(column.to_pylist() for column in output_rows(rows, output_schema(fields)).columns)))
    except (ValueError, OverflowError) as error:
        raise no_python_time(error) from error


def no_python_time(error: Exception) -> UnsupportedFeatureError:
    """Return the error for a row whose time Python cannot represent."""
    return UnsupportedFeatureError(
        f"a row has a time that Python cannot represent ({error}). Use get_many, which returns Arrow, or leave the "
        "column out."
    )
