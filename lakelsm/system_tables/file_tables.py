"""System tables about files: data files, their totals by partition and bucket, manifests and index files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.index.index_manifest import DELETION_VECTORS_INDEX, IndexManifestEntry
from lakelsm.format.manifest import FileKind
from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.format.manifest.manifest_list import ManifestFileMeta
from lakelsm.format.partition_path import partition_text
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.manifest_scan import (
    read_batches,
    read_changelog_metas,
    read_index_entries,
    read_live_batches,
    read_manifest_metas,
)
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.file_columns import FileBatch, partition_rows
from lakelsm.system_tables.system_table import SystemTable, TableState, columns_of

_FILES_DDL = (
    "partition STRING, bucket INT NOT NULL, file_path STRING NOT NULL, file_format STRING NOT NULL, "
    "schema_id BIGINT NOT NULL, level INT NOT NULL, record_count BIGINT NOT NULL, file_size_in_bytes BIGINT NOT NULL, "
    "min_key STRING, max_key STRING"
)


def _files(state: TableState) -> Sequence[pa.Array | pa.ChunkedArray | Sequence[Any]]:
    return _columns(state, statistics=True)


def _key_ranges(state: TableState) -> Sequence[pa.Array | pa.ChunkedArray | Sequence[Any]]:
    return _columns(state, statistics=False)


def _columns(state: TableState, statistics: bool) -> Sequence[pa.ChunkedArray | Sequence[Any]]:
    """Return the columns of the live files. Without ``statistics``, the row ids follow the keys."""
    store, snapshot = state.store, state.snapshot
    live = [] if snapshot is None else read_live_batches(store.file_io, store.paths, snapshot)
    parts = [_part(state, files, statistics) for files in FileBatch.of(live)]
    count = len((FILES if statistics else FILE_KEY_RANGES).fields)
    return [pa.chunked_array(columns) for columns in zip(*parts)] or [()] * count


def _part(state: TableState, files: FileBatch, statistics: bool) -> list[pa.Array]:
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
    can_time_travel=True,
)
FILE_KEY_RANGES = SystemTable("file_key_ranges", f"{_FILES_DDL}, first_row_id BIGINT", _key_ranges, can_time_travel=True)


def _sums(state: TableState, by_bucket: bool) -> tuple[list[bytes], pa.Table]:
    """Return the distinct partitions, and totals of files by bucket and ``partition`` (an index of the distinct ones).

    As in Java, the last update is the greatest time of all files in the manifests, including deleted ones, and the number
    of buckets is that of the last entry.
    """
    store, snapshot = state.store, state.snapshot
    batches = [] if snapshot is None else read_batches(store.file_io, store.paths, snapshot)
    codes: dict[bytes, int] = {}
    parts = []
    for batch in batches:
        numbers = np.array([codes.setdefault(each, len(codes)) for each in batch.partitions], np.int64)
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
    return list(codes), summed.filter(pc.greater(summed["files_sum"], 0))


_SUMMED = ("partition", "bucket", "records_sum", "bytes_sum", "files_sum", "time_max", "total_buckets_last")
_COUNTS = ("records_sum", "bytes_sum", "files_sum")


def live_bytes(state: TableState) -> int:
    """Return the total size of all live data files in bytes."""
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
    can_time_travel=True,
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
    can_time_travel=True,
)


def _sorted(sums: pa.Table, labels: pa.Array, *keys: str) -> pa.Table:
    """Return the totals in the order of the partitions' texts."""
    ranks = np.empty(len(labels), np.int64)
    ranks[pc.array_sort_indices(labels).to_numpy()] = np.arange(len(labels))
    ranked = sums.append_column("rank", pa.array(ranks).take(sums["partition"].combine_chunks()))
    return ranked.sort_by([("rank" if key == "partition" else key, "ascending") for key in keys])


def _partition_labels(state: TableState, partitions: Sequence[bytes]) -> pa.Array:
    """Return partitions as 'dt=2025-12-31/hh=12'. NULL becomes the name of the default partition."""
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
    """Return the masked rows of each partition: 0 without deletion vectors, None if a vector records no count."""
    store, snapshot = state.store, state.snapshot
    counts: defaultdict[bytes, int | None] = defaultdict(int)
    if store.options.deletion_vectors_enabled and snapshot is not None:
        for entry in read_index_entries(store.file_io, store.paths, snapshot):
            known = counts[entry.partition]
            if entry.file.index_type != DELETION_VECTORS_INDEX or known is None:
                continue
            recorded = [each.cardinality for each in entry.file.dv_ranges or ()]
            counts[entry.partition] = None if None in recorded else known + sum(filter(None, recorded))
    return [counts[partition] for partition in partitions]


def _layout(state: TableState) -> Sequence[pa.ChunkedArray | Sequence[Any]]:
    store, snapshot = state.store, state.snapshot
    live = [] if snapshot is None else read_live_batches(store.file_io, store.paths, snapshot)
    vectors = deletion_vectors(store, snapshot)
    parts = [_layout_part(store, files, vectors) for files in FileBatch.of(live)]
    return [pa.chunked_array(columns) for columns in zip(*parts)] or [()] * 11


