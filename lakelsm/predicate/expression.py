"""SQL expressions on a row as frozen dataclasses, with their types in Spark's ANSI mode.

Expressions have fewer types than columns: CHAR and VARCHAR are STRING, BINARY is BYTES, TIME is INT (milliseconds of the
day, as in Spark), TIMESTAMP has 6 or 9 digits. All are nullable. `OnlyNull` is the type of NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lakelsm.predicate import predicate as conditions
from lakelsm.predicate.predicate import Predicate, RowEvaluator
from lakelsm.schema.row_rules import OnlyNull
from lakelsm.types import (
    BINARY_ROOTS,
    INTEGER_BITS,
    MAX_DECIMAL_DIGITS,
    MAX_LENGTH,
    STRING_ROOTS,
    AtomicType,
    DataType,
)

NULL_TYPE = OnlyNull()
BOOLEAN, INT, DOUBLE = AtomicType("BOOLEAN"), AtomicType("INT"), AtomicType("DOUBLE")
STRING, BYTES = AtomicType("VARCHAR", length=MAX_LENGTH), AtomicType("VARBINARY", length=MAX_LENGTH)

#: The minimum digits after the point that a result keeps if 38 digits are not enough for it.
_MIN_SCALE = 6
_INTEGERS = tuple(INTEGER_BITS)
_INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_FLOATS = ("FLOAT", "DOUBLE")
_ORDERED = ("BOOLEAN", "VARCHAR", "VARBINARY", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


@dataclass(frozen=True, slots=True)
class Expression:
    """Base class of expressions; ``type`` is the type of the values."""

    type: DataType


@dataclass(frozen=True, slots=True)
class Value(Expression):
    """A literal: a Python value of the type, or None."""

    value: Any


@dataclass(frozen=True, slots=True)
class ColumnValue(Expression):
    """A column of the row."""

    name: str


@dataclass(frozen=True, slots=True)
class Condition(Expression):
    """The outcome of a predicate (TRUE, FALSE or NULL), all parts of which are supported."""

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """``left op right``; op is one of = != < <= > >=, and both sides have the same type."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class NullTest(Expression):
    """``child IS NULL``."""

    child: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """``NOT child``."""

    child: Expression


@dataclass(frozen=True, slots=True)
class Connected(Expression):
    """``left AND right``, or OR (``op`` is 'and' or 'or'). The right side is evaluated only if needed."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """``left op right``; op is one of + - * / %. Both sides are decimals, or have the type of the result."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negative(Expression):
    """``-child``."""

    child: Expression


@dataclass(frozen=True, slots=True)
class Joined(Expression):
    """The concatenation of the children's texts or bytes; NULL if one is NULL."""

    children: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """The value of the first branch (condition, value) whose condition is TRUE, else ``otherwise``; all of one type."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Coalesced(Expression):
    """The first child that is not NULL; all of one type."""

    children: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """``CAST(child AS type)``."""

    child: Expression


@dataclass(frozen=True, slots=True)
class EvaluatedValue(Expression):
    """A value that an evaluator computes, of a type that the classes of this module need not know."""

    evaluator: RowEvaluator


def columns_of(expression: Expression) -> frozenset[str]:
    """Return the columns that the values depend on."""
    if isinstance(expression, EvaluatedValue):
        return expression.evaluator.columns
    if isinstance(expression, ColumnValue):
        return frozenset((expression.name,))
    if isinstance(expression, Condition):
        return conditions.columns(expression.predicate)
    return frozenset().union(*map(columns_of, _children(expression)))


def _children(expression: Expression) -> Iterator[Expression]:
    match expression:
        case Comparison(_, _, left, right) | Connected(_, _, left, right) | Arithmetic(_, _, left, right):
            yield from (left, right)
        case NullTest(_, child) | Not(_, child) | Negative(_, child) | Cast(_, child):
            yield child
        case Joined(_, children) | Coalesced(_, children):
            yield from children
        case Case(_, branches, otherwise):
            for branch in branches:
                yield from branch
            yield otherwise


# -- types -----------------------------------------------------------------------------------------------------------


def reduced(kind: DataType) -> DataType:
    """Return the type that a column's type has in expressions."""
    if not isinstance(kind, AtomicType):
        return kind.with_nullable(True)
    if kind.root in STRING_ROOTS:
        return STRING
    if kind.root in BINARY_ROOTS:
        return BYTES
    if kind.root == "TIME":
        return INT
    if kind.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return AtomicType(kind.root, precision=9 if (kind.precision or 0) > 6 else 6)
    return kind.with_nullable(True)


