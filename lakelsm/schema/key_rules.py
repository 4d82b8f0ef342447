"""Which columns a primary key and partitions can have, and how the two go together."""

from __future__ import annotations

from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import TableSchema

_NOT_A_KEY = frozenset(["ARRAY", "MAP", "MULTISET", "ROW", "VECTOR", "VARIANT"])


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
