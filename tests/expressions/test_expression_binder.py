"""Names in scope: qualified, nested, ambiguous, grouped; and literals."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.sql.local.bound import table_of, value_of

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"], "r": [{"q": 1, "S": {"v": 2}}, {"q": None, "S": None}]})


def column(text: str) -> list[object]:
    return table_of(text, ROWS).column(0).to_pylist()


def test_names_are_found_in_any_case_with_and_without_qualifiers() -> None:
    assert column("SELECT A FROM t WHERE T.a = 1") == [1]
    assert column("SELECT x.`A` FROM t x WHERE x.a = 2") == [2]
    assert column("SELECT r.s.V FROM t ORDER BY a") == [2, None]
    assert column("SELECT x.r.q FROM t x ORDER BY x.a") == [1, None]
    assert column("SELECT (SELECT max(b) FROM t y WHERE y.a = x.a) FROM t x ORDER BY a") == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT c FROM t", "column 'c' does not exist. Columns: a, b, r"),
        ("SELECT y.a FROM t x", "column 'y.a' does not exist"),
        ("SELECT a FROM t x, t y", "'a' is ambiguous: x.a, y.a"),
        ("SELECT r.x FROM t", "has no field 'x'"),
        ("SELECT b FROM t GROUP BY a", "column 'b' is neither in GROUP BY nor in an aggregate"),
        ("SELECT * FROM t GROUP BY a", "of \\* is not in GROUP BY"),
        ("SELECT a FROM t WHERE sum(a) > 1", "aggregate function 'SUM\\(a\\)' is not allowed here"),
        ("SELECT sum(sum(a)) FROM t", "is not allowed here"),
        ("SELECT a FROM t WHERE a", "is INT|is BIGINT"),
    ],
)
def test_wrong_names_are_one_error(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        table_of(text, ROWS)


def test_expressions_that_would_repeat_their_arguments_without_end_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="is too complex for this process"):
        value_of("1 / (" * 40 + "1" + ")" * 40)


def test_a_modifier_that_is_not_read_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="is not evaluated in this process"):
        value_of("1 BETWEEN SYMMETRIC 3 AND 1")


def test_deep_expressions_are_refused_and_long_chains_are_not() -> None:
    assert column("SELECT a FROM t WHERE " + " OR ".join(["a = 1"] * 2000)) == [1]
    with pytest.raises(InvalidInputError, match="nested too deeply"):
        table_of("SELECT " + "-(" * 300 + "a" + ")" * 300 + " FROM t", ROWS)
