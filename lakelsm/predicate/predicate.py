"""Predicates as planning understands them, with SQL's three-valued logic.

A predicate is an approximation that errs on one side: where it does not understand a part of the SQL text,
that part is `Unknown`, which may come out as anything. So a row, file or partition may be dropped only if
the predicate surely does not come out TRUE there; FALSE and NULL both drop a row in SQL. There is no NOT:
`negate` pushes it down to the leaves, which is right in three-valued logic.

Order and equality are Spark's: strings by code point, NaN equal to NaN and above every other number, 0.0
equal to -0.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any


class Predicate:
    """Base of all predicates. Values are immutable and compare by content."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Compare(Predicate):
    """`column op value`, op one of = != < <= > >=. The value is no None and no NaN; NULL column: NULL."""

    column: str
    op: str
    value: Any


@dataclass(frozen=True, slots=True)
class In(Predicate):
    """`column IN (values)`, or NOT IN. At least one value, none of them None or NaN; a NULL column gives
    NULL.
    """

    column: str
    values: tuple[Any, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class StartsWith(Predicate):
    """A text column begins (or does not begin) with the prefix; a NULL column gives NULL."""

    column: str
    prefix: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    """`column IS NULL`; never NULL itself."""

    column: str


@dataclass(frozen=True, slots=True)
class IsNotNull(Predicate):
    """`column IS NOT NULL`; never NULL itself."""

    column: str


@dataclass(frozen=True, slots=True)
class And(Predicate):
    """All children; build it with `all_of`."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    """Any child; build it with `any_of`."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Constant(Predicate):
    """TRUE, FALSE or NULL (None) whatever the row."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Unknown(Predicate):
    """Not understood: may come out as anything, so it drops no row by itself. `reason` is for people."""

    reason: str = ""


_NEGATED_OP = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def all_of(children: Iterable[Predicate]) -> Predicate:
    """The conjunction, flattened; one child is itself, none is TRUE."""
    flat: list[Predicate] = []
    for child in children:
        flat.extend(child.children if isinstance(child, And) else (child,))
    return flat[0] if len(flat) == 1 else And(tuple(flat)) if flat else Constant(True)


def any_of(children: Iterable[Predicate]) -> Predicate:
    """The disjunction, flattened; one child is itself, none is FALSE."""
    flat: list[Predicate] = []
    for child in children:
        flat.extend(child.children if isinstance(child, Or) else (child,))
    return flat[0] if len(flat) == 1 else Or(tuple(flat)) if flat else Constant(False)


def negate(predicate: Predicate) -> Predicate:
    """`NOT predicate`, with NOT pushed down to the leaves."""
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
        case IsNull(column):
            return IsNotNull(column)
        case IsNotNull(column):
            return IsNull(column)
        case Constant(value):
            return Constant(None if value is None else not value)
        case _:
            return predicate


def columns(predicate: Predicate) -> frozenset[str]:
    """The columns that the understood parts of the predicate use."""
    if isinstance(predicate, And | Or):
        return frozenset().union(*(columns(child) for child in predicate.children))
    if isinstance(predicate, Compare | In | StartsWith | IsNull | IsNotNull):
        return frozenset((predicate.column,))
    return frozenset()


def is_exact(predicate: Predicate) -> bool:
    """Whether every part was understood, so that `evaluate` on a full row always has an answer."""
    if isinstance(predicate, And | Or):
        return all(is_exact(child) for child in predicate.children)
    return not isinstance(predicate, Unknown)


def restrict(predicate: Predicate, to: Iterable[str]) -> Predicate:
    """What the predicate says about the given columns alone: the leaves on other columns become `Unknown`.

    A row that surely fails the result surely fails the predicate, whatever its other columns hold.
    """
    return _restrict(predicate, frozenset(to))


def _restrict(predicate: Predicate, to: frozenset[str]) -> Predicate:
    if isinstance(predicate, And):
        return all_of(_restrict(child, to) for child in predicate.children)
    if isinstance(predicate, Or):
        return any_of(_restrict(child, to) for child in predicate.children)
    return predicate if columns(predicate) <= to else Unknown("other column")


_TRUE, _FALSE, _NULL = 1, 2, 4
_ANYTHING = _TRUE | _FALSE | _NULL
_RANK = {_FALSE: 0, _NULL: 1, _TRUE: 2}  # AND is the minimum of the ranks, OR the maximum
_OUTCOMES = (_FALSE, _NULL, _TRUE)


def _combine(pick_rank: Any) -> tuple[tuple[int, ...], ...]:
    """Table of possible outcomes of a connective, from the sets of possible outcomes of its two sides."""
    table = []
    for left in range(8):
        row = []
        for right in range(8):
            mask = 0
            for a, b in product(_OUTCOMES, _OUTCOMES):
                if left & a and right & b:
                    mask |= _OUTCOMES[pick_rank(_RANK[a], _RANK[b])]
            row.append(mask)
        table.append(tuple(row))
    return tuple(table)


_AND = _combine(min)
_OR = _combine(max)


def evaluate(predicate: Predicate, row: Mapping[str, Any]) -> bool | None:
    """Whether the predicate is TRUE for a row of exact values, such as a partition.

    True: surely TRUE. False: surely not TRUE (FALSE or NULL), so no such row is wanted. None: cannot be
    told, because a part is unknown, a column is missing from `row`, or a value's Python type is not the one
    that the column's type has. A value None in `row` is NULL.
    """
    mask = _outcomes(predicate, row)
    if mask == _TRUE:
        return True
    return None if mask & _TRUE else False


def _outcomes(predicate: Predicate, row: Mapping[str, Any]) -> int:
    if isinstance(predicate, And | Or):
        table = _AND if isinstance(predicate, And) else _OR
        mask = _TRUE if isinstance(predicate, And) else _FALSE
        for child in predicate.children:
            mask = table[mask][_outcomes(child, row)]
        return mask
    if isinstance(predicate, Constant):
        return _NULL if predicate.value is None else _TRUE if predicate.value else _FALSE
    if isinstance(predicate, Compare | In | StartsWith | IsNull | IsNotNull):
        if predicate.column not in row:
            return _ANYTHING
        return _leaf_outcome(predicate, row[predicate.column])
    return _ANYTHING


def _leaf_outcome(leaf: Compare | In | StartsWith | IsNull | IsNotNull, value: Any) -> int:
    if isinstance(leaf, IsNull):
        return _TRUE if value is None else _FALSE
    if isinstance(leaf, IsNotNull):
        return _FALSE if value is None else _TRUE
    if value is None:
        return _NULL
    try:
        if isinstance(leaf, Compare):
            passes = holds(leaf.op, _order(value, leaf.value))
        elif isinstance(leaf, In):
            passes = any(_order(value, other) == 0 for other in leaf.values) != leaf.negated
        elif isinstance(value, str):
            passes = value.startswith(leaf.prefix) != leaf.negated
        else:
            return _ANYTHING
    except TypeError:
        return _ANYTHING
    return _TRUE if passes else _FALSE


def _order(value: Any, other: Any) -> int:
    """-1, 0 or 1; raises TypeError where Python does not order the two types (equality alone would say
    unequal).
    """
    if value != value:  # NaN; `other` never is
        return 1
    return int(value > other) - int(value < other)


def holds(op: str, order: int) -> bool:
    """Whether `left op right` holds, given how left is ordered to right: -1, 0 or 1."""
    if op in ("=", "!="):
        return (order == 0) == (op == "=")
    if op in ("<", "<="):
        return order < 0 or (order == 0 and op == "<=")
    return order > 0 or (order == 0 and op == ">=")


def equality_values(
    predicate: Predicate, of: Sequence[str], limit: int = 1000
) -> tuple[tuple[Any, ...], ...] | None:
    """All tuples of values of the columns `of` that a row for which the predicate is TRUE can have.

    None if the predicate does not pin every column to a list of values, or if there are more than `limit`
    tuples. An empty result means that no row can be TRUE. Values have the Python type of the column's type
    (None for NULL), so that a caller can hash them to buckets; both zeros of a float are listed. The result
    may hold too many tuples, never too few.
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
    """The values that the column can have in a TRUE row, in the order met; None for no finite list."""
    found: dict[Any, None] | None = None
    if isinstance(predicate, And):
        for child in predicate.children:
            values = _column_values(child, column, limit)
            if values is not None:
                found = values if found is None else {value: None for value in found if value in values}
    elif isinstance(predicate, Or):
        found = {}
        for child in predicate.children:
            values = _column_values(child, column, limit)
            if values is None or len(found) > limit:
                return None
            found.update(values)
    elif isinstance(predicate, Constant):
        found = None if predicate.value else {}
    elif isinstance(predicate, Compare) and predicate.column == column and predicate.op == "=":
        found = {predicate.value: None}
    elif isinstance(predicate, In) and predicate.column == column and not predicate.negated:
        found = dict.fromkeys(predicate.values)
    elif isinstance(predicate, IsNull) and predicate.column == column:
        found = {None: None}
    return found


def _representations(value: Any) -> tuple[Any, ...]:
    """Values that SQL holds equal and that differ in bytes: only the zeros of a float."""
    return (0.0, -0.0) if isinstance(value, float) and value == 0 else (value,)
