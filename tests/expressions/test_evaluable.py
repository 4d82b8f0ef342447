"""Conditions and expressions of this process: parts on DuckDB beside those that prune, and texts that are refused."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.evaluable import evaluable_condition, evaluable_expression
from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.expression import EvaluatedValue
from lakelsm.predicate.expression_evaluation import evaluated
from lakelsm.predicate.predicate import And, Compare, Evaluated, In, Or, Predicate, columns, equality_values
from tests.expressions.typed_rows import FIELDS, rows

ROWS = rows()


def parsed(where: str) -> Predicate:
    return evaluable_condition(where, FIELDS, None)


def found(where: str) -> list[int]:
    """Return the numbers of the rows that match."""
    mask = matching(parsed(where), ROWS)
    return [at for at, one in enumerate(mask.to_pylist()) if one]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("upper(t) = 'AA'", [0]),
        ("t ILIKE 'a%'", [0]),
        ("NOT (upper(t) = 'AA')", [1, 3]),
        ("NOT (upper(t) = 'AA' OR i = 0)", [3]),
        ("NOT (upper(t) <> 'AA' AND i < 5)", [0, 3]),
        ("(upper(t) = 'AA') IS NOT TRUE", [1, 2, 3]),
        ("i - 1 = 0 OR i IS NULL", [0, 2]),
        ("CAST(i AS STRING) = '1'", [0]),
        ("a[0] = 'x' AND a IS NOT NULL AND i = 1", [0]),
        ("k['v'] = 2", [3]),
        ("R.Q = 1", [0]),
        ("r.w.c = 'ab'", [0]),
        ("r.w.n < m", []),
        ("date(m) = '2024-02-29'", [0]),
        ("date(m) IN ('2024-02-29', '0001-01-01')", [0, 1]),
        ("m = n", [0, 1, 3]),
        ("o + 0 = 3723000", [0]),
        ("c || 'x' = 'abx'", [0]),
        ("x * 1 = x", [0, 1, 3]),
        ("p + 1 = 2.25", [0]),
        ("t = 'x''y' AND length(t) = 3", [3]),
        ("t = 'x\\'y'", [3]),
        ("b = (i > 0)", [0, 1, 3]),
        ("CASE WHEN i = 0 THEN TRUE ELSE 10 / i > 9 END", [0, 1]),
        ("length('abc') = 3", [0, 1, 2, 3]),
        ("length('abc') = 2", []),
        ("FALSE AND 1 / 0 > 1", []),
    ],
)
def test_the_rows_that_match(where: str, expected: list[int]) -> None:
    assert found(where) == expected


@pytest.mark.parametrize(
    "where",
    [
        "i <> 0 AND 10 / i > 1",
        "10 / i > 1 AND i <> 0",
        "i = 0 OR 10 / i > 1",
        "length(t) >= 0 AND i > 0 AND 10 / i > 1",
        "NOT (i = 0 OR NOT (10 / i > 1))",
        "i IS NOT NULL AND (i = 0 OR 10 / i > 1 AND abs(i) = 1) AND length(t) = 2",
        "((abs(i) = 0) OR (10 / i > 1)) IS TRUE",
        "CASE WHEN abs(i) = 0 OR 10 / i < 1 THEN FALSE ELSE 10 / i > 1 END",
        "CASE WHEN i = 0 THEN FALSE ELSE 10 / i IN (10, 11, 12, 13, 14, 15, 16, 17) END",
    ],
)
def test_a_part_that_another_part_guards_does_not_fail(where: str) -> None:
    assert 0 in found(where)


def test_an_error_of_a_value_names_the_condition() -> None:
    for where, problem in (
        ("10 / i > 1", "division by zero"),
        ("i + i > 0", "overflow: "),
        ("CAST(t AS INT) = 1", "cast to INT"),
        ("a[3] = 'x'", "array index out of bounds"),
        ("b AND 10 / i > 1 OR 10 / i > 2", "division by zero"),
    ):
        with pytest.raises(InvalidInputError, match=problem) as error:
            found(where)
        assert str(error.value).startswith(f"condition {where!r}: ")


def test_known_parts_stay_beside_those_on_duckdb() -> None:
    first, second = _children(parsed("i = 1 AND upper(t) = 'AA' AND length(t) = 2"), And)
    assert first == Compare("i", "=", 1)
    assert isinstance(second, Evaluated) and second.evaluator.columns == {"t"}
    first, second = _children(parsed("i IN (1, 2) OR d = '2024-01-01' OR upper(t) = 'AA' OR i + 1 = 5"), Or)[:2]
    assert first == In("i", (1, 2))
    assert equality_values(parsed("i = 1 AND abs(i) = 1 OR i = 2 AND abs(i) = 2"), ["i"]) == ((1,), (2,))
    assert equality_values(parsed("i = 1 OR abs(i) = 1"), ["i"]) is None
    assert columns(parsed("upper(t) = 'AA' AND r.q = 1 OR length('x') = 1")) == {"i", "t", "r"}


def _children(predicate: Predicate, kind: type[Any]) -> tuple[Predicate, ...]:
    assert isinstance(predicate, kind)
    found: tuple[Predicate, ...] = predicate.children
    return found


def test_parts_without_known_ones_are_one_expression() -> None:
    terms = " OR ".join(f"(upper(t) = '{at}' AND NOT (abs(i) = {at}))" for at in range(50))
    assert isinstance(parsed(terms), Evaluated)


@pytest.mark.parametrize(
    "where",
    [
        "soundex(t) = 'b'",
        "i = 1 AND row_number() OVER (ORDER BY i) = 1",
        "i IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "(SELECT 1) = i",
        "z = uuid()",
        "t > X'61'",
        "read_csv('/etc/passwd') = 'x'",
        "getenv('HOME') = t",
        "x -> x + 1 = 2",
    ],
)
def test_other_parts_are_refused_by_name(where: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"^condition .* the local engine cannot evaluate "):
        parsed(where)


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("upper(t)", "is STRING, not a condition"),
        ("max(i) = 1", "aggregate function"),
        ("upper(w) = 'x'", "column 'w' does not exist"),
        ("upper(t = 'x'", "cannot parse"),
        ("upper(t) = 'a'; DROP TABLE t", "cannot parse"),
        ("r.nothing = 1", "has no field 'nothing'"),
        ("(" * 1000 + "upper(t) = 'a'" + ")" * 1000, "nested too deeply"),
        ("upper(t) = 'a' AND " + "abs(" * 300 + "i" + ")" * 300 + " = 1", "nested too deeply"),
    ],
)
def test_wrong_conditions_are_refused(where: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        parsed(where)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert found("i = 1") == [0]
    with pytest.raises(InvalidInputError, match=r"condition \"upper\(t\) = 'AA'\" needs DuckDB.*lakelsm\[sql\]"):
        parsed("upper(t) = 'AA'")
    with pytest.raises(InvalidInputError, match=r"expression 'upper\(t\)' needs DuckDB.*lakelsm\[sql\]"):
        evaluable_expression("upper(t)", FIELDS, None)
    with pytest.raises(UnsupportedFeatureError, match="UUID"):
        parsed("uuid() = t")


def test_a_long_list_beside_an_expression() -> None:
    texts = ", ".join(f"'{at}'" for at in range(100_000))
    assert found(f"upper(t) IN ({texts}, 'AA')") == [0]
    assert found(f"upper(t) NOT IN ({texts}, 'AA')") == [1, 3]
    assert found(f"NOT (upper(t) IN ({texts}, NULL))") == []
    assert found(f"abs(i) = 1 AND t IN ({texts}, 'Aa')") == [0]
    numbers = ", ".join(map(str, range(1, 100_000)))
    assert found(f"i DIV 1 IN ({numbers})") == [0]
    with pytest.raises(UnsupportedFeatureError):
        parsed(f"CASE WHEN abs(i) IN ({numbers}) THEN TRUE ELSE FALSE END")
    with pytest.raises(UnsupportedFeatureError):
        parsed(f"upper(t) IN ({numbers})")


def test_thousands_of_terms() -> None:
    assert found(" OR ".join(f"upper(t) = '{at}'" for at in range(6_000)) + " OR upper(t) = 'AA'") == [0]
    assert found(" OR ".join(f"i = {at}" for at in range(1, 6_000)) + " OR upper(t) = 'x'") == [0]


def test_expressions_have_types_and_values() -> None:
    for text, kind, expected in (
        ("upper(t)", pa.string(), ["AA", "", None, "X'Y"]),
        ("abs(i)", pa.int32(), [1, 0, None, 2**31 - 1]),
        ("abs(p)", pa.decimal128(10, 2), None),
        ("last_day(d)", pa.date32(), None),
        ("if(abs(i) > 0, a, NULL)", None, [["x", None], None, None, ["y", "z"]]),
        ("length('ab')", pa.int32(), [2, 2, 2, 2]),
    ):
        expression = evaluable_expression(text, FIELDS, None)
        assert isinstance(expression, EvaluatedValue)
        values = evaluated(expression, ROWS.to_batches()[0])
        assert kind is None or values.type == kind
        assert expected is None or values.to_pylist() == expected
    assert not isinstance(evaluable_expression("i + 1", FIELDS, None), EvaluatedValue)
