"""Moves a full cache to the newest snapshot: from its directory, by applying changes, or by loading it again.

A cache is loaded again if its snapshot is no longer in the history of the table: it was expired, rolled back or
replaced under the same id. So changes are only computed between two existing snapshots, one based on the other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from lakelsm.errors import CorruptStoreError, SnapshotNotFoundError
from lakelsm.failures import warn_and_log
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.local.scan_task import ScanTask
from lakelsm.lookup.cache import LookupSpec, Refreshed
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.cache_state import NAME_PREFIX, CacheContents, CacheState, published_state
from lakelsm.lookup.full.generation import CacheLayout, Generation, WrittenSegment, index_segments, write_segment
from lakelsm.lookup.full.state_change import StateChange, changed_rows
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.plan.read_plan import plan_read
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.runner.process_limits import usable_cores

_LOG = logging.getLogger(__name__)

#: The description that a task returns of the segment that it wrote.
_WRITTEN = pa.schema([("name", pa.string()), ("rows", pa.int64()), ("stamp", pa.list_(pa.uint64()))])
_Unit: TypeAlias = RunFile | MergeUnit


@dataclass(frozen=True)
class CacheUpkeep:
    """Makes the states of a directory, which is locked while one of the methods runs.

    A state is published before it is returned. A failure leaves the published state, and removes its own files.
    """

    spec: LookupSpec
    directory: CacheDirectory
    contents: CacheContents

    def refreshed(self, own: CacheState | None) -> tuple[CacheState, Refreshed]:
        """Return the state of the newest snapshot, and how it differs from the state ``own`` (None: unknown)."""
        return self.spec.store.run_on_newest(lambda: self._at_newest(own))

    def _at_newest(self, own: CacheState | None) -> tuple[CacheState, Refreshed]:
        state = self._published(own)
        newest = self.spec.store.snapshots.latest()
        if state is None:
            return self._loaded(newest, None if own is None else "its files were damaged or removed")
        why = self._reload_reason(state, newest)
        if why is not None:
            return self._loaded(newest, why)
        if state.snapshot == newest:
            keys = self.contents.no_keys if state is own else None
            return state, Refreshed(newest, changed=keys)
        if state.snapshot is None or newest is None:
            return self._loaded(newest)
        try:
            made, changed = self._followed(state, state.snapshot, newest)
            return made, Refreshed(newest, changed=changed if state is own else None)
        except CorruptStoreError as error:
            self.warn(error)
            return self._loaded(newest, "its files were damaged or removed")
        except SnapshotNotFoundError:
            return self._loaded(newest, f"snapshot {state.snapshot.id} expired during the comparison")

    def repaired(self, damaged: CacheState) -> CacheState:
        """Return a state that replaces a damaged one: published by another process since, or loaded again.

        It is of the same snapshot if that still exists.
        """
        return self.spec.store.run_on_newest(lambda: self._replacement(damaged))

    def _replacement(self, damaged: CacheState) -> CacheState:
        published = self._published(damaged)
        if published is not None and published is not damaged and published.content == self.contents.fingerprint:
            return published
        snapshot = damaged.snapshot
        if snapshot is not None and self.spec.store.snapshots.try_get(snapshot.id) != snapshot:
            snapshot = self.spec.store.snapshots.latest()
        return self._loaded(snapshot)[0]

    def warn(self, error: CorruptStoreError) -> None:
        """Log and warn of a damaged file."""
        warn_and_log(_LOG, f"Table {self.spec.store.name}: the cache of a lookup is loaded again: {error}")

    def _published(self, own: CacheState | None) -> CacheState | None:
        """Return the state of the directory; None if it has no usable state."""
        try:
            return published_state(self.directory, self.contents.layout, self.contents.fingerprint, own)
        except CorruptStoreError as error:
            self.warn(error)
            return None

    def _reload_reason(self, state: CacheState, newest: Snapshot | None) -> str | None:
        """Return why a state must be loaded again; None if changes can be applied to it."""
        before, max_behind = state.snapshot, self.spec.store.options.lookup_refresh_full_load_threshold
        if state.content != self.contents.fingerprint:
            return "it has other columns, conditions or options"
        if before is None:
            return None
        if newest is None or newest.id < before.id:
            now = "no snapshot" if newest is None else f"snapshot {newest.id}"
            return f"the table was rolled back from snapshot {before.id} to {now}, or created again"
        kept = self.spec.store.snapshots.try_get(before.id)
        if kept is None:
            return f"snapshot {before.id} expired before its changes were read"
        if kept != before:
            return f"snapshot {before.id} was replaced: the table was rolled back, or created again"
        if newest.id > before.id and self.spec.store.schema.cross_partition:
            return "the primary key lacks a partition column, so that changes do not identify rows"
        if newest.id - before.id > max_behind:
            behind = newest.id - before.id
            return f"it was {behind} snapshots behind, more than 'lookup.refresh.full-load-threshold' ({max_behind})"
        return None

    def _followed(self, state: CacheState, before: Snapshot, newest: Snapshot) -> tuple[CacheState, pa.Table | None]:
        """Apply the changes from the state's snapshot to the newest one; return the new state and the changed keys."""
        _LOG.debug("Table %s: snapshots %d to %d are compared", self.spec.store.name, before.id, newest.id)
        change = StateChange(state, self.contents.layout, self.directory, predicate=self.spec.predicate)
        changes = changed_rows(self.spec.store, before, newest, self.contents.read, self.spec.buckets)
        with self._new_files() as name, self.spec.store.while_read(before, newest):
            made = change.applied(changes, newest, name)
            made.publish(self.directory)
        return made, change.changed

    def _loaded(self, snapshot: Snapshot | None, why: str | None = None) -> tuple[CacheState, Refreshed]:
        """Load the state of a snapshot. ``why`` is `Refreshed.rebuilt`."""
        _LOG.debug("Table %s: snapshot %s is loaded", self.spec.store.name, None if snapshot is None else snapshot.id)
        with self._new_files() as name:
            with self.spec.store.while_read(snapshot):
                loaded = snapshot and load_snapshot(self.spec, self.contents.layout, self.directory, snapshot, name)
            state = CacheState(name, snapshot, (loaded,) if loaded else (), content=self.contents.fingerprint)
            state.publish(self.directory)
        return state, Refreshed(snapshot, changed=None, rebuilt=why)

    @contextmanager
    def _new_files(self) -> Iterator[str]:
        """Yield a prefix for the names of new files. The files are removed if the work on them fails."""
        name = NAME_PREFIX + self.directory.new_name()
        try:
            yield name
        except BaseException:
            for each in self.directory.names():
                if each.startswith(name):
                    self.directory.discard(each)
            raise


