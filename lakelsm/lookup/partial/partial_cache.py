"""The partial cache: stores, on this machine's disk, of the data files that lookups by the primary key have needed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CorruptStoreError, CorruptTableError, InvalidInputError
from lakelsm.failures import warn_and_log
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import Cache, FoundRows, LookupSpec, Refreshed
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.live_buckets import LiveBuckets
from lakelsm.lookup.partial.local_table_query import LocalTableQuery
from lakelsm.lookup.partial.lookup_files import LookupFiles
from lakelsm.lookup.partial.row_masks import RowMasks
from lakelsm.lookup.partial.store_build import StoredColumns, store_format
from lakelsm.lookup.store.lookup_store import StoreFormat
from lakelsm.types import arrow_field

_LOG = logging.getLogger(__name__)

Answer = TypeVar("Answer")

#: The divisor of a lookup's memory that gives the memory of deletion vector masks.
_MASK_SHARE = 4


class PartialCache(Cache):
    """Answers lookups by the whole primary key. Use `open` to make one."""

    kind = "partial"

    def __init__(
        self, query: LocalTableQuery, *, format: StoreFormat, directory: CacheDirectory, environment: Environment
    ) -> None:
        self.spec = query.live.spec
        self._format = format
        self._directory = directory
        self._environment = environment
        self._refreshing = threading.Lock()
        self._query: LocalTableQuery | None = query  # Replaced as a whole: running lookups continue with the older one.
        self._reported = query.live.snapshot

    @staticmethod
    def open(
        spec: LookupSpec,
        directory: CacheDirectory,
        *,
        format: StoreFormat | None = None,
        environment: Environment = SYSTEM,
    ) -> PartialCache:
        """Open a cache of the table's newest snapshot. It reads metadata only.

        Its stores have ``format`` (None: that of the table's options).
        Raises InvalidInputError unless the key is the table's primary key.
        """
        if not spec.by_primary_key:
            raise InvalidInputError(f"Table {spec.store.name}: a 'partial' cache {spec.not_by_primary_key}")
        spec = spec.on_newest_schema()
        format = store_format(spec.store.options) if format is None else format
        live = LiveBuckets.newest(spec)
        query = _query_of(live, None, format, directory, environment)
        return PartialCache(query, format=format, directory=directory, environment=environment)

    @property
    def snapshot(self) -> Snapshot | None:
        """See `Cache.snapshot`."""
        return self._current().live.snapshot

    @property
    def disk_bytes(self) -> int:
        """See `Cache.disk_bytes`."""
        return self._current().files.disk_bytes

    def find(self, keys: pa.Table) -> FoundRows:
        """See `Cache.find`."""
        return self._find(lambda query: query.find(keys))

    def find_plain(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """See `Cache.find_plain`."""
        return self._find(lambda query: query.find_plain(key))

    def refresh(self) -> Refreshed:
        """See `Cache.refresh`. Changed keys are known only if the snapshot is the same."""
        with self._refreshing:
            self._take_newest()
            snapshot = self._current().live.snapshot
            same, self._reported = snapshot == self._reported, snapshot
            spec = self._current().live.spec
        keys = pa.schema([arrow_field(spec.store.schema.field(name)) for name in spec.key])
        return Refreshed(snapshot, changed=keys.empty_table() if same else None)

    def close(self) -> None:
        """See `Cache.close`."""
        with self._refreshing:
            query, self._query = self._query, None
        try:
            if query is not None:
                query.files.close()
        finally:
            self._directory.close()

    def _current(self) -> LocalTableQuery:
        query = self._query
        if query is None:
            name = self.spec.store.name
            raise InvalidInputError(f"Table {name}: the lookup is closed. Open another one with Table.lookup.")
        return query

    def _take_newest(self) -> None:
        """Move to the newest snapshot, and drop stores that it does not need."""
        before = self._current()
        spec = before.live.spec.on_newest_schema()
        if spec is not before.live.spec or spec.store.snapshots.latest() != before.live.snapshot:
            live = LiveBuckets.newest(spec)
            self._query = _query_of(live, before, self._format, self._directory, self._environment)
        self._current().files.keep_only(self._current().live.files)

    def _find(self, search: Callable[[LocalTableQuery], Answer]) -> Answer:
        """Search one state; search the newest one if files were deleted together with the snapshot of the first."""
        query = self._current()
        try:
            return search(query)
        except CorruptStoreError:
            raise
        except CorruptTableError as error:
            store, snapshot = query.live.spec.store, query.live.snapshot
            if snapshot is None or store.snapshots.try_get(snapshot.id) == snapshot:
                raise
            with self._refreshing:
                self._take_newest()
            now = self._current().live.snapshot
            text = (
                f"Table {store.name}: snapshot {snapshot.id} and a file that lookups need are deleted ({error}). Lookups "
                f"continue with snapshot {None if now is None else now.id}."
            )
            warn_and_log(_LOG, text, RuntimeWarning)
            return search(self._current())


def _query_of(
    live: LiveBuckets,
    before: LocalTableQuery | None,
    format: StoreFormat,
    directory: CacheDirectory,
    environment: Environment,
) -> LocalTableQuery:
    """Make the query of a state. It takes the open stores of the query before if they have the columns needed now."""
    options = live.spec.store.options
    kept = None if before is None else before.files.stored  # Columns that were needed once are likely needed again.
    stored = StoredColumns.of(
        live.spec,
        merged=live.merges or (kept is not None and kept.merged),
        positions=options.deletion_vectors_enabled or live.has_vectors or (kept is not None and kept.positions),
    )
    if before is not None and before.files.spec is live.spec and before.files.stored == stored:
        return LocalTableQuery(live, before.files, before.masks)
    files = LookupFiles(live.spec, stored, format=format, directory=directory, environment=environment)
    masks = RowMasks(live.spec.store.file_io, memory_bytes=options.lookup_cache_max_memory_size // _MASK_SHARE)
    if before is not None:
        before.files.close()
    return LocalTableQuery(live, files, masks)
