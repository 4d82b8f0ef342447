"""System tables about metadata: snapshots, tags, branches, consumers, schemas, options and statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import CommitKind, Snapshot, Tag
from lakelsm.format.statistics_file import TableStatistics
from lakelsm.options.other_keys import holds_secret
from lakelsm.schema.table_schema import TableSchema
from lakelsm.secret_values import REDACTED
from lakelsm.snapshots.manifest_scan import read_delta_metas
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import created_at
from lakelsm.storage import FileIO
from lakelsm.system_tables.system_table import SystemTable, TableState, columns_of
from lakelsm.types import field_to_json


def _snapshots(state: TableState) -> Sequence[Sequence[Any]]:
    def row(snapshot: Snapshot) -> tuple[Any, ...]:
        return (
            snapshot.id,
            snapshot.schema_id,
            snapshot.commit_user,
            snapshot.commit_identifier,
            snapshot.commit_kind.value,
            state.wall_clock(snapshot.time_millis),
            snapshot.base_manifest_list,
            snapshot.delta_manifest_list,
            snapshot.changelog_manifest_list,
            snapshot.total_record_count,
            snapshot.delta_record_count,
            snapshot.changelog_record_count,
            snapshot.watermark,
            snapshot.next_row_id,
            snapshot.operation,
            snapshot.writer_version,
        )

    return columns_of(map(row, state.store.snapshots.list()), 16)


SNAPSHOTS = SystemTable(
    "snapshots",
    "snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL, commit_user STRING NOT NULL, "
    "commit_identifier BIGINT NOT NULL, commit_kind STRING NOT NULL, commit_time TIMESTAMP(3) NOT NULL, "
    "base_manifest_list STRING NOT NULL, delta_manifest_list STRING NOT NULL, changelog_manifest_list STRING, "
    "total_record_count BIGINT, delta_record_count BIGINT, changelog_record_count BIGINT, watermark BIGINT, "
    "next_row_id BIGINT, operation STRING, writer_version STRING",
    _snapshots,
)


def _tags(state: TableState) -> Sequence[Sequence[Any]]:
    def row(name: str, tag: Tag) -> tuple[Any, ...]:
        snapshot = tag.snapshot
        return (
            name,
            snapshot.id,
            snapshot.schema_id,
            state.wall_clock(snapshot.time_millis),
            snapshot.total_record_count,
            created_at(name, tag),
            None if tag.time_retained_seconds is None else duration_text(tag.time_retained_seconds),
        )

    return columns_of((row(*named) for named in state.store.tags.all().items()), 7)


TAGS = SystemTable(
    "tags",
    "tag_name STRING NOT NULL, snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL, "
    "commit_time TIMESTAMP(3) NOT NULL, record_count BIGINT, create_time TIMESTAMP(3), time_retained STRING",
    _tags,
)


def _branches(state: TableState) -> Sequence[Sequence[Any]]:
    store = state.store
    found = ((name, _oldest(store.file_io, store.paths.of_branch(name).schema_dir)) for name in store.branches.names())
    return columns_of(((name, state.wall_clock(millis)) for name, millis in found if millis is not None), 2)


def _oldest(file_io: FileIO, directory: str) -> int | None:
    """Return when the oldest file of a directory was written, in epoch millis; None if the directory does not exist."""
    return min((entry.modified for entry in file_io.entries(directory) if not entry.is_directory), default=None)


#: Java returns the change time of the branch's directory. Object stores have none; here it is that of the oldest schema.
BRANCHES = SystemTable("branches", "branch_name STRING NOT NULL, create_time TIMESTAMP(3) NOT NULL", _branches)


def _consumers(state: TableState) -> Sequence[Sequence[Any]]:
    return columns_of(state.store.consumers.all().items(), 2)


CONSUMERS = SystemTable("consumers", "consumer_id STRING NOT NULL, next_snapshot_id BIGINT NOT NULL", _consumers)


def duration_text(seconds: float) -> str:
    """Return Java's text of a duration: PT26H3M, PT1.5S, PT0S."""
    nanos = round(seconds * 1_000_000_000)
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    whole, fraction = divmod(nanos, 1_000_000_000)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    text = "".join(f"{sign}{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    if rest or fraction:
        digits = f".{fraction:09}".rstrip("0") if fraction else ""
        text += f"{sign}{rest}{digits}S"
    return f"PT{text or '0S'}"


def _commits(state: TableState) -> Sequence[Sequence[Any]]:
    rows = (_commit_row(state.store, snapshot) for snapshot in state.store.snapshots.list())
    return columns_of((row for row in rows if row is not None), 12)


def _commit_row(store: TableStore, snapshot: Snapshot) -> tuple[Any, ...] | None:
    """Return the row of a snapshot; None if it expired during the read."""
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


#: The table that `TableInspection.snapshots` returns.
COMMITS = SystemTable(
    "snapshots",
    "snapshot_id BIGINT, commit_kind STRING, commit_time TIMESTAMP_LTZ(6), commit_user STRING, commit_identifier BIGINT, "
    "schema_id BIGINT, total_record_count BIGINT, delta_record_count BIGINT, operation STRING, "
    "changelog_record_count BIGINT, added_file_count BIGINT, deleted_file_count BIGINT",
    _commits,
)


def _schemas(state: TableState) -> Sequence[Sequence[Any]]:
    def row(schema: TableSchema) -> tuple[Any, ...]:
        return (
            schema.id,
            _json([field_to_json(field) for field in schema.fields]),
            _json(list(schema.partition_keys)),
            _json(list(schema.primary_keys)),
            _json(_shown(schema)),
            schema.comment,
            state.wall_clock(schema.time_millis),
        )

    schemas = state.store.schemas
    return columns_of(map(row, map(schemas.get, schemas.ids())), 7)


SCHEMAS = SystemTable(
    "schemas",
    "schema_id BIGINT NOT NULL, fields STRING NOT NULL, partition_keys STRING NOT NULL, primary_keys STRING NOT NULL, "
    "options STRING NOT NULL, comment STRING, update_time TIMESTAMP(3) NOT NULL",
    _schemas,
)


def _options(state: TableState) -> Sequence[Sequence[Any]]:
    return columns_of(_shown(state.store.schema).items(), 2)


def _shown(schema: TableSchema) -> dict[str, str]:
    """Return the options. The value of an unknown key that may be a secret is redacted."""
    return {key: REDACTED if holds_secret(key) else text for key, text in schema.options.items()}


OPTIONS = SystemTable("options", "key STRING NOT NULL, value STRING NOT NULL", _options)


def _aggregation_fields(state: TableState) -> Sequence[Sequence[Any]]:
    schema = state.store.schema
    options: dict[str, list[tuple[str, str]]] = {}
    for key, value in schema.options.items():
        parts = key.rstrip(".").split(".")
        if len(parts) > 2 and parts[0] == "fields":
            options.setdefault(parts[1], []).append((key, value))

    def texts(name: str, at: int) -> str:
        return f"[{', '.join(pair[at] for pair in options.get(name, ()))}]"

    return columns_of(
        (
            (field.name, field.type.sql(), texts(field.name, 1), texts(field.name, 0), field.description)
            for field in schema.fields
        ),
        5,
    )


AGGREGATION_FIELDS = SystemTable(
    "aggregation_fields",
    "field_name STRING NOT NULL, field_type STRING NOT NULL, function STRING, function_options STRING, comment STRING",
    _aggregation_fields,
)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


#: The maximum size of a statistics file in bytes.
_MAX_BYTES = 64 << 20


def statistics_of(store: TableStore, snapshot: Snapshot | None) -> TableStatistics | None:
    """Return the statistics of a snapshot, if any. Raises CorruptTableError if their file is missing or damaged."""
    if snapshot is None or snapshot.statistics is None:
        return None
    path = store.paths.statistics(snapshot.statistics)
    try:
        return TableStatistics.from_json(store.file_io.read(path, _MAX_BYTES), path)
    except FileNotFoundError as error:
        raise CorruptTableError(
            f"{path} does not exist, but snapshot {snapshot.id} names it: restore it, or analyze the table again."
        ) from error


def _statistics(state: TableState) -> Sequence[Sequence[Any]]:
    found = statistics_of(state.store, state.snapshot)
    if found is None:
        return columns_of([], 5)
    counts = found.merged_record_count, found.merged_record_size
    return columns_of([(found.snapshot_id, found.schema_id, *counts, found.columns_json())], 5)


STATISTICS = SystemTable(
    "statistics",
    "snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL, mergedRecordCount BIGINT, mergedRecordSize BIGINT, "
    "colstat STRING",
    _statistics,
    can_time_travel=True,
)
