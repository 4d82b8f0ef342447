"""lakelsm's own tables of what is in a table: what each snapshot did, and where files lie and how many rows they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.maintain.system_tables.file_columns import ShownFiles
from lakelsm.maintain.system_tables.system_table import SystemTable, TableState, columns_of
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.manifest_scan import read_delta_metas, read_live_batches
from lakelsm.snapshots.table_store import TableStore


def _history(state: TableState) -> Sequence[Sequence[Any]]:
    rows = (_snapshot(state.store, snapshot) for snapshot in state.store.snapshots.list())
    return columns_of((row for row in rows if row is not None), 12)


def _snapshot(store: TableStore, snapshot: Snapshot) -> tuple[Any, ...] | None:
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


#: What `Table.snapshots` shows.
HISTORY = SystemTable(
    "history",
    "snapshot_id BIGINT, commit_kind STRING, commit_time TIMESTAMP_LTZ(6), commit_user STRING, commit_identifier BIGINT, "
    "schema_id BIGINT, total_record_count BIGINT, delta_record_count BIGINT, operation STRING, "
    "changelog_record_count BIGINT, added_file_count BIGINT, deleted_file_count BIGINT",
    _history,
)


def _layout(state: TableState) -> Sequence[pa.ChunkedArray | Sequence[Any]]:
    store, snapshot = state.store, state.snapshot
    live = [] if snapshot is None else read_live_batches(store.file_io, store.paths, snapshot)
    vectors = deletion_vectors(store, snapshot)
    parts = [_part(store, files, vectors) for files in ShownFiles.of(live)]
    return [pa.chunked_array(columns) for columns in zip(*parts)] or [()] * 11


def _part(store: TableStore, files: ShownFiles, vectors: DeletionVectors) -> list[pa.Array]:
    table = files.table
    labels = pa.array([store.partition_label(partition) for partition in files.batch.partitions], pa.string())
    return [
        labels.take(pa.array(files.partition_codes)),
        pa.array(files.buckets),
        table["_LEVEL"],
        files.paths(store),
        *(table[name] for name in ("_ROW_COUNT", "_DELETE_ROW_COUNT", "_FILE_SIZE", "_SCHEMA_ID")),
        *(table[name] for name in ("_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER")),
        _masked(store, files, vectors),
    ]


def _masked(store: TableStore, files: ShownFiles, vectors: DeletionVectors) -> pa.Array:
    """How many rows of each file its deletion vector masks."""
    masked = np.zeros(len(files.table), np.int64)
    codes = {partition: code for code, partition in enumerate(files.batch.partitions)}
    rows = files.table["_ROW_COUNT"].to_numpy()
    for (partition, bucket), places in vectors.places.items():
        here = np.flatnonzero((files.partition_codes == codes.get(partition, -1)) & (files.buckets == bucket))
        names = files.table["_FILE_NAME"].take(pa.array(here))
        found = pc.index_in(pa.array(list(places), pa.large_string()), value_set=names)
        for place, at in zip(places.values(), found.to_pylist()):
            if at is not None:
                masked[here[at]] = place.masked_rows(store.file_io.filesystem(), int(rows[here[at]]))
    return pa.array(masked)


#: What `Table.files` shows.
LAYOUT = SystemTable(
    "layout",
    "partition STRING, bucket INT, level INT, file_path STRING, record_count BIGINT, delete_record_count BIGINT, "
    "file_size_in_bytes BIGINT, schema_id BIGINT, min_sequence_number BIGINT, max_sequence_number BIGINT, "
    "masked_record_count BIGINT",
    _layout,
    travels=True,
)
