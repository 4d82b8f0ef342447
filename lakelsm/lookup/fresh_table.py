"""A lookup table that goes on to newer snapshots, schemas and partitions as its policy says."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakelsm.cancellation import WorkCancelled, cancelled_by
from lakelsm.errors import InvalidInputError, LakelsmError
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.lookup.cache import Cache, FoundRows, LookupSpec
from lakelsm.lookup.lookup_definition import DefinedLookup, LookupDefinition
from lakelsm.lookup.refresh_policy import RefreshPolicy
from lakelsm.lookup.row_cache import Key, RowCache, Rows
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import Surroundings
from lakelsm.types import arrow_field

#: Opens a cache for a spec.
Opener: TypeAlias = Callable[[LookupSpec], Cache]


class OpenedTable:
    """A cache as it is used: closed when it is neither the newest one nor used any more.

    Who has it uses it in a ``with``.
    """

    def __init__(self, cache: Cache, defined: DefinedLookup, partitions: tuple[bytes, ...] | None) -> None:
        self.cache = cache
        self.defined = defined
        self.partitions = partitions
        fields = [defined.table.schema.field(name) for name in defined.key]
        self.rows = RowCache(fields, defined.table.options.lookup_cache_rows)
        self._added: pa.Table | None = None
        self._added_keys: list[Key] | None = None
        if partitions is not None and defined.adds_partitions:
            columns = decode_rows(list(partitions), defined.table.partition_types)
            self._added = pa.table(dict(zip(defined.table.schema.partition_keys, columns)))
            self._added_keys = list(zip(*(column.to_pylist() for column in columns)))
        self._users = 1
        self._lock = Lock()

    def find(self, keys: pa.Table) -> FoundRows:
        """The rows of keys in stored types; where they leave out partition columns, of all chosen partitions."""
        if self._added is None:
            return self.cache.find(keys)
        found = [self.cache.find(self._within(keys, at)) for at in range(len(self._added))]
        if not found:
            shown = [self.defined.table.schema.field(name) for name in self.defined.columns]
            return FoundRows(np.empty(0, np.int64), pa.schema(map(arrow_field, shown)).empty_table())
        return FoundRows.together(found)

    def find_one(self, key: Key) -> Rows:
        """The rows of one key, from those that are kept where they are."""
        found = self.rows.get(key)
        if found is None:
            era = self.rows.era
            keys = [key] if self._added_keys is None else [(*key, *added) for added in self._added_keys]
            found = [row for each in keys for row in self.cache.find_one(each)]
            self.rows.put(key, found, era)
        return found

    def hold(self) -> bool:
        """Say that there is one more user: False where it is closed already."""
        with self._lock:
            if not self._users:
                return False
            self._users += 1
            return True

    def __enter__(self) -> OpenedTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Say that one of its users is done."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self.cache.close()

    def _within(self, keys: pa.Table, at: int) -> pa.Table:
        """Keys with the values of one of the partitions."""
        assert self._added is not None
        for name, column in zip(self._added.column_names, self._added.columns):
            keys = keys.append_column(name, pa.repeat(column[at], len(keys)))
        return keys


class FreshTable:
    """Keeps a cache that answers a lookup. Several threads may use it.

    ``store`` is the table without the options of the lookup.
    """

    def __init__(
        self,
        store: TableStore,
        definition: LookupDefinition,
        policy: RefreshPolicy,
        opener: Opener,
        *,
        surroundings: Surroundings,
    ) -> None:
        self._store = store
        self._definition = definition
        self._policy = policy
        self._opener = opener
        self._surroundings = surroundings
        self._refreshing = Lock()
        self._switching = Lock()
        self._closed = Event()
        self._failure: BaseException | None = None
        self._behind: Thread | None = None
        self._looked = self._chose = surroundings.monotonic()
        self._opened: OpenedTable | None = self._open(definition.of_table(store))
        self._due = self._next_due()

    @property
    def name(self) -> str:
        """The table's name."""
        return self._store.name

    @property
    def seconds_since_look(self) -> float:
        """How long ago anyone looked for a newer snapshot."""
        return self._surroundings.monotonic() - self._looked

    def current(self) -> OpenedTable:
        """The cache to ask, refreshed where that is due. Raises InvalidInputError once it is closed."""
        now = self._surroundings.monotonic()
        if now >= self._due:
            self._when_due(now)
        return self.held()

    def held(self) -> OpenedTable:
        """The cache as it is. Raises InvalidInputError once it is closed."""
        while (opened := self._opened) is not None:
            if opened.hold():  # Else it was replaced since.
                return opened
        raise InvalidInputError(f"Table {self.name}: the lookup is closed; open another one with Table.lookup.")

    def refresh(self) -> None:
        """Go on to the newest snapshot now."""
        self._raise_failure()
        with self._refreshing:
            self._go_on(partitions=True)

    def close(self) -> None:
        """End what works in the background, and close the cache as soon as no lookup uses it any more."""
        with self._switching:
            self._closed.set()
            behind = self._behind
        if behind is not None:
            behind.join()
        with self._switching:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.release()

    def _next_due(self) -> float:
        interval = self._policy.interval
        return float("inf") if interval is None else self._looked + interval

    def _when_due(self, asked: float) -> None:
        """Refresh, or begin to in the background."""
        self._raise_failure()
        if self._closed.is_set() or self._policy.is_quiet(self._surroundings):
            return
        if self._policy.in_background and not self._is_far_behind():
            self._begin_behind(asked)
            return
        with self._refreshing:
            if self._looked <= asked and self._due <= asked:  # Else another thread has looked since.
                self._go_on()

    def _is_far_behind(self) -> bool:
        with self.held() as opened:
            snapshot, newest = opened.cache.snapshot, self._store.snapshots.latest_id() or 0
            return newest - (0 if snapshot is None else snapshot.id) > self._policy.most_pending

    def _begin_behind(self, asked: float) -> None:
        """Refresh in a thread that ends with the process, unless one does already."""
        with self._switching:
            if self._closed.is_set() or (self._behind is not None and self._behind.is_alive()):
                return
            self._looked = asked
            self._due = self._next_due()
            self._behind = Thread(target=self._work_behind, name="lakelsm-lookup-refresh", daemon=True)
            self._behind.start()

    def _work_behind(self) -> None:
        try:
            with self._refreshing, cancelled_by(self._closed.is_set):
                self._go_on()
        except WorkCancelled:
            pass
        except BaseException as error:  # noqa: BLE001  Whatever it is, the next lookup raises it.
            self._failure = error
            self._due = float("-inf")

    def _raise_failure(self) -> None:
        """Raise what failed in the background, once."""
        with self._switching:
            failure, self._failure = self._failure, None
            if failure is None:
                return
            self._due = self._next_due()
        if isinstance(failure, LakelsmError):
            raise type(failure)(f"A refresh in the background failed: {failure}") from failure
        raise failure

    def _go_on(self, partitions: bool = False) -> None:
        """Refresh the cache, or open one anew where the table, its columns or the chosen partitions are others."""
        self._looked = self._surroundings.monotonic()
        self._due = self._next_due()
        with self.held() as opened:
            newest = self._store.refreshed()
            defined = opened.defined if newest is self._store else self._definition.of_table(newest)
            is_other = newest is not self._store and self._is_made_anew()
            if is_other or not defined.is_as_before(opened.defined) or self._chooses_others(opened, partitions):
                self._replace(self._open(defined))
            else:
                opened.rows.drop(opened.cache.refresh().changed)
            self._store = newest

    def _is_made_anew(self) -> bool:
        """Whether the table lost the schema that the lookup is at: it was dropped, and another one lies at its path."""
        schemas, own = self._store.schemas, self._store.schema
        return own.id not in schemas.ids() or schemas.get(own.id) != own

    def _chooses_others(self, opened: OpenedTable, now: bool) -> bool:
        """Whether it is time to look for the greatest partitions, and they are others."""
        choice, time = opened.defined.choice, self._surroundings.monotonic()
        if choice is None or not choice.moves:
            return False
        if not now and time < self._chose + self._policy.partition_interval:
            return False
        self._chose = time
        store = opened.defined.table
        return choice.partitions(store, store.snapshots.latest()) != opened.partitions

    def _open(self, defined: DefinedLookup) -> OpenedTable:
        store, choice = defined.table, defined.choice
        partitions = None if choice is None else choice.partitions(store, store.snapshots.latest())
        return OpenedTable(self._opener(defined.spec(partitions)), defined, partitions)

    def _replace(self, opened: OpenedTable) -> None:
        with self._switching:
            if self._closed.is_set():
                before: OpenedTable | None = opened
            else:
                before, self._opened = self._opened, opened
        if before is not None:
            before.release()
