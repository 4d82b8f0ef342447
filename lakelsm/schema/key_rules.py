"""Rules for column names, primary keys, partitions, buckets and bucket keys."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.errors import InvalidInputError
from lakelsm.options import BucketFunction, TableOptions
from lakelsm.schema.identifiers import alike, folded, unknown_column
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX, RESERVED_NAMES, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataField, nested_row_fields

_NOT_A_KEY = frozenset(["ARRAY", "MAP", "MULTISET", "ROW", "VECTOR", "VARIANT"])
_SYSTEM_COLUMNS = (SEQUENCE_NUMBER, VALUE_KIND)
_TAKEN = frozenset(map(folded, _SYSTEM_COLUMNS))
_NOT_A_BUCKET_KEY = frozenset(["ARRAY", "MAP", "MULTISET", "ROW"])


def check_key(schema: TableSchema, options: TableOptions) -> None:
    """Raise InvalidInputError for a key column of a wrong type, a key of partition columns only, and a missing key."""
    _key_types(schema)
    _trimmed_key(schema)
    _nullable_key(schema, options)


def check_key_per_partition(schema: TableSchema, options: TableOptions) -> None:
    """Raise InvalidInputError if the option lakelsm.key-per-partition is set and has no effect."""
    if options.lakelsm_key_per_partition and (not schema.cross_partition or options.bucket == -1):
        raise InvalidInputError(
            "option 'lakelsm.key-per-partition' = 'true' needs a fixed number of buckets and a primary key that lacks a "
            f"partition column (primary key {list(schema.primary_keys)}, partition columns "
            f"{list(schema.partition_keys)}, 'bucket' = '{options.bucket}'). Remove the option."
        )


def check_new_key(schema: TableSchema, options: TableOptions) -> None:
    """Raise InvalidInputError for a new table in which a key can have several rows, unless the user allows it.

    Such tables of other engines can be opened.
    """
    if options.bucket > 0 and schema.cross_partition and not options.lakelsm_key_per_partition:
        lacking = [name for name in schema.partition_keys if name not in schema.primary_keys]
        raise InvalidInputError(
            f"primary key {list(schema.primary_keys)} lacks the partition columns {lacking}: with a fixed number of "
            "buckets, a key would have one row in each partition. Add them to the key, or allow it with "
            "'lakelsm.key-per-partition' = 'true'."
        )


def _key_types(schema: TableSchema) -> None:
    for what, names in (("primary key", schema.primary_keys), ("partition", schema.partition_keys)):
        for name in names:
            data_type = schema.field(name).type
            if data_type.root in _NOT_A_KEY:
                raise InvalidInputError(
                    f"{what} column '{name}': type {data_type.sql()} is not supported in keys. Choose another column."
                )


def _trimmed_key(schema: TableSchema) -> None:
    if schema.primary_keys and not schema.trimmed_primary_keys:
        raise InvalidInputError(
            f"primary key {list(schema.primary_keys)} has only partition columns. Add another column."
        )


def _nullable_key(schema: TableSchema, options: TableOptions) -> None:
    if options.primary_key_nullable and not schema.primary_keys:
        raise InvalidInputError(
            "option 'primary-key.nullable' = 'true' needs a primary key. Add one, or remove the option."
        )


def check_column_names(schema: TableSchema, _options: TableOptions) -> None:
    """Raise InvalidInputError for the name of a system column, and for two names that are equal in Spark."""
    for name in schema.field_names:
        if name in RESERVED_NAMES:
            raise InvalidInputError(
                f"column name '{name}' is reserved ({', '.join(RESERVED_NAMES)}). Choose another name."
            )
        if name.startswith(KEY_FIELD_PREFIX):
            raise InvalidInputError(
                f"column name '{name}' starts with the reserved prefix '{KEY_FIELD_PREFIX}'. Choose another name."
            )
        if not name.strip():
            raise InvalidInputError(f"column name {name!r} is blank. Choose another name.")
        if folded(name) in _TAKEN or folded(name).startswith(folded(KEY_FIELD_PREFIX)):
            raise InvalidInputError(
                f"column name '{name}' is reserved in data files ({', '.join(_SYSTEM_COLUMNS)}, "
                f"{KEY_FIELD_PREFIX}…), because Spark ignores case. Choose another name."
            )
    _check_names_apart("column", schema.fields)


def _check_names_apart(what: str, fields: Sequence[DataField]) -> None:
    """Refuse names that a DataFrame cannot distinguish, because Spark ignores case."""
    clash = alike(field.name for field in fields)
    if clash is not None:
        raise InvalidInputError(
            f"{what} '{clash[0]}' and {what} '{clash[1]}' differ only in case, which Spark ignores. Rename one of them."
        )
    for field in fields:
        for members in nested_row_fields(field.type):
            _check_names_apart(f"member of '{field.name}'", members)


def check_bucket(schema: TableSchema, options: TableOptions) -> None:
    """Raise InvalidInputError for a number of buckets that does not fit the table's keys."""
    bucket = options.bucket
    if bucket == -1:
        if options.is_set("bucket-key"):
            raise InvalidInputError(
                f"option 'bucket-key' = '{','.join(options.bucket_key)}' needs a fixed number of buckets. Set 'bucket', "
                "or remove 'bucket-key'."
            )
        if not schema.primary_keys and options.full_compaction_delta_commits is not None:
            raise InvalidInputError("option 'full-compaction.delta-commits' needs a primary key. Remove the option.")
    elif bucket < 1 and not (bucket == -2 and schema.primary_keys):
        raise InvalidInputError(
            f"option 'bucket': {bucket} is not a number of buckets. Use -1 (dynamic) or a number greater than 0."
        )
    elif not schema.primary_keys and not schema.bucket_keys and not (bucket == 1 and schema.version == 1):
        raise InvalidInputError(
            f"option 'bucket' = '{bucket}' of a table without a primary key needs 'bucket-key'. Set it."
        )


def check_bucket_key(schema: TableSchema, options: TableOptions) -> None:
    """Raise InvalidInputError for a bucket key that is not possible with the table's primary key."""
    for name in options.bucket_key:
        if name not in schema.field_names:
            raise no_column("bucket-key", name, schema)
        if name in schema.partition_keys:
            raise InvalidInputError(f"option 'bucket-key': '{name}' is a partition column. Leave it out.")
        if schema.primary_keys and name not in schema.primary_keys:
            raise InvalidInputError(
                f"option 'bucket-key': '{name}' is not a primary key column. Choose from "
                f"{', '.join(schema.trimmed_primary_keys)}."
            )
    for name in schema.bucket_keys:
        data_type = schema.field(name).type
        if options.bucket != -1 and data_type.root in _NOT_A_BUCKET_KEY:
            raise InvalidInputError(
                f"bucket key '{name}': type {data_type.sql()} is nested. Choose another column."
            )
    if options.bucket_function_type is BucketFunction.MOD and options.bucket != -1:
        roots = [schema.field(name).type.root for name in schema.bucket_keys]
        if len(roots) != 1 or roots[0] not in ("INT", "BIGINT"):
            raise InvalidInputError(
                "option 'bucket-function.type' = 'mod' needs one bucket key of type INT or BIGINT, not "
                f"{', '.join(schema.bucket_keys)}. Set 'bucket-key', or use 'default'."
            )


def no_column(key: str, name: str, schema: TableSchema) -> InvalidInputError:
    """Return the error for an option that names an unknown column."""
    return InvalidInputError(f"option '{key}': {unknown_column(name, schema.field_names)}")
