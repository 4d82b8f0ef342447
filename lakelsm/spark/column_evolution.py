"""A column of an older schema as the newest schema has it, as a Spark expression: members of ROW by field id."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakelsm.spark.spark_types import to_spark
from lakelsm.types import ArrayType, AtomicType, DataType, MapType, RowType, same_layout

#: Digits up to which Paimon keeps a decimal as one 64-bit number.
_COMPACT_DIGITS = 18


def evolved(column: Column, source: DataType, target: DataType) -> Column:
    """Return ``column`` of the file's type ``source`` as the table's type ``target``.

    Spark's own cast pairs the members of a struct by position, which would give a member that was dropped and added
    again its old values back.
    """
    if same_layout(source, target):
        return column
    if isinstance(source, RowType) and isinstance(target, RowType):
        return _evolved_row(column, source, target)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return F.transform(column, lambda element: evolved(element, source.element, target.element))
    if isinstance(source, MapType) and isinstance(target, MapType):
        keyed = F.transform_keys(column, lambda key, value: evolved(key, source.key, target.key))
        return F.transform_values(keyed, lambda key, value: evolved(value, source.value, target.value))
    if isinstance(source, AtomicType) and source.root == "DECIMAL" and target.root in ("FLOAT", "DOUBLE"):
        column = _double(column, source)
    return column.cast(to_spark(target))


def _double(column: Column, source: AtomicType) -> Column:
    """A decimal as DOUBLE, as `lakelsm.format.data_file.column_evolution` has it: Spark's own cast is always the nearest
    one, and casts to FLOAT directly.
    """
    if (source.precision or 0) > _COMPACT_DIGITS:
        return column.cast("double")
    power = 10 ** (source.scale or 0)
    return (column * F.lit(Decimal(power))).cast("bigint").cast("double") / F.lit(float(power))


def _evolved_row(column: Column, source: RowType, target: RowType) -> Column:
    members = {member.id: member for member in source.fields}
    parts: list[Column] = []
    for member in target.fields:
        old = members.get(member.id)
        if old is None:
            part = F.lit(None).cast(to_spark(member.type))
        else:
            part = evolved(column.getField(old.name), old.type, member.type)
        parts.append(part.alias(member.name))
    return F.when(column.isNotNull(), F.struct(*parts))
