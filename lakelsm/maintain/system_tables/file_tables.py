"""The system tables of data files: one by one, and added up by partition and bucket."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.index.index_manifest import DELETION_VECTORS_INDEX
from lakelsm.format.manifest import FileKind
from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.format.partition_path import partition_text
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.maintain.system_tables.file_columns import ShownFiles
from lakelsm.maintain.system_tables.manifest_tables import partition_rows
from lakelsm.maintain.system_tables.system_table import SystemTable, TableState
from lakelsm.snapshots.manifest_scan import read_batches, read_index_entries, read_live_batches

_FILES_DDL = (
    "partition STRING, bucket INT NOT NULL, file_path STRING NOT NULL, file_format STRING NOT NULL, "
    "schema_id BIGINT NOT NULL, level INT NOT NULL, record_count BIGINT NOT NULL, file_size_in_bytes BIGINT NOT NULL, "
    "min_key STRING, max_key STRING"
)


def _files(state: TableState) -> Sequence[pa.Array | pa.ChunkedArray | Sequence[Any]]:
    return _columns(state, statistics=True)


def _file_key_ranges(state: TableState) -> Sequence[pa.Array | pa.ChunkedArray | Sequence[Any]]:
    return _columns(state, statistics=False)


def _columns(state: TableState, statistics: bool) -> Sequence[pa.ChunkedArray | Sequence[Any]]:
    """The columns of the live files; without ``statistics`` the row ids follow the keys."""
    store, snapshot = state.store, state.snapshot
    live = [] if snapshot is None else read_live_batches(store.file_io, store.paths, snapshot)
    parts = [_part(state, files, statistics) for files in ShownFiles.of(live)]
    count = len((FILES if statistics else FILE_KEY_RANGES).fields)
    return [pa.chunked_array(columns) for columns in zip(*parts)] or [()] * count


def _part(state: TableState, files: ShownFiles, statistics: bool) -> list[pa.Array]:
    store, table = state.store, files.table
    head = [
        files.partitions(store),
        pa.array(files.buckets),
        files.paths(store),
        files.formats(),
        *(table[name] for name in ("_SCHEMA_ID", "_LEVEL", "_ROW_COUNT", "_FILE_SIZE")),
        *files.keys(store),
    ]
    if not statistics:
        return [*head, table["_FIRST_ROW_ID"]]
    known = pc.is_in(table["_FILE_SOURCE"], pa.array([int(source) for source in FileSource], pa.int64()))
    sources = pa.array([source.name for source in sorted(FileSource)], pa.large_string())
    return [
        *head,
        *files.statistics(store),
        *(table[name] for name in ("_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER")),
        table["_CREATION_TIME"].cast(pa.timestamp("ms")),
        table["_DELETE_ROW_COUNT"],
        sources.take(pc.if_else(known, table["_FILE_SOURCE"], None)),
        table["_FIRST_ROW_ID"],
        table["_WRITE_COLS"],
    ]


FILES = SystemTable(
    "files",
    f"{_FILES_DDL}, null_value_counts STRING NOT NULL, min_value_stats STRING NOT NULL, max_value_stats STRING NOT NULL, "
    "min_sequence_number BIGINT, max_sequence_number BIGINT, creation_time TIMESTAMP(3), deleteRowCount BIGINT, "
    "file_source STRING, first_row_id BIGINT, write_cols ARRAY<STRING>",
    _files,
    travels=True,
)
FILE_KEY_RANGES = SystemTable("file_key_ranges", f"{_FILES_DDL}, first_row_id BIGINT", _file_key_ranges, travels=True)


def _sums(state: TableState, by_bucket: bool) -> tuple[list[bytes], pa.Table]:
    """The distinct partitions, and what their files come to by ``partition`` (a place among these) and bucket.

    As in Java, the last update is the greatest time of all files that the manifests name, deleted ones too, and the
    number of buckets is that of the last entry.
    """
    store, snapshot = state.store, state.snapshot
    batches = [] if snapshot is None else read_batches(store.file_io, store.paths, snapshot)
    places: dict[bytes, int] = {}
    parts = []
    for batch in batches:
        numbers = np.array([places.setdefault(each, len(places)) for each in batch.partitions], np.int64)
        files = batch.file_table(np.arange(batch.count))
        sign = pa.array(np.where(batch.kinds == FileKind.ADD, 1, -1))
        columns = {
            "partition": pa.array(numbers[batch.partition_codes]) if batch.count else pa.array([], pa.int64()),
            "bucket": pa.array(batch.buckets),
            "records": pc.multiply(files["_ROW_COUNT"], sign),
            "bytes": pc.multiply(files["_FILE_SIZE"], sign),
            "files": sign,
            "time": files["_CREATION_TIME"],
            "total_buckets": pa.array(batch.total_buckets),
        }
        parts.append(pa.table(columns))
    if not parts:
        return [], pa.table({name: pa.array([], pa.int64()) for name in _SUMMED})
    summed = pa.concat_tables(parts).group_by(["partition", "bucket"][: 1 + by_bucket], use_threads=False).aggregate(
        [("records", "sum"), ("bytes", "sum"), ("files", "sum"), ("time", "max"), ("total_buckets", "last")]
    )
    return list(places), summed.filter(pc.greater(summed["files_sum"], 0))


_SUMMED = ("partition", "bucket", "records_sum", "bytes_sum", "files_sum", "time_max", "total_buckets_last")
_COUNTS = ("records_sum", "bytes_sum", "files_sum")


def live_bytes(state: TableState) -> int:
    """Bytes of all live data files."""
    return sum(_sums(state, by_bucket=False)[1]["bytes_sum"].to_pylist())


def _partitions(state: TableState) -> Sequence[pa.Array | pa.ChunkedArray | Sequence[Any]]:
    partitions, sums = _sums(state, by_bucket=False)
    labels = _partition_labels(state, partitions)
    sums = _sorted(sums, labels, "partition")
    nothing: list[None] = [None] * len(sums)
    return [
        labels.take(sums["partition"]),
        *(sums[name] for name in _COUNTS),
        sums["time_max"].cast(pa.timestamp("ms")),
        *(nothing,) * 4,
        sums["total_buckets_last"],
        [False] * len(sums),
        pa.array(_masked(state, partitions), pa.int64()).take(sums["partition"]),
    ]


PARTITIONS = SystemTable(
    "partitions",
    "partition STRING, record_count BIGINT NOT NULL, file_size_in_bytes BIGINT NOT NULL, file_count BIGINT NOT NULL, "
    "last_update_time TIMESTAMP(3), created_at TIMESTAMP(3), created_by STRING, updated_by STRING, options STRING, "
    "total_buckets INT NOT NULL, done BOOLEAN NOT NULL, deleted_record_count BIGINT",
    _partitions,
    travels=True,
)


def _buckets(state: TableState) -> Sequence[pa.Array | pa.ChunkedArray | Sequence[Any]]:
    partitions, sums = _sums(state, by_bucket=True)
    labels = partition_rows(partitions, state.store.partition_types)
    sums = _sorted(sums, labels, "partition", "bucket")
    return [
        labels.take(sums["partition"]),
        sums["bucket"],
        *(sums[name] for name in _COUNTS),
        sums["time_max"].cast(pa.timestamp("ms")),
    ]


BUCKETS = SystemTable(
    "buckets",
    "partition STRING, bucket INT NOT NULL, record_count BIGINT NOT NULL, file_size_in_bytes BIGINT NOT NULL, "
    "file_count BIGINT NOT NULL, last_update_time TIMESTAMP(3)",
    _buckets,
    travels=True,
)


def _sorted(sums: pa.Table, labels: pa.Array, *keys: str) -> pa.Table:
    """The sums in the order of the partitions' texts."""
    ranks = np.empty(len(labels), np.int64)
    ranks[pc.array_sort_indices(labels).to_numpy()] = np.arange(len(labels))
    ranked = sums.append_column("rank", pa.array(ranks).take(sums["partition"].combine_chunks()))
    return ranked.sort_by([("rank" if key == "partition" else key, "ascending") for key in keys])


