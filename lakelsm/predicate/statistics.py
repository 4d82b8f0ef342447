"""Predicates against column statistics: which files cannot hold a row for which the predicate is TRUE.

Statistics are bounds, not values: a minimum may be lower and a maximum higher than any row's value
(truncated texts). None as a bound or a null count means unknown. Bounds of floats do not cover NaN,
which is above every number.

Conditions can have thousands of leaves and long lists. So the values that a condition compares a column with are
sorted once, each bound is looked up among them once, and a leaf costs a few operations on arrays of ranks.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lakelsm.predicate.predicate import (
    And,
    Compare,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
)

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
Leaf = Compare | In | StartsWith | IsNull | IsNotNull


class ColumnBounds(NamedTuple):
    """Statistics of one column over many files: lists of equal length, in the order of the files.

    `exact`: each file has one value, or NULL alone; then a bound may be NaN.
    """

    mins: Sequence[Any]
    maxs: Sequence[Any]
    null_counts: Sequence[int | None]
    exact: bool = False


@dataclass(frozen=True, slots=True)
class StatsTable:
    """Statistics of many files, column by column; a column that is missing has none.

    Bounds have the Python type of the table's column type (as `pyarrow`'s `as_py` gives it), also where a
    file was written with an older type. For a column that a file does not have, because it was added later,
    and which reads as NULL: bounds None and a null count equal to the row count.
    """

    row_counts: Sequence[int]
    columns: Mapping[str, ColumnBounds]


def may_match(predicate: Predicate, stats: StatsTable) -> list[bool]:
    """For each file, False if surely no row of it makes the predicate TRUE."""
    values: dict[str, set[Any]] = {}
    _gather(predicate, values)
    columns = {
        name: _Column(bounds, stats.row_counts, values[name]) for name, bounds in stats.columns.items() if name in values
    }
    found: list[bool] = _may_match(predicate, columns, len(stats.row_counts)).tolist()
    return found


def _gather(predicate: Predicate, values: dict[str, set[Any]]) -> None:
    """Add what each column is compared with."""
    if isinstance(predicate, And | Or):
        for child in predicate.children:
            _gather(child, values)
    elif isinstance(predicate, Compare | In | StartsWith | IsNull | IsNotNull):
        known = values.setdefault(predicate.column, set())
        if isinstance(predicate, Compare):
            known.add(predicate.value)
        elif isinstance(predicate, In):
            known.update(predicate.values)
        elif isinstance(predicate, StartsWith):
            known.update(_prefix_range(predicate.prefix))


def _prefix_range(prefix: str) -> tuple[str, ...]:
    """The first text with the prefix and the first one after them; the latter is left out if there is none."""
    kept = prefix.rstrip(chr(sys.maxunicode))
    return (prefix, kept[:-1] + chr(ord(kept[-1]) + 1)) if kept else (prefix,)


def _may_match(predicate: Predicate, columns: Mapping[str, _Column], count: int) -> Mask:
    if isinstance(predicate, And | Or):
        is_and = isinstance(predicate, And)
        masks = (_may_match(child, columns, count) for child in predicate.children)
        return reduce(np.logical_and if is_and else np.logical_or, masks, np.full(count, is_and))
    if isinstance(predicate, Constant):
        return np.full(count, predicate.value is True)
    if isinstance(predicate, Compare | In | StartsWith | IsNull | IsNotNull) and predicate.column in columns:
        return columns[predicate.column].may_match(predicate)
    return np.ones(count, dtype=bool)


class _Column:
    """The bounds of one column over all files, as ranks among the values that it is compared with.

    The left rank of a bound is the number of values below it; the right rank also counts an equal value.
    An unknown minimum is below all values, an unknown maximum above all.
    """

    def __init__(self, bounds: ColumnBounds, row_counts: Sequence[int], values: Iterable[Any]) -> None:
        nulls = np.array([-1 if count is None else count for count in bounds.null_counts], dtype=np.int64)
        self._has_null: Mask = nulls != 0
        self._has_value: Mask = (nulls < 0) | (nulls < np.array(row_counts, dtype=np.int64))
        self._bounds = bounds
        self._comparable = True
        try:
            self._values = sorted(values)
            self._places = {value: place for place, value in enumerate(self._values)}
            self._low_left, self._low_right = self._looked_up(bounds.mins, 0)
            self._high_left, self._high_right = self._looked_up(bounds.maxs, len(self._values))
        except TypeError:  # values or bounds of several Python types: no ground to drop a file
            self._comparable = False

    def _looked_up(self, bounds: Sequence[Any], unknown: int) -> tuple[Places, Places]:
        """The left and right ranks of each bound. NaN as a value is above all."""
        values, exact, last = self._values, self._bounds.exact, len(self._values)
        nan = last if exact else unknown
        left = [unknown if b is None else bisect_left(values, b) if b == b else nan for b in bounds]
        right = [unknown if b is None else bisect_right(values, b) if b == b else nan for b in bounds]
        return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)

    def may_match(self, leaf: Leaf) -> Mask:
        """For each file, False if surely no value of it makes the leaf TRUE."""
        if isinstance(leaf, IsNull):
            return self._has_null
        if isinstance(leaf, IsNotNull) or not self._comparable:
            return self._has_value
        if isinstance(leaf, StartsWith):
            return self._has_value & self._starts_with(leaf.prefix, leaf.negated)
        if isinstance(leaf, In):
            return self._has_value & (self._in_none(leaf.values) if leaf.negated else self._in_any(leaf.values))
        return self._has_value & self._compared(leaf.op, leaf.value)

    def _compared(self, op: str, value: Any) -> Mask:
        place = self._places[value]
        found: Mask
        if op == "!=":
            found = self._in_none((value,))
        elif op in ("<", "<="):
            found = (self._low_right if op == "<" else self._low_left) <= place
        elif op == "=":
            found = (self._low_left <= place) & (self._high_right > place)
        elif self._hides_nan(value):
            found = self._has_value
        else:
            found = (self._high_left if op == ">" else self._high_right) > place
        return found

    def _hides_nan(self, value: Any) -> bool:
        """Whether a NaN, which is above every number, may be in a file whose bounds do not decide."""
        return isinstance(value, float) and not self._bounds.exact

    def _in_any(self, values: Sequence[Any]) -> Mask:
        """Files with one of the values from their minimum up to their maximum."""
        listed = np.zeros(len(self._values) + 1, dtype=np.int64)
        listed[[self._places[value] + 1 for value in values]] = 1
        counts = np.cumsum(listed)
        found: Mask = counts[self._high_right] > counts[self._low_left]
        return found

    def _in_none(self, values: Sequence[Any]) -> Mask:
        """Files whose one value is not in the list, and all that have several."""
        if self._hides_nan(values[0]):
            return self._has_value
        excluded = np.zeros(len(self._values) + 1, dtype=bool)
        excluded[[self._places[value] for value in values]] = True
        single = (self._low_left == self._high_left) & (self._low_right == self._high_right)
        gone: Mask = single & (self._low_right > self._low_left) & excluded[self._low_left]
        return ~gone

    def _starts_with(self, prefix: str, negated: bool) -> Mask:
        first, *after = (self._places[text] for text in _prefix_range(prefix))
        end = after[0] if after else len(self._values)
        starts: Mask = (self._high_right > first) & (self._low_right <= end)
        if not negated:
            return starts
        every: Mask = (self._low_right > first) & (self._high_right <= end)
        return ~every
