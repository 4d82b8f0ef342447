"""Evaluation of predicates on column statistics, to find the files of which no row, or each row, meets a predicate.

Statistics are bounds, not values: a minimum may be below and a maximum above all values of the file (truncated texts).
None as a bound or a null count means unknown. Bounds of floats do not include NaN, which is above every number.

Conditions can have thousands of leaves and long lists. The values that a condition compares a column with are therefore
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
    Evaluated,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
    negate,
)

Mask = npt.NDArray[np.bool_]
Ranks = npt.NDArray[np.int64]
Leaf = Compare | In | StartsWith | IsNull | IsNotNull


class ColumnBounds(NamedTuple):
    """Statistics of one column in many files: lists of equal length, in the order of the files.

    `exact`: each file has only one value, or only NULL. A bound can then be NaN.
    """

    mins: Sequence[Any]
    maxs: Sequence[Any]
    null_counts: Sequence[int | None]
    exact: bool = False


@dataclass(frozen=True, slots=True)
class StatsTable:
    """Statistics of many files by column; a missing column has no statistics.

    Bounds have the Python type of the table's column type (as from `pyarrow`'s `as_py`), also for files of an older type.
    A column that was added after a file was written, and reads as NULL, has the bounds None and a null count equal to the
    row count.
    """

    row_counts: Sequence[int]
    columns: Mapping[str, ColumnBounds]


def may_match(predicate: Predicate, stats: StatsTable) -> list[bool]:
    """Return, for each file, False if the predicate is TRUE for none of its rows."""
    found: list[bool] = _may_match(predicate, _columns(predicate, stats), len(stats.row_counts)).tolist()
    return found


def must_match(predicate: Predicate, stats: StatsTable) -> list[bool]:
    """Return, for each file, True if statistics prove that the predicate is TRUE for all of its rows."""
    found: list[bool] = _must_match(predicate, _columns(predicate, stats), len(stats.row_counts)).tolist()
    return found


def _columns(predicate: Predicate, stats: StatsTable) -> dict[str, _Column]:
    """Return the bounds of the columns that the predicate compares."""
    values: dict[str, set[Any]] = {}
    _gather(predicate, values)
    return {
        name: _Column(bounds, stats.row_counts, values[name]) for name, bounds in stats.columns.items() if name in values
    }


def _gather(predicate: Predicate, values: dict[str, set[Any]]) -> None:
    """Collect the values that each column is compared with."""
    if isinstance(predicate, And | Or):
        for child in predicate.children:
            _gather(child, values)
    elif isinstance(predicate, Evaluated):
        for name in predicate.evaluator.columns:
            values.setdefault(name, set())
    elif isinstance(predicate, Compare | In | StartsWith | IsNull | IsNotNull):
        known = values.setdefault(predicate.column, set())
        if isinstance(predicate, Compare):
            known.add(predicate.value)
        elif isinstance(predicate, In):
            known.update(predicate.values)
        elif isinstance(predicate, StartsWith):
            known.update(_prefix_range(predicate.prefix))


def _prefix_range(prefix: str) -> tuple[str, ...]:
    """Return the first text with the prefix, and the first text after all of these, if there is one."""
    kept = prefix.rstrip(chr(sys.maxunicode))
    return (prefix, kept[:-1] + chr(ord(kept[-1]) + 1)) if kept else (prefix,)


def _may_match(predicate: Predicate, columns: Mapping[str, _Column], count: int) -> Mask:
    if isinstance(predicate, And | Or):
        is_and = isinstance(predicate, And)
        masks = (_may_match(child, columns, count) for child in predicate.children)
        return reduce(np.logical_and if is_and else np.logical_or, masks, np.full(count, is_and))
    if isinstance(predicate, Constant):
        return np.full(count, predicate.value is True)
    if isinstance(predicate, Evaluated):
        return _evaluated(predicate, columns, count)
    if isinstance(predicate, Compare | In | StartsWith | IsNull | IsNotNull) and predicate.column in columns:
        return columns[predicate.column].may_match(predicate)
    return np.ones(count, dtype=bool)


def _must_match(predicate: Predicate, columns: Mapping[str, _Column], count: int) -> Mask:
    if isinstance(predicate, And | Or):
        is_and = isinstance(predicate, And)
        masks = (_must_match(child, columns, count) for child in predicate.children)
        return reduce(np.logical_and if is_and else np.logical_or, masks, np.full(count, is_and))
    if isinstance(predicate, Constant):
        return np.full(count, predicate.value is True)
    if isinstance(predicate, Compare | In | StartsWith | IsNull | IsNotNull) and predicate.column in columns:
        column = columns[predicate.column]
        # A value that is not NULL meets either a leaf or its negation.
        is_decided = isinstance(predicate, IsNull | IsNotNull)
        found: Mask = ~_may_match(negate(predicate), columns, count)
        return found if is_decided else found & ~column.has_null
    return np.zeros(count, dtype=bool)


def _evaluated(predicate: Evaluated, columns: Mapping[str, _Column], count: int) -> Mask:
    """Evaluate a condition for rows with equal values, such as the rows of a partition; other files may match."""
    names = predicate.evaluator.columns
    if not all(name in columns and columns[name].bounds.exact for name in names):
        return np.ones(count, dtype=bool)
    found = predicate.evaluator.of_values({name: columns[name].bounds.mins for name in names})
    return np.array([found is None or found[at] is True for at in range(count)], dtype=bool)


class _Column:
    """The bounds of one column in all files, as ranks among the values that it is compared with.

    The left rank of a bound is the number of values below it; the right rank also counts an equal value. An unknown
    minimum is below all values, an unknown maximum above all.
    """

    def __init__(self, bounds: ColumnBounds, row_counts: Sequence[int], values: Iterable[Any]) -> None:
        nulls = np.array([-1 if count is None else count for count in bounds.null_counts], dtype=np.int64)
        self.has_null: Mask = nulls != 0
        self._has_value: Mask = (nulls < 0) | (nulls < np.array(row_counts, dtype=np.int64))
        self.bounds = bounds
        self._comparable = True
        try:
            self._values = sorted(values)
            self._ranks = {value: rank for rank, value in enumerate(self._values)}
            self._low_left, self._low_right = self._looked_up(bounds.mins, 0)
            self._high_left, self._high_right = self._looked_up(bounds.maxs, len(self._values))
        except TypeError:  # Values or bounds of several Python types: no file can be excluded.
            self._comparable = False

    def _looked_up(self, bounds: Sequence[Any], unknown: int) -> tuple[Ranks, Ranks]:
        """Return the left and the right rank of each bound. NaN as a value is above all others."""
        values, exact, last = self._values, self.bounds.exact, len(self._values)
        nan = last if exact else unknown
        left = [unknown if b is None else bisect_left(values, b) if b == b else nan for b in bounds]
        right = [unknown if b is None else bisect_right(values, b) if b == b else nan for b in bounds]
        return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)

    def may_match(self, leaf: Leaf) -> Mask:
        """Return, for each file, False if the leaf is TRUE for none of its values."""
        if isinstance(leaf, IsNull):
            return self.has_null
        if isinstance(leaf, IsNotNull) or not self._comparable:
            return self._has_value
        if isinstance(leaf, StartsWith):
            return self._has_value & self._starts_with(leaf.prefix, leaf.negated)
        if isinstance(leaf, In):
            return self._has_value & (self._in_none(leaf.values) if leaf.negated else self._in_any(leaf.values))
        return self._has_value & self._compared(leaf.op, leaf.value)

    def _compared(self, op: str, value: Any) -> Mask:
        rank = self._ranks[value]
        found: Mask
        if op == "!=":
            found = self._in_none((value,))
        elif op in ("<", "<="):
            found = (self._low_right if op == "<" else self._low_left) <= rank
        elif op == "=":
            found = (self._low_left <= rank) & (self._high_right > rank)
        elif self._hides_nan(value):
            found = self._has_value
        else:
            found = (self._high_left if op == ">" else self._high_right) > rank
        return found

    def _hides_nan(self, value: Any) -> bool:
        """Return whether a file may have a NaN, which is above every number, outside its bounds."""
        return isinstance(value, float) and not self.bounds.exact

    def _in_any(self, values: Sequence[Any]) -> Mask:
        """Return the files with one of the values between their minimum and maximum."""
        listed = np.zeros(len(self._values) + 1, dtype=np.int64)
        listed[[self._ranks[value] + 1 for value in values]] = 1
        counts = np.cumsum(listed)
        found: Mask = counts[self._high_right] > counts[self._low_left]
        return found

    def _in_none(self, values: Sequence[Any]) -> Mask:
        """Return the files that may have a value outside the list: all but those whose only value is in it."""
        if self._hides_nan(values[0]):
            return self._has_value
        excluded = np.zeros(len(self._values) + 1, dtype=bool)
        excluded[[self._ranks[value] for value in values]] = True
        single = (self._low_left == self._high_left) & (self._low_right == self._high_right)
        only_excluded: Mask = single & (self._low_right > self._low_left) & excluded[self._low_left]
        return ~only_excluded

    def _starts_with(self, prefix: str, negated: bool) -> Mask:
        first, *after = (self._ranks[text] for text in _prefix_range(prefix))
        end = after[0] if after else len(self._values)
        starts: Mask = (self._high_right > first) & (self._low_right <= end)
        if not negated:
            return starts
        every: Mask = (self._low_right > first) & (self._high_right <= end)
        return ~every