def _partition_labels(state: TableState, partitions: Sequence[bytes]) -> pa.Array:
    """Partitions as 'dt=2025-12-31/hh=12', with the name of the default partition where a value has none."""
    store = state.store
    columns = decode_rows(list(partitions), store.partition_types)
    default = store.options.partition_default_name
    parts = [
        pa.array([f"{name}={partition_text(value, kind, False, default)}" for value in column], pa.large_string())
        for name, kind, column in zip(store.schema.partition_keys, store.partition_types, columns)
    ]
    if not parts:
        return pa.array([""] * len(partitions), pa.large_string())
    return pc.binary_join_element_wise(*parts, pa.scalar("/", pa.large_string()))


def _masked(state: TableState, partitions: Sequence[bytes]) -> list[int | None]:
    """Rows that deletion vectors mask, by partition: 0 where the table has none, None where a vector does not tell."""
    store, snapshot = state.store, state.snapshot
    counts: defaultdict[bytes, int | None] = defaultdict(int)
    if store.options.deletion_vectors_enabled and snapshot is not None:
        for entry in read_index_entries(store.file_io, store.paths, snapshot):
            known = counts[entry.partition]
            if entry.file.index_type != DELETION_VECTORS_INDEX or known is None:
                continue
            told = [each.cardinality for each in entry.file.dv_ranges or ()]
            counts[entry.partition] = None if None in told else known + sum(filter(None, told))
    return [counts[partition] for partition in partitions]
