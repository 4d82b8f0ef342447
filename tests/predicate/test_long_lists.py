"""Conditions with thousands of parts are planned within two seconds, with the result of short ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError
from lakelsm.lsm.pruning import files_that_may_match, partitions_that_may_match
from lakelsm.predicate import long_lists
from lakelsm.predicate.evaluation import check_supported, matching
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import Compare, In, Predicate, columns, equality_values, unknown_part
from lakelsm.predicate.statistics import ColumnBounds, StatsTable, may_match
from lakelsm.types import to_arrow
from tests.counted_calls import counted_calls
from tests.predicate.conditions import FIELDS
from tests.predicate.test_statistics import NAN

MANY = 100_000
TERMS = 5_000
FILES = 5_000
#: Maximum number of function calls: twice the maximum of these conditions (20 per value of a list, 700 per term), and far
#: below one per pair of values or terms.
CALLS = 8_000_000

#: A condition, and the number of files (with ten ids each) that may match. Names also have other quotes.
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
def test_the_cost_of_planning_a_long_condition_is_linear(name: str) -> None:
    text, left = CONDITIONS[name]
    sql = text()
    ids = range(0, 10 * FILES, 10)
    stats = StatsTable([10] * FILES, {"id": ColumnBounds(list(ids), [first + 9 for first in ids], [0] * FILES)})

    def planned() -> tuple[Predicate, list[bool]]:
        predicate = parse_where(sql, FIELDS)
        kept = files_that_may_match(predicate, stats, ["id"])
        equality_values(predicate, ["id"])
        partitions_that_may_match(predicate, ["id"], [(at,) for at in range(1_000)])
        return predicate, kept

    (predicate, kept), calls = counted_calls(planned)
    assert calls < CALLS
    assert "id" in columns(predicate)
    assert sum(kept) == left


DAYS = range(10, 31)
#: The condition is evaluated on batches of ten rows; its values are prepared for each batch.
MATCHED: dict[str, tuple[Callable[[], str], int]] = {
    "numbers": (lambda: f"id IN ({','.join(map(str, range(MANY)))})", 500),
    "texts": (lambda: f"Name IN ({','.join(repr(f'k{at}') for at in range(MANY))})", 500),
    "decimals": (lambda: f"amount IN ({','.join(f'{at}.5' for at in range(MANY // 10))})", 0),
    "days": (lambda: f"day NOT IN ({', '.join([f'DATE {str(date(2020, 1, day))!r}' for day in DAYS] * 500)})", 479),
    "ORs": (lambda: " OR ".join(f"id = {at}" for at in range(TERMS)), 500),
    "ANDs": (lambda: " AND ".join(f"id <> {at}" for at in range(TERMS)), 0),
    "reals": (lambda: " OR ".join(f"ratio = {at}" for at in range(TERMS)), 500),
}


@pytest.mark.parametrize("name", MATCHED)
def test_the_cost_of_a_long_condition_on_many_batches_is_linear(name: str) -> None:
    text, met = MATCHED[name]
    kinds = {field.name: to_arrow(field.type) for field in FIELDS}
    numbers = range(500)
    rows = pa.table(
        {
            "id": pa.array(numbers, kinds["id"]),
            "Name": [f"k{at}" for at in numbers],
            "amount": pa.array([Decimal(at) for at in numbers], kinds["amount"]),
            "ratio": pa.array([float(at) for at in numbers], kinds["ratio"]),
            "day": pa.array([date(2020, 1, 1) + timedelta(at) for at in numbers], kinds["day"]),
        }
    )
    sql = text()

    def matched() -> int:
        predicate = parse_where(sql, FIELDS)
        check_supported(predicate, sql)
        return sum(matching(predicate, batch).true_count for batch in rows.to_batches(max_chunksize=10))

    found, calls = counted_calls(matched)
    assert calls < CALLS
    assert found == met


TOO_LONG: dict[str, Callable[[], str]] = {
    "ANDs": lambda: " AND ".join(f"id > {at}" for at in range(20_000)),
    "expressions": lambda: f"id IN ({'1 + 1,' * 20_000} 1)",
    "sum": lambda: f"id = 1{'+ 1' * 30_000}",
    "cases": lambda: f"CASE {' '.join(f'WHEN id = {at} THEN true' for at in range(20_000))} ELSE false END",
    "text": lambda: f"Name = '{'x' * (1 << 26)}'",
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_a_condition_that_is_too_long_for_a_parser_is_refused_before_it_is_parsed(name: str) -> None:
    sql = TOO_LONG[name]()

    def refused() -> None:
        with pytest.raises(InvalidInputError, match=r"the condition has .*Write many values of a column as one IN list"):
            parse_where(sql, FIELDS)

    assert counted_calls(refused)[1] < CALLS // 80


@pytest.mark.parametrize(
    "sql",
    [f"Name = '{'a AND ' * MANY}'", f"Name IN ({','.join(repr(chr(92) * 2 + str(at)) for at in range(MANY // 10))})"],
    ids=["text", "escapes"],
)
def test_quoted_texts_do_not_count_as_words(sql: str) -> None:
    assert columns(parse_where(sql, FIELDS)) <= {"Name"}


@pytest.mark.parametrize(
    "sql",
    [f"flag{' IS TRUE' * 3_000}", f"id = 5{'::int' * 3_000}", f"{'(' * 3_000}flag{')' * 3_000}", f"{'NOT ' * 3_000}flag"],
    ids=["tests", "casts", "parentheses", "negations"],
)
def test_a_deeply_nested_condition_is_refused(sql: str) -> None:
    with pytest.raises(InvalidInputError, match="nested too deeply"):
        parse_where(sql, FIELDS)


def test_a_number_with_too_many_digits_is_unknown_also_in_a_list() -> None:
    sql = f"id IN ({','.join(map(str, range(1_000)))}, {'9' * 5_000})"
    assert unknown_part(parse_where(sql, FIELDS)) is not None


@pytest.mark.parametrize("sql", ["id IN ()", "Name = 'a' OR id NOT IN ( )"])
def test_an_empty_list_is_refused(sql: str) -> None:
    with pytest.raises(InvalidInputError, match=r"has an empty IN list\. Write FALSE"):
        parse_where(sql, FIELDS)


def test_the_error_on_a_long_condition_is_short_and_has_the_position() -> None:
    sql = f"id IN ({','.join(map(str, range(MANY // 10)))}) AND AND id = 1"
    with pytest.raises(InvalidInputError, match=f"column {sql.index('AND AND') + 5}") as raised:
        parse_where(sql, FIELDS)
    assert len(str(raised.value)) < 1_000


LITERALS = st.lists(
    st.integers(-9, 9).map(str) | st.sampled_from(["'a'", "'IN (1, 2)'", "'it''s'", "''", "NULL", "1.5", "'--'"])
    | st.sampled_from(["-.5", "2.", "1e3", "-1.5E-2", "null", "DATE '2020-01-01'", "timestamp_ntz'2020-01-01 00:00:00'"]),
    min_size=1,
    max_size=4,
)
PARTS = st.one_of(
    st.builds(lambda values, no: f"id {'NOT ' * no}IN ({', '.join(values)})", LITERALS, st.booleans()),
    st.builds(lambda values: f"Name in({','.join(values)} )", LITERALS),
    st.builds(lambda name, of: f"{name} IN({','.join(of)})", st.sampled_from(("ratio", "amount", "day")), LITERALS),
    st.sampled_from(["Name = 'id IN (3)'", "`Name` = 'x' -- id IN (1)\n", "/* id IN (2) */ id = 3", 'Name <> "IN (1)"']),
)


@given(st.lists(PARTS, min_size=1, max_size=4))
def test_lists_are_read_alike_whether_they_are_long_or_not(parts: list[str]) -> None:
    sql = " AND ".join(parts)
    whole = parse_where(sql, FIELDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_lists, "_LONG", 1)
        assert parse_where(sql, FIELDS) == whole


def test_a_text_like_the_replacement_of_a_list_stays_a_text() -> None:
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
