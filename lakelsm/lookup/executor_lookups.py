"""Lookups that the tasks of a Spark executor share. A process keeps those that it opened from task to task; their files
lie in Spark's directory of the executor, so that one of its processes makes them and the others open them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.lookup_spec import LookupSpec
from lakelsm.lookup.lookup_table import LookupTable
from lakelsm.plan.bucket_count import check_one_bucket_count
from lakelsm.surroundings import SYSTEM, Surroundings, executor_directory

#: Opens what answers lookups, with its files in a directory.
Opens = Callable[[LookupSpec, CacheDirectory], LookupTable]


@dataclass(kw_only=True)
class _Kept:
    """An open lookup, and when it was last brought up to date and asked for (seconds of a clock that never goes back)."""

    spec: LookupSpec
    table: LookupTable
    refreshed: float
    used: float
    lock: Lock = field(default_factory=Lock)


class ExecutorLookups:
    """The open lookups of one process."""

    def __init__(self, surroundings: Surroundings = SYSTEM) -> None:
        self._surroundings = surroundings
        self._lock = Lock()
        self._kept: dict[str, _Kept] = {}

    def fresh(self, spec: LookupSpec, opens: Opens) -> LookupTable:
        """What answers lookups of a spec, as of a snapshot that is as new as the refresh interval says."""
        name = cache_name(spec)
        with self._lock:
            now = self._surroundings.monotonic()
            kept = self._kept.get(name)
            if kept is None:
                self._close_idle(now)
                kept = self._kept[name] = self._opened(spec, opens(spec, self._directory(name)))
        with kept.lock:
            kept.used = now
            if now - kept.refreshed >= _interval(spec):
                kept.table.refresh()
                _check(kept)
                kept.refreshed = self._surroundings.monotonic()
        return kept.table

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            for kept in self._kept.values():
                kept.table.close()
            self._kept.clear()

    def _opened(self, spec: LookupSpec, table: LookupTable) -> _Kept:
        now = self._surroundings.monotonic()
        kept = _Kept(spec=spec, table=table, refreshed=now, used=now)
        _check(kept)
        return kept

    def _directory(self, name: str) -> CacheDirectory:
        place = executor_directory()
        if place is None:
            return CacheDirectory.private(self._surroundings)
        return CacheDirectory.shared(Path(place) / "lakelsm-lookup" / name, self._surroundings)

    def _close_idle(self, now: float) -> None:
        """Close those that nothing has asked for as long as their files may lie unused."""
        for name, kept in list(self._kept.items()):
            if now - kept.used > kept.spec.store.options.lookup_cache_file_retention / 1000:
                del self._kept[name]
                kept.table.close()


def _check(kept: _Kept) -> None:
    """Raise InvalidInputError where rows may lie in other buckets than the spec has."""
    if kept.spec.buckets is not None:
        check_one_bucket_count(kept.spec.store, kept.table.snapshot)


def cache_name(spec: LookupSpec) -> str:
    """A name that two specs share only where one cache may answer both."""
    store = spec.store
    schema = (store.schema.id, store.schema.time_millis, sorted(store.schema.options.items()))
    parts = (store.paths.root, schema, spec.key, spec.columns)
    wanted = (repr(spec.predicate), None if spec.buckets is None else sorted(spec.buckets))
    return hashlib.sha256(repr((*parts, *wanted)).encode()).hexdigest()[:32]


def _interval(spec: LookupSpec) -> float:
    options = spec.store.options
    millis = options.lookup_continuous_discovery_interval
    return (options.continuous_discovery_interval if millis is None else millis) / 1000


#: Those of this process.
LOOKUPS = ExecutorLookups()
