"""Evaluation of expressions on rows in Arrow, with the errors of Spark's ANSI mode.

As in Spark, a part is evaluated only for the rows that need it: a branch of CASE if its condition is TRUE, an argument of
COALESCE if those before it are NULL, a side of AND, OR and arithmetic if the other side does not decide. A division that
a CASE guards therefore does not fail.
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
    EvaluatedValue,
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
    """Return the Arrow type of an expression's values."""
    return pa.null() if kind == NULL_TYPE else to_arrow(kind)


def evaluated(expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """Evaluate an expression for all rows, which have the table's columns in the types of `types.to_arrow`.

    The result has the type `arrow_type`. Raises InvalidInputError for an overflow, a division by zero, and a value that
    does not fit a cast.
    """
    kind = arrow_type(expression.type)
    match expression:
        case Value(_, value):
            return pa.repeat(_scalar(value, expression.type), len(rows))
        case ColumnValue(_, name):
            return as_expression(rows.column(name), kind)
        case EvaluatedValue(_, evaluator):
            return evaluator(rows)
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
    raise AssertionError(f"{type(expression).__name__} is not an expression")


def _scalar(value: Any, kind: DataType) -> pa.Scalar:
    return pa.scalar(value, arrow_type(kind))


def _one_array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def as_expression(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert a column to its type in expressions: TIME to INT, fine times to one unit."""
    if column.type == kind:
        return column
    return column.cast(kind) if pa.types.is_time(column.type) else _times(column, kind)


def _sides(op: str, left: Expression, right: Expression, rows: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Evaluate both sides of arithmetic. Like Spark, evaluate a divisor first, else the left side; the other side only
    where the first one is not NULL.
    """
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
    """Evaluate an expression for the rows of a mask (without NULL); the other rows get NULL without evaluation."""
    if mask.true_count == len(mask) or isinstance(expression, Value | ColumnValue | Condition):
        return evaluated(expression, rows)
    return _spread([(mask, _values_of(mask, expression, rows))], len(rows), arrow_type(expression.type))


def _values_of(mask: pa.Array, expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """Evaluate an expression for the rows of a mask, and return only these values."""
    needed = [name for name in rows.schema.names if name in columns_of(expression)]
    return evaluated(expression, rows.select(needed or rows.schema.names[:1]).filter(mask))


def _spread(parts: Iterable[tuple[pa.Array, pa.Array]], count: int, kind: pa.DataType) -> pa.Array:
    """Combine the values of several disjoint masks to one column; NULL where no mask is true."""
    positions = np.full(count, -1)
    found = [pa.array([], kind)]
    start = 0
    for mask, values in parts:
        at = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        positions[at] = np.arange(start, start + len(at))
        start += len(at)
        found.append(values)
    return pa.concat_arrays(found).take(pa.array(positions, mask=positions < 0))


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
            raise refused_rows(f"a value of {source.sql()} in a matching row does not fit {target.sql()}")
        return found
    if source.root == "DECIMAL":
        return decimal_texts(values)
    if isinstance(target, AtomicType) and target.root == "DATE":
        return pc.floor_temporal(_times(values, pa.timestamp("us")), unit="day").cast(pa.date32())
    return values.cast(pa.string()) if pa.types.is_string(to_arrow(target)) else _times(values, to_arrow(target))


def _times(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert dates and times to times of another unit, rounded down."""
    try:
        if kind == NANO_TIMESTAMP:
            return with_nanoseconds(values.cast(pa.timestamp("us")) if pa.types.is_date(values.type) else values)
        return without_nanoseconds(values, kind) if values.type == NANO_TIMESTAMP else values.cast(kind)
    except pa.ArrowInvalid as error:
        raise timestamp_out_of_range() from error


__all__ = ["arrow_type", "as_expression", "evaluated"]
