"""Evaluation of predicates on rows in Arrow, compared with Python row by row, and at the limits of each type."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.predicate.evaluation import check_supported, matching
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import (
    Compare,
    Evaluated,
    IsNull,
    Predicate,
    all_of,
    any_of,
    columns,
    negate,
    unknown_part,
)
from lakelsm.types import AtomicType, DataField, to_arrow
from lakelsm.types.nano_timestamps import nano_timestamps
from tests.predicate.conditions import FIELDS, Condition, conditions, rows
from tests.predicate.doubled import Doubled
from tests.predicate.typed_columns import parse


def table_of(found: list[dict[str, Any]]) -> pa.Table:
    return pa.table({field.name: pa.array([row[field.name] for row in found], to_arrow(field.type)) for field in FIELDS})


def matches_of(sql: str, column: str, values: list[Any] | pa.Array, data_type: AtomicType) -> list[bool]:
    field = DataField(0, column, data_type)
    array = values if isinstance(values, pa.Array) else pa.array(values, to_arrow(data_type))
    return list(matching(parse_where(sql, (field,), "UTC"), pa.table({column: array})).to_pylist())


@given(conditions(), st.lists(rows(), max_size=6))
def test_rows_match_like_single_rows_in_python(condition: Condition, found: list[dict[str, Any]]) -> None:
    predicate = parse_where(condition.sql, FIELDS)
    if unknown_part(predicate) is not None:
        assert "id % 2" in condition.sql
        return
    table = table_of(found)
    assert matching(predicate, table).to_pylist() == [condition.reference(row) is True for row in found]
    assert matching(negate(predicate), table).to_pylist() == [condition.reference(row) is False for row in found]
    chunked = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    assert matching(predicate, chunked).to_pylist() == matching(predicate, table).to_pylist()
    for batch in table.to_batches():
        assert matching(predicate, batch).to_pylist() == matching(predicate, table).to_pylist()


@pytest.mark.parametrize("text", ["0.004", "-0.004", "0.005", "99999999999", "-99999999999", "123.45", "-10.00"])
@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
def test_a_number_finer_or_larger_than_a_decimal_column_is_compared_exactly(op: str, text: str) -> None:
    values = [Decimal(n) / 100 for n in (-99999999, -1000, -1, 0, 1, 12345, 99999999)]
    number = Decimal(text)
    holds = {"=": "==", "!=": "!="}.get(op, op)
    found = matches_of(f"p {op} {text}", "p", [*values, None], AtomicType("DECIMAL", precision=8, scale=2))
    assert found == [*(eval(f"a {holds} b", {"a": value, "b": number}) for value in values), False]


def test_integers_are_compared_with_fractions_and_with_numbers_outside_their_type() -> None:
    tiny = AtomicType("TINYINT")
    values = [-128, -1, 0, 1, 2, 127, None]
    assert matches_of("i < 1.5", "i", values, tiny) == [True, True, True, True, False, False, False]
    assert matches_of("i >= 1.5", "i", values, tiny) == [False, False, False, False, True, True, False]
    assert matches_of("i > -0.5", "i", values, tiny) == [False, False, True, True, True, True, False]
    assert matches_of("i < 3000", "i", values, tiny) == [True] * 6 + [False]
    assert matches_of("i > 3000 OR i = 128 OR i IN (-129, 500)", "i", values, tiny) == [False] * 7
    assert matches_of("i != 3000 AND NOT i IN (128)", "i", values, tiny) == [True] * 6 + [False]


def test_nan_is_the_greatest_number_and_zeros_are_equal() -> None:
    values = [float("nan"), float("inf"), 0.0, -0.0, None]
    for root in ("FLOAT", "DOUBLE"):
        assert matches_of("d > 1e300D", "d", values, AtomicType(root)) == [True, True, False, False, False]
        zeros = matches_of("d <= 0 AND d >= -0.0 AND d IN (0, 7)", "d", values, AtomicType(root))
        assert zeros == [False, False, True, True, False]
        assert matches_of("d != 0", "d", values, AtomicType(root)) == [True, True, False, False, False]


def test_text_is_compared_by_its_bytes_and_patterns_by_characters() -> None:
    text = AtomicType("VARCHAR", length=9)
    values = ["Z", "a", "é", "\uffff", "\U0001f600", "a\nb", None]
    assert matches_of("t > 'é'", "t", values, text) == [False, False, False, True, True, False, False]
    assert matches_of("t LIKE '_'", "t", values, text) == [True, True, True, True, True, False, False]
    either = matches_of("t LIKE 'a_b' OR t LIKE '%\uffff'", "t", values, text)
    assert either == [False, False, False, True, False, True, False]


def test_times_of_each_unit_are_compared_with_finer_ones() -> None:
    noon = datetime(2020, 1, 1, 12)
    third = [noon, noon + timedelta(milliseconds=1), None]
    milli = AtomicType("TIMESTAMP", precision=3)
    assert matches_of("t <= '2020-01-01 12:00:00.0005'", "t", third, milli) == [True, False, False]
    assert matches_of("t >= '2020-01-01 12:00:00.0005'", "t", third, milli) == [False, True, False]
    assert matches_of("t = '2020-01-01 12:00:00.0005'", "t", third, milli) == [False, False, False]
    assert matches_of("t != '2020-01-01 12:00:00.0005'", "t", third, milli) == [True, True, False]
    early = [datetime(1, 1, 1), datetime(9999, 12, 31), None]
    assert matches_of("t < '0001-01-01 00:00:00.000001'", "t", early, milli) == [True, False, False]
    zoned = AtomicType("TIMESTAMP_LTZ", precision=6)
    instants = [noon.replace(tzinfo=timezone.utc), None]
    assert matches_of("t = '2020-01-01 13:00:00+01:00'", "t", instants, zoned) == [True, False]
    assert matches_of("t IN (TIMESTAMP_LTZ '2020-01-01 12:00:00')", "t", instants, zoned) == [True, False]


def test_nanoseconds_are_compared_by_their_microsecond() -> None:
    micros = np.array([-1, 0, 0, 1, 253_402_300_800_000_000])  # The last one is after the year 9999.
    times = nano_timestamps(micros, np.array([999, 0, 1, 0, 0]), pa.array([True] * 5))
    nano = AtomicType("TIMESTAMP", precision=9)
    assert matches_of("t <= '1970-01-01'", "t", times, nano) == [True, True, True, False, False]
    assert matches_of("t = '1970-01-01'", "t", times, nano) == [False, True, True, False, False]
    assert matches_of("t > '1970-01-01'", "t", times, nano) == [False, False, False, True, True]


def test_dates_beyond_the_calendar_of_python_are_compared() -> None:
    days = pa.array([-10_000_000, 0, 10_000_000, None], pa.int32()).cast(pa.date32())
    day = AtomicType("DATE")
    assert matches_of("d < '0001-01-01'", "d", days, day) == [True, False, False, False]
    assert matches_of(f"d > DATE '{date.max}'", "d", days, day) == [False, False, True, False]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("i = 1 AND (flag OR i + 1 = l)", "i + 1 = l"),
        ("c = 'abc'", "c = "),
        ("NOT (s.x = 1)", "s.x = 1"),
        ("(arr[0] = 1) IS TRUE", "arr[0] = 1"),
        ("i IN (1, 'x')", "i IN"),
        ("instant > '2020-01-01'", "instant >"),
        ("ts > TIMESTAMP '2020-01-01'", "ts >"),
        ("length(Text)", "LENGTH(Text)"),
    ],
)
def test_an_unsupported_part_is_refused_with_its_text(sql: str, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_supported(parse(sql), sql)
    assert named in str(caught.value)
    assert "Table.read" in str(caught.value)


def test_the_columns_of_a_predicate_are_all_that_it_needs() -> None:
    predicate: Predicate = parse("(i = l) IS TRUE AND Text LIKE '%a' OR flag")
    check_supported(predicate, "")
    assert columns(predicate) == {"i", "l", "Text", "flag"}
    rows = pa.table({"i": [1], "l": [1], "Text": ["ba"], "flag": [False]})
    assert matching(predicate, rows).to_pylist() == [True]


@pytest.mark.parametrize("sql", ["Text LIKE '{}'", "NOT (i = 1 OR (Text LIKE '{}') IS TRUE)"])
def test_a_pattern_that_is_too_long_for_arrow_is_refused_before_rows_are_read(sql: str) -> None:
    check_supported(parse(sql.format("%a" * 100)), sql)
    long = sql.format("%a" * 200_000)
    with pytest.raises(InvalidInputError, match="a LIKE pattern of 400000 characters with 200000 wildcards"):
        check_supported(parse(long), long)


@pytest.mark.parametrize("chunks", [1, 3])
def test_an_evaluator_gets_the_rows_that_other_parts_leave_open(chunks: int) -> None:
    numbers = pa.chunked_array([[1, 2, None, 3]] * chunks, pa.int64())
    rows = pa.table({"x": numbers, "y": pa.chunked_array([[5, 6, 7, None]] * chunks, pa.int64())})
    one = Doubled("x", 4)
    found = matching(all_of([Evaluated(one), Compare("y", ">", 5)]), rows)
    assert found.to_pylist() == [False, True, False, False] * chunks
    assert one.counts == [2 * chunks]
    two = Doubled("x", 2)
    assert matching(any_of([Evaluated(two), IsNull("x")]), rows).to_pylist() == [True, False, True, False] * chunks
    assert two.counts == [3 * chunks]
    both = any_of([all_of([Evaluated(one), Compare("y", "=", 6)]), all_of([Evaluated(two), IsNull("x")])])
    assert matching(both, rows).to_pylist() == [False, True, False, False] * chunks
    assert matching(both, rows.to_batches()[0]).to_pylist() == [False, True, False, False]
    assert matching(both, rows.slice(0, 0)).to_pylist() == []
