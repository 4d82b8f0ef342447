"""Statistics never exclude a file with a matching row, and never prove a condition that a row does not meet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import (
    Compare,
    Constant,
    Evaluated,
    In,
    IsNotNull,
    IsNull,
    Predicate,
    StartsWith,
    Unknown,
    all_of,
    any_of,
    columns,
)
from lakelsm.predicate.statistics import ColumnBounds, StatsTable, may_match, must_match
from tests.predicate.conditions import FIELDS, Condition, conditions, rows
from tests.predicate.doubled import Doubled

FILES = st.lists(st.lists(rows(), min_size=1, max_size=4), min_size=1, max_size=4)
NAN = float("nan")


class ColumnStats(NamedTuple):
    """Statistics of one column of one file; `row_count` counts all rows, nulls included."""

    min: Any
    max: Any
    null_count: int | None
    row_count: int


def might_match(predicate: Predicate, stats: Mapping[str, ColumnStats]) -> bool:
    """Return `may_match` for one file, from the statistics of its columns by name."""
    rows = max((one.row_count for one in stats.values()), default=1)
    bounds = {name: ColumnBounds((one.min,), (one.max,), (one.null_count,)) for name, one in stats.items()}
    return may_match(predicate, StatsTable((rows,), bounds))[0]


def _bounds(values: list[Any], nan: str) -> tuple[Any, Any]:
    """Return bounds as writers store them: texts cut to one character; NaN ignored, as maximum, or without bounds."""
    held = [value for value in values if value is not None]
    numbers = [value for value in held if value == value]
    if not numbers:
        return (NAN, NAN) if held and nan == "on top" else (None, None)
    low, high = min(numbers), max(numbers)
    if isinstance(low, str):
        low, high = low[:1], high[:1] + "c"
    if len(numbers) < len(held):
        if nan == "no bounds":
            return None, None
        if nan == "on top":
            high = NAN
    return low, high


@given(conditions(), FILES, st.sampled_from(["ignored", "on top", "no bounds"]), st.data())
def test_statistics_agree_with_the_rows_of_files(
    condition: Condition, files: list[list[dict[str, Any]]], nan: str, data: st.DataObject
) -> None:
    predicate = parse_where(condition.sql, FIELDS)
    stats: dict[str, ColumnBounds] = {}
    for name in columns(predicate):
        values = [[row[name] for row in file] for file in files]
        lows, highs = zip(*(_bounds(column, nan) for column in values), strict=True)
        nulls = [column.count(None) if data.draw(st.booleans()) else None for column in values]
        stats[name] = ColumnBounds(lows, highs, nulls)
    table = StatsTable([len(file) for file in files], stats)
    kept, proved = may_match(predicate, table), must_match(predicate, table)
    assert len(kept) == len(proved) == len(files)
    for i, file in enumerate(files):
        if any(condition.reference(row) is True for row in file):
            assert kept[i]
        if proved[i]:
            assert all(condition.reference(row) is True for row in file)
        single = {
            name: ColumnStats(one.mins[i], one.maxs[i], one.null_counts[i], len(file))
            for name, one in stats.items()
        }
        assert might_match(predicate, single) is kept[i]


@pytest.mark.parametrize(
    ("predicate", "kept"),
    [
        (Compare("x", "=", 5), True),
        (Compare("x", "=", 11), False),
        (Compare("x", "<", 3), False),
        (Compare("x", "<=", 3), True),
        (Compare("x", ">", 10), False),
        (Compare("x", ">=", 10), True),
        (Compare("x", "!=", 3), True),
        (In("x", (1, 2, 11)), False),
        (In("x", (11, 4, 1)), True),
        (IsNull("x"), False),
        (IsNotNull("x"), True),
        (Unknown(), True),
        (Compare("y", "=", 1), True),
    ],
)
def test_bounds_3_to_10_without_nulls(predicate: Any, kept: bool) -> None:
    assert might_match(predicate, {"x": ColumnStats(3, 10, 0, 4)}) is kept


def test_a_single_value_is_excluded_by_inequality() -> None:
    stats = {"x": ColumnStats(3, 3, 0, 4)}
    assert not might_match(Compare("x", "!=", 3), stats)
    assert not might_match(In("x", (1, 3), negated=True), stats)
    assert might_match(In("x", (1, 2), negated=True), stats)


def test_a_file_of_nulls_matches_only_is_null() -> None:
    stats = {"x": ColumnStats(None, None, 4, 4)}
    assert not might_match(Compare("x", "!=", 3), stats)
    assert not might_match(IsNotNull("x"), stats)
    assert might_match(IsNull("x"), stats)


def test_prefixes_are_compared_with_truncated_texts() -> None:
    stats = {"x": ColumnStats("abd", "b", 0, 4)}
    assert might_match(StartsWith("x", "ab"), stats)
    assert might_match(StartsWith("x", "b"), stats)
    assert not might_match(StartsWith("x", "abc"), stats)
    assert not might_match(StartsWith("x", "bc"), stats)
    assert not might_match(StartsWith("x", "ab", negated=True), {"x": ColumnStats("abc", "abd", 0, 4)})


def test_bounds_of_another_type_exclude_no_file() -> None:
    for predicate in (
        Compare("x", "<", date(2020, 1, 1)),
        In("x", (date(2020, 1, 1),)),
        StartsWith("x", "a"),
    ):
        assert might_match(predicate, {"x": ColumnStats(3, 4, 0, 4)})


def test_nan_may_be_outside_float_bounds() -> None:
    stats = {"x": ColumnStats(1.0, 2.0, 0, 4)}
    assert might_match(Compare("x", ">", 5.0), stats)
    assert might_match(Compare("x", "!=", 1.0), {"x": ColumnStats(1.0, 1.0, 0, 4)})
    assert not might_match(Compare("x", "<", 1.0), stats)
    assert not might_match(Compare("x", "=", 5.0), stats)


def test_an_evaluator_decides_rows_with_equal_values_only() -> None:
    evaluated = Evaluated(Doubled("x", 6))
    exact = StatsTable([1] * 3, {"x": ColumnBounds((3, 4, None), (3, 4, None), (0, 0, 1), exact=True)})
    assert may_match(evaluated, exact) == [True, False, False]
    assert may_match(any_of([evaluated, Compare("x", "=", 4)]), exact) == [True, True, False]
    assert may_match(all_of([evaluated, Compare("x", "=", 4)]), exact) == [False] * 3
    assert may_match(evaluated, StatsTable([9], {"x": ColumnBounds((4,), (4,), (0,))})) == [True]
    assert may_match(evaluated, StatsTable([9], {})) == [True]


@pytest.mark.parametrize(
    ("predicate", "proved"),
    [
        (all_of([Compare("x", ">=", 3), Compare("x", "<", 11)]), [True, False, False]),
        (any_of([Compare("x", ">", 10), In("x", (2, 11), negated=True)]), [True, False, False]),
        (all_of([Compare("x", ">=", 3), Compare("y", "=", 1)]), [False] * 3),
        (any_of([Compare("x", ">", 3), Compare("x", "<=", 3)]), [False] * 3),
        (IsNotNull("x"), [True, False, False]),
        (IsNull("x"), [False, False, True]),
        (Constant(True), [True] * 3),
        (Constant(None), [False] * 3),
        (any_of([Unknown(), IsNotNull("x")]), [True, False, False]),
        (Evaluated(Doubled("x", 6)), [False] * 3),
    ],
)
def test_bounds_prove_a_condition_for_all_rows(predicate: Predicate, proved: list[bool]) -> None:
    bounds = ColumnBounds((3, 3, None), (10, 10, None), (0, 1, 4))
    assert must_match(predicate, StatsTable((4, 4, 4), {"x": bounds})) == proved


def test_nan_and_unknown_bounds_prove_nothing() -> None:
    floats = StatsTable((4, 4), {"x": ColumnBounds((1.0, 1.0), (2.0, 2.0), (0, None))})
    assert must_match(Compare("x", "<=", 2.0), floats) == [False, False]
    assert must_match(Compare("x", ">=", 1.0), floats) == [True, False]
    unknown = StatsTable((4,), {"x": ColumnBounds((None,), (10,), (0,))})
    assert must_match(Compare("x", ">", 0), unknown) == [False]
