"""Paimon's rules for a table's schema and options, one function per rule (`SchemaValidation`, `TableSchema`).

Each raises InvalidInputError with the key, the value and the remedy. The features that lakelsm does not support are in
lakelsm/schema/unbuilt_features.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from lakelsm.arguments import LONGEST_NAME
from lakelsm.errors import InvalidInputError
from lakelsm.options import ChangelogProducer, MergeEngine, ScanMode, TableOptions
from lakelsm.options.field_options import DEFAULT_AGGREGATE_KEY, split_field_key
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER, columns_key
from lakelsm.schema.engine_rules import check_merge_engine
from lakelsm.schema.key_rules import (
    check_bucket,
    check_bucket_key,
    check_column_names,
    check_key,
    check_key_per_partition,
    no_column,
)
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import BINARY_ROOTS, INTEGER_ROOTS, STRING_ROOTS, AtomicType, DataType, RowType

_RECORD_TIME_ROOTS = frozenset(["INT", "BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ"])


def check_rules(schema: TableSchema, options: TableOptions, *, for_reads: bool = False) -> None:
    """Check all rules, in the order in which a user fixes them. Raises InvalidInputError for the first broken one.

    With ``for_reads``, rules that only concern writes and maintenance are skipped.
    """
    for rule in _RULES:
        if not (for_reads and rule in _WRITE_RULES):
            rule(schema, options)


def _field_options(schema: TableSchema, _options: TableOptions) -> None:
    for key in schema.options:
        split = split_field_key(key)
        if split is None or key == DEFAULT_AGGREGATE_KEY:
            continue
        columns, name = split
        for column in columns.split(","):
            if column not in schema.field_names:
                raise no_column(key, column, schema)
        nested = "." in name and not name.startswith(("map.", "pk-")) and "," not in columns
        if nested and isinstance(schema.field(columns).type, RowType):
            raise InvalidInputError(
                f"option '{key}': only whole columns have options, not members of the ROW column '{columns}'."
            )


def _sequence_field(schema: TableSchema, options: TableOptions) -> None:
    for name in options.sequence_field:
        if name not in schema.field_names:
            raise no_column("sequence.field", name, schema)
        if "aggregate-function" in options.field_options.get(name, {}):
            raise InvalidInputError(
                f"option 'fields.{name}.aggregate-function': '{name}' is a sequence field. Remove one of the two options."
            )
        if options.sequence_field.count(name) > 1:
            raise InvalidInputError(f"option 'sequence.field': '{name}' is named twice. Name it once.")
    if not options.sequence_field:
        return
    shown = ",".join(options.sequence_field)
    if options.merge_engine is MergeEngine.FIRST_ROW:
        raise InvalidInputError(
            f"option 'sequence.field' = '{shown}' cannot be combined with 'merge-engine' = 'first-row'. Remove it."
        )
    if schema.cross_partition:
        raise InvalidInputError(
            f"option 'sequence.field' = '{shown}' needs a primary key with all partition columns "
            f"{list(schema.partition_keys)}, not {list(schema.primary_keys)}. Add them to the key."
        )


def _changelog(schema: TableSchema, options: TableOptions) -> None:
    producer = options.changelog_producer
    if not schema.primary_keys and producer is not ChangelogProducer.NONE:
        raise InvalidInputError(
            f"option 'changelog-producer' = '{producer.value}' needs a primary key. Add one, or remove the option."
        )
    if options.streaming_read_overwrite:
        if not schema.primary_keys:
            raise InvalidInputError(
                "option 'streaming-read-overwrite' = 'true' needs a primary key. Add one, or remove the option."
            )
        if producer in (ChangelogProducer.FULL_COMPACTION, ChangelogProducer.LOOKUP):
            raise InvalidInputError(
                "option 'streaming-read-overwrite' = 'true' would read changes twice with 'changelog-producer' = "
                f"'{producer.value}'. Remove one of them."
            )
    if options.full_compaction_delta_commits is not None and producer is ChangelogProducer.LOOKUP:
        raise InvalidInputError(
            f"option 'full-compaction.delta-commits' = '{options.full_compaction_delta_commits}' cannot be combined with "
            "'changelog-producer' = 'lookup'. Use 'full-compaction', or remove the option."
        )
    if options.merge_engine is MergeEngine.FIRST_ROW and producer not in (
        ChangelogProducer.NONE,
        ChangelogProducer.LOOKUP,
    ):
        raise InvalidInputError(
            f"option 'changelog-producer' = '{producer.value}' cannot be combined with 'merge-engine' = 'first-row'. "
            "Use 'none' or 'lookup'."
        )


def _retention(_schema: TableSchema, options: TableOptions) -> None:
    for what, low, high in (
        ("snapshot", options.snapshot_num_retained_min, options.snapshot_num_retained_max),
        (
            "changelog",
            options.effective_changelog_num_retained_min,
            options.effective_changelog_num_retained_max,
        ),
    ):
        if low > high:
            raise InvalidInputError(
                f"option '{what}.num-retained.min': {low} is more than '{what}.num-retained.max' = '{high}'. Change one "
                "of them."
            )


def _tag_delay(_schema: TableSchema, options: TableOptions) -> None:
    period, delay = options.tag_period_millis, options.tag_creation_delay
    if delay >= period:
        raise InvalidInputError(
            f"option 'tag.creation-delay': {delay} ms is not less than the period of automatic tags, {period} ms. Use a "
            "shorter delay or a longer 'tag.creation-period'."
        )


def _record_level(schema: TableSchema, options: TableOptions) -> None:
    _check_column(
        "record-level.time-field", options.record_level_time_field, schema, _RECORD_TIME_ROOTS, "INT, BIGINT or TIMESTAMP"
    )


def _rowkind_field(schema: TableSchema, options: TableOptions) -> None:
    _check_column("rowkind.field", options.rowkind_field, schema, STRING_ROOTS, "STRING")


def _check_column(key: str, name: str | None, schema: TableSchema, roots: Collection[str], wanted: str) -> None:
    """Raise InvalidInputError if an option names an unknown column, or one of another type."""
    if name is None:
        return
    if name not in schema.field_names:
        raise no_column(key, name, schema)
    data_type = schema.field(name).type
    if data_type.root not in roots:
        raise InvalidInputError(
            f"option '{key}': column '{name}' has type {data_type.sql()}. Use a column of type {wanted}."
        )


def _deletion_vectors(_schema: TableSchema, options: TableOptions) -> None:
    if not options.deletion_vectors_enabled:
        return
    if options.changelog_producer is ChangelogProducer.FULL_COMPACTION:
        raise InvalidInputError(
            "option 'deletion-vectors.enabled' = 'true' cannot be combined with 'changelog-producer' = "
            "'full-compaction'. Use 'none', 'input' or 'lookup'."
        )
    if options.merge_engine is MergeEngine.FIRST_ROW:
        raise InvalidInputError(
            "option 'deletion-vectors.enabled' = 'true' cannot be combined with 'merge-engine' = 'first-row', which "
            "never replaces a row. Remove it."
        )


def _snapshot_ordering(schema: TableSchema, options: TableOptions) -> None:
    if not options.sequence_snapshot_ordering:
        return
    if not schema.primary_keys:
        raise InvalidInputError("option 'sequence.snapshot-ordering' = 'true' needs a primary key. Remove it.")
    if options.sequence_field:
        raise InvalidInputError(
            "option 'sequence.snapshot-ordering' = 'true' cannot be combined with 'sequence.field'. Remove one of them."
        )
    if not options.write_only:
        raise InvalidInputError(
            "option 'sequence.snapshot-ordering' = 'true' needs 'write-only' = 'true' and a separate compaction job."
        )


def _row_tracking(schema: TableSchema, options: TableOptions) -> None:
    if options.row_tracking_enabled and schema.primary_keys:
        raise InvalidInputError(
            "option 'row-tracking.enabled' = 'true' cannot be combined with a primary key. Remove it."
        )
    if options.row_tracking_enabled and options.bucket != -1:
        raise InvalidInputError(
            f"option 'row-tracking.enabled' = 'true' needs 'bucket' = '-1', not '{options.bucket}'."
        )
    if options.data_evolution_enabled and not options.row_tracking_enabled:
        raise InvalidInputError(
            "option 'data-evolution.enabled' = 'true' needs 'row-tracking.enabled' = 'true'."
        )


def _map_layout(schema: TableSchema, options: TableOptions) -> None:
    for columns, settings in options.field_options.items():
        if "map.storage-layout" in settings and schema.field(columns).type.root != "MAP":
            raise InvalidInputError(
                f"option 'fields.{columns}.map.storage-layout': column '{columns}' is not a MAP, but "
                f"{schema.field(columns).type.sql()}. Remove the option."
            )


#: Maximum bytes of a file name after its prefix: a UUID, a counter and the format.
_FILE_NAME_REST = 80


def _file_prefixes(_schema: TableSchema, options: TableOptions) -> None:
    prefixes = {"data-file.prefix": options.data_file_prefix, "changelog-file.prefix": options.changelog_file_prefix}
    for key, prefix in prefixes.items():
        if "/" in prefix or "\0" in prefix:
            raise InvalidInputError(
                f"option '{key}': {prefix!r} has a slash or NUL, which the name of a file cannot have. Remove it."
            )
        size = len(prefix.encode(errors="replace"))
        if size > LONGEST_NAME - _FILE_NAME_REST:
            raise InvalidInputError(
                f"option '{key}': the prefix has {size} bytes, which leaves too few for the rest of a file name. Use at "
                f"most {LONGEST_NAME - _FILE_NAME_REST}."
            )


_TIMES = ("scan.timestamp-millis", "scan.timestamp")
_CHANGES = ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag")
_FILE_TIME = "scan.file-creation-time-millis"
_SNAPSHOT = "scan.snapshot-id"
_TAG = "scan.tag-name"
_WATERMARK = "scan.watermark"

# By mode: the options of which exactly one must be set, and those that must not be set.
_SCAN_MODES: Mapping[ScanMode, tuple[tuple[str, ...], tuple[str, ...]]] = {
    ScanMode.FROM_TIMESTAMP: (_TIMES, (_SNAPSHOT, _FILE_TIME, _TAG, *_CHANGES)),
    ScanMode.FROM_SNAPSHOT: ((_SNAPSHOT, _TAG, _WATERMARK), (*_TIMES, _FILE_TIME, *_CHANGES)),
    ScanMode.INCREMENTAL: (_CHANGES, (_SNAPSHOT, *_TIMES, _FILE_TIME, _TAG)),
    ScanMode.FROM_SNAPSHOT_FULL: ((_SNAPSHOT,), (*_TIMES, _FILE_TIME, _TAG, *_CHANGES)),
    ScanMode.FROM_FILE_CREATION_TIME: ((_FILE_TIME,), (_SNAPSHOT, *_TIMES, _TAG, *_CHANGES)),
}
_EVERY_START = (*_TIMES, _FILE_TIME, _SNAPSHOT, _TAG, *_CHANGES)


def check_scan_mode(options: TableOptions) -> ScanMode:
    """Return `scan.mode`, or the mode that the options for the start of a scan imply.

    Raises InvalidInputError if these options do not fit the mode.
    """
    mode = _effective_mode(options)
    wanted, forbidden = _SCAN_MODES.get(mode, ((), _EVERY_START))
    present = [key for key in wanted if options.is_set(key)]
    if wanted and len(present) != 1:
        raise InvalidInputError(
            f"option 'scan.mode' = '{mode.value}' needs exactly one of {', '.join(wanted)}, found "
            f"{', '.join(present) or 'none'}."
        )
    for key in forbidden:
        if options.is_set(key):
            raise InvalidInputError(
                f"option '{key}' cannot be combined with 'scan.mode' = '{mode.value}'. Remove one of them."
            )
    return mode


def _effective_mode(options: TableOptions) -> ScanMode:
    if options.is_set("scan.mode"):
        return options.scan_mode
    implied = (
        (_TIMES, ScanMode.FROM_TIMESTAMP),
        ((_FILE_TIME,), ScanMode.FROM_FILE_CREATION_TIME),
        ((_SNAPSHOT, _TAG, _WATERMARK), ScanMode.FROM_SNAPSHOT),
        (_CHANGES, ScanMode.INCREMENTAL),
    )
    for keys, mode in implied:
        if any(options.is_set(key) for key in keys):
            return mode
    return ScanMode.DEFAULT


_FILTERED = frozenset(
    {*INTEGER_ROOTS, *STRING_ROOTS, *BINARY_ROOTS, "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}
)
_INDEXED_ROOTS: Mapping[str, frozenset[str]] = {
    BLOOM_FILTER: _FILTERED,
    BITMAP: (_FILTERED - BINARY_ROOTS) | {"BOOLEAN"},
}


def can_have_index(kind: str, data_type: DataType) -> bool:
    """Return whether a column of the type can have an index of a kind that lakelsm writes."""
    return isinstance(data_type, AtomicType) and data_type.root in _INDEXED_ROOTS[kind]


def check_file_indexes(schema: TableSchema, options: TableOptions) -> None:
    """Raise InvalidInputError for an index of an unknown column, or of a column whose type cannot have it."""
    for index in options.file_indexes:
        key = columns_key(index.kind)
        column = index.column.partition("[")[0] if index.is_nested else index.column
        if column not in schema.field_names:
            raise no_column(key, column, schema)
        data_type = schema.field(column).type
        if not index.is_nested and not can_have_index(index.kind, data_type):
            raise InvalidInputError(
                f"option '{key}': column '{column}' of type {data_type.sql()} cannot have such an index. Leave it out."
            )


_RULES: Sequence[Callable[[TableSchema, TableOptions], object]] = (
    check_column_names,
    check_key,
    check_bucket,
    check_key_per_partition,
    check_bucket_key,
    lambda _schema, options: check_scan_mode(options),
    _field_options,
    _sequence_field,
    check_merge_engine,
    _changelog,
    _retention,
    _tag_delay,
    _record_level,
    _rowkind_field,
    _deletion_vectors,
    _snapshot_ordering,
    _row_tracking,
    _map_layout,
    _file_prefixes,
    check_file_indexes,
)

#: Rules that reads skip.
_WRITE_RULES: frozenset[Callable[[TableSchema, TableOptions], object]] = frozenset(
    [_retention, _tag_delay, check_file_indexes]
)
