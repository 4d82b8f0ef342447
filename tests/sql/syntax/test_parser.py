"""Statements by their first keyword; what is no statement, and what is not built."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.sql.syntax.parser import parse_script, parse_statement
from lakelsm.sql.syntax.statements import Explain, Insert, Query


@pytest.mark.parametrize(
    "text",
    ["SELECT 1", "select a\nfrom t", "VALUES (1), (2)", "(SELECT 1) UNION SELECT 2", "WITH a AS (SELECT 1) SELECT 2"],
)
def test_a_query_keeps_its_text(text: str) -> None:
    assert parse_statement(f"  {text} ; ") == Query(text)


def test_with_can_precede_an_insert() -> None:
    found = parse_statement("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a")
    assert found == Insert(("t",), Query("WITH a AS (SELECT 1) SELECT * FROM a"))


def test_explain_is_of_a_query() -> None:
    assert parse_statement("EXPLAIN EXTENDED SELECT 1") == Explain(Query("SELECT 1"), "extended")


def test_a_script_has_several_statements_and_a_statement_is_one() -> None:
    assert parse_script("SELECT 1; SELECT 2") == [Query("SELECT 1"), Query("SELECT 2")]
    for text, count in (("", 0), ("SELECT 1; SELECT 2", 2)):
        with pytest.raises(InvalidInputError, match=f"expected one statement, found {count}"):
            parse_statement(text)


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("SELEC 1", InvalidInputError, "column 1: expected a statement such as SELECT, found 'SELEC'"),
        ("SELECT 1;\n  DORP TABLE t", InvalidInputError, "line 2, column 3: expected a statement such as DROP"),
        ("DROP TABLE t extra", InvalidInputError, "expected the end of the statement, found 'extra'"),
        ("USE db", UnsupportedFeatureError, "USE: write names as database.table"),
        ("GRANT ALL ON t TO u", UnsupportedFeatureError, "GRANT"),
        ("WITH a AS (SELECT 1) DELETE FROM t", UnsupportedFeatureError, "WITH before DELETE"),
        ("EXPLAIN DROP TABLE t", UnsupportedFeatureError, "EXPLAIN of other statements"),
    ],
)
def test_what_is_not_a_statement_is_refused_by_name(text: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        parse_script(text)
