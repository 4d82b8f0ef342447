"""Conditions with thousands of parts: planned in a second or two, and as short ones are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.lsm.pruning import files_that_may_match, partitions_that_may_match
from lakelsm.predicate import long_lists
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import Compare, In, columns, equality_values
from lakelsm.predicate.statistics import ColumnBounds, StatsTable, may_match
from tests.predicate.conditions import FIELDS
from tests.predicate.test_statistics import NAN

MANY = 100_000
TERMS = 5_000
FILES = 5_000

#: A condition, and how many files of ten ids each it leaves; names also come in other quotes.
CONDITIONS: dict[str, tuple[Callable[[], str], int]] = {
    "numbers": (lambda: f"id IN ({','.join(map(str, range(0, MANY, 1)))})", FILES),
    "sparse numbers": (lambda: f"id IN ({', '.join(str(-at) for at in range(MANY))})", 1),
    "texts": (lambda: f"`Name` in ({','.join(repr(f'k{at}') for at in range(MANY))}) AND id < 5", 1),
    "no such number": (lambda: f"NOT id IN ({','.join(map(str, range(MANY)))})", FILES),
    "ORs": (lambda: " OR ".join(f"id = {at}" for at in range(TERMS)), TERMS // 10),
    "ORs of ANDs": (lambda: " OR ".join(f"(id = {at} AND Name = 'x{at}')" for at in range(TERMS // 2)), TERMS // 20),
    "ANDs": (lambda: " AND ".join(f"id != {at}" for at in range(TERMS)), FILES),
    "ORs of ranges": (lambda: " OR ".join(f"id > {at} AND id < {at + 2}" for at in range(TERMS // 2)), TERMS // 20 + 1),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_long_condition_is_planned_in_two_seconds(name: str) -> None:
    text, left = CONDITIONS[name]
    sql = text()
    ids = range(0, 10 * FILES, 10)
    stats = StatsTable([10] * FILES, {"id": ColumnBounds(list(ids), [first + 9 for first in ids], [0] * FILES)})
    started = time.process_time()
    predicate = parse_where(sql, FIELDS)
    kept = files_that_may_match(predicate, stats, ["id"])
    equality_values(predicate, ["id"])
    partitions_that_may_match(predicate, ["id"], [(at,) for at in range(1_000)])
    assert time.process_time() - started < 2
    assert "id" in columns(predicate)
    assert sum(kept) == left


@pytest.mark.parametrize("sql", ["id IN ()", "Name = 'a' OR id NOT IN ( )"])
def test_an_empty_list_is_refused(sql: str) -> None:
    with pytest.raises(InvalidInputError, match=r"IN \(\) is true for no row; write FALSE"):
        parse_where(sql, FIELDS)


def test_a_fault_in_a_long_condition_is_told_at_its_place_and_briefly() -> None:
    sql = f"id IN ({','.join(map(str, range(MANY // 10)))}) AND AND id = 1"
    with pytest.raises(InvalidInputError, match=f"column {sql.index('AND AND') + 5}") as raised:
        parse_where(sql, FIELDS)
    assert len(str(raised.value)) < 1_000


LITERALS = st.lists(
    st.integers(-9, 9).map(str) | st.sampled_from(["'a'", "'IN (1, 2)'", "'it''s'", "''", "NULL", "1.5", "'--'"]),
    min_size=1,
    max_size=4,
)
PARTS = st.one_of(
    st.builds(lambda values, no: f"id {'NOT ' * no}IN ({', '.join(values)})", LITERALS, st.booleans()),
    st.builds(lambda values: f"Name in({','.join(values)} )", LITERALS),
    st.sampled_from(["Name = 'id IN (3)'", "`Name` = 'x' -- id IN (1)\n", "/* id IN (2) */ id = 3", 'Name <> "IN (1)"']),
)


@given(st.lists(PARTS, min_size=1, max_size=4))
def test_lists_are_read_alike_whether_they_are_long_or_not(parts: list[str]) -> None:
    sql = " AND ".join(parts)
    whole = parse_where(sql, FIELDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_lists, "_LONG", 1)
        assert parse_where(sql, FIELDS) == whole


def test_a_text_that_looks_like_the_mark_of_a_list_is_a_text() -> None:
    values = ",".join(map(str, range(1_000)))
    predicate = parse_where(f"id IN ({values}) AND Name IN ('list0')", FIELDS)
    assert equality_values(predicate, ["Name"]) == (("list0",),)


@pytest.mark.parametrize(
    ("op", "kept"),
    [("=", [False, True, False, False]), ("!=", [True, False, True, False]), (">", [False, False, True, False])],
)
def test_a_nan_as_the_value_of_a_partition_is_above_every_number(op: str, kept: list[bool]) -> None:
    values: list[tuple[Any]] = [(1.0,), (2.0,), (NAN,), (None,)]
    assert partitions_that_may_match(Compare("x", op, 2.0), ["x"], values) == kept
    assert partitions_that_may_match(In("x", (2.0, 3.0), negated=op == "!="), ["x"], values)[2] is (op == "!=")


def test_without_partitions_there_is_none_to_keep() -> None:
    assert partitions_that_may_match(Compare("x", "=", 1), ["x"], []) == []
    assert may_match(Compare("x", "=", 1), StatsTable([], {"x": ColumnBounds([], [], [])})) == []
