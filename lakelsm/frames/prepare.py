"""A user's DataFrame made into key-value rows: checked, cast, with row kind and input order.

What is wrong with a value of a type is told at any depth: NULL where a part is NOT NULL, no time of a day.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelsm.errors import InvalidInputError
from lakelsm.format.row_kinds import INSERT, RETRACTIONS, ROW_KINDS, UPDATE_BEFORE
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.schema.identifiers import folded, match
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.spark.columns import quoted
from lakelsm.spark.spark_types import to_spark
from lakelsm.spark.task_errors import CHECK_MARK
from lakelsm.types import MAX_LENGTH, ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType

_FLOATS = (T.FloatType(), T.DoubleType())

_WIDER: dict[type[T.DataType], tuple[type[T.DataType], ...]] = {
    T.ByteType: (T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType),
    T.ShortType: (T.IntegerType, T.LongType, T.FloatType, T.DoubleType),
    T.IntegerType: (T.LongType, T.DoubleType),
    T.LongType: (),
    T.FloatType: (T.DoubleType,),
    T.DateType: (T.TimestampNTZType,),
}
_INTEGER_DIGITS: dict[type[T.DataType], int] = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 19}

#: A column -> whether its row has a certain fault.
Finds = Callable[[Column], Column]

_COUNT = AtomicType("INT", nullable=False)

_DAY_MILLIS = 86_400_000


def prepare(
    frame: DataFrame,
    schema: TableSchema,
    options: TableOptions,
    row_kind: str | None = None,
    fixed: Mapping[str, object] | None = None,
    stored: bool = False,
) -> DataFrame:
    """Return ``frame`` as rows to write: the table's columns in schema order, then `VALUE_KIND` and `SEQUENCE_NUMBER`,
    which only orders the rows so far.

    ``row_kind`` names a column of +I, -U, +U and -D that is not stored; without it the table's ``rowkind.field``
    decides, else every row is +I. ``fixed`` gives constant columns (a static partition) that the frame may leave out.
    ``stored``: the rows are the table's own, whose keys are left as they are, since they say where a row lies.
    Later rows of the frame have a greater number. Wrong columns and types raise InvalidInputError here; NULL in a
    NOT NULL column, a text longer than its type and an unknown row kind fail the write when its rows are read.

    With `partial-update` the frame may leave out columns that can be NULL: its rows do not touch them.
    """
    fixed = dict(fixed or {})
    frame, row_kind = _in_names_of_table(frame, schema, row_kind)
    if options.merge_engine is MergeEngine.PARTIAL_UPDATE:
        kept = {*frame.columns, *schema.primary_keys, *schema.partition_keys}
        untouched = [field.name for field in schema.fields if field.name not in kept and field.type.nullable]
        fixed = {**dict.fromkeys(untouched), **fixed}
    _check_columns(frame, schema, row_kind, fixed)
    sources = {field.name: field.dataType for field in frame.schema.fields}
    columns = [_column(schema, field, sources, fixed, stored) for field in schema.fields]
    columns.append(_kind_column(sources, schema, options, row_kind).alias(VALUE_KIND))
    rows = frame.select(*columns, F.monotonically_increasing_id().alias(SEQUENCE_NUMBER))
    if options.ignore_delete:
        rows = rows.where(~F.col(VALUE_KIND).isin(*RETRACTIONS))
    elif options.ignore_update_before:
        rows = rows.where(F.col(VALUE_KIND) != UPDATE_BEFORE)
    return rows


def _in_names_of_table(
    frame: DataFrame, schema: TableSchema, row_kind: str | None
) -> tuple[DataFrame, str | None]:
    """The frame and its row kind column with columns named as in the table: Spark takes `ID` for `id`."""
    given = frame.columns
    counts = Counter(map(folded, given))
    twice = sorted({name for name in given if counts[folded(name)] > 1})
    if twice:
        raise InvalidInputError(
            f"The DataFrame has column {', '.join(twice)} more than once: rename or drop one (Spark ignores case)."
        )
    known = {folded(name): name for name in schema.field_names}
    names = [known.get(folded(name), name) for name in given]
    kind = None if row_kind is None else match(row_kind, names) or row_kind
    return (frame if names == given else frame.toDF(*names)), kind


def _check_columns(frame: DataFrame, schema: TableSchema, row_kind: str | None, fixed: Mapping[str, object]) -> None:
    given = list(frame.columns)
    if row_kind is not None and row_kind not in given:
        raise InvalidInputError(f"Row kind column '{row_kind}' is not in the DataFrame, which has {', '.join(given)}.")
    missing = [name for name in schema.field_names if name not in given and name not in fixed]
    if missing:
        raise InvalidInputError(
            f"The DataFrame lacks column {', '.join(missing)} of the table: add it (as NULL where the row has none)."
        )
    extra = [name for name in given if name not in schema.field_names and name != row_kind]
    if extra:
        raise InvalidInputError(
            f"The table has no column {', '.join(extra)}: drop it from the DataFrame or add it to the table first."
        )


def _column(
    schema: TableSchema,
    field: DataField,
    sources: Mapping[str, T.DataType],
    fixed: Mapping[str, object],
    stored: bool,
) -> Column:
    target = to_spark(field.type)
    if field.name not in sources:
        return _literal(fixed[field.name], target).alias(field.name)
    column = quoted(field.name)
    source = sources[field.name]
    if not is_assignable(source, target):
        raise InvalidInputError(
            f"Column '{field.name}' is {source.simpleString()} in the DataFrame and {target.simpleString()} in the "
            f"table ({field.type.sql()}): {_remedy(source, target)}."
        )
    if source != target:
        column = column.cast(target)
    if not stored and (field.name in schema.primary_keys or field.name in schema.partition_keys):
        zeros = field.name in schema.partition_keys
        column = _one_bit_pattern(column, target, zeros) if target in _FLOATS else _floored(column, field.type)
    checked = column
    limit = field.type.length if isinstance(field.type, AtomicType) else None
    if limit is not None and limit < MAX_LENGTH:
        size = F.char_length(column) if isinstance(target, T.StringType) else F.octet_length(column)
        message = f"{CHECK_MARK}a value of column '{field.name}' is longer than {field.type.sql()} allows"
        if limit == 1:
            message += ", which is what the type means without a length: declare STRING or BYTES for values of any length"
        checked = F.when(size > limit, F.raise_error(F.lit(message))).otherwise(checked)
    for finds, fault in value_faults(field.type, field.name):
        checked = F.when(finds(column), F.raise_error(F.lit(CHECK_MARK + fault))).otherwise(checked)
    if not field.type.nullable:
        what = "key column" if field.name in schema.primary_keys else "NOT NULL column"
        message = f"{CHECK_MARK}{what} '{field.name}' is NULL in a row of the DataFrame: filter or fill such rows"
        checked = F.when(column.isNull(), F.raise_error(F.lit(message))).otherwise(checked)
    if field.name in fixed:
        message = f"{CHECK_MARK}a row's '{field.name}' is not the overwritten partition's '{fixed[field.name]}'"
        wanted = _literal(fixed[field.name], target)
        checked = F.when(column.eqNullSafe(wanted), wanted).otherwise(F.raise_error(F.lit(message)))
    return checked.alias(field.name)


def _remedy(source: T.DataType, target: T.DataType) -> str:
    """What to do about a column of another type."""
    if isinstance(source, T.TimestampType) and isinstance(target, T.TimestampNTZType):
        return (
            "in Paimon TIMESTAMP has no time zone, and Spark's timestamp is TIMESTAMP_LTZ: declare the column so, or "
            "cast it to timestamp_ntz before the write"
        )
    if source.typeName() == "time":  # Spark has it from 4.1 on.
        return "write it as milliseconds of the day, time_to_millis(column): Spark's cast to int gives seconds"
    return f"cast it to {target.simpleString()} before the write"


def _one_bit_pattern(column: Column, target: T.DataType, zeros: bool) -> Column:
    """A key as it is stored, as buckets and partitions go by the bits: one NaN, and 0.0 for -0.0 unless both may be."""
    zero, nan = (F.lit(value).cast(target) for value in (0.0, math.nan))
    numbers = column if zeros else F.when(column == 0, zero).otherwise(column)
    return F.when(F.isnan(column), nan).otherwise(numbers)


def _floored(column: Column, kind: DataType) -> Column:
    """A key as it is stored: TIMESTAMP(0..3) have milliseconds, so that finer times are one key from the start."""
    if not isinstance(kind, AtomicType) or kind.root not in ("TIMESTAMP", "TIMESTAMP_LTZ") or (kind.precision or 0) > 3:
        return column
    if kind.root == "TIMESTAMP_LTZ":
        return F.timestamp_millis(F.unix_millis(column))
    finer = F.extract(F.lit("SECOND"), column) % F.lit(Decimal("0.001"))
    return column - F.make_dt_interval(secs=finer)


def _literal(value: object, target: T.DataType) -> Column:
    """A constant; dates and times without zone pass as text: PySpark takes the machine's zone, and not all years."""
    text = isinstance(value, date) and getattr(value, "tzinfo", None) is None
    return F.lit(str(value) if text else value).cast(target)


