"""The cache of a lookup, which follows newer snapshots, schemas and partitions as its policy requires."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Event, Lock, Thread
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lakelsm.cancellation import WorkCancelled, cancelled_by
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import InvalidInputError, LakelsmError
from lakelsm.failures import logged_text
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.lookup.cache import CountedCache, FoundRows, Opener
from lakelsm.lookup.lookup_definition import DefinedLookup, LookupDefinition, RefreshPolicy
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.lookup.store.key_index import hashes_of
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, to_arrow

_LOG = logging.getLogger(__name__)

Key: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = list[tuple[Any, ...]]


class RowCache:
    """The most recently used rows by key, at most ``max_rows``. A key without rows counts as one row.

    Several threads may use it. Each refresh begins a new ``era``. Rows are stored with the era in which their search
    began, and are dropped if it has ended: they may be of the older state.
    """

    def __init__(self, fields: Sequence[DataField], max_rows: int) -> None:
        self._fields = fields
        self._max_rows = max_rows
        self._rows: OrderedDict[Key, Rows] = OrderedDict()
        self._count = 0
        self._lock = Lock()
        #: A number that each refresh increases.
        self.era = 0

    def get(self, key: Key) -> Rows | None:
        """Return the rows of a key; None if they are not in the cache."""
        with self._lock:
            found = self._rows.get(key)
            if found is not None:
                self._rows.move_to_end(key)
            return found

    def put(self, key: Key, rows: Rows, era: int) -> None:
        """Store the rows of a key whose search began in ``era``."""
        size = max(len(rows), 1)
        with self._lock:
            if era != self.era or key in self._rows or size > self._max_rows:
                return
            self._rows[key] = rows
            self._count += size
            while self._count > self._max_rows:
                self._count -= max(len(self._rows.popitem(last=False)[1]), 1)

    def drop(self, changed: pa.Table | None) -> None:
        """Drop the rows of the changed keys; of all keys if ``changed`` is None or lacks columns of the key."""
        with self._lock:
            self.era += 1
            if not self._rows:
                return
            if changed is None or not {field.name for field in self._fields} <= set(changed.column_names):
                self._rows.clear()
                self._count = 0
            elif len(changed):
                for key in self._among(changed):
                    self._count -= max(len(self._rows.pop(key)), 1)

    def _among(self, changed: pa.Table) -> list[Key]:
        """Return the cached keys that may be among others: those with an equal hash."""
        kept = list(self._rows)
        columns = [pa.array(values, to_arrow(field.type)) for values, field in zip(zip(*kept), self._fields)]
        own = pa.table(columns, names=[field.name for field in self._fields])
        found = np.isin(hashes_of(own, self._fields), hashes_of(changed, self._fields))
        return [kept[at] for at in np.flatnonzero(found).tolist()]


class DefinedCache(CountedCache):
    """The cache of a definition in ``partitions`` (None: all), and the most recently used rows."""

    def __init__(
        self, defined: DefinedLookup, partitions: tuple[bytes, ...] | None, opener: Opener, environment: Environment
    ) -> None:
        super().__init__(defined.spec(partitions), opener, environment)
        self.defined = defined
        self.partitions = partitions
        store = defined.store
        self.keys = LookupKeys.of(store.schema, defined.key)
        self._single = self.keys.single()
        self.row_cache = RowCache([store.schema.field(name) for name in defined.key], store.options.lookup_cache_rows)
        self._added_values: pa.Table | None = None
        self._added_keys: list[Key] | None = None
        if partitions is not None and defined.adds_partitions:
            columns = decode_rows(list(partitions), store.partition_types)
            self._added_values = pa.table(dict(zip(store.schema.partition_keys, columns)))
            self._added_keys = list(zip(*(column.to_pylist() for column in columns)))

    def find(self, keys: pa.Table) -> FoundRows:
        """Find the rows of keys in stored types. Keys without partition columns are searched in all chosen partitions."""
        if self._added_values is None:
            return self.cache.find(keys)
        chosen = [self._added_values.slice(at, 1) for at in range(len(self._added_values))]
        if not chosen:
            keys, chosen = keys.slice(0, 0), [self._added_values]
        return FoundRows.combined([self.cache.find(_within(keys, each)) for each in chosen])

    def rows_of(self, values: tuple[Any, ...], named: Mapping[str, Any]) -> Rows:
        """Return the rows of one key, whose values are given by position or by name."""
        key = self._single(values, named)
        return [] if key is None else self.find_key(key)

    def find_key(self, key: Key) -> Rows:
        """Return the rows of one key, from the most recently used rows if they are there."""
        found = self.row_cache.get(key)
        if found is None:
            era = self.row_cache.era
            keys = [key] if self._added_keys is None else [(*key, *added) for added in self._added_keys]
            found = [row for each in keys for row in self.cache.find_key(each)]
            self.row_cache.put(key, found, era)
        return found


def _within(keys: pa.Table, partition: pa.Table) -> pa.Table:
    """Add the values of one partition to keys; ``partition`` is empty only if there are no keys."""
    first = pa.array(np.zeros(len(keys), np.int64))
    for field, column in zip(partition.schema, partition.columns):
        keys = keys.append_column(field, column.take(first))
    return keys


class FreshCache:
    """Keeps the cache of a lookup fresh. Several threads may use it.

    ``store`` is the table without the options of the lookup.
    """

    def __init__(
        self,
        store: TableStore,
        definition: LookupDefinition,
        policy: RefreshPolicy,
        opener: Opener,
        *,
        environment: Environment = SYSTEM,
    ) -> None:
        self.store = store
        self._definition = definition
        self._policy = policy
        self._opener = opener
        self.environment = environment
        self._refreshing = Lock()
        self._switching = Lock()
        self._closed = Event()
        self._failure: BaseException | None = None
        self._background: Thread | None = None
        self._chosen_at = self._note_check(environment.monotonic())
        self._current: DefinedCache | None = self._open(definition.of_table(store))

    @property
    def seconds_since_look(self) -> float:
        """The seconds since the last check for a newer snapshot."""
        return self.environment.monotonic() - self._checked_at

    def current(self) -> DefinedCache:
        """Return the cache, acquired for the caller and refreshed if due. Raises InvalidInputError if it is closed."""
        now = self.environment.monotonic()
        if now >= self._due_at:
            self._refresh_due(now)
        return self.acquire()

    def acquire(self) -> DefinedCache:
        """Return the cache without a refresh, acquired for the caller. Raises InvalidInputError if it is closed."""
        while (current := self._current) is not None:
            if current.acquire():  # Otherwise another thread has replaced it.
                return current
        raise InvalidInputError(f"Table {self.store.name}: the lookup is closed. Open another one with Table.lookup.")

    def refresh(self) -> None:
        """Refresh to the newest snapshot now."""
        self._raise_background_failure()
        with self._refreshing:
            self._take_newest(partitions=True)

    def close(self) -> None:
        """Wait for the background thread, and close the cache after its last lookup."""
        with self._switching:
            self._closed.set()
            background = self._background
        if background is not None:
            background.join()
        with self._switching:
            current, self._current = self._current, None
        if current is not None:
            current.release()

    def _note_check(self, now: float) -> float:
        """Record the time of a check for a newer snapshot."""
        self._checked_at = now
        self._due_at = float("inf") if self._policy.interval is None else now + self._policy.interval
        return now

    def _refresh_due(self, now: float) -> None:
        """Refresh the cache, or start a refresh in the background."""
        self._raise_background_failure()
        if self._closed.is_set() or self._policy.is_quiet(self.environment):
            return
        if self._policy.in_background and not self._is_far_behind():
            self._start_background(now)
            return
        with self._refreshing:
            if self._checked_at <= now and self._due_at <= now:  # Otherwise another thread has checked since.
                self._take_newest()

    def _is_far_behind(self) -> bool:
        with self.acquire() as held:
            snapshot, newest = held.cache.snapshot, self.store.snapshots.latest_id() or 0
            return newest - (0 if snapshot is None else snapshot.id) > self._policy.max_pending

    def _start_background(self, now: float) -> None:
        """Start a refresh in a thread that ends with the process, unless one is running."""
        with self._switching:
            if self._closed.is_set() or (self._background is not None and self._background.is_alive()):
                return
            self._note_check(now)
            self._background = Thread(target=self._refresh_in_background, name="lakelsm-lookup-refresh", daemon=True)
            self._background.start()

    def _refresh_in_background(self) -> None:
        try:
            with self._refreshing, cancelled_by(self._closed.is_set):
                self._take_newest()
        except WorkCancelled:
            pass
        except BaseException as error:  # noqa: BLE001  The next lookup raises it.
            _LOG.warning("Table %s: the background refresh of a lookup failed: %s", self.store.name, logged_text(error))
            self._failure = error
            self._due_at = float("-inf")

    def _raise_background_failure(self) -> None:
        """Raise the error of the last background refresh, once."""
        with self._switching:
            failure, self._failure = self._failure, None
            if failure is None:
                return
            self._note_check(self._checked_at)
        if isinstance(failure, LakelsmError):
            raise type(failure)(f"The background refresh failed: {failure}") from failure
        raise failure

    def _take_newest(self, partitions: bool = False) -> None:
        """Refresh the cache; replace it if the table, its columns or the chosen partitions are different now."""
        self._note_check(self.environment.monotonic())
        with self.acquire() as held:
            newest = self.store.refreshed()
            defined = held.defined if newest is self.store else self._definition.of_table(newest)
            is_other = newest is not self.store and self.store.is_recreated()
            if is_other or not defined.matches(held.defined) or self._has_other_partitions(held, partitions):
                self._replace(self._open(defined))
            else:
                held.row_cache.drop(held.refresh().changed)
            self.store = newest

    def _has_other_partitions(self, held: DefinedCache, now: bool) -> bool:
        """Return whether a check for the greatest partitions is due (``now``: always) and finds other ones."""
        choice, time = held.defined.choice, self.environment.monotonic()
        is_early = not now and time < self._chosen_at + self._policy.partition_interval
        if choice is None or not choice.may_change or is_early:
            return False
        self._chosen_at = time
        return held.defined.partitions() != held.partitions

    def _open(self, defined: DefinedLookup) -> DefinedCache:
        return DefinedCache(defined, defined.partitions(), self._opener, self.environment)

    def _replace(self, opened: DefinedCache) -> None:
        with self._switching:
            before: DefinedCache | None = opened
            if not self._closed.is_set():
                before, self._current = self._current, opened
        if before is not None:
            before.release()
