"""Prepares a user's DataFrame for a write: checked and cast rows, with row kind and input order.

Faults of a value are found at any depth: NULL in a part that is NOT NULL, or a number that is not a time of day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from lakelsm.errors import InvalidInputError
from lakelsm.format.row_kinds import INSERT, ROW_KINDS
from lakelsm.frames.column_casts import SafeCast, safe_cast, unfit_text
from lakelsm.options import TableOptions
from lakelsm.schema.row_rules import (
    DAY_MILLIS,
    OnlyNull,
    check_columns,
    does_not_fit,
    invalid_time_of_day,
    is_assignable,
    is_castable,
    kind_column,
    longest_value,
    names_of_table,
    not_assignable,
    null_column,
    null_part,
    other_partition,
    too_long,
    unknown_row_kind,
    untouched_columns,
    wrong_row_kind_type,
)
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import quoted
from lakelsm.spark.functions import of_session
from lakelsm.spark.spark_types import exact_fields, from_struct, to_spark
from lakelsm.spark.task_errors import CHECK_PREFIX
from lakelsm.types import (
    UNASSIGNED_ID,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
)

_FLOATS = (T.FloatType(), T.DoubleType())

#: An expression over a column: whether its row has a certain fault.
FaultTest = Callable[[Column], Column]

_COUNT = AtomicType("INT", nullable=False)


@of_session
def prepare(
    frame: DataFrame,
    schema: TableSchema,
    options: TableOptions,
    row_kind: str | None = None,
    fixed: Mapping[str, object] | None = None,
    stored: bool = False,
    safe_casts: bool = True,
) -> DataFrame:
    """Return ``frame`` as rows to write: the table's columns in schema order, then `VALUE_KIND` and `SEQUENCE_NUMBER`,
    which here only preserves the input order: later rows have larger numbers.

    ``row_kind`` names a column of +I, -U, +U and -D that is not stored; without it the table's ``rowkind.field``
    decides, else every row is +I. ``fixed`` gives constant columns (a static partition) that the frame may leave out.
    ``stored``: the rows are the table's own, whose keys are not changed, because they determine its bucket; a column may
    be given as its `exact_fields`. ``safe_casts``: a column of another type is accepted if each of its values fits
    (`is_castable`). Wrong columns and types raise InvalidInputError here. NULL in a NOT NULL column, a text longer than
    its type, a value that does not fit and an unknown row kind fail the write when the rows are read.

    With `partial-update` the frame may leave out nullable columns: its rows do not change them.
    """
    names, row_kind = names_of_table(frame.columns, schema, row_kind)
    if names != frame.columns:
        frame = frame.toDF(*names)
    fixed = {**dict.fromkeys(untouched_columns(names, schema, options)), **(fixed or {})}
    check_columns(names, schema, row_kind, fixed)
    sources = {field.name: field.dataType for field in frame.schema.fields}
    columns = [
        _column(schema, field, sources, fixed, stored=stored, safe_casts=safe_casts) for field in schema.fields
    ]
    columns.append(_kind_column(sources, schema, options, row_kind).alias(VALUE_KIND))
    return frame.select(*columns, F.monotonically_increasing_id().alias(SEQUENCE_NUMBER))


def _column(
    schema: TableSchema,
    field: DataField,
    sources: Mapping[str, T.DataType],
    fixed: Mapping[str, object],
    *,
    stored: bool,
    safe_casts: bool,
) -> Column:
    target = to_spark(field.type)
    if field.name not in sources:
        return _literal(fixed[field.name], target).alias(field.name)
    column = given = quoted(field.name)
    source = sources[field.name]
    exact = exact_fields([field]).get(field.name) if stored else None
    if exact is not None and source == to_spark(exact.type):
        return column.alias(field.name)
    cast = _cast_of(source, field.type) if safe_casts and not is_spark_assignable(source, field.type) else None
    if cast is not None:
        column = cast.value(column)
    elif not is_spark_assignable(source, field.type):
        raise not_assignable(field, source.simpleString(), target.simpleString(), _remedy(source, target))
    elif source != target:
        column = column.cast(target)
    if not stored and (field.name in schema.primary_keys or field.name in schema.partition_keys):
        column = as_key(column, field, schema)
    checked = column
    limit = longest_value(field.type)
    if limit is not None:
        size = F.char_length(column) if isinstance(target, T.StringType) else F.octet_length(column)
        checked = _refused(size > limit, too_long(field), checked)
    for test, fault in value_faults(field.type, field.name):
        checked = _refused(test(column), fault, checked)
    if not field.type.nullable:
        checked = _refused(column.isNull(), null_column(field.name, schema), checked)
    if field.name in fixed:
        wanted = _literal(fixed[field.name], target)
        checked = _refused(~column.eqNullSafe(wanted), other_partition(field.name, fixed[field.name]), wanted)
    if cast is not None:
        keys = {name: sources[name] for name in schema.primary_keys if name in sources}
        fault = does_not_fit(value_type(source), field.type)
        checked = _refused(cast.unfit(given), unfit_text(given, field.name, source, keys, fault), checked)
    return checked.alias(field.name)


def _refused(fault: Column, text: str | Column, otherwise: Column) -> Column:
    message = F.lit(text) if isinstance(text, str) else text
    return F.when(fault, F.raise_error(F.concat(F.lit(CHECK_PREFIX), message))).otherwise(otherwise)


def _cast_of(source: T.DataType, target: DataType) -> SafeCast | None:
    """Return the cast that checks each value; None if values of this type are never cast."""
    try:
        kind = value_type(source)
    except InvalidInputError:  # The Spark type has no Paimon type.
        return None
    return safe_cast(kind, target) if is_castable(kind, target) else None


def _remedy(source: T.DataType, target: T.DataType) -> str | None:
    """Return the remedy for a column of another type; None for the general one."""
    if isinstance(source, T.TimestampType) and isinstance(target, T.TimestampNTZType):
        return (
            "Paimon's TIMESTAMP has no time zone, and Spark's timestamp is TIMESTAMP_LTZ: declare the column so, or "
            "cast it to timestamp_ntz before the write"
        )
    if source.typeName() == "time":  # Spark has this type since 4.1.
        return "write it as milliseconds of the day, time_to_millis(column): Spark's cast to int gives seconds"
    return None


def as_key(column: Column, field: DataField, schema: TableSchema) -> Column:
    """Return values of a key column in the form that keys of the table are stored in."""
    target = to_spark(field.type)
    if target in _FLOATS:
        return _normalized_floats(column, target, field.name in schema.partition_keys)
    return _floored(column, field.type)


def _normalized_floats(column: Column, target: T.DataType, zeros: bool) -> Column:
    """Return floats with one bit pattern for each value, because buckets and partitions use the bits: one NaN, and 0.0
    for -0.0 unless ``zeros`` differ.
    """
    zero, nan = (F.lit(value).cast(target) for value in (0.0, math.nan))
    numbers = column if zeros else F.when(column == 0, zero).otherwise(column)
    return F.when(F.isnan(column), nan).otherwise(numbers)


def _floored(column: Column, kind: DataType) -> Column:
    """Return a TIMESTAMP(0..3) key in milliseconds, the stored form, so that finer times are one key from the start."""
    if not isinstance(kind, AtomicType) or kind.root not in ("TIMESTAMP", "TIMESTAMP_LTZ") or (kind.precision or 0) > 3:
        return column
    if kind.root == "TIMESTAMP_LTZ":
        return F.timestamp_millis(F.unix_millis(column))
    finer = F.extract(F.lit("SECOND"), column) % F.lit(Decimal("0.001"))
    return column - F.make_dt_interval(secs=finer)


def _literal(value: object, target: T.DataType) -> Column:
    """Return a constant. Dates and local times pass as text, because PySpark uses the machine's zone and fewer years."""
    text = isinstance(value, date) and getattr(value, "tzinfo", None) is None
    return F.lit(str(value) if text else value).cast(target)


