"""Options of what rows mean: merge engine, sequence, row kinds, changelog, time travel, schema evolution."""

# ruff: noqa: RUF009 (option() is a dataclass field specifier)
from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from lakelsm.options.option import BOOLEAN, DURATION, LONG, NAMES, TEXT, ZONE, choice_kind, enum_kind, option
from lakelsm.options.option_enums import ChangelogProducer, Feature, MergeEngine, ScanMode, SortOrder


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Meaning part of TableOptions."""

    merge_engine: MergeEngine = option(
        "merge-engine",
        enum_kind(MergeEngine),
        MergeEngine.DEDUPLICATE,
        "How rows of the same key become one.",
        immutable=True,
    )
    changelog_producer: ChangelogProducer = option(
        "changelog-producer",
        enum_kind(ChangelogProducer),
        ChangelogProducer.NONE,
        "Where the changelog comes from.",
        per_call=False,
    )
    sequence_field: tuple[str, ...] = option(
        "sequence.field",
        NAMES,
        (),
        "Columns whose values, not the order of writing, decide which row is newest.",
        per_call=False,
    )
    sequence_field_sort_order: SortOrder = option(
        "sequence.field.sort-order",
        enum_kind(SortOrder),
        SortOrder.ASCENDING,
        "Whether the largest or the smallest sequence wins.",
        per_call=False,
    )
    sequence_snapshot_ordering: bool = option(
        "sequence.snapshot-ordering", BOOLEAN, False, "Rows of a later snapshot win.", immutable=True
    )
    rowkind_field: str | None = option(
        "rowkind.field", TEXT, None, "Column that holds the row kind: +I, -U, +U or -D.", immutable=True
    )
    ignore_delete: bool = option(
        "ignore-delete",
        BOOLEAN,
        False,
        "Drop -D and -U rows of a write.",
        fallback_keys=(
            "first-row.ignore-delete",
            "deduplicate.ignore-delete",
            "partial-update.ignore-delete",
        ),
        per_call=False,
    )
    ignore_update_before: bool = option(
        "ignore-update-before", BOOLEAN, False, "Drop -U rows of a write.", per_call=False
    )
    primary_key_nullable: bool = option(
        "primary-key.nullable", BOOLEAN, False, "Permit nulls in key columns.", immutable=True
    )
    aggregation_remove_record_on_delete: bool = option(
        "aggregation.remove-record-on-delete",
        BOOLEAN,
        False,
        "aggregation: -D removes the row.",
        immutable=True,
    )
    partial_update_remove_record_on_delete: bool = option(
        "partial-update.remove-record-on-delete",
        BOOLEAN,
        False,
        "partial-update: -D removes the row.",
        immutable=True,
    )
    partial_update_remove_record_on_sequence_group: tuple[str, ...] = option(
        "partial-update.remove-record-on-sequence-group",
        NAMES,
        (),
        "partial-update: -D of these sequence groups removes the row.",
        immutable=True,
    )
    changelog_producer_row_deduplicate: bool = option(
        "changelog-producer.row-deduplicate", BOOLEAN, False, "Leave -U/+U pairs without a change out."
    )
    changelog_producer_row_deduplicate_ignore_fields: tuple[str, ...] = option(
        "changelog-producer.row-deduplicate-ignore-fields",
        NAMES,
        (),
        "Columns that do not count as a change.",
    )
    deletion_vectors_enabled: bool = option(
        "deletion-vectors.enabled", BOOLEAN, False, "Mark replaced rows in deletion vectors.", per_call=False
    )
    deletion_vectors_bitmap64: bool = option(
        "deletion-vectors.bitmap64",
        BOOLEAN,
        False,
        "Write deletion vectors in the layout of 64 bits, which Iceberg reads too; both are read.",
    )
    deletion_vectors_merge_on_read: bool = option(
        "deletion-vectors.merge-on-read", BOOLEAN, False, "Read level 0 of a deletion-vector table too.", per_call=False
    )
    deletion_vectors_modifiable: bool = option(
        "deletion-vectors.modifiable",
        BOOLEAN,
        False,
        "Permit switching deletion vectors of a table with data.",
        per_call=False,
    )
    record_level_expire_time: int | None = option(
        "record-level.expire-time", DURATION, None, "Age at which rows are dropped.", per_call=False
    )
    record_level_time_field: str | None = option(
        "record-level.time-field", TEXT, None, "Column that holds a row's age.", per_call=False
    )
    row_tracking_enabled: bool = option(
        "row-tracking.enabled", BOOLEAN, False, "Row ids of append tables.", immutable=True
    )
    data_evolution_enabled: bool = option(
        "data-evolution.enabled", BOOLEAN, False, "Column-wise files of append tables.", immutable=True
    )
    table_read_sequence_number_enabled: bool = option(
        "table-read.sequence-number.enabled",
        BOOLEAN,
        False,
        "The system tables audit_log and binlog have the sequence number of each row behind its kind.",
        for_writes=False,
    )
    streaming_read_overwrite: bool = option(
        "streaming-read-overwrite",
        BOOLEAN,
        False,
        "Streaming reads see the changes of overwrites.",
        acts_from=Feature.STREAMING,
    )
    type: str = option(
        "type",
        choice_kind(
            "table", "format-table", "materialized-table", "object-table", "lance-table", "iceberg-table"
        ),
        "table",
        "Kind of table.",
        immutable=True,
    )
    branch: str = option("branch", TEXT, "main", "Branch of the table.", per_call=False)
    scan_fallback_branch: str | None = option(
        "scan.fallback-branch",
        TEXT,
        None,
        "Branch that reads take the partitions from that the table has no file in; it must have the same columns.",
        per_call=False,
    )
    lakelsm_time_zone: tzinfo | None = option(
        "lakelsm.time-zone",
        ZONE,
        None,
        "The time zone of times passed as text without a zone, and of partition values that are times. By default that "
        "of the catalog's option; without both, such texts are in UTC, and partition values in this machine's time zone.",
        per_call=False,
    )
    scan_mode: ScanMode = option(
        "scan.mode",
        enum_kind(ScanMode),
        ScanMode.DEFAULT,
        "Where a scan starts. To read an older state, use table.at(snapshot=…) or table.at(timestamp=…).",
        fallback_keys=("log.scan",),
        per_call=False,
    )
    scan_timestamp: str | None = option(
        "scan.timestamp", TEXT, None, "Time that a scan starts at.", per_call=False
    )
    scan_timestamp_millis: int | None = option(
        "scan.timestamp-millis",
        LONG,
        None,
        "Time that a scan starts at.",
        fallback_keys=("log.scan.timestamp-millis",),
        per_call=False,
    )
    scan_file_creation_time_millis: int | None = option(
        "scan.file-creation-time-millis", LONG, None, "Read files created after this time.", per_call=False
    )
    scan_creation_time_millis: int | None = option(
        "scan.creation-time-millis", LONG, None, "Read what was created after this time.", per_call=False
    )
    scan_snapshot_id: int | None = option(
        "scan.snapshot-id", LONG, None, "Snapshot that a scan starts at.", per_call=False
    )
    scan_tag_name: str | None = option(
        "scan.tag-name", TEXT, None, "Tag that a scan starts at.", per_call=False
    )
    scan_version: str | None = option(
        "scan.version", TEXT, None, "Snapshot or tag that a scan starts at.", per_call=False
    )
    scan_watermark: int | None = option(
        "scan.watermark", LONG, None, "Watermark that a scan starts at.", per_call=False
    )
    incremental_between: str | None = option(
        "incremental-between", TEXT, None, "Read changes between snapshots.", per_call=False
    )
    incremental_between_timestamp: str | None = option(
        "incremental-between-timestamp", TEXT, None, "Read changes between times.", per_call=False
    )
    incremental_to_auto_tag: str | None = option(
        "incremental-to-auto-tag", TEXT, None, "Read changes up to a tag.", per_call=False
    )
    alter_column_null_to_not_null_disabled: bool = option(
        "alter-column-null-to-not-null.disabled",
        BOOLEAN,
        True,
        "Refuse making a nullable column NOT NULL.",
        per_call=False,
    )
    disable_explicit_type_casting: bool = option(
        "disable-explicit-type-casting",
        BOOLEAN,
        False,
        "Permit only type changes by implicit casts. lakelsm permits no others yet.",
        acts_from=Feature.EXPLICIT_CASTS,
    )
    add_column_before_partition: bool = option(
        "add-column-before-partition", BOOLEAN, False, "Put added columns before the partition columns.", per_call=False
    )
