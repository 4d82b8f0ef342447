"""A literal is used only if Spark compares the same two values; otherwise the outcome is unknown."""

from __future__ import annotations

import operator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.predicate.literals import Literal, compare, is_in, null_safe_equal
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import And, Compare, Constant, In, IsNull, Predicate, Unknown, columns, is_exact, negate
from lakelsm.types import DataField
from tests.predicate.evaluation import evaluate
from tests.predicate.typed_columns import FIELDS, NOON, kind, parse


@pytest.mark.parametrize(
    "sql",
    [
        "i = 5.5",
        "i = 3000000000",
        "p = 1.255",
        "p = 1000000000",
        "f = 0.1",
        "ts3 = '2020-01-01 00:00:00.0001'",
    ],
)
def test_equality_with_a_value_outside_the_type_is_never_true(sql: str) -> None:
    predicate = parse(sql)
    (name,) = columns(predicate)
    assert evaluate(predicate, {name: None}) is False
    assert evaluate(predicate, {name: 1}) is False
    inverse = parse(f"NOT ({sql})")
    assert evaluate(inverse, {name: None}) is False
    assert evaluate(inverse, {name: 1}) is True


def test_a_timestamp_literal_in_the_sessions_zone_has_a_margin_for_steps_of_the_clock() -> None:
    predicate = parse("ts > TIMESTAMP '2020-01-01 12:00:00'")
    assert evaluate(predicate, {"ts": NOON - timedelta(hours=26)}) is False
    assert evaluate(predicate, {"ts": NOON}) is None
    assert parse("ts > TIMESTAMP '2020-01-01 12:00:00'", "UTC") == Compare("ts", ">", NOON)


def test_instants_need_a_zone_whose_clock_has_no_steps() -> None:
    expected = Compare("instant", "=", datetime(2020, 1, 1, 11, tzinfo=timezone.utc))
    assert parse("instant = '2020-01-01 12:00:00+01:00'") == expected
    assert parse("instant = TIMESTAMP '2020-01-01 11:00:00Z'") == expected
    assert parse("instant = '2020-01-01 12:00:00'", "+01:00") == expected
    assert not is_exact(parse("instant = '2020-01-01 12:00:00'", "Europe/Paris"))


def test_nanoseconds_are_compared_in_microseconds_as_in_spark() -> None:
    after = NOON + timedelta(microseconds=1)
    assert parse("ts9 <= '2020-01-01 12:00:00'") == Compare("ts9", "<", after)
    assert parse("ts9 > '2020-01-01 12:00:00'") == Compare("ts9", ">=", after)
    assert parse("ts9 >= '2020-01-01 12:00:00'") == Compare("ts9", ">=", NOON)
    equal = And((Compare("ts9", ">=", NOON), Compare("ts9", "<", after)))
    assert parse("ts9 = '2020-01-01 12:00:00'") == equal == parse("ts9 IN (TIMESTAMP_NTZ '2020-01-01 12:00:00')")
    assert parse("ts9 != '2020-01-01 12:00:00'") == negate(equal)
    assert not is_exact(parse("ts9 <= '9999-12-31 23:59:59.999999'"))


def test_stored_digits_beyond_a_timestamps_precision_are_compared() -> None:
    for precision, micros in ((0, 500_000), (1, 250_000), (3, 123_000), (4, 123_456)):
        field = DataField(0, "t", kind("TIMESTAMP", precision=precision))
        moment = NOON + timedelta(microseconds=micros)
        assert evaluate(parse_where(f"t = '{moment}'", (field,), None), {"t": moment}) is True


@pytest.mark.parametrize("digits", ["9" * 5000, "9" * 100_000])
def test_a_number_of_thousands_of_digits_prunes_nothing(digits: str) -> None:
    for text in (f"i = {digits}", f"i < -{digits}", f"f = 1e{digits}"):
        assert not is_exact(parse(text))


