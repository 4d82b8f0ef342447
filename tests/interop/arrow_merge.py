"""A read that shares no code with lakelsm's DataFrames: data files by Arrow, merged by the kernel, in full precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.format.data_file.key_value_file import KeyValueReader, row_schema
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row_kinds import is_retract
from lakelsm.merge.kernel import merge_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.plan.bucket_files import is_shown
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import column_mapping
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.manifest_scan import read_live_entries
from lakelsm.snapshots.table_store import TableStore
from tests.interop.value_form import Rows, in_order, rows_of_arrow


def merged_rows(path: str) -> Rows:
    """Return the rows of the table's newest snapshot, with nanoseconds (see value_form)."""
    store = TableStore.open(path)
    snapshot = store.snapshots.latest()
    buckets: dict[tuple[bytes, int], list[ManifestEntry]] = {}
    if snapshot is not None:
        for entry in read_live_entries(store.file_io, store.paths, snapshot):
            if is_shown(store.options, entry.file.level):
                buckets.setdefault((entry.partition, entry.bucket), []).append(entry)
    vectors = deletion_vectors(store, snapshot)
    spec = MergeSpec.of(store.schema, store.options)
    rows: Rows = []
    for entries in buckets.values():
        table = pa.concat_tables([_shown(store, vectors, entry) for entry in sorted(entries, key=_age)])
        merged = merge_rows(table, order_keys([table.column(name) for name in spec.key_columns]), spec)
        live = merged.filter(pa.array(~is_retract(merged.column(VALUE_KIND))))
        rows += rows_of_arrow(live.drop_columns([SEQUENCE_NUMBER, VALUE_KIND]), store.schema.fields)
    return in_order(rows)


def _shown(store: TableStore, vectors: DeletionVectors, entry: ManifestEntry) -> pa.Table:
    """Return the rows of a data file that no deletion vector masks."""
    rows = _read(store, entry)
    vector = vectors.of_bucket(entry.partition, entry.bucket).get(entry.file.file_name)
    if vector is None:
        return rows
    kept = np.ones(len(rows), dtype=bool)
    kept[list(vector.read(store.file_io.filesystem(), len(rows)))] = False
    return rows.filter(pa.array(kept))


def _age(entry: ManifestEntry) -> tuple[int, int]:
    """Return the sort key of runs, oldest first."""
    return -entry.file.level, entry.file.max_sequence_number


def file_rows(path: str) -> list[pa.Table]:
    """Return the rows of each live data file with sequence numbers and kinds; highest level first, then oldest first."""
    store = TableStore.open(path)
    snapshot = store.snapshots.latest()
    entries = [] if snapshot is None else read_live_entries(store.file_io, store.paths, snapshot)
    return [_read(store, entry) for entry in sorted(entries, key=_age)]


def file_levels(path: str) -> list[int]:
    """Return the level of each live data file, sorted."""
    store = TableStore.open(path)
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return []
    return sorted(entry.file.level for entry in read_live_entries(store.file_io, store.paths, snapshot))


def bucket_keys(path: str) -> dict[tuple[bytes, int], set[tuple[Any, ...]]]:
    """Return the (partition, key ...) values in the live files of each bucket."""
    store = TableStore.open(path)
    snapshot = store.snapshots.latest()
    found: dict[tuple[bytes, int], set[tuple[Any, ...]]] = {}
    for entry in [] if snapshot is None else read_live_entries(store.file_io, store.paths, snapshot):
        columns = _read(store, entry).select(store.schema.trimmed_primary_keys).columns
        keys = {(entry.partition, *key) for key in zip(*(column.to_pylist() for column in columns))}
        found.setdefault((entry.partition, entry.bucket), set()).update(keys)
    return found


def _read(store: TableStore, entry: ManifestEntry) -> pa.Table:
    schema = store.schemas.get(entry.file.schema_id)
    path = store.data_path(entry.partition, entry.bucket, entry.file.file_name)
    mapping = column_mapping(schema, store.schema)
    reader = KeyValueReader(store.file_io.filesystem(), path, mapping)
    batches = [table for _, table in reader.batches(lambda: 1 << 24)]
    return pa.concat_tables(batches) if batches else row_schema([field for field, _ in mapping]).empty_table()