def load_snapshot(
    spec: LookupSpec, layout: CacheLayout, directory: CacheDirectory, snapshot: Snapshot, name: str
) -> Generation | None:
    """Write the merged rows of a snapshot that match the condition, read in parallel, as a generation.

    The names of its files begin with ``name``. Return None if there are no rows.
    """
    store = spec.store
    plan = plan_read(store, snapshot, spec.predicate, only=spec.buckets)
    scan = ArrowScan(store, plan, tuple(layout.schema.names), predicate=spec.predicate)
    parallelism = store.options.lookup_bootstrap_parallelism
    threads, shares = min(parallelism, usable_cores()), _shares(name, scan.units, parallelism)
    if not shares:
        return None
    task = SegmentTask(scan.stored_task(), directory, layout)
    batches = LocalRunner(threads).batches(shares, task, _WRITTEN, store.paths)
    written = [row for batch in batches for row in batch.to_pylist()]
    segments = [WrittenSegment(row["name"], row["rows"], tuple(row["stamp"])) for row in written if row["rows"]]
    return index_segments(directory, name, layout, segments, threads) if segments else None


@dataclass(frozen=True)
class SegmentShare:
    """The units of a read whose rows are written to one segment."""

    name: str
    units: tuple[_Unit, ...]


@dataclass(frozen=True)
class SegmentTask:
    """Writes the rows of a share to a segment, and returns a description of it."""

    scan: ScanTask
    directory: CacheDirectory
    layout: CacheLayout

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of the task for one share, in bytes."""
        return self.scan.memory_bytes

    def __call__(self, share: SegmentShare) -> Iterator[pa.RecordBatch]:
        """Write the segment."""
        rows = (pa.Table.from_batches([batch]) for unit in share.units for batch in self.scan(unit))
        written = write_segment(self.directory, share.name, self.layout, rows)
        yield pa.RecordBatch.from_pylist([vars(written)], schema=_WRITTEN)


def _shares(name: str, units: Sequence[_Unit], max_behind: int) -> list[SegmentShare]:
    """Divide units into shares of about the same size. The same read always gives the same shares."""
    sizes = [0] * min(max_behind, len(units))
    members: list[list[int]] = [[] for _ in sizes]
    for at in sorted(range(len(units)), key=lambda at: -_size(units[at])):
        smallest = sizes.index(min(sizes))
        sizes[smallest] += _size(units[at])
        members[smallest].append(at)
    shares = enumerate(members)
    return [SegmentShare(f"{name}.{number}.rows", tuple(units[at] for at in sorted(share))) for number, share in shares]


def _size(unit: _Unit) -> int:
    return unit.cost if isinstance(unit, MergeUnit) else unit.file_size
