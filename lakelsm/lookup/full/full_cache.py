"""The full cache: all rows of a table that lookups may need, kept up to date with the changes of the table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from lakelsm.errors import CorruptStoreError, InvalidInputError
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import Cache, FoundRows, LookupSpec, Refreshed
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.cache_state import CacheContents, CacheState
from lakelsm.lookup.full.cache_upkeep import CacheUpkeep

Answer = TypeVar("Answer")
_Loaded: TypeAlias = tuple[CacheContents, CacheState]


class FullCache(Cache):
    """Answers lookups from a state in its directory; see `Cache`."""

    kind = "full"

    def __init__(self, spec: LookupSpec, directory: CacheDirectory) -> None:
        """Use `open`."""
        self.spec = spec
        self._directory = directory
        self._loaded: _Loaded | None = None
        self._closed = False
        self._refreshing = threading.Lock()

    @staticmethod
    def open(spec: LookupSpec, directory: CacheDirectory) -> FullCache:
        """Load the table's newest snapshot, or open and refresh the state that another process has published."""
        cache = FullCache(spec, directory)
        cache.refresh()
        return cache

    @property
    def snapshot(self) -> Snapshot | None:
        return self._now()[1].snapshot

    @property
    def rows(self) -> int:
        return sum(generation.live_rows for generation in self._now()[1].generations)

    @property
    def disk_bytes(self) -> int:
        return self._directory.size_of(self._now()[1].names)

    def find(self, keys: pa.Table) -> FoundRows:
        return self._find(lambda contents, state: state.find(contents, keys))

    def find_plain(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        return self._find(lambda contents, state: state.find_plain(contents, key))

    def refresh(self) -> Refreshed:
        """See `Cache.refresh`. If it fails, the older state continues to answer."""
        with self._refreshing:
            upkeep, own = self._upkeep(), None
            if self._loaded is not None:
                contents, own = self._loaded
                newest = upkeep.spec.store.snapshots.latest()
                if contents.fingerprint == upkeep.contents.fingerprint and newest == own.snapshot:
                    return Refreshed(newest, changed=contents.no_keys)
            with self._directory.lock():
                state, refreshed = upkeep.refreshed(own)
            self._loaded = upkeep.contents, state
            return refreshed

    def close(self) -> None:
        with self._refreshing:
            self._closed = True
            self._loaded = None
        self._directory.close()

    def _now(self) -> _Loaded:
        loaded = self._loaded
        if loaded is None:
            name = self.spec.store.name
            raise InvalidInputError(f"Table {name}: the lookup is closed. Open another one with Table.lookup.")
        return loaded

    def _upkeep(self) -> CacheUpkeep:
        if self._closed:
            self._now()
        spec = self.spec.on_newest_schema()
        return CacheUpkeep(spec, self._directory, CacheContents.of(spec))

    def _find(self, search: Callable[[CacheContents, CacheState], Answer]) -> Answer:
        """Search the loaded state; load a damaged state again, once."""
        loaded = self._now()
        try:
            return search(*loaded)
        except CorruptStoreError as error:
            return search(*self._repaired(loaded, error))

    def _repaired(self, damaged: _Loaded, error: CorruptStoreError) -> _Loaded:
        with self._refreshing:
            loaded = self._now()
            if loaded is damaged:
                upkeep = self._upkeep()
                upkeep.warn(error)
                with self._directory.lock():
                    self._loaded = loaded = upkeep.contents, upkeep.repaired(damaged[1])
            return loaded