def is_assignable(source: T.DataType, target: T.DataType) -> bool:
    """Whether every value of ``source`` is a value of ``target`` (nullability is checked row by row)."""
    if isinstance(source, T.NullType):
        return True
    if isinstance(target, T.DecimalType):
        if isinstance(source, T.DecimalType):
            return target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale
        digits = _INTEGER_DIGITS.get(type(source))
        return digits is not None and target.precision - target.scale >= digits
    if isinstance(source, T.ArrayType) and isinstance(target, T.ArrayType):
        return is_assignable(source.elementType, target.elementType)
    if isinstance(source, T.MapType) and isinstance(target, T.MapType):
        return is_assignable(source.keyType, target.keyType) and is_assignable(source.valueType, target.valueType)
    if isinstance(source, T.StructType) and isinstance(target, T.StructType):
        pairs = zip(source.fields, target.fields)
        alike = list(map(folded, source.names)) == list(map(folded, target.names))
        return alike and all(is_assignable(a.dataType, b.dataType) for a, b in pairs)
    if isinstance(target, T.StringType):
        return isinstance(source, (T.StringType, T.CharType, T.VarcharType))
    return type(source) is type(target) or type(target) in _WIDER.get(type(source), ())


def _kind_column(
    sources: Mapping[str, T.DataType], schema: TableSchema, options: TableOptions, row_kind: str | None
) -> Column:
    name = row_kind or options.rowkind_field
    if row_kind is not None and options.rowkind_field is not None and row_kind != options.rowkind_field:
        raise InvalidInputError(
            f"The table takes row kinds from its column '{options.rowkind_field}' (rowkind.field): leave row_kind out."
        )
    if name is None:
        return F.lit(INSERT).cast("tinyint")
    if not isinstance(sources.get(name), T.StringType):
        raise InvalidInputError(f"Row kind column '{name}' must be a string of +I, -U, +U or -D.")
    column = quoted(name)
    wrong = F.concat(
        F.lit(f"{CHECK_MARK}row kind of column '{name}' must be +I, -U, +U or -D and cannot be null: "),
        F.coalesce(column, F.lit("NULL")),
    )
    code = F.raise_error(wrong).cast("int")
    for number, text in enumerate(ROW_KINDS):
        code = F.when(column == text, number).otherwise(code)
    return code.cast("tinyint")


