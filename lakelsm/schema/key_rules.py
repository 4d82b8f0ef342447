"""Rules for the names of columns, for primary keys and partitions, and for buckets and their keys."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.errors import InvalidInputError
from lakelsm.options import BucketFunction, TableOptions
from lakelsm.schema.identifiers import alike, folded, hint
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX, RESERVED_NAMES, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataField, nested_row_fields

_NOT_A_KEY = frozenset(["ARRAY", "MAP", "MULTISET", "ROW", "VECTOR", "VARIANT"])
_SYSTEM_COLUMNS = (SEQUENCE_NUMBER, VALUE_KIND)
_TAKEN = frozenset(map(folded, _SYSTEM_COLUMNS))
_NOT_A_BUCKET_KEY = frozenset(["ARRAY", "MAP", "MULTISET", "ROW"])


def check_key(schema: TableSchema, options: TableOptions) -> None:
    """Raises InvalidInputError for a key of a type that no key has, one of partition columns alone, and a missing one."""
    _key_types(schema)
    _trimmed_key(schema)
    _nullable_key(schema, options)


def check_key_per_partition(schema: TableSchema, options: TableOptions) -> None:
    """Raises InvalidInputError for the option where it would permit nothing."""
    if options.lakelsm_key_per_partition and (not schema.cross_partition or options.bucket == -1):
        raise InvalidInputError(
            "option 'lakelsm.key-per-partition' = 'true' is for a fixed number of buckets and a primary key that lacks a "
            f"partition column; the key is {list(schema.primary_keys)}, the partition columns are "
            f"{list(schema.partition_keys)}, 'bucket' = '{options.bucket}': remove the option"
        )


def check_new_key(schema: TableSchema, options: TableOptions) -> None:
    """Raises InvalidInputError for a new table whose key could have several rows without the user's consent.

    Tables of other engines that are like this are opened.
    """
    if options.bucket > 0 and schema.cross_partition and not options.lakelsm_key_per_partition:
        lacking = [name for name in schema.partition_keys if name not in schema.primary_keys]
        raise InvalidInputError(
            f"primary key {list(schema.primary_keys)} lacks the partition columns {lacking}: with a fixed number of "
            "buckets a key would have one row in each partition. Add them to the key, or set "
            "'lakelsm.key-per-partition' = 'true' if that is meant"
        )


def _key_types(schema: TableSchema) -> None:
    for what, names in (("primary key", schema.primary_keys), ("partition", schema.partition_keys)):
        for name in names:
            data_type = schema.field(name).type
            if data_type.root in _NOT_A_KEY:
                raise InvalidInputError(
                    f"{what} column '{name}' has type {data_type.sql()}, which no key can have; choose "
                    "another column"
                )


def _trimmed_key(schema: TableSchema) -> None:
    if schema.primary_keys and not schema.trimmed_primary_keys:
        raise InvalidInputError(
            f"primary key {list(schema.primary_keys)} has only partition columns; add a column to the "
            "primary key"
        )


def _nullable_key(schema: TableSchema, options: TableOptions) -> None:
    if options.primary_key_nullable and not schema.primary_keys:
        raise InvalidInputError(
            "option 'primary-key.nullable' = 'true' needs a primary key; name one or remove it"
        )


def check_column_names(schema: TableSchema, _options: TableOptions) -> None:
    """Raises InvalidInputError for a name that the system has, or that Spark takes for that of another column."""
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
    """Names that are equal for Spark cannot be distinguished in a DataFrame."""
    clash = alike(field.name for field in fields)
    if clash is not None:
        raise InvalidInputError(
            f"{what} '{clash[0]}' and {what} '{clash[1]}' differ only by case, and Spark takes them for one; rename one"
        )
    for field in fields:
        for members in nested_row_fields(field.type):
            _check_names_apart(f"member of '{field.name}'", members)


def check_bucket(schema: TableSchema, options: TableOptions) -> None:
    """Raises InvalidInputError for a number of buckets that does not fit the table's keys."""
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


def check_bucket_key(schema: TableSchema, options: TableOptions) -> None:
    """Raises InvalidInputError for a bucket key that no table with this primary key has."""
    for name in options.bucket_key:
        if name not in schema.field_names:
            raise no_column("bucket-key", name, schema)
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


def no_column(key: str, name: str, schema: TableSchema) -> InvalidInputError:
    """The error of an option that names no column."""
    return InvalidInputError(
        f"option '{key}' names '{name}', which is no column{hint(name, schema.field_names)}; the columns are "
        f"{', '.join(schema.field_names)}"
    )
