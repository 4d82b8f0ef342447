"""The system tables of metadata files: manifests and index files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelsm.format.index.index_manifest import IndexManifestEntry
from lakelsm.format.manifest.manifest_list import ManifestFileMeta
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.system_tables.java_text import cast_texts, joined
from lakelsm.maintain.system_tables.system_table import SystemTable, TableState, columns_of
from lakelsm.snapshots.manifest_scan import read_changelog_metas, read_index_entries, read_manifest_metas
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataType


def partition_rows(partitions: Sequence[bytes], types: Sequence[DataType]) -> pa.LargeStringArray:
    """Stored partitions as Paimon casts a row to a text: '{2025-12-31, 12}', '{}' where there are no columns."""
    columns = decode_rows(list(partitions), types) if types else []
    return joined([cast_texts(*pair) for pair in zip(columns, types)], len(partitions), "{}")


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
    """The manifests of the base list, the delta list and the changelog list, in this order.

    Expiry deletes the changelog of a snapshot, and a tag keeps the rest.
    """
    metas = read_manifest_metas(store.file_io, store.paths, snapshot)
    retained = (manager.try_get(snapshot.id) for manager in (store.snapshots, store.changelogs))
    if any(snapshot.is_same(each) for each in retained):
        metas += read_changelog_metas(store.file_io, store.paths, snapshot)
    return metas


MANIFESTS = SystemTable(
    "manifests",
    "file_name STRING NOT NULL, file_size BIGINT NOT NULL, num_added_files BIGINT NOT NULL, "
    "num_deleted_files BIGINT NOT NULL, schema_id BIGINT NOT NULL, min_partition_stats STRING, "
    "max_partition_stats STRING, min_row_id BIGINT, max_row_id BIGINT",
    _manifests,
    travels=True,
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
    """The columns of a global index; None where one is no column any more."""
    return ",".join(names[each] for each in ids) if names.keys() >= set(ids) else None


TABLE_INDEXES = SystemTable(
    "table_indexes",
    "partition STRING, bucket INT NOT NULL, index_type STRING NOT NULL, file_name STRING NOT NULL, "
    "file_size BIGINT NOT NULL, row_count BIGINT NOT NULL, "
    "dv_ranges ARRAY<ROW<f0 STRING NOT NULL, f1 INT NOT NULL, f2 INT NOT NULL, _CARDINALITY BIGINT>>, "
    "row_range_start BIGINT, row_range_end BIGINT, index_field_id INT, index_field_name STRING",
    _table_indexes,
    travels=True,
)
