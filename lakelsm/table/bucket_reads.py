"""Reads that know the bucket of each row, and for files that need no merge also the file and the row index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakelsm.engine import chosen_engine, local_engine, spark_session
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.data_file.vector_location import read_vectors
from lakelsm.merge.merge_unit import RunFile
from lakelsm.plan.read_plan import ReadPlan, bucket_of, plans_of_buckets, plans_of_directories
from lakelsm.table.readable_table import ReadableTable, RowsRequest, planned_scans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelsm.local.arrow_scan import ArrowScan

#: Spark reads each bucket as a DataFrame of its own: planning takes longer with each one.
MAX_FRAMES = 256


@dataclass(frozen=True)
class BucketRows:
    """Rows of a bucket. ``path`` and ``indexes`` are those of their file, None if they were not requested."""

    rows: pa.RecordBatch
    bucket: int
    path: str | None = None
    indexes: pa.Array | None = None


def bucket_rows(table: ReadableTable, request: RowsRequest, *, located: bool) -> Iterator[BucketRows]:
    """Yield the rows of `ReadableTable.to_reader`. ``located``: with files and row indexes, and without a condition.

    Raises UnsupportedFeatureError if ``located`` rows have to be merged.
    """
    for scan in planned_scans(table, request):
        if located:
            _check_unmerged(table, scan.plan)
            yield from _located(scan)
            continue
        for bucket, plan in plans_of_buckets(scan.plan).items():
            for rows in replace(scan, plan=plan).batches(local_engine().runner):
                yield BucketRows(rows, bucket)


def _located(scan: ArrowScan) -> Iterator[BucketRows]:
    """Yield all rows of the files, one file after the other: a condition would leave out rows within a file."""
    for file in scan.plan.raw_files:
        one = replace(scan, plan=replace(scan.plan, raw_files=(file,)), predicate=None)
        with scan.store.while_read(scan.plan.snapshot):
            live = _live_indexes(scan, file)
        start, bucket = 0, bucket_of(file.path.rpartition("/")[0])
        for rows in one.batches(local_engine().runner):
            stop = start + len(rows)
            indexes = np.arange(start, stop) if live is None else live[start:stop]
            yield BucketRows(rows, bucket, file.path, pa.array(indexes, pa.int64()))
            start = stop


def _live_indexes(scan: ArrowScan, file: RunFile) -> np.ndarray | None:
    """Return the indexes of the rows that the file's deletion vector does not mask; None for all."""
    if file.vector is None:
        return None
    (masked,) = read_vectors(scan.store.file_io.filesystem(), [(file.vector, file.row_count)])
    return np.delete(np.arange(file.row_count), np.frombuffer(masked.to_array(), np.uint32))


def bucket_frames(
    table: ReadableTable, where: str | None, columns: Sequence[str], *, fresh: bool, located: bool
) -> list[tuple[str | int, DataFrame]]:
    """Return the rows of `ReadableTable.read`: a DataFrame for each bucket, with the bucket's number.

    ``located``: a DataFrame for each directory of a bucket, with the directory, as `located_frame` returns it. Raises as
    `bucket_rows`.
    """
    from lakelsm.frames.scan_frame import located_frame, read_frame

    remedy = "pass engine='local'"
    engine = chosen_engine("spark", table._spark, remedy)

    def planned() -> list[tuple[str | int, DataFrame]]:
        session = spark_session(table._spark, remedy)
        plans = table._plans(engine, where, fresh)
        if located:
            for _, plan in plans:
                _check_unmerged(table, plan)
        split = plans_of_directories if located else plans_of_buckets
        parts = [(store, part, each) for store, plan in plans for part, each in split(plan).items()]
        if len(parts) > MAX_FRAMES:
            raise UnsupportedFeatureError(
                f"Table {table.name}: the bucket of each row is known for {MAX_FRAMES} buckets only, and the query reads "
                f"{len(parts)}. Pass engine='local', or add a condition on partitions."
            )
        if located:
            return [(part, located_frame(session, store, plan)) for store, part, plan in parts]
        return [(part, read_frame(session, store, plan, where, columns)) for store, part, plan in parts]

    return table._on_newest(planned)


def _check_unmerged(table: ReadableTable, plan: ReadPlan) -> None:
    if plan.units:
        raise UnsupportedFeatureError(
            f"Table {table.name}: __paimon_file_path and __paimon_row_index need files without a merge, and the query "
            f"merges {len(plan.merged_files)} files. Compact the table with full=True first."
        )
