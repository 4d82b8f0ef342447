"""One key looked up in plain Python, where arrays of one row would take longer than the look-up itself."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.single_hash import SingleHash
from lakelsm.format.row_kinds import RETRACTIONS
from lakelsm.lookup.partial.live_buckets import LiveBucket, LiveBuckets
from lakelsm.lookup.partial.lookup_files import LookupFiles
from lakelsm.lookup.partial.row_masks import RowMasks
from lakelsm.merge.merge_unit import RunFile
from lakelsm.options import MergeEngine
from lakelsm.schema.system_columns import POSITION, VALUE_KIND

#: Partitions whose buckets are kept at hand.
_MOST_PARTITIONS = 1000
_SIGN = 1 << 31


@dataclass(frozen=True)
class _SingleRun:
    """The files of a run by their smallest keys, ascending, as Python has them."""

    lows: Sequence[tuple[Any, ...]]
    highs: Sequence[tuple[Any, ...]]
    files: Sequence[RunFile]

    def file_of(self, key: tuple[Any, ...]) -> RunFile | None:
        """The file whose range holds a key."""
        at = bisect_right(self.lows, key) - 1
        return self.files[at] if at >= 0 and key <= self.highs[at] else None


@dataclass(frozen=True)
class _Partition:
    """The buckets of a partition; ``total`` is their number where the hash of a key tells the one that it is in."""

    buckets: Mapping[int, LiveBucket]
    every: Sequence[LiveBucket]
    total: int | None

    @staticmethod
    def of(buckets: Mapping[int, LiveBucket], by_hash: bool) -> _Partition:
        totals = {bucket.total_buckets for bucket in buckets.values()}
        tells = by_hash and len(buckets) > 1 and len(totals) == 1 and min(totals) > 0
        return _Partition(buckets, tuple(buckets.values()), totals.pop() if tells else None)


@dataclass(frozen=True)
class SingleKeyQuery:
    """Looks single keys up in the files of one state of a table.

    Only where Python's values are equal and ordered as keys are, where at most one file of each generation may have a
    key, so that nothing is merged, and where no condition is judged.
    """

    live: LiveBuckets
    files: LookupFiles
    masks: RowMasks
    _partitions: dict[tuple[Any, ...], _Partition] = field(default_factory=dict, init=False, repr=False)
    _runs: dict[int, Sequence[_SingleRun] | None] = field(default_factory=dict, init=False, repr=False)

    def find(self, key: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """The rows of a key, given and handed out as `Cache.find_one` has it; None where it cannot tell."""
        if not self._is_able:
            return None
        places = self._places
        partition = self._partition_of(tuple([key[at] for at in places.partition]))
        trimmed = tuple([key[at] for at in places.trimmed])
        rows: list[tuple[Any, ...]] = []
        for bucket in self._candidates(partition, key):
            runs = self._runs_of(bucket)
            if runs is None:
                return None
            for run in runs:
                file = run.file_of(trimmed)
                if file is None:
                    continue
                found = self.files.find_one(file, trimmed)
                if found is None:
                    return None
                if found and self._decides(file, found[0]):
                    if found[0][places.kind] not in RETRACTIONS:
                        rows.append(tuple([key[-at - 1] if at < 0 else found[0][at] for at in places.columns]))
                    break
        return rows

    @cached_property
    def _is_able(self) -> bool:
        schema = self.live.spec.store.schema
        kinds = [schema.field(name).type for name in schema.primary_keys]
        return self.live.spec.predicate is None and SingleHash(kinds).is_plain

    @cached_property
    def _places(self) -> _Places:
        spec, names = self.live.spec, self.files.stored.value_names
        schema = spec.store.schema
        return _Places(
            partition=tuple(spec.key.index(name) for name in schema.partition_keys),
            trimmed=tuple(spec.key.index(name) for name in schema.trimmed_primary_keys),
            bucket=tuple(spec.key.index(name) for name in schema.bucket_keys),
            columns=tuple(-spec.key.index(name) - 1 if name in spec.key else names.index(name) for name in spec.columns),
            kind=names.index(VALUE_KIND),
            position=names.index(POSITION) if POSITION in names else None,
        )

    @cached_property
    def _bucket_hash(self) -> SingleHash:
        schema = self.live.spec.store.schema
        return SingleHash([schema.field(name).type for name in schema.bucket_keys])

    def _partition_of(self, values: tuple[Any, ...]) -> _Partition:
        known = self._partitions.get(values)
        if known is None:
            if len(self._partitions) >= _MOST_PARTITIONS:
                self._partitions.clear()
            partition = encode_row(values, self.live.spec.store.partition_types)
            by_hash = self.live.spec.store.options.bucket_function_type.value == "default"
            known = self._partitions[values] = _Partition.of(self.live.partitions.get(partition, {}), by_hash)
        return known

    def _candidates(self, partition: _Partition, key: Sequence[Any]) -> Sequence[LiveBucket]:
        """The buckets that may have a key."""
        if partition.total is None:
            return partition.every
        number = self._bucket_hash([key[at] for at in self._places.bucket])
        bucket = partition.buckets.get((2 * _SIGN - number if number >= _SIGN else number) % partition.total)
        return () if bucket is None else (bucket,)

    def _runs_of(self, bucket: LiveBucket) -> Sequence[_SingleRun] | None:
        """The runs of a bucket, newest first; None where rows of several may be merged."""
        known = self._runs.get(id(bucket), ())
        if known == ():
            known = self._runs[id(bucket)] = _single_runs(bucket)
        return known

    def _decides(self, file: RunFile, row: tuple[Any, ...]) -> bool:
        """Whether a row is the one of its key: not masked, and not passed over by the merge."""
        places, merge = self._places, self.files.stored.merge
        if merge.engine is MergeEngine.DEDUPLICATE and merge.ignore_delete and row[places.kind] in RETRACTIONS:
            return False
        if places.position is None:
            return True
        return self.masks.hidden(file, np.array([row[places.position]])) is None


@dataclass(frozen=True, kw_only=True)
class _Places:
    """Where things stand: in a key that is given its parts, in a row of a store the columns (below 0: in the key)."""

    partition: tuple[int, ...]
    trimmed: tuple[int, ...]
    bucket: tuple[int, ...]
    columns: tuple[int, ...]
    kind: int
    position: int | None


def _single_runs(bucket: LiveBucket) -> Sequence[_SingleRun] | None:
    """None where Python cannot tell which file of a generation may have a key."""
    if any(len(runs) > 1 for runs in bucket.generations) or any(column.null_count for column in bucket.bounds):
        return None
    try:
        bounds = list(zip(*(column.to_pylist() for column in bucket.bounds)))
    except (OverflowError, ValueError):  # Of dates that Python's calendar does not have.
        return None
    lows, highs = bounds[: len(bucket.files)], bounds[len(bucket.files) :]
    return [
        _SingleRun([lows[at] for at in run], [highs[at] for at in run], [bucket.files[at] for at in run])
        for (run,) in bucket.generations
    ]
