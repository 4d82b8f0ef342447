"""Lookups that the tasks of a Spark executor share. A process keeps those that it opened from task to task; their files
lie in Spark's directory of the executor, so that one of its processes makes them and the others open them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import Cache, LookupSpec
from lakelsm.lookup.fresh_table import FreshTable, OpenedTable
from lakelsm.lookup.lookup_definition import LookupDefinition
from lakelsm.lookup.refresh_policy import RefreshPolicy
from lakelsm.plan.bucket_count import check_one_bucket_count
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM, Surroundings, executor_directory

#: Opens a cache with its files below a directory that processes share, or (None) in one of its own.
OpensCache: TypeAlias = Callable[[LookupSpec, Path | None], Cache]


@dataclass(frozen=True)
class SharedLookup:
    """What tasks look up: rows of a table by a ``definition``, of some ``buckets`` alone (None: of all). It pickles.

    ``store`` is the table as it is when the query is made, without the options of the definition.
    """

    store: TableStore
    definition: LookupDefinition
    policy: RefreshPolicy
    _: KW_ONLY
    opens: OpensCache
    buckets: frozenset[int] | None = None

    @property
    def name(self) -> str:
        """A text that two lookups share only where they ask for the same."""
        schema, asked = self.store.schema, self.definition
        table = (self.store.paths.branch_root, schema.id, schema.time_millis)
        wanted = (asked.key, asked.columns, asked.where, sorted(asked.options.items()))
        return repr((table, wanted, self.policy, None if self.buckets is None else sorted(self.buckets)))


@dataclass
class _Kept:
    """An open lookup; ``used``: when it was asked for last; ``checked``: a snapshot whose buckets were counted."""

    table: FreshTable
    retention: float
    used: float
    checked: Snapshot | None = field(default=None, init=False)


class ExecutorLookups:
    """The open lookups of one process. Several threads may use them."""

    def __init__(self, surroundings: Surroundings = SYSTEM) -> None:
        self._surroundings = surroundings
        self._lock = Lock()
        self._kept: dict[str, _Kept] = {}

    @contextmanager
    def current(self, lookup: SharedLookup) -> Iterator[OpenedTable]:
        """The cache to ask, as fresh as the options want it. Where there is none yet, it is made.

        Raises InvalidInputError where rows may lie in other buckets than those of the lookup.
        """
        kept = self._of(lookup)
        with kept.table.current() as opened:
            snapshot = opened.cache.snapshot
            if lookup.buckets is not None and snapshot is not None and snapshot != kept.checked:
                check_one_bucket_count(lookup.store, snapshot)
                kept.checked = snapshot
            yield opened

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            kept, self._kept = self._kept, {}
        for each in kept.values():
            each.table.close()

    def _of(self, lookup: SharedLookup) -> _Kept:
        name = lookup.name
        with self._lock:
            now = self._surroundings.monotonic()
            kept = self._kept.get(name)
            if kept is None:
                self._close_idle(now)
                kept = self._kept[name] = self._opened(lookup, now)
            kept.used = now
            return kept

    def _opened(self, lookup: SharedLookup, now: float) -> _Kept:
        options = lookup.definition.of_table(lookup.store).table.options
        place = executor_directory()
        shared = None if place is None else Path(place) / "lakelsm-lookup"

        def opener(spec: LookupSpec) -> Cache:
            return lookup.opens(replace(spec, buckets=lookup.buckets), shared)

        table = FreshTable(lookup.store, lookup.definition, lookup.policy, opener, surroundings=self._surroundings)
        return _Kept(table, options.lookup_cache_file_retention / 1000, now)

    def _close_idle(self, now: float) -> None:
        """Close those that nothing has asked for as long as a file of theirs may lie unused."""
        for name, kept in list(self._kept.items()):
            if now - kept.used > kept.retention:
                del self._kept[name]
                kept.table.close()


#: Those of this process.
LOOKUPS = ExecutorLookups()
