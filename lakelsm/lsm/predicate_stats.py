"""Predicates against column statistics: which files cannot hold a row for which the predicate is TRUE.

Statistics are bounds, not values: a minimum may be lower and a maximum higher than any row's value
(truncated texts). None as a bound or a null count means unknown. Bounds of floats say nothing about NaN,
which is above every number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import and_, or_
from typing import Any, NamedTuple

from lakelsm.lsm.predicate import And, Compare, Constant, In, IsNotNull, IsNull, Or, Predicate, StartsWith


class ColumnStats(NamedTuple):
    """Statistics of one column of one file; `row_count` counts all rows, nulls included."""

    min: Any
    max: Any
    null_count: int | None
    row_count: int


class ColumnBounds(NamedTuple):
    """Statistics of one column over many files: lists of equal length, in the order of the files."""

    mins: Sequence[Any]
    maxs: Sequence[Any]
    null_counts: Sequence[int | None]


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
    count = len(stats.row_counts)
    if isinstance(predicate, And | Or):
        is_and = isinstance(predicate, And)
        kept: list[bool] | None = None
        for child in predicate.children:
            part = may_match(child, stats)
            kept = part if kept is None else list(map(and_ if is_and else or_, kept, part))
        return [is_and] * count if kept is None else kept
    if isinstance(predicate, Constant):
        return [predicate.value is True] * count
    if isinstance(predicate, Compare | In | StartsWith | IsNull | IsNotNull):
        bounds = stats.columns.get(predicate.column)
        return [True] * count if bounds is None else _leaf(predicate, bounds, stats.row_counts)
    return [True] * count


def might_match(predicate: Predicate, stats: Mapping[str, ColumnStats]) -> bool:
    """`may_match` of one file, from the statistics of its columns by name."""
    if isinstance(predicate, And):
        return all(might_match(child, stats) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(might_match(child, stats) for child in predicate.children)
    if isinstance(predicate, Constant):
        return predicate.value is True
    if isinstance(predicate, Compare | In | StartsWith | IsNull | IsNotNull):
        one = stats.get(predicate.column)
        if one is not None:
            return _leaf(
                predicate, ColumnBounds((one.min,), (one.max,), (one.null_count,)), (one.row_count,)
            )[0]
    return True


Leaf = Compare | In | StartsWith | IsNull | IsNotNull


def _leaf(leaf: Leaf, bounds: ColumnBounds, row_counts: Sequence[int]) -> list[bool]:
    nulls = bounds.null_counts
    if isinstance(leaf, IsNull):
        return [count != 0 for count in nulls]
    has_value = [count is None or count < rows for count, rows in zip(nulls, row_counts, strict=True)]
    test = None if isinstance(leaf, IsNotNull) else _bounds_test(leaf)
    if test is None:
        return has_value
    ranges = zip(has_value, bounds.mins, bounds.maxs, strict=True)
    try:
        return [some and test(low, high) for some, low, high in ranges]
    except TypeError:  # a bound of another Python type than the literal: no ground to drop that file
        return [
            some and _guarded(test, low, high)
            for some, low, high in zip(has_value, bounds.mins, bounds.maxs, strict=True)
        ]


Test = Callable[[Any, Any], bool]


def _guarded(test: Test, low: Any, high: Any) -> bool:
    try:
        return test(low, high)
    except TypeError:
        return True


def _bounds_test(leaf: Compare | In | StartsWith) -> Test | None:
    """A test of (minimum, maximum) that is False only if no value between them passes; None for always True.

    Every comparison is written so that an unknown bound (None), or one that is NaN, lets the file pass.
    """
    if isinstance(leaf, StartsWith):
        return _starts_with_test(leaf.prefix, leaf.negated)
    if isinstance(leaf, In):
        return _in_test(leaf)
    return _compare_test(leaf.op, leaf.value)


def _compare_test(op: str, value: Any) -> Test | None:
    if isinstance(value, float) and op in (">", ">=", "!="):
        return None  # a NaN passes, and bounds do not tell whether there is one
    tests: dict[str, Test] = {
        "=": lambda low, high: not ((low is not None and low > value) or (high is not None and high < value)),
        "!=": lambda low, high: (
            not (low is not None and high is not None and not (low < value) and not (high > value))
        ),
        "<": lambda low, high: not (low is not None and low >= value),
        "<=": lambda low, high: not (low is not None and low > value),
        ">": lambda low, high: not (high is not None and high <= value),
        ">=": lambda low, high: not (high is not None and high < value),
    }
    return tests[op]


def _in_test(leaf: In) -> Test | None:
    if leaf.negated:
        if isinstance(leaf.values[0], float):
            return None
        excluded = set(leaf.values)
        return lambda low, high: low is None or high is None or low != high or low not in excluded
    values = sorted(leaf.values)

    def is_in(low: Any, high: Any) -> bool:
        first = 0 if low is None or low != low else bisect_left(values, low)
        return first < len(values) and not (high is not None and values[first] > high)

    return is_in


def _starts_with_test(prefix: str, negated: bool) -> Test:
    if negated:
        return lambda low, high: (
            not (
                isinstance(low, str)
                and isinstance(high, str)
                and low.startswith(prefix)
                and high.startswith(prefix)
            )
        )
    return lambda low, high: (
        not (
            (high is not None and high < prefix)
            or (low is not None and low > prefix and not low.startswith(prefix))
        )
    )
