"""The partitions of a snapshot: which ones a condition takes whole, and what the files of each come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.partition_path import partition_labels
from lakelsm.format.snapshot import Snapshot
from lakelsm.lsm.pruning import partitions_that_may_match
from lakelsm.predicate.predicate import Predicate, columns, is_exact
from lakelsm.snapshots.manifest_scan import PartitionFilter, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import has_nanoseconds


@dataclass(frozen=True, kw_only=True)
class PartitionFiles:
    """What the live data files of a partition come to; rows are those of files, older versions included.

    ``label`` is what people call it. ``updated`` is when the newest of them was made, in the form of ``_CREATION_TIME``
    (None: no file says).
    """

    partition: bytes
    label: str
    rows: int
    files: int
    bytes: int
    updated: int | None


def check_whole_partitions(store: TableStore, predicate: Predicate, why: str) -> None:
    """Raises InvalidInputError for a condition that does not choose whole partitions; ``why`` ends its text."""
    keys = store.schema.partition_keys
    if not columns(predicate) <= set(keys) or not is_exact(predicate):
        raise InvalidInputError(
            f"where must be on partition columns ({', '.join(keys) or 'none'}) alone, compared with literals: {why}"
        )


def chosen_partitions(store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None) -> list[PartitionFiles]:
    """The partitions with files that a condition takes (all of them where None), by their labels.

    Raises InvalidInputError for a condition on other things than partition columns, UnsupportedFeatureError for one on
    columns whose values are not compared exactly.
    """
    keep = None if predicate is None else _exactly(store, predicate)
    if snapshot is None:
        return []
    entries = read_live_entries(store.file_io, store.paths, snapshot, keep_partitions=keep, stats=False)
    by_partition: dict[bytes, list[ManifestEntry]] = {}
    for entry in entries:
        by_partition.setdefault(entry.partition, []).append(entry)
    labels = partition_labels(list(by_partition), store.schema.partition_keys, store.partition_types)
    found = [_files(partition, label, its) for (partition, its), label in zip(by_partition.items(), labels)]
    return sorted(found, key=attrgetter("label"))


def _exactly(store: TableStore, predicate: Predicate) -> PartitionFilter:
    check_whole_partitions(store, predicate, "partitions are taken whole.")
    names = columns(predicate)
    floored = next((field.name for field in store.schema.partition_fields if has_nanoseconds(field.type)), None)
    if floored in names:
        raise UnsupportedFeatureError(f"where is on {floored}, whose times are compared to the microsecond only.")

    def keep(partitions: Sequence[bytes]) -> Sequence[bool]:
        values = store.comparable_partitions(partitions)
        if any(type(value) is object for row in values for value in row):
            raise UnsupportedFeatureError(
                f"Table {store.name} has partitions with times outside the years 1 to 9999, which no condition compares."
            )
        return partitions_that_may_match(predicate, store.schema.partition_keys, values)

    return keep


def _files(partition: bytes, label: str, entries: Sequence[ManifestEntry]) -> PartitionFiles:
    times = [entry.file.creation_time_millis for entry in entries if entry.file.creation_time_millis is not None]
    return PartitionFiles(
        partition=partition,
        label=label,
        rows=sum(entry.file.row_count for entry in entries),
        files=len(entries),
        bytes=sum(entry.file.file_size for entry in entries),
        updated=max(times, default=None),
    )
