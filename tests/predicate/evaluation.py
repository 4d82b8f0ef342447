"""Evaluation of a predicate for a row of exact values: the oracle for parsing, negation and pruning."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from lakelsm.predicate.predicate import And, Compare, Constant, In, IsNotNull, IsNull, Or, Predicate, StartsWith, holds

_TRUE, _FALSE, _NULL = 1, 2, 4
_ANYTHING = _TRUE | _FALSE | _NULL
_RANK = {_FALSE: 0, _NULL: 1, _TRUE: 2}  # AND is the minimum of the ranks, OR the maximum.
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
    """Return whether the predicate is TRUE for a row of exact values, such as a partition.

    False means FALSE or NULL, so that the row does not match. None means unknown: a part is not supported, a column is
    missing in `row`, or a value does not have the Python type of the column. A value None in `row` is NULL.
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
