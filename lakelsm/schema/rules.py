"""Paimon's rules for a table's schema and options, a function each (`SchemaValidation`, `TableSchema`).

Each raises InvalidInputError that names the key, the value and the remedy. They know nothing of what lakelsm
has built: that is lakelsm/schema/unbuilt_features.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from lakelsm.arguments import LONGEST_NAME
from lakelsm.errors import InvalidInputError
from lakelsm.options import BucketFunction, ChangelogProducer, MergeEngine, TableOptions
from lakelsm.options.field_options import DEFAULT_AGGREGATE_KEY, split_field_key
from lakelsm.schema.engine_rules import check_merge_engine
from lakelsm.schema.file_index_rules import check_file_indexes
from lakelsm.schema.identifiers import alike, folded, hint
from lakelsm.schema.key_rules import check_key, check_key_per_partition
from lakelsm.schema.scan_rules import check_scan_mode
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX, RESERVED_NAMES, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import STRING_ROOTS, DataField, RowType, rows_within

_SYSTEM_COLUMNS = (SEQUENCE_NUMBER, VALUE_KIND)
_TAKEN = frozenset(map(folded, _SYSTEM_COLUMNS))
_NOT_A_BUCKET_KEY = frozenset(["ARRAY", "MAP", "MULTISET", "ROW"])
_RECORD_TIME_ROOTS = frozenset(["INT", "BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ"])


def check_rules(schema: TableSchema, options: TableOptions, *, for_reads: bool = False) -> None:
    """Every rule, in the order in which a user would fix them. Raises InvalidInputError for the first that is broken.

    With ``for_reads`` those that only concern writes and upkeep are left out.
    """
    for rule in _RULES:
        if not (for_reads and rule in _WRITE_RULES):
            rule(schema, options)


def _column_names(schema: TableSchema, _options: TableOptions) -> None:
    for name in schema.field_names:
        if name in RESERVED_NAMES:
            raise InvalidInputError(
                f"column name '{name}' is one of the system's ({', '.join(RESERVED_NAMES)}); rename "
                "the column"
            )
        if name.startswith(KEY_FIELD_PREFIX):
            raise InvalidInputError(
                f"column name '{name}' must not start with '{KEY_FIELD_PREFIX}'; rename the column"
            )
        if not name.strip():
            raise InvalidInputError("a column name is blank; name the column")
        if folded(name) in _TAKEN or folded(name).startswith(folded(KEY_FIELD_PREFIX)):
            raise InvalidInputError(
                f"column name '{name}' is one that data files have already ({', '.join(_SYSTEM_COLUMNS)}, "
                f"{KEY_FIELD_PREFIX}...), as Spark ignores case; rename the column"
            )
    _check_names_apart("column", schema.fields)


def _check_names_apart(what: str, fields: Sequence[DataField]) -> None:
    """Names that Spark takes for one could not be told apart in a DataFrame."""
    clash = alike(field.name for field in fields)
    if clash is not None:
        raise InvalidInputError(
            f"{what} '{clash[0]}' and {what} '{clash[1]}' differ only by case, and Spark takes them for one; rename one"
        )
    for field in fields:
        for members in rows_within(field.type):
            _check_names_apart(f"member of '{field.name}'", members)


def _bucket(schema: TableSchema, options: TableOptions) -> None:
    bucket = options.bucket
    if bucket == -1:
        if options.is_set("bucket-key"):
            raise InvalidInputError(
                f"option 'bucket-key' = '{','.join(options.bucket_key)}' needs a fixed number of buckets, "
                "but 'bucket' is -1; set 'bucket' to a number or remove 'bucket-key'"
            )
        if not schema.primary_keys and options.full_compaction_delta_commits is not None:
            raise InvalidInputError("option 'full-compaction.delta-commits' needs a primary key; remove it")
    elif bucket < 1 and not (bucket == -2 and schema.primary_keys):
        raise InvalidInputError(
            f"option 'bucket' cannot be '{bucket}'; use -1 (dynamic) or a number greater than 0"
        )
    elif not schema.primary_keys and not schema.bucket_keys and not (bucket == 1 and schema.version == 1):
        raise InvalidInputError(
            f"option 'bucket' = '{bucket}' on a table without primary key needs 'bucket-key'; set it"
        )


def _bucket_key(schema: TableSchema, options: TableOptions) -> None:
    for name in options.bucket_key:
        if name not in schema.field_names:
            raise _no_column("bucket-key", name, schema)
        if name in schema.partition_keys:
            raise InvalidInputError(f"option 'bucket-key' has the partition column '{name}'; leave it out")
        if schema.primary_keys and name not in schema.primary_keys:
            raise InvalidInputError(
                f"option 'bucket-key' has '{name}', which is no primary key column; choose among "
                f"{', '.join(schema.trimmed_primary_keys)}"
            )
    for name in schema.bucket_keys:
        data_type = schema.field(name).type
        if options.bucket != -1 and data_type.root in _NOT_A_BUCKET_KEY:
            raise InvalidInputError(
                f"bucket key '{name}' has type {data_type.sql()}; nested types cannot be one"
            )
    if options.bucket_function_type is BucketFunction.MOD and options.bucket != -1:
        roots = [schema.field(name).type.root for name in schema.bucket_keys]
        if len(roots) != 1 or roots[0] not in ("INT", "BIGINT"):
            raise InvalidInputError(
                "option 'bucket-function.type' = 'mod' needs one bucket key of type INT or BIGINT, not "
                f"{', '.join(schema.bucket_keys)}; set 'bucket-key' or use 'default'"
            )


def _field_options(schema: TableSchema, _options: TableOptions) -> None:
    for key in schema.options:
        split = split_field_key(key)
        if split is None or key == DEFAULT_AGGREGATE_KEY:
            continue
        columns, name = split
        for column in columns.split(","):
            if column not in schema.field_names:
                raise _no_column(key, column, schema)
        nested = "." in name and not name.startswith(("map.", "pk-")) and "," not in columns
        if nested and isinstance(schema.field(columns).type, RowType):
            raise InvalidInputError(
                f"option '{key}' names a member of the ROW column '{columns}'; only whole columns "
                "have options"
            )


def _sequence_field(schema: TableSchema, options: TableOptions) -> None:
    for name in options.sequence_field:
        if name not in schema.field_names:
            raise _no_column("sequence.field", name, schema)
        if "aggregate-function" in options.field_options.get(name, {}):
            raise InvalidInputError(
                f"option 'fields.{name}.aggregate-function' aggregates the sequence field '{name}'; "
                "remove one of both"
            )
        if options.sequence_field.count(name) > 1:
            raise InvalidInputError(f"option 'sequence.field' names '{name}' twice; name it once")
    if not options.sequence_field:
        return
    shown = ",".join(options.sequence_field)
    if options.merge_engine is MergeEngine.FIRST_ROW:
        raise InvalidInputError(
            f"option 'sequence.field' = '{shown}' cannot go with 'merge-engine' = 'first-row'; remove it"
        )
    if schema.cross_partition:
        raise InvalidInputError(
            f"option 'sequence.field' = '{shown}' cannot be used when the primary key "
            f"{list(schema.primary_keys)} lacks a partition column of {list(schema.partition_keys)}; "
            "add it to the key"
        )


def _changelog(schema: TableSchema, options: TableOptions) -> None:
    producer = options.changelog_producer
    if not schema.primary_keys and producer is not ChangelogProducer.NONE:
        raise InvalidInputError(
            f"option 'changelog-producer' = '{producer.value}' needs a primary key; name one"
        )
    if options.streaming_read_overwrite:
        if not schema.primary_keys:
            raise InvalidInputError(
                "option 'streaming-read-overwrite' = 'true' needs a primary key; remove it"
            )
        if producer in (ChangelogProducer.FULL_COMPACTION, ChangelogProducer.LOOKUP):
            raise InvalidInputError(
                "option 'streaming-read-overwrite' = 'true' would read changes twice with "
                "'changelog-producer' = "
                f"'{producer.value}'; remove one of both"
            )
    if options.full_compaction_delta_commits is not None and producer is ChangelogProducer.LOOKUP:
        raise InvalidInputError(
            f"option 'full-compaction.delta-commits' = '{options.full_compaction_delta_commits}' cannot "
            "go with "
            "'changelog-producer' = 'lookup'; use 'full-compaction' or remove it"
        )
    if options.merge_engine is MergeEngine.FIRST_ROW and producer not in (
        ChangelogProducer.NONE,
        ChangelogProducer.LOOKUP,
    ):
        raise InvalidInputError(
            f"option 'changelog-producer' = '{producer.value}' cannot go with 'merge-engine' = 'first-row'; "
            "use 'none' or 'lookup'"
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
                f"option '{what}.num-retained.min' = '{low}' is larger than '{what}.num-retained.max' = "
                f"'{high}'; "
                "lower the first or raise the second"
            )


def _tag_delay(_schema: TableSchema, options: TableOptions) -> None:
    period, delay = options.tag_period_millis, options.tag_creation_delay
    if delay >= period:
        raise InvalidInputError(
            f"option 'tag.creation-delay' = '{delay} ms' is not less than the period of automatic tags ({period} ms): "
            "shorten it, or choose a longer 'tag.creation-period'"
        )


def _record_level(schema: TableSchema, options: TableOptions) -> None:
    _check_column(
        "record-level.time-field", options.record_level_time_field, schema, _RECORD_TIME_ROOTS, "INT, BIGINT or TIMESTAMP"
    )


def _rowkind_field(schema: TableSchema, options: TableOptions) -> None:
    _check_column("rowkind.field", options.rowkind_field, schema, STRING_ROOTS, "STRING")


def _check_column(key: str, name: str | None, schema: TableSchema, roots: Collection[str], wanted: str) -> None:
    """Raises InvalidInputError where an option names no column, or one of another type."""
    if name is None:
        return
    if name not in schema.field_names:
        raise _no_column(key, name, schema)
    data_type = schema.field(name).type
    if data_type.root not in roots:
        raise InvalidInputError(
            f"option '{key}' = '{name}' has type {data_type.sql()}; use a column of type {wanted}"
        )


def _deletion_vectors(_schema: TableSchema, options: TableOptions) -> None:
    if not options.deletion_vectors_enabled:
        return
    if options.changelog_producer is ChangelogProducer.FULL_COMPACTION:
        raise InvalidInputError(
            "option 'deletion-vectors.enabled' = 'true' cannot go with 'changelog-producer' = "
            "'full-compaction'; "
            "use 'none', 'input' or 'lookup'"
        )
    if options.merge_engine is MergeEngine.FIRST_ROW:
        raise InvalidInputError(
            "option 'deletion-vectors.enabled' = 'true' cannot go with 'merge-engine' = 'first-row', "
            "which never "
            "replaces a row; remove it"
        )


def _snapshot_ordering(schema: TableSchema, options: TableOptions) -> None:
    if not options.sequence_snapshot_ordering:
        return
    if not schema.primary_keys:
        raise InvalidInputError("option 'sequence.snapshot-ordering' = 'true' needs a primary key; remove it")
    if options.sequence_field:
        raise InvalidInputError(
            "option 'sequence.snapshot-ordering' = 'true' excludes 'sequence.field'; remove one"
        )
    if not options.write_only:
        raise InvalidInputError(
            "option 'sequence.snapshot-ordering' = 'true' needs 'write-only' = 'true' and a separate "
            "compaction job"
        )


def _row_tracking(schema: TableSchema, options: TableOptions) -> None:
    if options.row_tracking_enabled and schema.primary_keys:
        raise InvalidInputError(
            "option 'row-tracking.enabled' = 'true' cannot go with a primary key; remove it"
        )
    if options.row_tracking_enabled and options.bucket != -1:
        raise InvalidInputError(
            f"option 'row-tracking.enabled' needs 'bucket' = '-1', not '{options.bucket}'"
        )
    if options.data_evolution_enabled and not options.row_tracking_enabled:
        raise InvalidInputError(
            "option 'data-evolution.enabled' = 'true' needs 'row-tracking.enabled' = 'true'"
        )


def _map_layout(schema: TableSchema, options: TableOptions) -> None:
    for columns, settings in options.field_options.items():
        if "map.storage-layout" in settings and schema.field(columns).type.root != "MAP":
            raise InvalidInputError(
                f"option 'fields.{columns}.map.storage-layout' needs a MAP column, "
                f"but '{columns}' is {schema.field(columns).type.sql()}; remove it"
            )


#: Bytes of a file's name after its prefix, at most: a uuid, a counter, the format.
_FILE_NAME_REST = 80


def _file_prefixes(_schema: TableSchema, options: TableOptions) -> None:
    prefixes = {"data-file.prefix": options.data_file_prefix, "changelog-file.prefix": options.changelog_file_prefix}
    for key, prefix in prefixes.items():
        if "/" in prefix or "\0" in prefix:
            raise InvalidInputError(
                f"option '{key}' = {prefix!r} is the start of a file's name and must not have a slash or NUL: files lie "
                "in their bucket's directory; take them out"
            )
        size = len(prefix.encode(errors="replace"))
        if size > LONGEST_NAME - _FILE_NAME_REST:
            raise InvalidInputError(
                f"option '{key}' has {size} bytes, and a file's name has to go on after it: use at most "
                f"{LONGEST_NAME - _FILE_NAME_REST}"
            )


def _no_column(key: str, name: str, schema: TableSchema) -> InvalidInputError:
    return InvalidInputError(
        f"option '{key}' names '{name}', which is no column{hint(name, schema.field_names)}; the columns are "
        f"{', '.join(schema.field_names)}"
    )


_RULES: Sequence[Callable[[TableSchema, TableOptions], None]] = (
    _column_names,
    check_key,
    _bucket,
    check_key_per_partition,
    _bucket_key,
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

#: Rules that reads do not need.
_WRITE_RULES: frozenset[Callable[[TableSchema, TableOptions], None]] = frozenset(
    [_retention, _tag_delay, check_file_indexes]
)
