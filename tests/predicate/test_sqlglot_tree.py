"""Conversion of conditions: supported parts, and unknown ones."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from lakelsm.predicate.predicate import Compare, In, IsNull, Predicate, StartsWith, is_exact
from tests.predicate.evaluation import evaluate
from tests.predicate.typed_columns import NOON, parse


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("5 < I", Compare("i", ">", 5)),
        ("`my col` == -3", Compare("my col", "=", -3)),
        ("i = 5L", Compare("i", "=", 5)),
        ("i > 5.5", Compare("i", ">", Decimal("5.5"))),
        ("i = 2e0", Compare("i", "=", 2)),
        ("d >= 1.5", Compare("d", ">=", 1.5)),
        ("d >= 2", Compare("d", ">=", 2.0)),
        ("d = 1.5D", Compare("d", "=", 1.5)),
        ("p = 1.5", Compare("p", "=", Decimal("1.5"))),
        ("text = 'a b'", Compare("Text", "=", "a b")),
        ("text LIKE 'ab'", Compare("Text", "=", "ab")),
        ("text LIKE 'ab%'", StartsWith("Text", "ab")),
        ("text NOT LIKE 'ab%'", StartsWith("Text", "ab", negated=True)),
        ("startswith(text, 'ab')", StartsWith("Text", "ab")),
        ("NOT flag", Compare("flag", "!=", True)),
        ("raw = X'01ff'", Compare("raw", "=", b"\x01\xff")),
        ("day = '2020-01-01'", Compare("day", "=", date(2020, 1, 1))),
        ("day = DATE '2020-01-01'", Compare("day", "=", date(2020, 1, 1))),
        ("day = CAST('2020-01-01' AS DATE)", Compare("day", "=", date(2020, 1, 1))),
        ("ts = '2020-01-01 12:00:00'", Compare("ts", "=", NOON)),
        ("ts = '2020-01-01T12:00:00.5'", Compare("ts", "=", NOON.replace(microsecond=500000))),
        ("ts = TIMESTAMP_NTZ '2020-01-01 12:00:00'", Compare("ts", "=", NOON)),
        ("ts = DATE '2020-01-01'", Compare("ts", "=", NOON.replace(hour=0))),
        ("i NOT IN (2, 1, 2)", In("i", (2, 1), negated=True)),
        ("i IN (1.5, 2)", In("i", (2,))),
        ("c IS NULL", IsNull("c")),
        ("arr <=> NULL", IsNull("arr")),
    ],
)
def test_a_supported_condition_is_converted(sql: str, expected: Predicate) -> None:
    assert parse(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "i = '5'",  # the text would be cast, or the column
        "text = 5",
        "c = 'ab'",  # padding
        "l = 1e0",  # doubles do not hold every BIGINT
        "p = 1e0",
        "f = 16777217",  # FLOAT or DOUBLE, depending on the mode
        "wide = 5",  # 10 + 30 digits: Spark rounds
        "text = 'it''s'",
        r"text = 'a\tb'",
        "text = r'ab'",
        "text LIKE 'a' ESCAPE '!'",
        "text LIKE ANY ('a%')",
        "text RLIKE 'a'",
        "day = '2020-1-1'",
        "day IN ('2020-01-01', 'x')",
        "day = TIMESTAMP '2020-01-01 00:00:00'",
        "ts IN ('2020-01-01')",  # may be compared as texts
        "ts = '2020-01-01 12:00:00+01:00'",
        "ts = DATE '2020-01-01 12:00:00'",
        "ts = '2020-02-30 00:00:00'",
        "instant = '2020-01-01 12:00:00'",
        "i = CAST(3000000000 AS INT)",
        "i < 99999999999999999999",  # folded to TRUE, also for NULL
        "i <=> 'x'",
        "i = l",
        "i + 1 = 2",
        "i = 1 + 1",
        "s.x = 1",
        "m['k'] = 1",
        "arr[0] = 1",
        "exists(arr, x -> x > 1)",
        "transform(arr, (x, y) -> x + y)[0] = 1",
        "day < current_date",
        "timestampadd(HOUR, 1, ts) > ts",
        "date_trunc('DAY', ts) = '2020-01-01'",
        "i IN (SELECT other FROM elsewhere)",
        "(i, l) IN ((1, 2))",
        "CASE WHEN flag THEN i = 1 END",
        "i = 1 = true",
        "i = 5 IS NULL",
        "i = :parameter",
    ],
)
def test_an_uncertain_condition_is_unknown(sql: str) -> None:
    assert not is_exact(parse(sql))


def test_a_long_chain_of_or_is_supported() -> None:
    predicate = parse(" OR ".join(f"i = {n}" for n in range(3000)))
    assert evaluate(predicate, {"i": 2999}) is True
    assert evaluate(predicate, {"i": 3000}) is False
