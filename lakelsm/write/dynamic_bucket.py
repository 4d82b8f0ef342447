"""Dynamic buckets: each key keeps its bucket, and new keys fill buckets up to a target size (docs/format.md 10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.merge.key_order import order_keys
from lakelsm.options import TableOptions
from lakelsm.snapshots.hash_indexes import MAX_BUCKETS, HashIndex, check_one_bucket_per_hash
from lakelsm.storage import FileIO

Hashes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class BucketPolicy:
    """The distribution of new keys: ``target_rows`` keys for each bucket, at most ``max_buckets`` buckets (-1: no limit).

    ``assigners`` tasks share a partition: assigner i assigns the keys with hash % assigners = i to buckets with number %
    assigners = i, so no two of them fill one bucket.
    """

    target_rows: int
    max_buckets: int
    assigners: int

    @staticmethod
    def of(options: TableOptions) -> BucketPolicy:
        """Return the policy of a table. There are at most as many assigners as buckets, because each needs one."""
        bound = options.dynamic_bucket_max_buckets
        assigners = options.dynamic_bucket_assigner_parallelism or options.dynamic_bucket_initial_buckets or 1
        return BucketPolicy(
            options.dynamic_bucket_target_row_num, bound, assigners if bound < 0 else max(1, min(assigners, bound))
        )


def partition_groups(heads: Sequence[pa.Array], rows: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield for each partition of a batch one row index and all its row indexes."""
    if not heads:
        yield 0, np.arange(rows)
        return
    _, first, inverse = np.unique(order_keys(heads, signed_zeros=True), return_index=True, return_inverse=True)
    for group, row in enumerate(first.tolist()):
        yield row, np.flatnonzero(inverse == group)


@dataclass
class _PartitionIndex:
    """The keys of one partition (sorted hashes and their buckets) and the number of keys in each bucket."""

    hashes: Hashes
    buckets: npt.NDArray[np.int32]
    sizes: dict[int, int] = field(default_factory=dict)


class Assigner:
    """Assigns the keys of one task to buckets. No other assigner gets these keys."""

    def __init__(self, policy: BucketPolicy, file_io: FileIO, indexes: Mapping[bytes, Mapping[int, HashIndex]]) -> None:
        self._policy = policy
        self._file_io = file_io
        self._indexes = indexes
        self._loaded: dict[tuple[bytes, int], _PartitionIndex] = {}

    def assign(self, partition: bytes, hashes: Hashes) -> npt.NDArray[np.int32]:
        """Return the bucket of each key hash. Assigns a bucket to new hashes."""
        buckets = np.empty(len(hashes), dtype=np.int32)
        owners = hashes.astype(np.int64) % self._policy.assigners
        for owner in np.unique(owners).tolist():
            mine = np.flatnonzero(owners == owner)
            index = self._index(partition, owner)
            distinct, inverse = np.unique(hashes[mine], return_inverse=True)
            self._add_new(index, distinct[~np.isin(distinct, index.hashes)], owner)
            buckets[mine] = index.buckets[np.searchsorted(index.hashes, distinct)][inverse]
        return buckets

    def _index(self, partition: bytes, owner: int) -> _PartitionIndex:
        known = self._loaded.get((partition, owner))
        if known is None:
            known = self._loaded[(partition, owner)] = self._load(partition, owner)
        return known

    def _load(self, partition: bytes, owner: int) -> _PartitionIndex:
        hashes, buckets = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        sizes: dict[int, int] = {}
        stored_indexes = self._indexes.get(partition, {})
        for bucket, index in stored_indexes.items():
            stored = index.read(self._file_io)
            if bucket % self._policy.assigners == owner:
                sizes[bucket] = len(stored)
            own = stored[stored.astype(np.int64) % self._policy.assigners == owner]
            hashes.append(own)
            buckets.append(np.full(len(own), bucket, np.int32))
        joined, at = np.unique(np.concatenate(hashes), return_index=True)
        check_one_bucket_per_hash(sum(map(len, hashes)), len(joined), stored_indexes.values())
        return _PartitionIndex(joined, np.concatenate(buckets)[at], sizes)

    def _add_new(self, index: _PartitionIndex, new: Hashes, owner: int) -> None:
        if not len(new):
            return
        given = np.empty(len(new), dtype=np.int32)
        start = 0
        while start < len(new):
            bucket, room = self._open_bucket(index, owner)
            stop = len(new) if room is None else min(len(new), start + room)
            if bucket is None:
                full = np.array(sorted(index.sizes), dtype=np.int32)
                given[start:] = full[new[start:].astype(np.int64) % len(full)]
                break
            given[start:stop] = bucket
            index.sizes[bucket] = index.sizes.get(bucket, 0) + stop - start
            start = stop
        hashes = np.concatenate([index.hashes, new])
        order = np.argsort(hashes, kind="stable")
        index.hashes = hashes[order]
        index.buckets = np.concatenate([index.buckets, given])[order]

    def _open_bucket(self, index: _PartitionIndex, owner: int) -> tuple[int | None, int | None]:
        """Return a bucket of this owner and its free room (None: unlimited): the first with room, else a new one.

        (None, None) if all its buckets are full and no bucket may be added.
        """
        target = self._policy.target_rows
        for bucket in sorted(index.sizes):
            if index.sizes[bucket] < target:
                return bucket, target - index.sizes[bucket]
        bound = MAX_BUCKETS if self._policy.max_buckets < 0 else max(1, min(self._policy.max_buckets, MAX_BUCKETS))
        for bucket in range(owner, bound, self._policy.assigners):
            if bucket not in index.sizes:
                return bucket, target
        if not index.sizes:
            return owner % bound, None
        return None, None