def decimal(precision: int, scale: int) -> AtomicType:
    """Return DECIMAL(precision, scale). A precision above 38 reduces the digits after the point, at least to 6."""
    if precision > MAX_DECIMAL_DIGITS:
        scale = max(MAX_DECIMAL_DIGITS - (precision - scale), min(scale, _MIN_SCALE))
    return AtomicType("DECIMAL", precision=min(precision, MAX_DECIMAL_DIGITS), scale=scale)


def is_number(kind: DataType) -> bool:
    """Return whether values are numbers; NULL counts as one."""
    return kind.root in _INTEGERS or kind.root in _FLOATS or kind.root in ("DECIMAL", NULL_TYPE.root)


def decimal_of(expression: Expression) -> AtomicType:
    """Return the DECIMAL type for an integer or DECIMAL; a literal needs only its own digits, unless it is a TINYINT."""
    kind = expression.type
    assert isinstance(kind, AtomicType)
    if kind.root == "DECIMAL":
        return kind
    if isinstance(expression, Value) and expression.value is not None and kind.root != "TINYINT":
        return decimal(len(str(abs(expression.value))), 0)
    return decimal(_INTEGER_DIGITS[kind.root], 0)


def arithmetic_type(op: str, left: Expression, right: Expression) -> AtomicType:
    """Return the type of ``left op right`` for two numbers."""
    roots = {left.type.root, right.type.root} - {NULL_TYPE.root}
    if not roots or (op == "/" and left.type == NULL_TYPE):
        return DOUBLE
    if "DECIMAL" in roots and not roots & {*_FLOATS}:
        known = [side for side in (left, right) if side.type != NULL_TYPE]
        sides = [decimal_of(side) for side in known]
        return _decimal_result(op, sides[0], sides[-1])
    if op == "/":
        return DOUBLE
    return _wider_plain(roots)


def common_type(kinds: Iterator[DataType]) -> DataType | None:
    """Return the common type of several types, as for branches of CASE; None if Spark would cast texts or zones."""
    found: DataType | None = NULL_TYPE
    for kind in kinds:
        found = None if found is None else _wider(found, kind)
    return found


def is_ordered(kind: DataType) -> bool:
    """Return whether values can be compared by order."""
    return is_number(kind) or kind.root in _ORDERED


def _decimal_result(op: str, left: AtomicType, right: AtomicType) -> AtomicType:
    s1, s2 = left.scale or 0, right.scale or 0
    w1, w2 = (left.precision or 0) - s1, (right.precision or 0) - s2
    scale = max(s1, s2)
    if op in "+-":
        return decimal(max(w1, w2) + scale + 1, scale)
    if op == "*":
        return decimal(w1 + s1 + w2 + s2 + 1, s1 + s2)
    if op == "%":
        return decimal(min(w1, w2) + scale, scale)
    scale = max(_MIN_SCALE, s1 + w2 + s2 + 1)
    return decimal(w1 + s2 + scale, scale)


def _wider_plain(roots: set[str]) -> AtomicType:
    """Return the wider type of integers and floats. An integer and a FLOAT make a DOUBLE."""
    if roots & {*_FLOATS}:
        return AtomicType("FLOAT") if roots == {"FLOAT"} else DOUBLE
    return AtomicType(max(roots, key=_INTEGERS.index))


def _wider(one: DataType, other: DataType) -> DataType | None:
    if one == other or NULL_TYPE in (one, other):
        return other if one == NULL_TYPE else one
    roots = {one.root, other.root}
    if is_number(one) and is_number(other):
        if "DECIMAL" not in roots or roots & {*_FLOATS}:
            return DOUBLE if "DECIMAL" in roots else _wider_plain(roots)
        return _wider_decimal(*(decimal_of(Expression(kind)) for kind in (one, other)))
    if roots in ({"DATE", "TIMESTAMP"}, {"TIMESTAMP"}, {"TIMESTAMP_LTZ"}):
        assert isinstance(one, AtomicType) and isinstance(other, AtomicType)
        root = "TIMESTAMP_LTZ" if "TIMESTAMP_LTZ" in roots else "TIMESTAMP"
        return AtomicType(root, precision=max(one.precision or 0, other.precision or 0))
    return None


def _wider_decimal(one: AtomicType, other: AtomicType) -> AtomicType:
    """Return a DECIMAL for both; if 38 digits are not enough, those before the point have priority."""
    scale = max(one.scale or 0, other.scale or 0)
    whole = max((kind.precision or 0) - (kind.scale or 0) for kind in (one, other))
    if whole + scale > MAX_DECIMAL_DIGITS:
        return AtomicType("DECIMAL", precision=MAX_DECIMAL_DIGITS, scale=max(0, MAX_DECIMAL_DIGITS - whole))
    return AtomicType("DECIMAL", precision=whole + scale, scale=scale)