def _layout_part(store: TableStore, files: FileBatch, vectors: DeletionVectors) -> list[pa.Array]:
    table = files.table
    labels = pa.array([store.partition_label(partition) for partition in files.batch.partitions], pa.string())
    return [
        labels.take(pa.array(files.partition_codes)),
        pa.array(files.buckets),
        table["_LEVEL"],
        files.paths(store),
        *(table[name] for name in ("_ROW_COUNT", "_DELETE_ROW_COUNT", "_FILE_SIZE", "_SCHEMA_ID")),
        *(table[name] for name in ("_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER")),
        _masked_rows(store, files, vectors),
    ]


def _masked_rows(store: TableStore, files: FileBatch, vectors: DeletionVectors) -> pa.Array:
    """Return the number of masked rows of each file."""
    masked = np.zeros(len(files.table), np.int64)
    codes = {partition: code for code, partition in enumerate(files.batch.partitions)}
    rows = files.table["_ROW_COUNT"].to_numpy()
    for (partition, bucket), locations in vectors.locations.items():
        here = np.flatnonzero((files.partition_codes == codes.get(partition, -1)) & (files.buckets == bucket))
        names = files.table["_FILE_NAME"].take(pa.array(here))
        found = pc.index_in(pa.array(list(locations), pa.large_string()), value_set=names)
        for location, index in zip(locations.values(), found.to_pylist()):
            if index is not None:
                masked[here[index]] = location.masked_row_count(store.file_io.filesystem(), int(rows[here[index]]))
    return pa.array(masked)


#: The table that `Inspection.files` returns.
LAYOUT = SystemTable(
    "files",
    "partition STRING, bucket INT, level INT, file_path STRING, record_count BIGINT, delete_record_count BIGINT, "
    "file_size_in_bytes BIGINT, schema_id BIGINT, min_sequence_number BIGINT, max_sequence_number BIGINT, "
    "masked_record_count BIGINT",
    _layout,
    can_time_travel=True,
)


def _manifests(state: TableState) -> Sequence[pa.Array | Sequence[Any]]:
    types = state.store.partition_types
    metas = [] if state.snapshot is None else _all_metas(state.store, state.snapshot)
    plain = ((m.file_name, m.file_size, m.num_added_files, m.num_deleted_files, m.schema_id) for m in metas)
    return [
        *columns_of(plain, 5),
        partition_rows([meta.partition_stats.min_values for meta in metas], types),
        partition_rows([meta.partition_stats.max_values for meta in metas], types),
        *columns_of(((meta.min_row_id, meta.max_row_id) for meta in metas), 2),
    ]


def _all_metas(store: TableStore, snapshot: Snapshot) -> list[ManifestFileMeta]:
    """Return the manifests of the base list, the delta list and the changelog list, in this order.

    The changelog list only if it is retained: expiry deletes the changelog of a snapshot, and a tag keeps the rest.
    """
    metas = read_manifest_metas(store.file_io, store.paths, snapshot)
    retained = (manager.try_get(snapshot.id) for manager in (store.snapshots, store.changelogs))
    if any(snapshot.matches(each) for each in retained):
        metas += read_changelog_metas(store.file_io, store.paths, snapshot)
    return metas


MANIFESTS = SystemTable(
    "manifests",
    "file_name STRING NOT NULL, file_size BIGINT NOT NULL, num_added_files BIGINT NOT NULL, "
    "num_deleted_files BIGINT NOT NULL, schema_id BIGINT NOT NULL, min_partition_stats STRING, "
    "max_partition_stats STRING, min_row_id BIGINT, max_row_id BIGINT",
    _manifests,
    can_time_travel=True,
)


def _table_indexes(state: TableState) -> Sequence[pa.Array | Sequence[Any]]:
    store = state.store
    entries = [] if state.snapshot is None else read_index_entries(store.file_io, store.paths, state.snapshot)
    names = {field.id: field.name for field in store.schema.fields}

    def row(entry: IndexManifestEntry) -> tuple[Any, ...]:
        file, covered = entry.file, entry.file.global_index
        ranges = file.dv_ranges
        return (
            entry.bucket,
            file.index_type,
            file.file_name,
            file.file_size,
            file.row_count,
            None if ranges is None else [(r.data_file_name, r.offset, r.length, r.cardinality) for r in ranges],
            None if covered is None else covered.row_range_start,
            None if covered is None else covered.row_range_end,
            None if covered is None else covered.index_field_id,
            None if covered is None else _indexed(names, (covered.index_field_id, *(covered.extra_field_ids or ()))),
        )

    texts = partition_rows([entry.partition for entry in entries], store.partition_types)
    return [texts, *columns_of(map(row, entries), 10)]


def _indexed(names: dict[int, str], ids: Sequence[int]) -> str | None:
    """Return the column names of a global index; None if one of the columns was dropped."""
    return ",".join(names[each] for each in ids) if names.keys() >= set(ids) else None


TABLE_INDEXES = SystemTable(
    "table_indexes",
    "partition STRING, bucket INT NOT NULL, index_type STRING NOT NULL, file_name STRING NOT NULL, "
    "file_size BIGINT NOT NULL, row_count BIGINT NOT NULL, "
    "dv_ranges ARRAY<ROW<f0 STRING NOT NULL, f1 INT NOT NULL, f2 INT NOT NULL, _CARDINALITY BIGINT>>, "
    "row_range_start BIGINT, row_range_end BIGINT, index_field_id INT, index_field_name STRING",
    _table_indexes,
    can_time_travel=True,
)
