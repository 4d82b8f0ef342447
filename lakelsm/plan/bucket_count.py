"""Fixed buckets keep their number as long as a partition has files: a key in two buckets would be two rows."""

from __future__ import annotations

from collections.abc import Collection

from lakelsm.errors import InvalidInputError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.inheritance import recorded_total_buckets
from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.snapshots.table_store import TableStore


def check_bucket_count(store: TableStore, snapshot: Snapshot | None, partitions: Collection[bytes]) -> int | None:
    """Raise InvalidInputError when a partition to be appended to has files of another number of fixed buckets.

    Reads manifests only where the snapshot does not record the number; then returns the one that all files have, if so.
    """
    ours = store.options.bucket
    if ours <= 0 or not partitions or snapshot is None or recorded_total_buckets(snapshot) == ours:
        return None
    elsewhere = _files_of_other_counts(store, snapshot)
    others = [entry for entry in elsewhere if entry.partition in partitions and entry.total_buckets > 0]
    if others:
        theirs = others[0].total_buckets
        partition = store.partition_label(others[0].partition)
        where = f"Partition {partition} of table {store.name}" if partition else f"Table {store.name}"
        raise InvalidInputError(
            f"{where} has files of {theirs} buckets, and this write has 'bucket' = '{ours}': overwrite the partition "
            f"to give it the new number, or set the table's option back to '{theirs}'."
        )
    return None if elsewhere else ours


def check_one_bucket_count(store: TableStore, snapshot: Snapshot | None) -> None:
    """Raise InvalidInputError if a table has files of another number of fixed buckets than its options.

    Reads manifests only where the snapshot does not record the number.
    """
    ours = store.options.bucket
    if snapshot is None or recorded_total_buckets(snapshot) == ours:
        return
    others = [entry for entry in _files_of_other_counts(store, snapshot) if entry.total_buckets > 0]
    if others:
        raise InvalidInputError(
            f"Table {store.name} has files of {others[0].total_buckets} buckets in snapshot {snapshot.id}, and by_bucket "
            f"places rows by {ours}: start the query again where the table's number of buckets has changed, or leave "
            "by_bucket out."
        )


def _files_of_other_counts(store: TableStore, snapshot: Snapshot) -> list[ManifestEntry]:
    """The live files that were not written as files of the table's number of buckets."""
    ours = store.options.bucket
    return read_live_entries(
        store.file_io,
        store.paths,
        snapshot,
        keep_buckets=lambda buckets, totals: totals != ours,
        stats=False,
    )