def value_faults(kind: DataType, path: str) -> list[tuple[Finds, str]]:
    """What finds each possible fault in a value of the type, with its description for the user.

    ``path`` names the value; parts are ``r.x``, ``a.element``, ``m.value``. Whether the value itself can be NULL is the
    caller's to check. A part of a row that is NULL itself is not there, and has no fault.
    """
    if isinstance(kind, RowType):
        found: list[tuple[Finds, str]] = []
        for member in kind.fields:
            where = f"{path}.{member.name}"
            if not member.type.nullable:
                found.append((_member_is_null(member.name), _null_fault(where)))
            found += [(_in_member(member.name, finds), text) for finds, text in value_faults(member.type, where)]
        return found
    if isinstance(kind, ArrayType):
        return _in_elements(lambda column: column, kind.element, f"{path}.element")
    if isinstance(kind, (MapType, MultisetType)):
        key, value = (kind.key, kind.value) if isinstance(kind, MapType) else (kind.element, _COUNT)
        keys = _in_elements(F.map_keys, key.with_nullable(True), f"{path}.key")  # Spark has no map with a NULL key.
        return keys + _in_elements(F.map_values, value, f"{path}.value")
    if kind.root == "TIME":
        text = f"'{path}' ({kind.sql()}) is a number of milliseconds from 0 to {_DAY_MILLIS - 1}, and a row has another"
        return [(lambda column: (column < 0) | (column >= _DAY_MILLIS), text)]
    return []


def _null_fault(path: str) -> str:
    return f"'{path}', which is NOT NULL, is NULL in a row of the DataFrame: filter or fill such rows"


def _member_is_null(name: str) -> Finds:
    return lambda row: row.isNotNull() & row.getField(name).isNull()


def _in_member(name: str, finds: Finds) -> Finds:
    return lambda row: finds(row.getField(name))


def _in_elements(elements: Finds, kind: DataType, path: str) -> list[tuple[Finds, str]]:
    found = [] if kind.nullable else [(_exists(elements, lambda element: element.isNull()), _null_fault(path))]
    return found + [(_exists(elements, finds), text) for finds, text in value_faults(kind, path)]


def _exists(elements: Finds, finds: Finds) -> Finds:
    return lambda column: F.exists(elements(column), lambda element: finds(element))

