"""Predicates for planning, with SQL's three-valued logic.

A predicate may be an approximation: a part of the SQL text that is not supported is `Unknown`, which can have any value.
A row, file or partition is dropped only if the predicate cannot be TRUE there; in SQL, FALSE and NULL both drop a row.
There is no NOT: `negate` pushes it down to the leaves, which is correct in three-valued logic.

Order and equality are Spark's: strings by code point, NaN equal to NaN and above every other number, 0.0 equal to -0.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol


class Predicate:
    """Base class of predicates, which are immutable and compare by content."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Compare(Predicate):
    """`column op value`; op is one of = != < <= > >=, and the value is not None or NaN. NULL if the column is NULL."""

    column: str
    op: str
    value: Any


@dataclass(frozen=True, slots=True)
class In(Predicate):
    """`column IN (values)`, or NOT IN. NULL if the column is NULL.

    There is at least one value. Each is a value of the column's type, and not None or NaN.
    """

    column: str
    values: tuple[Any, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class StartsWith(Predicate):
    """A text column begins (or does not begin) with the prefix. NULL if the column is NULL."""

    column: str
    prefix: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    """`column IS NULL`. Never NULL."""

    column: str


@dataclass(frozen=True, slots=True)
class IsNotNull(Predicate):
    """`column IS NOT NULL`. Never NULL."""

    column: str


@dataclass(frozen=True, slots=True)
class Like(Predicate):
    """A text column matches (or does not match) a pattern, in which % is any text and _ one character.

    NULL if the column is NULL. Statistics cannot decide it: the parser adds conditions that they can decide.
    """

    column: str
    pattern: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class CompareColumns(Predicate):
    """`left op right` of two columns whose values compare directly. NULL if one side is NULL."""

    left: str
    op: str
    right: str


@dataclass(frozen=True, slots=True)
class IsTrue(Predicate):
    """`child IS TRUE`, or IS NOT TRUE. Never NULL. It is combined with its child, which statistics can decide."""

    child: Predicate
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And(Predicate):
    """The conjunction of all children, made by `all_of`."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    """The disjunction of all children, made by `any_of`."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Constant(Predicate):
    """TRUE, FALSE or NULL (None) for every row."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Unknown(Predicate):
    """A part that is not supported. It can have any value, so it excludes no row. Messages show `reason`, its text."""

    reason: str = ""


class RowEvaluator(Protocol):
    """Evaluates an expression that the classes of this room do not have. It can be pickled, and compares by content."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the values depend on; at least one."""

    def __call__(self, rows: Any) -> Any:
        """Return the value for each row (a record batch or table in Arrow), in the order of the rows."""

    def of_values(self, values: Mapping[str, Sequence[Any]]) -> Sequence[Any] | None:
        """Return the values for rows that are given as lists of Python values; None if they cannot be evaluated."""


@dataclass(frozen=True, slots=True)
class Evaluated(Predicate):
    """A condition that an evaluator computes. It is TRUE for the rows that match; for others it is FALSE or NULL.

    It is therefore within AND and OR only. Statistics decide it for rows with equal values only.
    """

    evaluator: RowEvaluator


_NEGATED_OP = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def all_of(children: Iterable[Predicate]) -> Predicate:
    """Return the flattened conjunction. All `!=` of a column become one NOT IN. Without children it is TRUE."""
    flat: list[Predicate] = []
    for child in children:
        flat.extend(child.children if isinstance(child, And) else (child,))
    flat = _listed(flat, "!=")
    return flat[0] if len(flat) == 1 else And(tuple(flat)) if flat else Constant(True)


def any_of(children: Iterable[Predicate]) -> Predicate:
    """Return the flattened disjunction. All `=` of a column become one IN. Without children it is FALSE."""
    flat: list[Predicate] = []
    for child in children:
        flat.extend(child.children if isinstance(child, Or) else (child,))
    flat = _listed(flat, "=")
    return flat[0] if len(flat) == 1 else Or(tuple(flat)) if flat else Constant(False)


def _listed(parts: list[Predicate], op: str) -> list[Predicate]:
    """Combine several `=` of an OR, or `!=` of an AND, on one column to a list, at the position of the first one."""
    columns = [part.column for part in parts if isinstance(part, Compare) and part.op == op]
    if len(set(columns)) == len(columns):
        return parts
    lists: dict[str, dict[Any, None]] = {}
    found: list[Predicate | str] = []
    for part in parts:
        if isinstance(part, Compare) and part.op == op:
            if part.column not in lists:
                found.append(part.column)
            lists.setdefault(part.column, {})[part.value] = None
        else:
            found.append(part)
    return [
        part if isinstance(part, Predicate) else _one_of(part, tuple(lists[part]), negated=op == "!=") for part in found
    ]


def _one_of(column: str, values: tuple[Any, ...], *, negated: bool) -> Predicate:
    return In(column, values, negated) if len(values) > 1 else Compare(column, "!=" if negated else "=", values[0])


def negate(predicate: Predicate) -> Predicate:
    """Return `NOT predicate`, with NOT pushed down to the leaves."""
    match predicate:
        case And(children):
            return any_of(negate(child) for child in children)
        case Or(children):
            return all_of(negate(child) for child in children)
        case Compare(column, op, value):
            return Compare(column, _NEGATED_OP[op], value)
        case In(column, values, negated):
            return In(column, values, not negated)
        case StartsWith(column, prefix, negated):
            return StartsWith(column, prefix, not negated)
        case Like(column, pattern, negated):
            return Like(column, pattern, not negated)
        case CompareColumns(left, op, right):
            return CompareColumns(left, _NEGATED_OP[op], right)
        case IsTrue(child, negated):
            return IsTrue(child, not negated)
        case IsNull(column):
            return IsNotNull(column)
        case IsNotNull(column):
            return IsNull(column)
        case Constant(value):
            return Constant(None if value is None else not value)
        case Evaluated():
            return Unknown("NOT of an evaluated condition")
        case _:
            return predicate


def columns(predicate: Predicate) -> frozenset[str]:
    """Return the columns in the supported parts of the predicate."""
    if isinstance(predicate, And | Or):
        return frozenset().union(*(columns(child) for child in predicate.children))
    if isinstance(predicate, Compare | In | StartsWith | Like | IsNull | IsNotNull):
        return frozenset((predicate.column,))
    if isinstance(predicate, CompareColumns):
        return frozenset((predicate.left, predicate.right))
    if isinstance(predicate, Evaluated):
        return predicate.evaluator.columns
    return columns(predicate.child) if isinstance(predicate, IsTrue) else frozenset()


def is_exact(predicate: Predicate) -> bool:
    """Return whether statistics decide every part for rows with equal values, such as the rows of a partition."""
    if isinstance(predicate, And | Or):
        return all(is_exact(child) for child in predicate.children)
    return not isinstance(predicate, Unknown | Like | CompareColumns | IsTrue | Evaluated)


def unknown_part(predicate: Predicate) -> Unknown | None:
    """Return the first part that is not supported; None if the predicate can be evaluated for each row."""
    if isinstance(predicate, And | Or):
        return next((part for part in map(unknown_part, predicate.children) if part is not None), None)
    if isinstance(predicate, IsTrue):
        return unknown_part(predicate.child)
    return predicate if isinstance(predicate, Unknown) else None


def is_evaluated(predicate: Predicate) -> bool:
    """Return whether an evaluator computes a part of the predicate."""
    if isinstance(predicate, And | Or):
        return any(map(is_evaluated, predicate.children))
    return isinstance(predicate, Evaluated)


def restrict(predicate: Predicate, to: Iterable[str]) -> Predicate:
    """Return the parts of the predicate on the given columns; leaves on other columns become `Unknown`.

    A row for which the result cannot be TRUE cannot fulfil the predicate either, whatever its other values are.
    """
    return _restrict(predicate, frozenset(to))


def _restrict(predicate: Predicate, to: frozenset[str]) -> Predicate:
    if isinstance(predicate, And):
        return all_of(_restrict(child, to) for child in predicate.children)
    if isinstance(predicate, Or):
        return any_of(_restrict(child, to) for child in predicate.children)
    return predicate if columns(predicate) <= to else Unknown("other column")


def holds(op: str, order: int) -> bool:
    """Return whether `left op right` is true, given the order of left and right: -1, 0 or 1."""
    if op in ("=", "!="):
        return (order == 0) == (op == "=")
    if op in ("<", "<="):
        return order < 0 or (order == 0 and op == "<=")
    return order > 0 or (order == 0 and op == ">=")


def equality_values(
    predicate: Predicate, of: Sequence[str], limit: int = 1000
) -> tuple[tuple[Any, ...], ...] | None:
    """Return all tuples of values that rows can have in the columns `of` if the predicate is TRUE.

    None if the predicate does not restrict every column to a list of values, or if there are more than `limit` tuples. An
    empty result means that the predicate is TRUE for no row. Values have the Python type of the column's type (None for
    NULL), so that a caller can hash them to buckets; both zeros of a float are listed. The result may have too many
    tuples, never too few.
    """
    per_column: list[list[Any]] = []
    size = 1
    for column in of:
        values = _column_values(predicate, column, limit)
        if values is None:
            return None
        per_column.append([variant for value in values for variant in _representations(value)])
        size *= len(per_column[-1])
    if size > limit:
        return None
    return tuple(product(*per_column))


def _column_values(predicate: Predicate, column: str, limit: int) -> dict[Any, None] | None:
    """Return the values that the column can have if the predicate is TRUE; None if there is no finite list."""
    if isinstance(predicate, (And, Or)):
        lists = (_column_values(child, column, limit) for child in predicate.children)
        return _common(lists) if isinstance(predicate, And) else _joined(lists, limit)
    if isinstance(predicate, Constant):
        return None if predicate.value else {}
    if not isinstance(predicate, (Compare, In, IsNull)) or predicate.column != column:
        return None
    if isinstance(predicate, IsNull):
        return {None: None}
    if isinstance(predicate, In):
        return None if predicate.negated else dict.fromkeys(predicate.values)
    return {predicate.value: None} if predicate.op == "=" else None


def _common(lists: Iterable[dict[Any, None] | None]) -> dict[Any, None] | None:
    """Return the values in all finite lists; None if there is no finite list."""
    found: dict[Any, None] | None = None
    for values in lists:
        if values is not None:
            found = values if found is None else {value: None for value in found if value in values}
    return found


def _joined(lists: Iterable[dict[Any, None] | None], limit: int) -> dict[Any, None] | None:
    """Return the values of all lists; None if one is not finite or there are more than ``limit`` before the last one."""
    found: dict[Any, None] = {}
    for values in lists:
        if values is None or len(found) > limit:
            return None
        found.update(values)
    return found


def _representations(value: Any) -> tuple[Any, ...]:
    """Return the values that are equal in SQL but differ in bytes: only the zeros of a float."""
    return (0.0, -0.0) if isinstance(value, float) and value == 0 else (value,)
