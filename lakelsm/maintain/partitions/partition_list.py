"""The partitions of a table, with what their files come to."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakelsm.format.snapshot import Snapshot
from lakelsm.plan.partition_files import chosen_partitions
from lakelsm.predicate.predicate import Predicate
from lakelsm.results import PartitionInfo
from lakelsm.snapshots.table_store import TableStore


def partition_infos(store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None) -> list[PartitionInfo]:
    """The partitions of a snapshot that a condition takes, by name. A table without partitions is one, called ''."""
    return [
        PartitionInfo(
            partition=files.label,
            rows=files.rows,
            files=files.files,
            bytes=files.bytes,
            updated_at=None if files.updated is None else _wall_clock(files.updated),
        )
        for files in chosen_partitions(store, snapshot, predicate)
    ]


def _wall_clock(millis: int) -> datetime | None:
    try:
        return datetime(1970, 1, 1) + timedelta(milliseconds=millis)
    except OverflowError:
        return None
