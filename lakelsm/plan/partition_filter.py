"""The partitions that a condition leaves to look at."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.lsm.pruning import partitions_that_may_match
from lakelsm.predicate.predicate import Predicate
from lakelsm.snapshots.manifest_scan import PartitionFilter
from lakelsm.snapshots.table_store import TableStore


def partition_filter(store: TableStore, predicate: Predicate | None) -> PartitionFilter | None:
    """Tells of stored partitions whether they can hold rows that match; None where all can."""
    if predicate is None or not store.schema.partition_keys:
        return None

    def keep(partitions: Sequence[bytes]) -> Sequence[bool]:
        return partitions_that_may_match(predicate, store.schema.partition_keys, store.comparable_partitions(partitions))

    return keep
