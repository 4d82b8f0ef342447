"""The files of a snapshot as lookups search them: by partition and bucket, within a bucket by age and key range."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.data_file.key_value_file import key_types
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row.binary_row import decode_rows, encode_row
from lakelsm.format.row.single_hash import SingleHash
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.bucket_codes import partition_codes, rows_by_code
from lakelsm.lookup.cache import Longs, LookupSpec
from lakelsm.lsm.interval_partition import fewest_runs
from lakelsm.lsm.levels import FileRange
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_unit import RunFile
from lakelsm.options import BucketFunction, MergeEngine, TableOptions
from lakelsm.plan.bucket_files import by_bucket, has_one_row_per_key, is_shown, partition_filter
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.snapshots.deletion_vectors import deletion_vectors
from lakelsm.snapshots.manifest_scan import BucketFilter, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.write.fixed_buckets import FixedBuckets

#: Positions, in `LiveBucket.files`, of files with disjoint key ranges, in key order.
Run = tuple[int, ...]
#: Partitions whose buckets are cached for lookups of single keys.
_MAX_PARTITIONS = 1000


@dataclass(frozen=True)
class LiveBucket:
    """The visible files of one bucket of one partition.

    ``bounds`` has for each column of the trimmed primary key the smallest values of all files, then the largest ones.
    ``groups`` of runs, newest first: a row of a key in a group hides the rows of the key in older groups. Within a
    group the oldest run is first.
    """

    files: tuple[RunFile, ...]
    _: KW_ONLY
    total_buckets: int
    bounds: tuple[pa.Array, ...]
    groups: tuple[tuple[Run, ...], ...]

    def key_ranges(self, keys: Sequence[pa.Array]) -> KeyRanges:
        """Return the key ranges of the files, and ``keys`` (columns of the trimmed primary key), in comparable form."""
        both = [pa.chunked_array([bounds, key]) for bounds, key in zip(self.bounds, keys)]
        count = len(self.files)
        ordered = order_keys(both)
        return KeyRanges(ordered[:count], ordered[count : 2 * count], ordered[2 * count :])

    @cached_property
    def single_runs(self) -> Sequence[SingleRun] | None:
        """The runs for single keys, newest first. None if several files of a group may have a key, so that rows are
        merged, or if Python cannot represent a bound.
        """
        if any(len(runs) > 1 for runs in self.groups) or any(column.null_count for column in self.bounds):
            return None
        try:
            bounds = list(zip(*(column.to_pylist() for column in self.bounds)))
        except (OverflowError, ValueError):  # Python has only the years 1 to 9999.
            return None
        lows, highs = bounds[: len(self.files)], bounds[len(self.files) :]
        return [
            SingleRun([lows[at] for at in run], [highs[at] for at in run], [self.files[at] for at in run])
            for (run,) in self.groups
        ]


@dataclass(frozen=True)
class SingleRun:
    """The files of a run, with their smallest and largest keys as Python values, ascending."""

    lows: Sequence[tuple[Any, ...]]
    highs: Sequence[tuple[Any, ...]]
    files: Sequence[RunFile]

    def file_of(self, key: tuple[Any, ...]) -> RunFile | None:
        """Return the file whose key range contains a key, or None."""
        at = bisect_right(self.lows, key) - 1
        return self.files[at] if at >= 0 and key <= self.highs[at] else None


@dataclass(frozen=True)
class KeyRanges:
    """The smallest and the largest key of each file of a bucket, and the keys to find, in comparable form."""

    lows: npt.NDArray[np.generic]
    highs: npt.NDArray[np.generic]
    keys: npt.NDArray[np.generic]

    def of_run(self, run: Run, wanted: Longs) -> Iterator[tuple[int, Longs]]:
        """Yield each file of a run that may have some of the keys at ``wanted``, with the indexes of those keys."""
        keys = self.keys if len(wanted) == len(self.keys) else self.keys[wanted]
        if len(run) == 1:
            inside = (keys >= self.lows[run[0]]) & (keys <= self.highs[run[0]])
            if inside.any():
                yield run[0], wanted if inside.all() else wanted[inside]
            return
        files = np.array(run)
        at = np.searchsorted(self.lows[files], keys, side="right") - 1
        inside = np.flatnonzero((at >= 0) & (keys <= self.highs[files][at]))
        for number, members in rows_by_code(at[inside], len(run)):
            if len(members):
                yield run[number], wanted[inside[members]]


@dataclass(frozen=True)
class LiveBuckets:
    """The visible files of a snapshot (None: an empty table) by partition (BinaryRow with arity) and bucket."""

    spec: LookupSpec
    snapshot: Snapshot | None
    partitions: Mapping[bytes, Mapping[int, LiveBucket]] = field(default_factory=dict)

    @staticmethod
    def newest(spec: LookupSpec) -> LiveBuckets:
        """Read the manifests of the newest snapshot. If it is removed during the read, read the next newest."""

        def read() -> LiveBuckets:
            snapshot = spec.store.snapshots.latest()
            with spec.store.while_read(snapshot):
                return LiveBuckets.of(spec, snapshot)

        return spec.store.run_on_newest(read)

    @staticmethod
    def of(spec: LookupSpec, snapshot: Snapshot | None) -> LiveBuckets:
        """Read the manifests of a snapshot, without partitions that the condition of the lookup rules out."""
        if snapshot is None:
            return LiveBuckets(spec, None)
        store = spec.store
        entries = read_live_entries(
            store.file_io,
            store.paths,
            snapshot,
            keep_partitions=partition_filter(store, spec.predicate),
            keep_buckets=_bucket_filter(spec),
            stats=False,
        )
        every = by_bucket(store, entries)
        shown = {
            bucket: found
            for bucket, files in every.items()
            if (found := [file for file in files if is_shown(store.options, file.level)])
        }
        units = MergeUnits(store, entries, deletion_vectors(store, snapshot, shown).of(entries))
        partitions: dict[bytes, dict[int, LiveBucket]] = {}
        for (partition, bucket), files in shown.items():
            partitions.setdefault(partition, {})[bucket] = _live_bucket(store, entries, units, files)
        return LiveBuckets(spec, snapshot, partitions)

    @cached_property
    def files(self) -> frozenset[RunFile]:
        """All files. Equal files have the same path, but may have different deletion vectors."""
        return frozenset(file for buckets in self.partitions.values() for one in buckets.values() for file in one.files)

    @cached_property
    def has_vectors(self) -> bool:
        """Whether any file has a deletion vector."""
        return any(file.vector is not None for file in self.files)

    @cached_property
    def merges(self) -> bool:
        """Whether rows of several files may have to be merged."""
        if not _newest_wins(self.spec.store.options):
            return True
        buckets = (bucket for some in self.partitions.values() for bucket in some.values())
        return any(len(runs) > 1 for bucket in buckets for runs in bucket.groups)

    def buckets_of(self, keys: pa.RecordBatch) -> Iterator[tuple[LiveBucket, Longs]]:
        """Yield each bucket that may have some of the ``keys`` (columns of the primary key), with their indexes."""
        schema = self.spec.store.schema
        codes, partitions = partition_codes(keys, schema.partition_fields)
        for code, members in rows_by_code(codes, len(partitions)):
            buckets = self.partitions.get(partitions[code], {})
            whole = len(members) == len(keys)
            for total in {bucket.total_buckets for bucket in buckets.values()}:
                if total <= 0:
                    yield from ((bucket, members) for bucket in buckets.values() if bucket.total_buckets == total)
                    continue
                numbers = self._bucket_ids(keys if whole else keys.take(pa.array(members)), total)
                for number, inside in rows_by_code(numbers, total):
                    bucket = buckets.get(number)
                    if bucket is not None and bucket.total_buckets == total and len(inside):
                        yield bucket, members[inside]

    @cached_property
    def single(self) -> SingleRouting:
        """The routing of single keys to buckets."""
        return SingleRouting(self)

    def _bucket_ids(self, keys: pa.RecordBatch, total: int) -> Longs:
        """Return the bucket of each key among ``total`` buckets."""
        store = self.spec.store
        buckets = replace(FixedBuckets.of(store.schema, store.options), number=total)
        return buckets.of_rows(keys).astype(np.int64)


class SingleRouting:
    """Finds the buckets that may have a single key, given as Python values in the order of `LookupSpec.key`."""

    def __init__(self, live: LiveBuckets) -> None:
        store, key = live.spec.store, live.spec.key
        self._live = live
        self._partition_key_indexes = tuple(map(key.index, store.schema.partition_keys))
        self._bucket_key_indexes = tuple(map(key.index, store.schema.bucket_keys))
        self._hash = SingleHash([store.schema.field(name).type for name in store.schema.bucket_keys])
        self._by_hash = store.options.bucket_function_type is BucketFunction.DEFAULT
        #: By partition: its buckets, and their number if the hash of a key determines the bucket, else 0.
        self._partitions: dict[tuple[Any, ...], tuple[Mapping[int, LiveBucket], int]] = {}

    def of(self, key: Sequence[Any]) -> Sequence[LiveBucket]:
        """Return the buckets that may have a key."""
        partition = tuple([key[at] for at in self._partition_key_indexes])
        buckets, total = self._partitions.get(partition) or self._added(partition)
        if not total:
            return tuple(buckets.values())
        number = self._hash([key[at] for at in self._bucket_key_indexes])
        bucket = buckets.get((number if number < 1 << 31 else (1 << 32) - number) % total)
        return () if bucket is None else (bucket,)

    def _added(self, partition: tuple[Any, ...]) -> tuple[Mapping[int, LiveBucket], int]:
        if len(self._partitions) >= _MAX_PARTITIONS:
            self._partitions.clear()
        buckets = self._live.partitions.get(encode_row(partition, self._live.spec.store.partition_types), {})
        totals = {bucket.total_buckets for bucket in buckets.values()}
        by_hash = self._by_hash and len(buckets) > 1 and len(totals) == 1 and min(totals) > 0
        found = self._partitions[partition] = (buckets, totals.pop() if by_hash else 0)
        return found


def _bucket_filter(spec: LookupSpec) -> BucketFilter | None:
    if spec.buckets is None:
        return None
    wanted = np.array(sorted(spec.buckets), np.int64)
    return lambda buckets, totals: np.isin(buckets, wanted)


def _live_bucket(
    store: TableStore, entries: Sequence[ManifestEntry], units: MergeUnits, files: Sequence[FileRange]
) -> LiveBucket:
    metas = [entries[file.index].file for file in files]
    bounds = decode_rows([meta.min_key for meta in metas] + [meta.max_key for meta in metas], key_types(store.schema))
    return LiveBucket(
        tuple(map(units.file, files)),
        total_buckets=entries[files[0].index].total_buckets,
        bounds=tuple(bounds),
        groups=_groups(store.options, files),
    )


def _groups(options: TableOptions, files: Sequence[FileRange]) -> tuple[tuple[Run, ...], ...]:
    runs = _runs(files)
    if _has_unique_keys(options):
        # Each key is in one run only.
        return tuple((_positions(files, run),) for run in reversed(runs))
    if not _newest_wins(options):
        return (tuple(_positions(files, run) for run in runs),)
    groups: list[tuple[Run, ...]] = []
    newest = list(accumulate((max(file.max_seq for file in run) for run in runs), max))
    oldest = list(accumulate((min(file.min_seq for file in run) for run in reversed(runs)), min))[::-1]
    first = 0
    for at in range(1, len(runs) + 1):
        if at == len(runs) or newest[at - 1] < oldest[at]:
            groups.append(tuple(_positions(files, run) for run in runs[first:at]))
            first = at
    return tuple(reversed(groups))


def _has_unique_keys(options: TableOptions) -> bool:
    """Return whether each key is unmasked in at most one visible file."""
    return has_one_row_per_key(options) and not is_shown(options, 0)


def _newest_wins(options: TableOptions) -> bool:
    """Return whether the newest run that has a key decides alone; sequence numbers determine the newest run."""
    return _has_unique_keys(options) or (options.merge_engine is MergeEngine.DEDUPLICATE and not options.sequence_field)


def _runs(files: Sequence[FileRange]) -> list[tuple[FileRange, ...]]:
    """Return the files in runs, oldest first: each file of level 0, and as few runs as possible of each higher level."""
    by_level: dict[int, list[FileRange]] = {}
    for file in files:
        by_level.setdefault(file.level, []).append(file)
    runs: list[tuple[FileRange, ...]] = [(file,) for file in by_level.pop(0, ())]
    for members in by_level.values():
        runs += fewest_runs(sorted(members, key=lambda file: (file.min_key, file.max_key)))
    return sorted(runs, key=lambda run: max(file.max_seq for file in run))


def _positions(files: Sequence[FileRange], run: Sequence[FileRange]) -> Run:
    positions = {file.index: position for position, file in enumerate(files)}
    return tuple(positions[file.index] for file in run)
