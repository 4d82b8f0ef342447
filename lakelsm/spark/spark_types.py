"""Paimon types as Spark types and back.

The mapping is that of Paimon's own Spark connector: TIME is an INT of milliseconds of the day, TIMESTAMP is
TIMESTAMP_NTZ, TIMESTAMP_LTZ is TIMESTAMP, MULTISET is a MAP of counts. Spark's timestamps have microseconds: a DataFrame
cuts the finer digits of TIMESTAMP(7..9), a compaction keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import types as T

from lakelsm.arguments import wrong_argument
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.schema.system_columns import EXACT_VALUE
from lakelsm.types import (
    MAX_LENGTH,
    UNASSIGNED_ID,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    has_nanoseconds,
    python_arrow,
)

_SIMPLE: dict[str, T.DataType] = {
    "BOOLEAN": T.BooleanType(),
    "TINYINT": T.ByteType(),
    "SMALLINT": T.ShortType(),
    "INT": T.IntegerType(),
    "BIGINT": T.LongType(),
    "FLOAT": T.FloatType(),
    "DOUBLE": T.DoubleType(),
    "CHAR": T.StringType(),
    "VARCHAR": T.StringType(),
    "BINARY": T.BinaryType(),
    "VARBINARY": T.BinaryType(),
    "DATE": T.DateType(),
    "TIME": T.IntegerType(),
    "TIMESTAMP": T.TimestampNTZType(),
    "TIMESTAMP_LTZ": T.TimestampType(),
}

_FROM_SPARK: dict[type[T.DataType], AtomicType] = {
    T.BooleanType: AtomicType("BOOLEAN"),
    T.ByteType: AtomicType("TINYINT"),
    T.ShortType: AtomicType("SMALLINT"),
    T.IntegerType: AtomicType("INT"),
    T.LongType: AtomicType("BIGINT"),
    T.FloatType: AtomicType("FLOAT"),
    T.DoubleType: AtomicType("DOUBLE"),
    T.StringType: AtomicType("VARCHAR", length=MAX_LENGTH),
    T.BinaryType: AtomicType("VARBINARY", length=MAX_LENGTH),
    T.DateType: AtomicType("DATE"),
    T.TimestampNTZType: AtomicType("TIMESTAMP", precision=6),
    T.TimestampType: AtomicType("TIMESTAMP_LTZ", precision=6),
}


def to_spark(data_type: DataType) -> T.DataType:
    """Return the Spark type of a Paimon type. Raises UnsupportedFeatureError for a type that lakelsm does not read.

    Nested parts are nullable, as in the result of Spark's own Parquet reader. Otherwise Spark's conversion to Arrow
    refuses a NULL row, because its parts are NULL.
    """
    if isinstance(data_type, AtomicType):
        if data_type.root == "DECIMAL":
            return T.DecimalType(data_type.precision or 10, data_type.scale or 0)
        if data_type.root in _SIMPLE:
            return _SIMPLE[data_type.root]
    if isinstance(data_type, ArrayType):
        return T.ArrayType(to_spark(data_type.element))
    if isinstance(data_type, MapType):
        return T.MapType(to_spark(data_type.key), to_spark(data_type.value))
    if isinstance(data_type, MultisetType):
        return T.MapType(to_spark(data_type.element), T.IntegerType())
    if isinstance(data_type, RowType):
        return T.StructType([_spark_field(member, nullable=True) for member in data_type.fields])
    raise UnsupportedFeatureError(f"Columns of type {data_type} are not supported.")


def exact_fields(fields: Sequence[DataField]) -> dict[str, DataField]:
    """Return additional columns for those with times finer than Spark's, by column name: the times as bytes.

    The bytes compare as the times do. A DataFrame that is written again is written from these columns.
    """
    return {
        field.name: DataField(field.id, EXACT_VALUE.format(field.name), _with_bytes(field.type))
        for field in fields
        if has_nanoseconds(field.type)
    }


def _with_bytes(data_type: DataType) -> DataType:
    """Return the type with bytes for TIMESTAMP(7..9), at any depth."""
    if isinstance(data_type, ArrayType | MultisetType):
        return replace(data_type, element=_with_bytes(data_type.element))
    if isinstance(data_type, MapType):
        return replace(data_type, key=_with_bytes(data_type.key), value=_with_bytes(data_type.value))
    if isinstance(data_type, RowType):
        members = (replace(member, type=_with_bytes(member.type)) for member in data_type.fields)
        return replace(data_type, fields=tuple(members))
    is_fine = has_nanoseconds(data_type)
    return AtomicType("VARBINARY", length=MAX_LENGTH, nullable=data_type.nullable) if is_fine else data_type


def to_struct(fields: tuple[DataField, ...]) -> T.StructType:
    """Return the Spark schema of columns; descriptions become Spark's column comments."""
    return T.StructType([_spark_field(field, field.type.nullable) for field in fields])