def is_spark_assignable(source: T.DataType, target: DataType) -> bool:
    """Return whether every value of a Spark type is one of a column's type. NULL is checked for each row."""
    try:
        return is_assignable(value_type(source), target)
    except InvalidInputError:  # The Spark type has no Paimon type.
        return False


def value_type(spark_type: T.DataType) -> DataType:
    """Return Paimon's type for values of a Spark type. Spark's type of NULL alone has one too."""
    if isinstance(spark_type, T.NullType):
        return OnlyNull()
    if isinstance(spark_type, T.ArrayType):
        return ArrayType(value_type(spark_type.elementType))
    if isinstance(spark_type, T.MapType):
        return MapType(value_type(spark_type.keyType), value_type(spark_type.valueType))
    if isinstance(spark_type, T.StructType):
        members = ((member.name, value_type(member.dataType)) for member in spark_type.fields)
        return RowType(tuple(DataField(UNASSIGNED_ID, name, kind) for name, kind in members))
    return from_struct(T.StructType([T.StructField("value", spark_type)]))[0].type


def _kind_column(
    sources: Mapping[str, T.DataType], schema: TableSchema, options: TableOptions, row_kind: str | None
) -> Column:
    name = kind_column(options, row_kind)
    if name is None:
        return F.lit(INSERT).cast("tinyint")
    if not isinstance(sources.get(name), T.StringType):
        raise wrong_row_kind_type(name)
    column = quoted(name)
    wrong = F.concat(F.lit(CHECK_PREFIX + unknown_row_kind(name)), F.coalesce(column, F.lit("NULL")))
    code = F.raise_error(wrong).cast("int")
    for number, text in enumerate(ROW_KINDS):
        code = F.when(column == text, number).otherwise(code)
    return code.cast("tinyint")


