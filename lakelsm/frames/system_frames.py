"""What is in a table, as small DataFrames: snapshots, files, and the layout by bucket and level."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.frames.changelog_frame import change_frame
from lakelsm.plan.changelog_plan import ChangelogPlan
from lakelsm.schema.system_columns import ROW_KIND
from lakelsm.snapshots.deletion_vectors import deletion_vectors
from lakelsm.snapshots.manifest_scan import read_delta_metas, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.columns import quoted
from lakelsm.spark.spark_types import to_struct
from lakelsm.types import DataField

_SNAPSHOTS = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("commit_kind", pa.string()),
        ("commit_time", pa.timestamp("us", "UTC")),
        ("commit_user", pa.string()),
        ("commit_identifier", pa.int64()),
        ("schema_id", pa.int64()),
        ("total_record_count", pa.int64()),
        ("delta_record_count", pa.int64()),
        ("operation", pa.string()),
        ("changelog_record_count", pa.int64()),
        ("added_file_count", pa.int64()),
        ("deleted_file_count", pa.int64()),
    ]
)
_FILES = pa.schema(
    [
        ("partition", pa.string()),
        ("bucket", pa.int32()),
        ("level", pa.int32()),
        ("file_path", pa.string()),
        ("record_count", pa.int64()),
        ("delete_record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("schema_id", pa.int64()),
        ("min_sequence_number", pa.int64()),
        ("max_sequence_number", pa.int64()),
        ("masked_record_count", pa.int64()),
    ]
)


def snapshots_frame(spark: SparkSession, store: TableStore) -> DataFrame:
    """One row a retained snapshot, oldest first; its columns are those of `Table.snapshots`."""
    return _frame(spark, [row for row in (_snapshot(store, s) for s in store.snapshots.list()) if row], _SNAPSHOTS)


def _snapshot(store: TableStore, snapshot: Snapshot) -> tuple[object, ...] | None:
    """The row of a snapshot; None where it has expired in the meantime."""
    try:
        delta = read_delta_metas(store.file_io, store.paths, snapshot)
    except CorruptTableError:
        if store.snapshots.try_get(snapshot.id) is None:
            return None
        raise
    compacts = snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE)
    return (
        snapshot.id,
        snapshot.commit_kind.value,
        snapshot.time_millis * 1000,
        snapshot.commit_user,
        snapshot.commit_identifier,
        snapshot.schema_id,
        snapshot.total_record_count,
        snapshot.delta_record_count,
        snapshot.operation or (snapshot.commit_kind.value if compacts else None),
        snapshot.changelog_record_count or 0,
        sum(meta.num_added_files for meta in delta),
        sum(meta.num_deleted_files for meta in delta),
    )


def files_frame(spark: SparkSession, store: TableStore, snapshot: Snapshot | None) -> DataFrame:
    """One row a live data file; its columns are those of `Table.files`."""
    if snapshot is None:
        return _frame(spark, [], _FILES)
    names: dict[bytes, str] = {}
    rows = []
    entries = read_live_entries(store.file_io, store.paths, snapshot, stats=False)
    for entry, vector in zip(entries, deletion_vectors(store, snapshot).of(entries)):
        if entry.partition not in names:
            names[entry.partition] = store.partition_label(entry.partition)
        file = entry.file
        path = file.external_path or store.data_path(entry.partition, entry.bucket, file.file_name)
        rows.append(
            (
                names[entry.partition],
                entry.bucket,
                file.level,
                path,
                file.row_count,
                file.delete_row_count,
                file.file_size,
                file.schema_id,
                file.min_sequence_number,
                file.max_sequence_number,
                0 if vector is None else vector.masked_rows(store.file_io.filesystem(), file.row_count),
            )
        )
    return _frame(spark, rows, _FILES)


def system_frame(spark: SparkSession, rows: pa.Table, fields: Sequence[DataField]) -> DataFrame:
    """The rows of a system table as Spark has its columns."""
    return spark.createDataFrame(rows, to_struct(tuple(fields)))


def state_frame(spark: SparkSession, store: TableStore, plan: ChangelogPlan, lists: bool) -> DataFrame:
    """The rows of a state behind their row kinds; ``lists``: each value as a list of one."""
    frame = change_frame(spark, store, plan, None, ROW_KIND, positions=False)
    if not lists:
        return frame
    return frame.select(ROW_KIND, *(F.array(quoted(name)).alias(name) for name in store.schema.field_names))


def buckets_frame(files: DataFrame) -> DataFrame:
    """Files, rows and bytes by partition, bucket and level."""
    return (
        files.groupBy("partition", "bucket", "level")
        .agg(
            F.count("*").alias("files"),
            F.sum("record_count").alias("records"),
            F.sum("file_size_in_bytes").alias("bytes"),
        )
        .orderBy("partition", "bucket", "level")
    )


def _frame(spark: SparkSession, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> DataFrame:
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=schema))
