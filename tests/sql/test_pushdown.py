"""Columns and conditions that reach the reads of a query's tables."""

from __future__ import annotations

import pytest

from lakelsm.sql.pushdown import needs
from lakelsm.sql.syntax.query_text import QueryText
from lakelsm.types import parse_columns

FIELDS = parse_columns("a INT, b STRING, c DATE")


def pushed(text: str) -> list[tuple[list[str] | None, str | None]]:
    query = QueryText.of(text)
    found = needs(query, {each.start: FIELDS for each in query.references}, "UTC")
    return [(None if need.columns is None else list(need.columns), need.where) for _, need in sorted(found.items())]


def conditions(text: str) -> list[str | None]:
    return [where for _, where in pushed(text)]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT a FROM t", ["a"]),
        ("SELECT A + 1 FROM t ORDER BY `b`", ["a", "b"]),
        ("SELECT * FROM t", None),
        ("SELECT t.* FROM t", None),
        ("SELECT a, * FROM t", None),
        ("SELECT count(*) FROM t", []),
        ("SELECT a * 2, count( * ) FROM t", ["a"]),
        ("SELECT a FROM t NATURAL JOIN (SELECT 1 AS a)", None),
        ("SELECT a, b, c FROM t", None),
        ("SELECT 1 FROM t", []),
        ("TABLE t", None),
        ("SELECT p FROM t AS x(p, q, r)", None),
        ("FROM t |> EXTEND 1 AS x", None),
        ("SELECT IDENTIFIER('a') FROM t", None),
    ],
)
def test_named_columns_are_read(text: str, columns: list[str] | None) -> None:
    assert [found for found, _ in pushed(text)] == [columns]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("SELECT a FROM t WHERE a > 1 AND b = 'x'", ["(a > 1) AND (b = 'x')"]),
        ("SELECT a FROM t WHERE a > 1 AND b = 'x''y'", ["(a > 1)"]),
        ("SELECT a FROM t x WHERE x.a BETWEEN 1 AND 2 AND upper(b) = 'X'", ["(a BETWEEN 1 AND 2)"]),
        ("SELECT a FROM t WHERE a = 1 OR b = 'x'", ["(a = 1 OR b = 'x')"]),
        ("SELECT a FROM t WHERE a = (SELECT 1)", [None]),
        ("SELECT a FROM t LATERAL VIEW explode(array(c)) v AS b WHERE a = 1 AND b = 'x' AND v.b = 'x'", ["(a = 1)"]),
        ("SELECT x.a FROM t x JOIN t y ON x.a = y.a WHERE x.b = 'p' AND y.b = 'q'", ["(b = 'p')", "(b = 'q')"]),
        ("SELECT x.a FROM t x, t y WHERE a = 1", [None, None]),
        ("SELECT x.a FROM t x LEFT JOIN t y ON x.a = y.a WHERE x.b = 'p' AND y.b IS NULL", ["(b = 'p')", None]),
        ("SELECT x.a FROM t x RIGHT JOIN t y ON x.a = y.a WHERE x.b = 'p' AND y.b = 'q'", [None, "(b = 'q')"]),
        ("SELECT x.a FROM t x FULL JOIN t y ON x.a = y.a WHERE x.b = 'p' AND y.b = 'q'", [None, None]),
        ("SELECT x.a FROM t x LEFT ANTI JOIN t y ON x.a = y.a WHERE x.b = 'p'", ["(b = 'p')", None]),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT) WHERE a = 1", [None]),
        ("SELECT a FROM t WHERE a > rand() AND b = 'x'", ["(b = 'x')"]),
        ("SELECT a FROM (SELECT a FROM t WHERE b = 'x') WHERE a = 1", ["(b = 'x')"]),
        ("SELECT a FROM t a WHERE a.a = 1", [None]),
        ("SELECT a FROM t AS x(b, a, c) WHERE x.a = 'x' AND b = 1", [None]),
        ("FROM t |> SELECT a + 1 AS a |> WHERE a = 1", [None]),
        ("SELECT a FROM t WHERE a = 1 AND case = 2 OR b = 'x'", [None]),
        ("SELECT a FROM t WHERE end = 1 OR case = 2 AND b = 'x'", [None]),
        ("SELECT a FROM t x WHERE s.x.a = 1", [None]),
        (
            "SELECT a FROM t WHERE a = 1 AND (b = 'x' OR b = 'y') AND NOT c IS NULL",
            ["(a = 1) AND (( b = 'x' OR b = 'y' )) AND (NOT c IS NULL)"],
        ),
        ("SELECT a FROM t WHERE b = 'x' /* OR a = 1 */ AND a = 2 -- OR", ["(b = 'x') AND (a = 2)"]),
        (
            "SELECT a FROM t WHERE b = 'x OR' AND a = 1 UNION SELECT a FROM t WHERE a = 2",
            ["(b = 'x OR') AND (a = 1)", "(a = 2)"],
        ),
        ("SELECT b FROM t GROUP BY b HAVING b = 'x'", [None]),
    ],
)
def test_conditions_reach_the_tables_whose_rows_they_decide(text: str, where: list[str | None]) -> None:
    assert conditions(text) == where


def test_the_ranges_of_conditions_are_their_texts_in_the_query() -> None:
    text = "SELECT a FROM t x WHERE x.b = 'p' AND upper(b) = 'X' AND a BETWEEN 1 AND 2 /* end */ ORDER BY a"
    query = QueryText.of(text)
    (need,) = needs(query, {each.start: FIELDS for each in query.references}, None).values()
    assert [text[start:end] for start, end in need.ranges] == ["x.b = 'p'", "a BETWEEN 1 AND 2"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT a FROM t WHERE b = 'x'", ["a"]),
        ("SELECT count(*) FROM t WHERE b = 'x' AND c > '2020-01-01'", []),
        ("SELECT a FROM t WHERE b = 'x' AND upper(b) = 'X'", ["a", "b"]),
        ("SELECT count(*) FROM t WHERE b = 'x' OR a = 1", []),
        ("SELECT count(*) FROM t WHERE b = 'x' ORDER BY max(c)", ["c"]),
        ("SELECT * FROM t WHERE b = 'x'", None),
        ("SELECT count(*) FROM u LEFT JOIN t ON u.a = t.a WHERE t.b = 'x'", ["a", "b"]),
    ],
)
def test_columns_of_conditions_that_a_read_applies_are_not_needed(text: str, columns: list[str] | None) -> None:
    query = QueryText.of(text)
    starts = [each.start for each in query.references if each.name == ("t",)]
    (need,) = needs(query, dict.fromkeys(starts, FIELDS), None, starts).values()
    assert need.columns == columns
    (kept,) = needs(query, dict.fromkeys(starts, FIELDS), None).values()
    assert (kept.where, kept.ranges) == (need.where, need.ranges)
    assert columns is None or {*columns} <= {*(kept.columns or "abc")}
