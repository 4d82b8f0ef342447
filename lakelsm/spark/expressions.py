"""Spark expressions: columns by exact name, a user's condition, and values of an older schema in the newest one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession

from lakelsm.errors import InvalidInputError
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import Predicate
from lakelsm.predicate.shown_text import shown_condition
from lakelsm.spark import functions as F
from lakelsm.spark.connect import analyzed, raise_lost_server
from lakelsm.spark.functions import of_session
from lakelsm.spark.spark_types import to_spark
from lakelsm.spark.task_errors import ANALYSIS_ERRORS, first_line
from lakelsm.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType, same_layout


def quoted(name: str, alias: str | None = None) -> Column:
    """Return the column of this exact name, dots and backticks included. ``alias`` names its frame."""
    column = "`" + name.replace("`", "``") + "`"
    return F.col(column if alias is None else f"{alias}.{column}")


def quoted_all(names: Iterable[str]) -> list[Column]:
    """Return the columns of these exact names."""
    return [quoted(name) for name in names]


def union_all(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of DataFrames with the same columns, in their order.

    The unions are a balanced tree: a Connect server refuses plans with more than 1,024 levels, of which each union of a
    chain adds two.
    """
    while len(frames) > 1:
        pairs = (frames[at : at + 2] for at in range(0, len(frames), 2))
        frames = [reduce(lambda one, other: one.unionAll(other), pair) for pair in pairs]
    return frames[0]


_AND = re.compile(r"\band\b", re.IGNORECASE)

#: A condition with this many ANDs is passed to Spark as a single expression. Else Spark splits it and joins the parts
#: as a chain, whose depth overflows its stack.
_MANY_ANDS = 500


@of_session
def predicate_of(spark: SparkSession, fields: Sequence[DataField], where: str) -> Predicate:
    """Parse a condition on columns of a table. Texts of times are in the session's time zone."""
    return parse_where(where, fields, spark.conf.get("spark.sql.session.timeZone"))


@of_session
def filtered(frame: DataFrame, where: str) -> DataFrame:
    """Return the rows that match. Raises InvalidInputError for a condition that Spark cannot analyse."""
    try:
        if len(_AND.findall(where)) < _MANY_ANDS:
            return analyzed(frame.where(where))
        return analyzed(frame.where(F.expr(where).eqNullSafe(True)))
    except ANALYSIS_ERRORS as error:
        raise_lost_server(error)
        raise InvalidInputError(f"condition {shown_condition(where)} is not valid: {first_line(error)}") from error


#: Up to this precision, Paimon stores a decimal as one 64-bit number.
_COMPACT_DIGITS = 18


def evolved(column: Column, source: DataType, target: DataType) -> Column:
    """Return ``column`` of a file's type ``source`` as the table's type ``target``.

    Spark's own cast pairs the members of a struct by position: a member that was dropped and added again would get its
    old values back.
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
    """Return a decimal as DOUBLE, by the rule of `lakelsm.format.data_file.column_evolution`. Spark's own cast returns
    the nearest number, and casts to FLOAT directly.
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
