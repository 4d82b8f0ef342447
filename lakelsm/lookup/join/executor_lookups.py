"""Lookups that the tasks of a Spark executor share. A process keeps them open between tasks. Their files are in Spark's
directory of the executor: one process builds them, and the others open them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from lakelsm.environment import SYSTEM, Environment, executor_directory
from lakelsm.failures import logged_text
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import Cache, LookupSpec
from lakelsm.lookup.fresh_cache import DefinedCache, FreshCache
from lakelsm.lookup.lookup_definition import LookupDefinition, RefreshPolicy
from lakelsm.plan.bucket_count import check_one_bucket_count
from lakelsm.snapshots.table_store import TableStore

#: Opens a cache with its files below a directory that processes share, or (None) in a private one.
OpensCache: TypeAlias = Callable[[LookupSpec, Path | None], Cache]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class SharedLookup:
    """The lookup of a join's tasks: rows of a table by a ``definition``, in ``buckets`` (None: all). It can be pickled.

    ``store`` is the table as of the building of the query, without the options of the definition.
    """

    store: TableStore
    definition: LookupDefinition
    policy: RefreshPolicy
    _: KW_ONLY
    opens: OpensCache
    buckets: frozenset[int] | None = None

    @property
    def name(self) -> str:
        """A text that identifies the lookup: equal lookups have equal names."""
        schema, definition = self.store.schema, self.definition
        table = (self.store.paths.branch_root, schema.id, schema.time_millis)
        wanted = (definition.key, definition.columns, definition.where, sorted(definition.options.items()))
        return repr((table, wanted, self.policy, None if self.buckets is None else sorted(self.buckets)))

    def open(self, environment: Environment) -> FreshCache:
        """Open the cache, below the executor's directory if there is one."""
        executor = executor_directory()
        shared = None if executor is None else Path(executor) / "lakelsm-lookup"

        def opener(spec: LookupSpec) -> Cache:
            return self.opens(replace(spec, buckets=self.buckets), shared)

        return FreshCache(self.store, self.definition, self.policy, opener, environment=environment)


@dataclass
class _OpenLookup:
    """An open lookup; ``used``: time of the last use; ``checked``: a snapshot whose bucket counts were checked."""

    fresh: FreshCache
    retention: float
    used: float
    checked: Snapshot | None = None


class ExecutorLookups:
    """The open lookups of one process. Several threads may use them."""

    def __init__(self, environment: Environment = SYSTEM) -> None:
        self._environment = environment
        self._lock = Lock()
        self._open: dict[str, _OpenLookup] = {}

    @contextmanager
    def current(self, lookup: SharedLookup) -> Iterator[DefinedCache]:
        """Yield the cache of a lookup, as fresh as the options require. It is opened if there is none.

        Raises InvalidInputError if rows may be in buckets other than those of the lookup.
        """
        try:
            found = self._of(lookup)
            with found.fresh.current() as current:
                snapshot = current.cache.snapshot
                if lookup.buckets is not None and snapshot is not None and snapshot != found.checked:
                    check_one_bucket_count(lookup.store, snapshot)
                    found.checked = snapshot
                yield current
        except Exception as error:
            _LOG.warning("Table %s: a lookup in an executor failed: %s", lookup.store.name, logged_text(error))
            raise

    def close(self) -> None:
        """Close all open lookups."""
        with self._lock:
            every, self._open = self._open, {}
        for each in every.values():
            each.fresh.close()

    def _of(self, lookup: SharedLookup) -> _OpenLookup:
        name = lookup.name
        with self._lock:
            now = self._environment.monotonic()
            found = self._open.get(name)
            if found is None:
                self._close_idle(now)
                options = lookup.definition.of_table(lookup.store).store.options
                retention = options.lookup_cache_file_retention / 1000
                found = self._open[name] = _OpenLookup(lookup.open(self._environment), retention, now)
            found.used = now
            return found

    def _close_idle(self, now: float) -> None:
        """Close caches that were not used for the retention time of their files."""
        for name, each in list(self._open.items()):
            if now - each.used > each.retention:
                del self._open[name]
                each.fresh.close()


#: The open lookups of this process.
LOOKUPS = ExecutorLookups()
