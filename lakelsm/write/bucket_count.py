"""Fixed buckets keep their number as long as a partition has files: a key in two buckets would be two rows."""

from __future__ import annotations

from collections.abc import Collection

from lakelsm.commit.scan import read_live_entries
from lakelsm.commit.table_store import TableStore
from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import Snapshot


def check_bucket_count(store: TableStore, snapshot: Snapshot | None, partitions: Collection[bytes]) -> None:
    """Raise InvalidInputError when a partition to be appended to has files of another number of fixed buckets.

    Reads manifests only where the table's option ``bucket`` has ever been another than now.
    """
    ours = store.options.bucket
    if snapshot is None or ours <= 0 or not partitions:
        return
    known = {schema.options.get("bucket") for schema in store.schemas.read_all().values()}
    if len(known | {store.schema.options.get("bucket")}) == 1:
        return
    others = read_live_entries(
        store.file_io,
        store.paths,
        snapshot,
        keep_partitions=lambda found: [partition in partitions for partition in found],
        keep_buckets=lambda buckets, totals: (totals > 0) & (totals != ours),
        stats=False,
    )
    if others:
        theirs = others[0].total_buckets
        values = store.partition_values(others[0].partition)
        partition = ", ".join(f"{name}={value}" for name, value in values.items())
        where = f"Partition {partition} of table {store.name}" if partition else f"Table {store.name}"
        raise InvalidInputError(
            f"{where} has files of {theirs} buckets, and this write has 'bucket' = '{ours}': overwrite the partition "
            f"to give it the new number, or set the table's option back to '{theirs}'."
        )