def value_faults(kind: DataType, path: str) -> list[tuple[FaultTest, str]]:
    """Return a test for each possible fault in a value of the type, with its description for the user.

    ``path`` names the value; parts are ``r.x``, ``a.element``, ``m.value``. The caller checks whether the value itself
    may be NULL. Parts of a row that is NULL are not checked.
    """
    if isinstance(kind, RowType):
        found: list[tuple[FaultTest, str]] = []
        for member in kind.fields:
            where = f"{path}.{member.name}"
            if not member.type.nullable:
                found.append((_member_is_null(member.name), null_part(where)))
            found += [(_in_member(member.name, test), text) for test, text in value_faults(member.type, where)]
        return found
    if isinstance(kind, ArrayType):
        return _in_elements(lambda column: column, kind.element, f"{path}.element")
    if isinstance(kind, (MapType, MultisetType)):
        key, value = (kind.key, kind.value) if isinstance(kind, MapType) else (kind.element, _COUNT)
        keys = _in_elements(F.map_keys, key.with_nullable(True), f"{path}.key")  # Spark has no map with a NULL key.
        return keys + _in_elements(F.map_values, value, f"{path}.value")
    if kind.root == "TIME":
        return [(lambda column: (column < 0) | (column >= DAY_MILLIS), invalid_time_of_day(path, kind))]
    return []


def _member_is_null(name: str) -> FaultTest:
    return lambda row: row.isNotNull() & row.getField(name).isNull()


def _in_member(name: str, test: FaultTest) -> FaultTest:
    return lambda row: test(row.getField(name))


def _in_elements(elements: FaultTest, kind: DataType, path: str) -> list[tuple[FaultTest, str]]:
    found = [] if kind.nullable else [(_exists(elements, lambda element: element.isNull()), null_part(path))]
    return found + [(_exists(elements, test), text) for test, text in value_faults(kind, path)]


def _exists(elements: FaultTest, test: FaultTest) -> FaultTest:
    return lambda column: F.exists(elements(column), lambda element: test(element))