NULL = Literal("null")
BY_NAME = {field.name: field for field in FIELDS}
OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: The largest and smallest integers that each type compares exactly, and the kind of literal.
LAST_EXACT = [
    ("l", Literal("integer", (1 << 63) - 1), Literal("integer", 1 << 63)),
    ("l", Literal("integer", -(1 << 63)), Literal("integer", -(1 << 63) - 1)),
    ("i", Literal("decimal", Decimal((1 << 63) - 1)), Literal("decimal", Decimal(1 << 63))),
    ("d", Literal("integer", 1 << 53), Literal("integer", (1 << 53) + 1)),
    ("f", Literal("integer", -(1 << 24)), Literal("integer", -(1 << 24) - 1)),
    ("d", Literal("decimal", Decimal("1." + "1" * 37)), Literal("decimal", Decimal("1." + "1" * 38))),
    ("d", Literal("decimal", Decimal("0." + "1" * 38)), Literal("decimal", Decimal("0." + "1" * 39))),
    ("p", Literal("decimal", Decimal("1" * 36 + ".25")), Literal("decimal", Decimal("1" * 37 + ".25"))),
    ("i", Literal("double", 1.5), Literal("string", "1.5")),
]


def outcomes(predicate: Predicate, value: object) -> tuple[bool | None, bool | None]:
    """Return whether the condition is true, and whether its negation is true; for NULL, neither is."""
    return evaluate(predicate, {"i": value}), evaluate(negate(predicate), {"i": value})


@pytest.mark.parametrize(("name", "exact", "beyond"), LAST_EXACT)
def test_a_number_is_used_if_column_and_literal_have_an_exact_common_type(
    name: str, exact: Literal, beyond: Literal
) -> None:
    assert is_exact(compare(BY_NAME[name], "<", exact, None))
    assert isinstance(compare(BY_NAME[name], "<", beyond, None), Unknown)


@given(st.sampled_from(sorted(OPERATORS)), st.integers(-200, 200), st.none() | st.integers(-128, 127))
def test_a_comparison_with_any_number_has_the_result_of_sql(op: str, number: int, value: int | None) -> None:
    field = DataField(0, "i", kind("TINYINT"))
    wanted = value is not None and OPERATORS[op](value, number)
    found = outcomes(compare(field, op, Literal("integer", number), None), value)
    assert found == (wanted, value is not None and not wanted)


@pytest.mark.parametrize(
    ("name", "held", "beyond"),
    [
        ("i", Literal("integer", (1 << 31) - 1), Literal("integer", 1 << 31)),
        ("i", Literal("integer", -(1 << 31)), Literal("integer", -(1 << 31) - 1)),
        ("i", Literal("decimal", Decimal("2.000")), Literal("decimal", Decimal("2.001"))),
        ("p", Literal("decimal", Decimal("99999999.99")), Literal("integer", 100_000_000)),
        ("p", Literal("decimal", Decimal("-0.0100")), Literal("decimal", Decimal("0.001"))),
        ("p", Literal("decimal", Decimal("0.00000")), Literal("decimal", Decimal("0.00001"))),
        ("f", Literal("double", 0.5), Literal("double", 0.1)),
        ("f", Literal("double", -(2.0**127)), Literal("double", 1e300)),
        ("ts3", Literal("string", "2020-01-01 00:00:00.123"), Literal("string", "2020-01-01 00:00:00.1234")),
    ],
)
def test_only_a_value_of_the_type_can_be_equal(name: str, held: Literal, beyond: Literal) -> None:
    assert isinstance(compare(BY_NAME[name], "=", held, None), Compare)
    never = compare(BY_NAME[name], "=", beyond, None)
    assert is_exact(never) and not isinstance(never, Compare)


@pytest.mark.parametrize("name", ["i", "Text", "ts", "arr"])
def test_null_is_equal_only_by_the_null_safe_operator(name: str) -> None:
    assert compare(BY_NAME[name], "=", NULL, None) == Constant(None)
    assert null_safe_equal(BY_NAME[name], NULL, None) == IsNull(name)


