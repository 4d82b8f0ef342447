"""Expressions on rows in Arrow: their values, and an error where Spark's ANSI mode has one.

A part is evaluated for the rows that need it, as in Spark: a branch of CASE where its condition is TRUE, a further
argument of COALESCE where those before are NULL, a side of AND, OR and of arithmetic where the other does not decide. So
a division that a CASE guards does not fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.predicate.evaluation import compared, outcomes
from lakelsm.predicate.exact_numbers import computed, decimal_texts, negated, number_cast
from lakelsm.predicate.expression import (
    NULL_TYPE,
    Arithmetic,
    Case,
    Cast,
    Coalesced,
    ColumnValue,
    Comparison,
    Condition,
    Connected,
    Expression,
    Joined,
    Negative,
    Not,
    NullTest,
    Value,
    columns_of,
    is_number,
)
from lakelsm.schema.row_rules import refused_rows
from lakelsm.types import AtomicType, DataType, to_arrow
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, timestamp_out_of_range, with_nanoseconds, without_nanoseconds


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of an expression's values."""
    return pa.null() if kind == NULL_TYPE else to_arrow(kind)


def evaluated(expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """The values for the rows, as `arrow_type` has them. ``rows`` have the table's columns as `types.to_arrow` has them.

    Raises InvalidInputError for a row whose value overflows, divides by zero or does not fit a cast.
    """
    kind = arrow_type(expression.type)
    match expression:
        case Value(_, value):
            return pa.repeat(_scalar(value, expression.type), len(rows))
        case ColumnValue(_, name):
            return _reduced(rows.column(name), kind)
        case Condition(_, predicate):
            found = outcomes(predicate, rows)
            return pa.repeat(found, len(rows)) if isinstance(found, pa.Scalar) else _one_array(found)
        case NullTest(_, child):
            return evaluated(child, rows).is_null()
        case Not(_, child):
            return pc.invert(evaluated(child, rows))
        case Connected(_, op, left, right):
            return _connected(op, left, right, rows)
        case Comparison(_, op, left, right):
            one = evaluated(left, rows)
            return _one_array(compared(one, op, _values_where(one.is_valid(), right, rows)))
        case Arithmetic(result, op, left, right):
            return computed(op, *_sides(op, left, right, rows), result)
        case Negative(result, child):
            return negated(evaluated(child, rows), result)
        case Joined(_, children):
            between = pa.scalar(b"", kind) if pa.types.is_binary(kind) else pa.scalar("", kind)
            return pc.binary_join_element_wise(*(evaluated(child, rows) for child in children), between)
        case Case(_, branches, otherwise):
            return _chosen(branches, otherwise, rows, kind)
        case Coalesced(_, children):
            return _first_known(children, rows)
        case Cast(target, child):
            return _cast(evaluated(child, rows), child.type, target)
    raise AssertionError(f"{type(expression).__name__} is no expression")


def _scalar(value: Any, kind: DataType) -> pa.Scalar:
    return pa.scalar(value, arrow_type(kind))


def _one_array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _reduced(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column as its reduced type has it: TIME as INT, finer times of one unit."""
    if column.type == kind:
        return column
    return column.cast(kind) if pa.types.is_time(column.type) else _times(column, kind)


def _sides(op: str, left: Expression, right: Expression, rows: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Both sides of arithmetic. Spark evaluates a divisor first, else the left side; the other where that is known."""
    if op in "/%":
        divisor = evaluated(right, rows)
        return _values_where(divisor.is_valid(), left, rows), divisor
    first = evaluated(left, rows)
    return first, _values_where(first.is_valid(), right, rows)


def _connected(op: str, left: Expression, right: Expression, rows: pa.RecordBatch) -> pa.Array:
    first = evaluated(left, rows)
    decided = pc.fill_null(pc.invert(first) if op == "and" else first, False)
    other = _values_where(pc.invert(decided), right, rows)
    return (pc.and_kleene if op == "and" else pc.or_kleene)(first, other)


def _values_where(mask: pa.Array, expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """The values for the rows of a mask without NULL, and NULL for the others, for which nothing is evaluated."""
    if mask.true_count == len(mask) or isinstance(expression, Value | ColumnValue | Condition):
        return evaluated(expression, rows)
    return _spread([(mask, _values_of(mask, expression, rows))], len(rows), arrow_type(expression.type))


def _values_of(mask: pa.Array, expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """The values for the rows of a mask, and no others."""
    needed = [name for name in rows.schema.names if name in columns_of(expression)]
    return evaluated(expression, rows.select(needed or rows.schema.names[:1]).filter(mask))


def _spread(parts: Iterable[tuple[pa.Array, pa.Array]], count: int, kind: pa.DataType) -> pa.Array:
    """One column of the values of several masks that exclude each other; NULL where none is true."""
    places = np.full(count, -1)
    found = [pa.array([], kind)]
    start = 0
    for mask, values in parts:
        at = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        places[at] = np.arange(start, start + len(at))
        start += len(at)
        found.append(values)
    return pa.concat_arrays(found).take(pa.array(places, mask=places < 0))


def _chosen(
    branches: tuple[tuple[Expression, Expression], ...], otherwise: Expression, rows: pa.RecordBatch, kind: pa.DataType
) -> pa.Array:
    open_rows = pa.repeat(pa.scalar(True), len(rows))
    parts = []
    for test, value in branches:
        outcome = pc.fill_null(_values_where(open_rows, test, rows), False)
        taken = pc.and_(open_rows, outcome)
        parts.append((taken, _values_of(taken, value, rows)))
        open_rows = pc.and_not(open_rows, taken)
    parts.append((open_rows, _values_of(open_rows, otherwise, rows)))
    return _spread(parts, len(rows), kind)


def _first_known(children: tuple[Expression, ...], rows: pa.RecordBatch) -> pa.Array:
    found = evaluated(children[0], rows)
    for child in children[1:]:
        if not found.null_count:
            break
        known = found.is_valid()
        others = pc.invert(known)
        found = _spread([(known, found.filter(known)), (others, _values_of(others, child, rows))], len(rows), found.type)
    return found


def _cast(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if is_number(target):
        found = number_cast(values, target)
        if found.null_count > values.null_count:
            raise refused_rows(f"a {source.sql()} in a row that matches has no place in {target.sql()}")
        return found
    if source.root == "DECIMAL":
        return decimal_texts(values)
    if isinstance(target, AtomicType) and target.root == "DATE":
        return pc.floor_temporal(_times(values, pa.timestamp("us")), unit="day").cast(pa.date32())
    return values.cast(pa.string()) if pa.types.is_string(to_arrow(target)) else _times(values, to_arrow(target))


def _times(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Dates and times as times of another unit, floored."""
    try:
        if kind == NANO_TIMESTAMP:
            return with_nanoseconds(values.cast(pa.timestamp("us")) if pa.types.is_date(values.type) else values)
        return without_nanoseconds(values, kind) if values.type == NANO_TIMESTAMP else values.cast(kind)
    except pa.ArrowInvalid as error:
        raise timestamp_out_of_range() from error


__all__ = ["arrow_type", "evaluated"]
