"""Values of a DataFrame cast to a column's type, each if it fits, by `lakelsm.schema.row_rules.is_castable`.

The same rules as `lakelsm.local.arrow_casts`, as expressions: a value, and whether it does not fit, from one column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import types as T

from lakelsm.schema.row_rules import SHOWN_VALUE, WHOLE_FLOATS, entry_types, is_assignable
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import quoted
from lakelsm.spark.spark_types import to_spark
from lakelsm.types import (
    INTEGER_ROOTS,
    STRING_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
)

#: A function from a column to an expression over it.
ColumnFunction = Callable[[Column], Column]

_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?"
_FORMS = {
    "DATE": rf"\A{_DAY}\z",
    "TIME": rf"\A{_CLOCK}\z",
    "TIMESTAMP": rf"\A{_DAY}([ T]{_CLOCK})?\z",
    "TIMESTAMP_LTZ": rf"\A{_DAY}[ T]{_CLOCK}(Z|[+-]\d{{2}}(:?\d{{2}})?)\z",
}
#: A fraction with nonzero digits below Spark's microseconds.
_NANOS = r"\.\d{6}0*[1-9]"
_LONG_LIMIT = 2.0**63


@dataclass(frozen=True)
class SafeCast:
    """``value``: the value in the column's type, arbitrary if it does not fit. ``unfit``: whether it does not fit."""

    value: ColumnFunction
    unfit: ColumnFunction


def safe_cast(source: DataType, target: DataType) -> SafeCast:
    """Return the cast of values of a type that `is_castable` to ``target``."""
    if is_assignable(source, target):
        return SafeCast(lambda column: column.cast(to_spark(target)), lambda column: F.lit(False))
    if isinstance(source, RowType) and isinstance(target, RowType):
        return _row_cast(source, target)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        element = safe_cast(source.element, target.element)
        return SafeCast(
            lambda column: F.transform(column, lambda one: element.value(one)),
            lambda column: F.exists(column, lambda one: element.unfit(one)),
        )
    if isinstance(source, MapType) and isinstance(target, (MapType, MultisetType)):
        return _map_cast(source, target)
    assert isinstance(source, AtomicType) and isinstance(target, AtomicType)
    value, fits = _text_cast(target) if source.root in STRING_ROOTS else _atom_cast(source, target)
    return SafeCast(value, lambda column: column.isNotNull() & ~F.coalesce(fits(column), F.lit(False)))


def unfit_text(column: Column, name: str, kind: T.DataType, keys: Mapping[str, T.DataType], fault: str) -> Column:
    """Return the error text for a value that does not fit: the row's key, the value and the ``fault``."""
    shown = F.concat(F.lit("'"), column, F.lit("'")) if isinstance(kind, T.StringType) else column.cast("string")
    parts = [F.lit(f"column '{name}' of the row with ")]
    for at, (key, of_key) in enumerate(keys.items()):
        text = F.hex(quoted(key)) if isinstance(of_key, T.BinaryType) else quoted(key).cast("string")
        parts += [F.lit(f"{', ' if at else ''}{key} = "), F.coalesce(_shortened(text), F.lit("NULL"))]
    return F.concat(*parts, F.lit(": "), _shortened(shown), F.lit(fault))


def _shortened(text: Column) -> Column:
    line = F.translate(text, "\r\n\t", "   ")
    cut = F.concat(F.substring(line, 1, SHOWN_VALUE), F.lit("…"))
    return F.when(F.char_length(line) > SHOWN_VALUE, cut).otherwise(line)


def _row_cast(source: RowType, target: RowType) -> SafeCast:
    members = [
        (given.name, wanted.name, safe_cast(given.type, wanted.type))
        for given, wanted in zip(source.fields, target.fields)
    ]

    def value(row: Column) -> Column:
        made = F.struct(*(cast.value(row.getField(given)).alias(name) for given, name, cast in members))
        return F.when(row.isNotNull(), made)

    return SafeCast(value, lambda row: _any([cast.unfit(row.getField(given)) for given, _, cast in members]))


def _map_cast(source: MapType, target: MapType | MultisetType) -> SafeCast:
    wanted_key, wanted_value = entry_types(target)
    key, value = safe_cast(source.key, wanted_key), safe_cast(source.value, wanted_value)

    def entries(column: Column) -> Column:
        keys = F.transform(F.map_keys(column), lambda one: key.value(one))
        return F.map_from_arrays(keys, F.transform(F.map_values(column), lambda one: value.value(one)))

    def unfit(column: Column) -> Column:
        of_keys = F.exists(F.map_keys(column), lambda one: key.unfit(one))
        return of_keys | F.exists(F.map_values(column), lambda one: value.unfit(one))

    return SafeCast(entries, unfit)


def _any(flags: Sequence[Column]) -> Column:
    return reduce(or_, flags)


def _text_cast(target: AtomicType) -> tuple[ColumnFunction, ColumnFunction]:
    """Return ISO 8601 text as a date or time, NULL for other texts, and whether it fits."""
    kind = to_spark(target)

    def value(text: Column) -> Column:
        if target.root != "TIME":
            return text.try_cast(kind)
        time = F.concat(F.lit("1970-01-01 "), text).try_cast("timestamp_ntz")
        millis = F.floor(F.extract(F.lit("SECOND"), time) * 1000)
        return (F.hour(time) * 3_600_000 + F.minute(time) * 60_000 + millis).cast(kind)

    def fits(text: Column) -> Column:
        is_time = text.rlike(_FORMS[target.root]) & value(text).isNotNull()
        return is_time & ~text.rlike(_NANOS) if (target.precision or 0) > 6 else is_time

    return value, fits


def _atom_cast(source: AtomicType, target: AtomicType) -> tuple[ColumnFunction, ColumnFunction]:
    """Return a number as another type, or a time as a date, and whether it fits: whether the cast back is equal."""
    given, wanted = to_spark(source), to_spark(target)

    def value(column: Column) -> Column:
        by_text = source.root == "FLOAT" and target.root == "DECIMAL"  # Through DOUBLE it would have more digits.
        return (column.cast("string") if by_text else column).try_cast(wanted)

    def fits(column: Column) -> Column:
        cast = value(column)
        if target.root == "DECIMAL" and source.root in WHOLE_FLOATS:
            return (F.abs(column) < WHOLE_FLOATS[source.root]) & (cast.try_cast(given) == column)
        same = cast.try_cast(given) == column
        if target.root == "FLOAT" and source.root not in INTEGER_ROOTS:  # 0.1 fits FLOAT if its decimal text is equal.
            same_text = cast.cast("string").try_cast(given) == column
            return same_text | same if source.root == "DOUBLE" else same_text
        if {source.root, target.root} & INTEGER_ROOTS and {source.root, target.root} & {"FLOAT", "DOUBLE"}:
            # 2^63 would become the largest BIGINT. Spark's optimizer assumes that BIGINT to FLOAT to DOUBLE is exact.
            return (column.cast("double") < _LONG_LIMIT) & same
        return same

    return value, fits