def test_the_null_safe_operator_is_never_null() -> None:
    predicate = null_safe_equal(BY_NAME["i"], Literal("integer", 5), None)
    assert [evaluate(predicate, {"i": value}) for value in (5, 6, None)] == [True, False, False]
    assert isinstance(null_safe_equal(BY_NAME["i"], Literal("string", "5"), None), Unknown)


def test_a_list_has_each_value_once_and_no_value_outside_the_type() -> None:
    numbers = [Literal("integer", number) for number in (2, 1, 2, 1 << 40)]
    assert is_in(BY_NAME["i"], numbers, None) == In("i", (2, 1))
    nothing = is_in(BY_NAME["i"], numbers[3:], None)
    assert outcomes(nothing, 1) == (False, True)
    assert outcomes(nothing, None) == (False, False)


def test_with_null_in_a_list_other_values_are_null() -> None:
    predicate = is_in(BY_NAME["i"], [Literal("integer", 2), NULL], None)
    assert [outcomes(predicate, value) for value in (2, 3, None)] == [(True, False), (False, False), (False, False)]


@pytest.mark.parametrize(
    ("name", "literal"),
    [
        ("i", Literal("string", "2")),
        ("ts", Literal("string", "2020-01-01")),
        ("ts9", Literal("string", "2020-01-01")),
    ],
)
def test_one_literal_of_another_type_makes_the_whole_list_unknown(name: str, literal: Literal) -> None:
    assert isinstance(is_in(BY_NAME[name], [NULL, literal], "UTC"), Unknown)


#: Column, kind of literal, its text, the session's zone, and the compared value (None: unknown).
TEXTS: list[tuple[str, str, str, str | None, Any]] = [
    ("day", "string", "2024-02-29", None, date(2024, 2, 29)),
    ("day", "string", "2023-02-29", None, None),
    ("day", "string", " 2024-02-29", None, None),
    ("day", "timestamp", "2024-02-29", None, None),
    ("ts", "string", "2020-01-01", None, datetime(2020, 1, 1)),
    ("ts", "string", "2020-01-01 24:00:00", None, None),
    ("ts", "string", "2020-01-01 12:00:00.1234567", None, None),
    ("ts", "string", "2020-01-01Z", None, None),
    ("ts", "timestamp", "2020-01-01 12:00:00", "+05:30", NOON),
    ("ts", "date", "2020-01-01", None, datetime(2020, 1, 1)),
    ("ts", "date", "2020-01-01 12:00:00", None, None),
    ("instant", "timestamp", "2020-01-01 12:00:00", "+05:30", datetime(2020, 1, 1, 6, 30, tzinfo=timezone.utc)),
    ("instant", "timestamp", "2020-01-01 12:00:00", "-18:00", datetime(2020, 1, 2, 6, tzinfo=timezone.utc)),
    ("instant", "timestamp", "2020-01-01 12:00:00", "+19:00", None),
    ("instant", "timestamp", "2020-01-01 12:00:00", "+01:60", None),
    ("instant", "timestamp", "2020-01-01 12:00:00", None, None),
    ("instant", "timestamp_ltz", "0001-01-01 00:00:00+01:00", None, None),
    ("instant", "timestamp_ntz", "2020-01-01 12:00:00", "UTC", None),
    ("c", "string", "abc", None, None),
    ("flag", "boolean", True, None, True),
    ("raw", "binary", b"a", None, b"a"),
    ("raw", "string", "a", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "literal", "text", "zone", "value"), TEXTS)
def test_a_literal_has_its_value_in_spark_or_is_unknown(
    name: str, literal: str, text: Any, zone: str | None, value: Any
) -> None:
    found = compare(BY_NAME[name], ">=", Literal(literal, text), zone)
    assert isinstance(found, Unknown) if value is None else found == Compare(name, ">=", value)
