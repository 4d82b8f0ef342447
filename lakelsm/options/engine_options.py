"""Options that decide what rows mean: merge engine, sequence, row kinds, changelog, time travel, schema evolution."""

# ruff: noqa: RUF009 (option() is a dataclass field specifier)
from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from lakelsm.options.option import BOOLEAN, DURATION, LONG, NAMES, TEXT, ZONE, choice_kind, enum_kind, option
from lakelsm.options.option_enums import ChangelogProducer, Feature, MergeEngine, ScanMode, SortOrder


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """The part of TableOptions that decides what rows mean."""

    merge_engine: MergeEngine = option(
        "merge-engine",
        enum_kind(MergeEngine),
        MergeEngine.DEDUPLICATE,
        "Rule that makes one row of all rows of a key: keep the newest row (deduplicate), the newest non-NULL value "
        "of each column (partial-update), an aggregate of each column (aggregation), or the oldest row (first-row).",
        immutable=True,
    )
    changelog_producer: ChangelogProducer = option(
        "changelog-producer",
        enum_kind(ChangelogProducer),
        ChangelogProducer.NONE,
        "Source of the changelog: none, the rows of writes (input), full compactions (full-compaction), or each "
        "compaction of level 0 (lookup). Set it if a downstream job needs the changes of rows.",
        per_call=False,
    )
    sequence_field: tuple[str, ...] = option(
        "sequence.field",
        NAMES,
        (),
        "Columns whose values decide which row of a key is the newest, instead of the order of writes. Set it if "
        "rows can arrive out of order.",
        per_call=False,
    )
    sequence_field_sort_order: SortOrder = option(
        "sequence.field.sort-order",
        enum_kind(SortOrder),
        SortOrder.ASCENDING,
        "Value of sequence.field that wins: the largest (ascending) or the smallest (descending).",
        per_call=False,
    )
    sequence_snapshot_ordering: bool = option(
        "sequence.snapshot-ordering",
        BOOLEAN,
        False,
        "Rows of a later snapshot replace rows of an earlier one.",
        immutable=True,
    )
    rowkind_field: str | None = option(
        "rowkind.field", TEXT, None, "Column that holds the row kind: +I, -U, +U or -D.", immutable=True
    )
    ignore_delete: bool = option(
        "ignore-delete",
        BOOLEAN,
        False,
        "Writes drop rows of kind -D and -U. Cannot be switched off once the table has data.",
        fallback_keys=(
            "first-row.ignore-delete",
            "deduplicate.ignore-delete",
            "partial-update.ignore-delete",
        ),
        per_call=False,
    )
    ignore_update_before: bool = option(
        "ignore-update-before",
        BOOLEAN,
        False,
        "Writes drop rows of kind -U. Cannot be switched off once the table has data.",
        per_call=False,
    )
    primary_key_nullable: bool = option(
        "primary-key.nullable", BOOLEAN, False, "Key columns may be NULL.", immutable=True
    )
    aggregation_remove_record_on_delete: bool = option(
        "aggregation.remove-record-on-delete",
        BOOLEAN,
        False,
        "aggregation: a -D removes the whole row.",
        immutable=True,
    )
    partial_update_remove_record_on_delete: bool = option(
        "partial-update.remove-record-on-delete",
        BOOLEAN,
        False,
        "partial-update: a -D removes the whole row.",
        immutable=True,
    )
    partial_update_remove_record_on_sequence_group: tuple[str, ...] = option(
        "partial-update.remove-record-on-sequence-group",
        NAMES,
        (),
        "partial-update: a -D of one of these sequence groups removes the whole row.",
        immutable=True,
    )
    changelog_producer_row_deduplicate: bool = option(
        "changelog-producer.row-deduplicate",
        BOOLEAN,
        False,
        "The changelog leaves out pairs of -U and +U that change nothing.",
    )
    changelog_producer_row_deduplicate_ignore_fields: tuple[str, ...] = option(
        "changelog-producer.row-deduplicate-ignore-fields",
        NAMES,
        (),
        "Columns that changelog-producer.row-deduplicate does not compare.",
    )
    deletion_vectors_enabled: bool = option(
        "deletion-vectors.enabled",
        BOOLEAN,
        False,
        "Compactions record replaced rows in deletion vectors, so that reads need not merge files (docs/modes.md).",
        per_call=False,
    )
    deletion_vectors_bitmap64: bool = option(
        "deletion-vectors.bitmap64",
        BOOLEAN,
        False,
        "Write deletion vectors in the 64-bit layout, which Iceberg also reads. Both layouts are always read.",
    )
    deletion_vectors_merge_on_read: bool = option(
        "deletion-vectors.merge-on-read",
        BOOLEAN,
        False,
        "Reads of a table with deletion vectors also merge level 0.",
        per_call=False,
    )
    deletion_vectors_modifiable: bool = option(
        "deletion-vectors.modifiable",
        BOOLEAN,
        False,
        "deletion-vectors.enabled may change in a table that has data.",
        per_call=False,
    )
    record_level_expire_time: int | None = option(
        "record-level.expire-time", DURATION, None, "Age at which rows are dropped.", per_call=False
    )
    record_level_time_field: str | None = option(
        "record-level.time-field",
        TEXT,
        None,
        "Column that holds the time of a row, for record-level.expire-time.",
        per_call=False,
    )
    row_tracking_enabled: bool = option(
        "row-tracking.enabled", BOOLEAN, False, "Append tables have row ids.", immutable=True
    )
    data_evolution_enabled: bool = option(
        "data-evolution.enabled",
        BOOLEAN,
        False,
        "Append tables store groups of columns in separate files.",
        immutable=True,
    )
    table_read_sequence_number_enabled: bool = option(
        "table-read.sequence-number.enabled",
        BOOLEAN,
        False,
        "The system tables audit_log and binlog show the sequence number of each row after its row kind.",
        for_writes=False,
    )
    type: str = option(
        "type",
        choice_kind(
            "table", "format-table", "materialized-table", "object-table", "lance-table", "iceberg-table"
        ),
        "table",
        "Kind of table; lakelsm supports only 'table'.",
        immutable=True,
    )
    branch: str = option(
        "branch",
        TEXT,
        "main",
        "Branch of the table. To open another one, use the table name 'db.t$branch_name'.",
        per_call=False,
    )
    scan_fallback_branch: str | None = option(
        "scan.fallback-branch",
        TEXT,
        None,
        "Branch that supplies the partitions in which the table itself has no file. It must have the same columns.",
        per_call=False,
    )
    lakelsm_time_zone: tzinfo | None = option(
        "lakelsm.time-zone",
        ZONE,
        None,
        "Time zone of times passed as text without a zone, and of partition values that are times. By default the "
        "catalog's; if that is not set, UTC for texts and this machine's time zone for partition values.",
        per_call=False,
    )
    scan_mode: ScanMode = option(
        "scan.mode",
        enum_kind(ScanMode),
        ScanMode.DEFAULT,
        "State that a scan starts from. To read an older state, use table.at(snapshot=…) or table.at(timestamp=…).",
        fallback_keys=("log.scan",),
        per_call=False,
    )
    scan_timestamp: str | None = option(
        "scan.timestamp", TEXT, None, "Start of a scan: a time as text.", per_call=False
    )
    scan_timestamp_millis: int | None = option(
        "scan.timestamp-millis",
        LONG,
        None,
        "Start of a scan: a time in milliseconds since 1970.",
        fallback_keys=("log.scan.timestamp-millis",),
        per_call=False,
    )
    scan_file_creation_time_millis: int | None = option(
        "scan.file-creation-time-millis",
        LONG,
        None,
        "Read files that were created after this time, in milliseconds since 1970.",
        per_call=False,
    )
    scan_creation_time_millis: int | None = option(
        "scan.creation-time-millis",
        LONG,
        None,
        "Read snapshots or files that were created after this time, in milliseconds since 1970.",
        per_call=False,
    )
    scan_snapshot_id: int | None = option(
        "scan.snapshot-id", LONG, None, "Start of a scan: a snapshot id.", per_call=False
    )
    scan_tag_name: str | None = option("scan.tag-name", TEXT, None, "Start of a scan: a tag.", per_call=False)
    scan_version: str | None = option(
        "scan.version", TEXT, None, "Start of a scan: a snapshot id or a tag.", per_call=False
    )
    scan_watermark: int | None = option(
        "scan.watermark", LONG, None, "Start of a scan: a watermark.", per_call=False
    )
    incremental_between: str | None = option(
        "incremental-between", TEXT, None, "Read the changes between two snapshots or tags.", per_call=False
    )
    incremental_between_timestamp: str | None = option(
        "incremental-between-timestamp", TEXT, None, "Read the changes between two times.", per_call=False
    )
    incremental_to_auto_tag: str | None = option(
        "incremental-to-auto-tag", TEXT, None, "Read the changes up to an automatic tag.", per_call=False
    )
    alter_column_null_to_not_null_disabled: bool = option(
        "alter-column-null-to-not-null.disabled",
        BOOLEAN,
        True,
        "Refuse to make a nullable column NOT NULL. Set it to false only if the column holds no NULL.",
        per_call=False,
    )
    disable_explicit_type_casting: bool = option(
        "disable-explicit-type-casting",
        BOOLEAN,
        False,
        "Allow only type changes by implicit casts; lakelsm supports no others.",
        acts_from=Feature.EXPLICIT_CASTS,
    )
    add_column_before_partition: bool = option(
        "add-column-before-partition",
        BOOLEAN,
        False,
        "Insert added columns before the partition columns.",
        per_call=False,
    )
