"""Loading a full cache: the merged rows of a snapshot, read in parallel, straight into segments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

import pyarrow as pa

from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.local.scan_task import ScanTask
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.generation import CacheLayout, Generation, WrittenSegment, index_segments, write_segment
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.plan.read_plan import plan_read
from lakelsm.predicate.predicate import Predicate
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.runner.process_limits import usable_cores
from lakelsm.snapshots.table_store import TableStore

#: What a task tells of the segment that it wrote.
_WRITTEN = pa.schema([("name", pa.string()), ("rows", pa.int64()), ("stamp", pa.list_(pa.uint64()))])

_Unit: TypeAlias = RunFile | MergeUnit


@dataclass(frozen=True)
class SegmentShare:
    """The units of a read whose rows go into one segment."""

    name: str
    units: tuple[_Unit, ...]


@dataclass(frozen=True)
class SegmentTask:
    """Writes the rows of a share to its segment, and tells of it."""

    scan: ScanTask
    directory: CacheDirectory
    layout: CacheLayout

    @property
    def memory_bytes(self) -> int:
        """What the work on one share holds at most."""
        return self.scan.memory_bytes

    def __call__(self, share: SegmentShare) -> Iterator[pa.RecordBatch]:
        """Write the segment."""
        written = write_segment(self.directory, share.name, self.layout, self._rows(share))
        yield pa.RecordBatch.from_pylist([vars(written)], schema=_WRITTEN)

    def _rows(self, share: SegmentShare) -> Iterator[pa.Table]:
        for unit in share.units:
            for batch in self.scan(unit):
                yield pa.Table.from_batches([batch])


@dataclass(frozen=True)
class Bootstrap:
    """Loads the rows of a snapshot that match into a directory."""

    store: TableStore
    layout: CacheLayout
    directory: CacheDirectory
    _: KW_ONLY
    predicate: Predicate | None = None
    buckets: Collection[int] | None = None

    def load(self, snapshot: Snapshot, name: str) -> Generation | None:
        """Write the generation whose files' names begin with ``name``; None where the snapshot has no rows for it."""
        plan = plan_read(self.store, snapshot, self.predicate, only=self.buckets)
        scan = ArrowScan(self.store, plan, tuple(self.layout.schema.names), predicate=self.predicate)
        threads = min(self.store.options.lookup_bootstrap_parallelism, usable_cores())
        shares = _shares(name, scan.units, self.store.options.lookup_bootstrap_parallelism)
        if not shares:
            return None
        task = SegmentTask(scan.stored_task(), self.directory, self.layout)
        written = [
            row
            for batch in LocalRunner(threads).batches(shares, task, _WRITTEN, self.store.paths)
            for row in batch.to_pylist()
        ]
        segments = [WrittenSegment(row["name"], row["rows"], tuple(row["stamp"])) for row in written if row["rows"]]
        return index_segments(self.directory, name, self.layout, segments, threads) if segments else None


def _shares(name: str, units: Sequence[_Unit], most: int) -> list[SegmentShare]:
    """Units in shares of about the same size, the order of a read within each: so the same read gives the same shares."""
    sizes = [0] * min(most, len(units))
    places: list[list[int]] = [[] for _ in sizes]
    for at in sorted(range(len(units)), key=lambda at: -_size(units[at])):
        least = sizes.index(min(sizes))
        sizes[least] += _size(units[at])
        places[least].append(at)
    return [
        SegmentShare(f"{name}.{number}.rows", tuple(units[at] for at in sorted(share)))
        for number, share in enumerate(places)
    ]


def _size(unit: _Unit) -> int:
    return unit.cost if isinstance(unit, MergeUnit) else unit.file_size


__all__ = ["Bootstrap"]
