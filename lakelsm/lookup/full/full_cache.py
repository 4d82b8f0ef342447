"""The full cache: all rows of a table that lookups may ask for are kept at hand, and follow the table's changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from lakelsm.errors import CorruptStoreError, InvalidInputError
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import FoundRows, LookupSpec, Refreshed
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.cache_contents import CacheContents
from lakelsm.lookup.full.cache_state import CacheState
from lakelsm.lookup.full.cache_upkeep import CacheUpkeep

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class _Held:
    """What answers at a time: a state, and what its rows are."""

    contents: CacheContents
    state: CacheState
    names: tuple[str, ...]

    @staticmethod
    def of(contents: CacheContents, state: CacheState) -> _Held:
        return _Held(contents, state, tuple(contents.found.names))

    def find(self, keys: pa.Table) -> FoundRows:
        """The rows of some keys."""
        contents = self.contents
        return self.state.find(contents.asked, keys, contents.found, contents.unique)

    def find_one(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows of one key as users get them."""
        return self.state.rows_of(self.contents.asked, key, self.names, self.contents.unique)


class FullCache:
    """Answers lookups from a state of its directory; see `Cache`."""

    kind = "full"

    def __init__(self, spec: LookupSpec, directory: CacheDirectory) -> None:
        """Use `open`."""
        self._spec = spec
        self._directory = directory
        self._held: _Held | None = None
        self._closed = False
        self._work = threading.Lock()

    @staticmethod
    def open(spec: LookupSpec, directory: CacheDirectory) -> FullCache:
        """Load the table's newest snapshot, or take what another process has of it in the directory, and refresh that."""
        cache = FullCache(spec, directory)
        cache.refresh()
        return cache

    @property
    def snapshot(self) -> Snapshot | None:
        """See `Cache.snapshot`."""
        return self._now().state.snapshot

    @property
    def rows(self) -> int:
        """See `Cache.rows`."""
        return sum(generation.live_rows for generation in self._now().state.generations)

    @property
    def disk_bytes(self) -> int:
        """See `Cache.disk_bytes`."""
        return self._directory.size_of(self._now().state.names)

    def find(self, keys: pa.Table) -> FoundRows:
        """See `Cache.find`."""
        return self._answered(lambda held: held.find(keys))

    def find_one(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """See `Cache.find_one`."""
        return self._answered(lambda held: held.find_one(key))

    def refresh(self) -> Refreshed:
        """See `Cache.refresh`. Where it fails the state before answers on."""
        with self._work:
            held = None if self._held is None else self._now()
            upkeep = self._upkeep()
            if held is not None and held.contents.mark == upkeep.contents.mark:
                newest = upkeep.store.snapshots.latest()
                if newest == held.state.snapshot:
                    return Refreshed(newest, changed=upkeep.contents.no_keys)
            with self._directory.lock():
                state, refreshed = upkeep.refreshed(None if held is None else held.state)
            self._held = _Held.of(upkeep.contents, state)
            return refreshed

    def close(self) -> None:
        """See `Cache.close`."""
        with self._work:
            self._closed = True
            self._held = None
        self._directory.close()

    def _now(self) -> _Held:
        held = self._held
        if held is None:
            raise InvalidInputError(f"The lookup of table {self._spec.store.name} is closed: open another one.")
        return held

    def _upkeep(self) -> CacheUpkeep:
        if self._closed:
            self._now()
        spec = self._spec.on_newest_schema()
        return CacheUpkeep(spec, self._directory, CacheContents.of(spec))

    def _answered(self, ask: Callable[[_Held], Answer]) -> Answer:
        """The answer of what is held; a state that is damaged is made anew, once."""
        held = self._now()
        try:
            return ask(held)
        except CorruptStoreError as error:
            return ask(self._mended(held, error))

    def _mended(self, damaged: _Held, error: CorruptStoreError) -> _Held:
        with self._work:
            held = self._now()
            if held is damaged:
                upkeep = self._upkeep()
                upkeep.warn(error)
                with self._directory.lock():
                    self._held = held = _Held.of(upkeep.contents, upkeep.mended(damaged.state))
            return held


__all__ = ["FullCache"]
