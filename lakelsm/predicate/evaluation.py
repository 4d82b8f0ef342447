"""Evaluation of a predicate on rows in Arrow, with the results of Spark.

The three-valued logic is Arrow's (Kleene), with NULL for unknown. A value that is finer than its column is rounded down
to a value of the column's type, and the comparison is adapted, so that no cast can overflow or round.

Evaluators can fail, for example by a division by zero. So a part of AND or OR with an evaluator is evaluated after the
others, and only for the rows that these do not decide.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import ROUND_FLOOR, Context, Decimal
from functools import reduce
from math import floor
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.predicate.predicate import (
    And,
    Compare,
    CompareColumns,
    Constant,
    Evaluated,
    In,
    IsNotNull,
    IsNull,
    IsTrue,
    Like,
    Or,
    Predicate,
    StartsWith,
    columns,
    is_evaluated,
    unknown_part,
)
from lakelsm.predicate.shown_text import shown_condition
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, without_nanoseconds
from lakelsm.types.python_arrays import scalar_of

Rows: TypeAlias = pa.Table | pa.RecordBatch
#: A column of values or outcomes; an outcome that is equal for all rows may be a scalar.
_Values: TypeAlias = Any

_OPS: dict[str, Callable[[_Values, _Values], _Values]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
# The operators for a value that was rounded down to a value of the column's type.
_FLOORED_OPS = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
_FLIPPED = {"<": ">", "<=": ">="}
_NULL = scalar_of(None, pa.bool_())
_WIDE = Context(prec=100)


def check_supported(predicate: Predicate, where: str) -> None:
    """Raise UnsupportedFeatureError unless all parts of the condition ``where`` are supported.

    Raises InvalidInputError for a LIKE pattern that is too long.
    """
    unknown = unknown_part(predicate)
    if unknown is not None:
        raise unsupported(where, unknown.reason)
    pattern = _too_long(predicate)
    if pattern is not None:
        raise InvalidInputError(
            f"condition {shown_condition(where)}: Arrow cannot match a LIKE pattern of {len(pattern)} characters with "
            f"{pattern.count('%') + pattern.count('_')} wildcards. Use fewer wildcards."
        )


def unsupported(where: str, part: str) -> UnsupportedFeatureError:
    """Return the error for a part of a condition."""
    return UnsupportedFeatureError(
        f"condition {shown_condition(where)}: the local engine cannot evaluate {part!r}. Compare a column "
        "with a literal of its type (times with a zone or as TIMESTAMP_NTZ), filter the result instead, or use "
        "Spark: Table.read or engine='spark'."
    )


def _too_long(predicate: Predicate) -> str | None:
    """Return a pattern that is too long for Arrow, or None."""
    if isinstance(predicate, And | Or):
        return next((pattern for pattern in map(_too_long, predicate.children) if pattern is not None), None)
    if isinstance(predicate, IsTrue):
        return _too_long(predicate.child)
    if not isinstance(predicate, Like):
        return None
    try:
        pc.match_like(pa.array([""]), predicate.pattern)
    except pa.ArrowInvalid:
        return predicate.pattern
    return None


def matching(predicate: Predicate, rows: Rows) -> pa.Array | pa.ChunkedArray:
    """Return, for each row, whether the predicate is TRUE, as a mask without NULL.

    ``rows`` have the predicate's columns in the types of `types.to_arrow`, and all parts of the predicate are supported
    (`check_supported`).
    """
    outcome = outcomes(predicate, rows)
    if isinstance(outcome, pa.Scalar):
        return pa.repeat(pa.scalar(outcome.as_py() is True), rows.num_rows)
    return pc.fill_null(outcome, False) if outcome.null_count else outcome


def outcomes(predicate: Predicate, rows: Rows) -> _Values:
    """Return TRUE, FALSE or NULL for each row, or a scalar for all rows. ``rows`` are as in `matching`."""
    if isinstance(predicate, And | Or) and is_evaluated(predicate):
        return _in_order(predicate, rows)
    match predicate:
        case Evaluated(evaluator):
            return evaluator(rows)
        case And(children):
            return reduce(pc.and_kleene, (outcomes(child, rows) for child in children), pa.scalar(True))
        case Or(children):
            return reduce(pc.or_kleene, (outcomes(child, rows) for child in children), pa.scalar(False))
        case Constant(value):
            return pa.scalar(value, pa.bool_())
        case IsTrue(child, negated):
            found = pc.coalesce(outcomes(child, rows), pa.scalar(False))
            return pc.invert(found) if negated else found
        case CompareColumns(left, op, right):
            return compared(rows.column(left), op, rows.column(right))
    assert isinstance(predicate, Compare | In | StartsWith | Like | IsNull | IsNotNull)
    return _leaf(predicate, rows.column(predicate.column))


def _in_order(predicate: And | Or, rows: Rows) -> pa.Array | pa.ChunkedArray:
    """Return, for each row, whether the predicate is TRUE; parts with an evaluator are evaluated last."""
    is_and = isinstance(predicate, And)
    late = [child for child in predicate.children if is_evaluated(child)]
    early = tuple(child for child in predicate.children if not is_evaluated(child))
    found = matching(And(early) if is_and else Or(early), rows)
    for child in late:
        still_open = found if is_and else pc.invert(found)
        if pc.all(still_open).as_py():
            found = matching(child, rows)
            continue
        chosen = rows.select(sorted(columns(child))).filter(still_open)
        found = pc.replace_with_mask(_one_array(found), _one_array(still_open), _one_array(matching(child, chosen)))
    return found


def _one_array(values: _Values) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _leaf(leaf: Compare | In | StartsWith | Like | IsNull | IsNotNull, column: _Values) -> _Values:
    match leaf:
        case IsNull():
            return column.is_null()
        case IsNotNull():
            return column.is_valid()
        case StartsWith(_, prefix, negated):
            found = pc.starts_with(column, prefix)
        case Like(_, pattern, negated):
            found = pc.match_like(column, pattern)
        case In(_, values, negated):
            found = _is_in(_comparable(column), values)
        case Compare(_, op, value):
            return _compare(_comparable(column), op, value)
    return pc.invert(found) if negated else found


def _comparable(column: _Values) -> _Values:
    """Return the column in a type that compares as in Spark: times in microseconds, floats without -0.0."""
    kind = column.type
    if kind == NANO_TIMESTAMP:
        micros = pa.timestamp("us")
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return pa.chunked_array([without_nanoseconds(chunk, micros) for chunk in chunks], micros)
    if pa.types.is_floating(kind):
        return pc.add(column.cast(pa.float64()), 0.0)
    return column


def _compare(column: _Values, op: str, value: Any) -> _Values:
    kind = column.type
    if pa.types.is_floating(kind):
        found = _OPS[op](column, pa.scalar(float(value), kind))
        return pc.or_kleene(found, pc.is_nan(column)) if op in (">", ">=") else found
    floored, on_grid, beyond = _floored(kind, value)
    if beyond or not (on_grid or op in _FLOORED_OPS):
        # Below or above all values of the type, or between two of them.
        always = op == "!=" or (beyond < 0 and op in (">", ">=")) or (beyond > 0 and op in ("<", "<="))
        return _where_valid(column, always)
    return _OPS[op if on_grid else _FLOORED_OPS[op]](column, floored)


def _floored(kind: pa.DataType, value: Any) -> tuple[pa.Scalar | None, bool, int]:
    """Round a value down to a column's type. Returns the result, whether it is equal, and a position.

    The position is -1 or 1 if the value is below or above all values of the type, else 0.
    """
    if pa.types.is_integer(kind):
        bound = 1 << (kind.bit_width - 1)
        number = floor(value)
        return _scalar(number, kind, number == value, -1 if number < -bound else int(number >= bound))
    if pa.types.is_decimal(kind):
        number = Decimal(value).quantize(Decimal((0, (1,), -kind.scale)), rounding=ROUND_FLOOR, context=_WIDE)
        largest = Decimal((0, (9,) * kind.precision, -kind.scale))
        return _scalar(number, kind, number == value, -1 if number < -largest else int(number > largest))
    if pa.types.is_timestamp(kind) and isinstance(value, datetime):
        exact = pa.scalar(value.replace(tzinfo=None), pa.timestamp("us"))
        low = pc.floor_temporal(exact, unit="millisecond" if kind.unit == "ms" else "microsecond")
        return low.cast(pa.timestamp(kind.unit)).cast(pa.int64()).cast(kind), bool(low.equals(exact)), 0
    return pa.scalar(value, kind), True, 0


def _scalar(number: Any, kind: pa.DataType, on_grid: bool, beyond: int) -> tuple[pa.Scalar | None, bool, int]:
    return (None if beyond else pa.scalar(number, kind)), on_grid, beyond


def _is_in(column: _Values, values: tuple[Any, ...]) -> _Values:
    found = pc.is_in(column, value_set=_value_set(column.type, values))
    return pc.if_else(column.is_valid(), found, _NULL) if column.null_count else found


def _value_set(kind: pa.DataType, values: tuple[Any, ...]) -> pa.Array:
    """Convert the values of a list to Arrow, without a Python step per value unless their type differs."""
    if pa.types.is_floating(kind):
        return pa.array([float(value) + 0.0 for value in values], kind)
    if pa.types.is_timestamp(kind):
        times = pa.array([value.replace(tzinfo=None) for value in values], pa.timestamp("us"))
        return times.cast(pa.timestamp(kind.unit)).cast(pa.int64()).cast(kind)
    return pa.array(values, kind)


def _where_valid(column: _Values, flag: bool) -> _Values:
    """Return the flag for each row whose value is not NULL, else NULL."""
    return pc.if_else(column.is_valid(), pa.scalar(flag), _NULL)


def compared(left: _Values, op: str, right: _Values) -> _Values:
    """Compare two columns of one type; op is one of = != < <= > >=. NULL if one side is NULL."""
    if op in _FLIPPED:
        return compared(right, _FLIPPED[op], left)
    left, right = _comparable(left), _comparable(right)
    found = _OPS[op](left, right)
    if not pa.types.is_floating(left.type):
        return found
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if op == "=":
        return pc.or_kleene(found, pc.and_kleene(left_nan, right_nan))
    if op == "!=":
        return pc.and_kleene(found, pc.invert(pc.and_kleene(left_nan, right_nan)))
    above = left_nan if op == ">=" else pc.and_kleene(left_nan, pc.invert(right_nan))
    return pc.or_kleene(found, above)


__all__ = ["Rows", "check_supported", "compared", "matching", "outcomes", "unsupported"]
