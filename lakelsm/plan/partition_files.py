"""The partitions of a snapshot that a condition selects as a whole, with the totals of their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.manifest.manifest_file import EntryBatch
from lakelsm.format.partition_path import partition_labels
from lakelsm.format.snapshot import Snapshot
from lakelsm.lsm.pruning import partitions_that_may_match
from lakelsm.predicate.predicate import Predicate, columns, is_exact
from lakelsm.snapshots.manifest_scan import PartitionFilter, read_live_batches
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import has_nanoseconds

_SUMMED = ("rows_sum", "rows_count", "bytes_sum", "updated_max")


@dataclass(frozen=True, kw_only=True)
class PartitionFiles:
    """The totals of the live data files of a partition; ``rows`` includes older versions of rows.

    ``label`` is the partition as text for users. ``updated`` is the creation time of the newest file in the form of
    ``_CREATION_TIME``, None if no file records it.
    """

    partition: bytes
    label: str
    rows: int
    files: int
    bytes: int
    updated: int | None


def check_whole_partitions(store: TableStore, predicate: Predicate, operation: str) -> None:
    """Raise InvalidInputError for a condition that does not select whole partitions, as ``operation`` requires."""
    keys = store.schema.partition_keys
    if not columns(predicate) <= set(keys) or not is_exact(predicate):
        raise InvalidInputError(
            f"where: {operation} selects whole partitions. Use a condition that compares partition columns "
            f"({', '.join(keys) or 'none'}) with literals."
        )


def chosen_partitions(store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None) -> list[PartitionFiles]:
    """Return the partitions with files that a condition selects (None: all), ordered by label.

    Raises InvalidInputError for a condition on other columns, and UnsupportedFeatureError for one on columns whose
    values cannot be compared exactly.
    """
    keep = None if predicate is None else _exactly(store, predicate)
    if snapshot is None:
        return []
    partitions, sums = _sums(read_live_batches(store.file_io, store.paths, snapshot, keep))
    labels = partition_labels(partitions, store.schema.partition_keys, store.partition_types)
    columns = (sums[name].to_pylist() for name in _SUMMED)
    chosen = [
        PartitionFiles(partition=partition, label=label, rows=rows, files=files, bytes=size, updated=updated)
        for partition, label, rows, files, size, updated in zip(partitions, labels, *columns)
    ]
    return sorted(chosen, key=attrgetter("label"))


def _sums(live: Iterable[tuple[EntryBatch, npt.NDArray[np.int64]]]) -> tuple[list[bytes], pa.Table]:
    """Return the partitions that have files, and a table with the totals of each."""
    codes: dict[bytes, int] = {}
    parts = []
    for batch, rows in live:
        numbers = np.array([codes.setdefault(each, len(codes)) for each in batch.partitions], np.int64)
        files = batch.file_table(rows)
        columns = {"rows": files["_ROW_COUNT"], "bytes": files["_FILE_SIZE"], "updated": files["_CREATION_TIME"]}
        parts.append(pa.table({"partition": pa.array(numbers[batch.partition_codes[rows]], pa.int64()), **columns}))
    if not parts:
        return [], pa.table({name: pa.array([], pa.int64()) for name in _SUMMED})
    sums = pa.concat_tables(parts).group_by("partition", use_threads=False).aggregate(
        [("rows", "sum"), ("rows", "count"), ("bytes", "sum"), ("updated", "max")]
    )
    partitions = list(codes)
    return [partitions[code] for code in sums["partition"].to_pylist()], sums


def _exactly(store: TableStore, predicate: Predicate) -> PartitionFilter:
    check_whole_partitions(store, predicate, "this call")
    names = columns(predicate)
    floored = next((field.name for field in store.schema.partition_fields if has_nanoseconds(field.type)), None)
    if floored in names:
        raise UnsupportedFeatureError(
            f"where: column {floored!r} cannot select partitions, because conditions compare only microseconds."
        )

    def keep(partitions: Sequence[bytes]) -> Sequence[bool]:
        values = store.comparable_partitions(partitions)
        if any(type(value) is object for row in values for value in row):
            raise UnsupportedFeatureError(
                f"Table {store.name}: a condition cannot compare partitions with times outside of the years 1 to 9999."
            )
        return partitions_that_may_match(predicate, store.schema.partition_keys, values)

    return keep