def _spark_field(field: DataField, nullable: bool) -> T.StructField:
    comment = {"comment": field.description} if field.description else None
    return T.StructField(field.name, to_spark(field.type), nullable, comment)


def to_spark_arrow(fields: tuple[DataField, ...]) -> pa.Schema:
    """Return the Arrow schema in which a task passes rows of these columns to Spark: its times have microseconds."""
    return pa.schema(
        [_spark_member(field.name, field.type) for field in fields]
    )


def _spark_arrow(data_type: DataType) -> pa.DataType:
    if isinstance(data_type, ArrayType):
        return pa.list_(_spark_member("element", data_type.element))
    if isinstance(data_type, MapType):
        return pa.map_(_spark_arrow(data_type.key), _spark_member("value", data_type.value))
    if isinstance(data_type, MultisetType):
        return pa.map_(_spark_arrow(data_type.element), pa.field("value", pa.int32(), False))
    if isinstance(data_type, RowType):
        return pa.struct([_spark_member(member.name, member.type) for member in data_type.fields])
    kind = python_arrow(data_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.int32() if pa.types.is_time(kind) else kind


def _spark_member(name: str, data_type: DataType) -> pa.Field:
    return pa.field(name, _spark_arrow(data_type), data_type.nullable)


def from_struct_type(schema: T.DataType) -> tuple[DataField, ...]:
    """Return the columns, as `from_struct` does. Raises InvalidInputError for a Spark type that is not a struct."""
    if not isinstance(schema, T.StructType):
        raise wrong_argument("schema", schema, "a StructType, a pyarrow Schema or DDL")
    return from_struct(schema)


def from_struct(struct: T.StructType) -> tuple[DataField, ...]:
    """Return the columns of a Spark schema, without ids. Raises InvalidInputError for a type without a Paimon type."""
    return tuple(
        DataField(
            UNASSIGNED_ID,
            field.name,
            _from_spark(field.dataType, field.name).with_nullable(field.nullable),
            description=field.metadata.get("comment"),
        )
        for field in struct.fields
    )


def _from_spark(spark_type: T.DataType, where: str) -> DataType:
    if isinstance(spark_type, T.DecimalType):
        return AtomicType("DECIMAL", precision=spark_type.precision, scale=spark_type.scale)
    if isinstance(spark_type, (T.CharType, T.VarcharType)):
        return AtomicType("CHAR" if isinstance(spark_type, T.CharType) else "VARCHAR", length=spark_type.length)
    if type(spark_type) in _FROM_SPARK:
        return _FROM_SPARK[type(spark_type)]
    if isinstance(spark_type, T.ArrayType):
        return ArrayType(_from_spark(spark_type.elementType, where).with_nullable(spark_type.containsNull))
    if isinstance(spark_type, T.MapType):
        value = _from_spark(spark_type.valueType, where).with_nullable(spark_type.valueContainsNull)
        return MapType(_from_spark(spark_type.keyType, where).with_nullable(False), value)
    if isinstance(spark_type, T.StructType):
        return RowType(from_struct(spark_type))
    raise InvalidInputError(f"column '{where}': Spark type {spark_type.simpleString()} has no Paimon type.")
