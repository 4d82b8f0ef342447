"""A partition with files keeps its number of fixed buckets: a key in two buckets would be two rows."""

from __future__ import annotations

from collections.abc import Collection

from lakelsm.errors import InvalidInputError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.inheritance import recorded_total_buckets
from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.snapshots.table_store import TableStore


def check_bucket_count(store: TableStore, snapshot: Snapshot | None, partitions: Collection[bytes]) -> int | None:
    """Raise InvalidInputError if a partition of an append has files of another number of fixed buckets.

    Reads manifests only if the snapshot does not record the number. In this case returns the number if all files have
    it, else None.
    """
    ours = store.options.bucket
    if ours <= 0 or not partitions or snapshot is None or recorded_total_buckets(snapshot) == ours:
        return None
    elsewhere = _files_of_other_counts(store, snapshot)
    others = [entry for entry in elsewhere if entry.partition in partitions and entry.total_buckets > 0]
    if others:
        theirs = others[0].total_buckets
        partition = store.partition_label(others[0].partition)
        subject = f"partition {partition}" if partition else f"snapshot {snapshot.id}"
        raise InvalidInputError(
            f"Table {store.name}: {subject} has files with {theirs} buckets, but this write has 'bucket' = '{ours}'. "
            f"Overwrite the partition to change the number, or set the option back to '{theirs}'."
        )
    return None if elsewhere else ours


def check_one_bucket_count(store: TableStore, snapshot: Snapshot | None) -> None:
    """Raise InvalidInputError if a table has files of another number of fixed buckets than its options.

    Reads manifests only if the snapshot does not record the number.
    """
    ours = store.options.bucket
    if snapshot is None or recorded_total_buckets(snapshot) == ours:
        return
    others = [entry for entry in _files_of_other_counts(store, snapshot) if entry.total_buckets > 0]
    if others:
        raise InvalidInputError(
            f"Table {store.name}: snapshot {snapshot.id} has files with {others[0].total_buckets} buckets, but by_bucket "
            f"distributes rows to {ours}. Restart the query after a change of 'bucket', or leave by_bucket out."
        )


def _files_of_other_counts(store: TableStore, snapshot: Snapshot) -> list[ManifestEntry]:
    """Return the live files that were not written with the table's number of buckets."""
    ours = store.options.bucket
    return read_live_entries(
        store.file_io,
        store.paths,
        snapshot,
        keep_buckets=lambda buckets, totals: totals != ours,
        stats=False,
    )
