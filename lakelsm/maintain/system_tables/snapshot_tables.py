"""The system tables of what names states of a table: snapshots, tags, branches and consumers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakelsm.format.snapshot import Snapshot, Tag
from lakelsm.maintain.system_tables.system_table import SystemTable, TableState, columns_of
from lakelsm.snapshots.tag_store import created_at
from lakelsm.storage import FileIO


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
    """When the oldest file of a directory was written; None where there is none (any more)."""
    return min((entry.modified for entry in file_io.entries(directory) if not entry.is_directory), default=None)


#: Java tells when the branch's directory changed, which object stores do not know; its oldest schema tells when it began.
BRANCHES = SystemTable("branches", "branch_name STRING NOT NULL, create_time TIMESTAMP(3) NOT NULL", _branches)


def _consumers(state: TableState) -> Sequence[Sequence[Any]]:
    return columns_of(state.store.consumers.all().items(), 2)


CONSUMERS = SystemTable("consumers", "consumer_id STRING NOT NULL, next_snapshot_id BIGINT NOT NULL", _consumers)


def duration_text(seconds: float) -> str:
    """Java's text of a duration: PT26H3M, PT1.5S, PT0S."""
    nanos = round(seconds * 1_000_000_000)
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    whole, fraction = divmod(nanos, 1_000_000_000)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    text = "".join(f"{sign}{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    if rest or fraction:
        digits = f".{fraction:09}".rstrip("0") if fraction else ""
        text += f"{sign}{rest}{digits}S"
    return f"PT{text or '0S'}"
