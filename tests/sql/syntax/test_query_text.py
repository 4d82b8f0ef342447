"""The tables that a query names: joins, nested queries, common table expressions, time travel, hints and functions."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.sql.syntax.query_text import QueryText
from lakelsm.sql.syntax.relations import TableReference


def tables(text: str) -> list[str]:
    return [".".join(each.name) for each in QueryText.of(text).references]


def only(text: str) -> TableReference:
    (found,) = QueryText.of(text).references
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM a, b.c x JOIN `d e`.`f``g` ON x.h = 1", ["a", "b.c", "d e.f`g"]),
        ("SELECT (SELECT max(i) FROM a) FROM b WHERE j IN (SELECT k FROM c)", ["a", "b", "c"]),
        ("SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b) AND NOT EXISTS (FROM c)", ["a", "b", "c"]),
        ("WITH a AS (SELECT * FROM x), b(i) AS (SELECT * FROM a) SELECT * FROM a JOIN B JOIN c", ["x", "c"]),
        ("SELECT * FROM a WHERE i IN (WITH b AS (SELECT 1) SELECT * FROM b)", ["a"]),
        ("SELECT * FROM (WITH b AS (SELECT 1) SELECT * FROM b) x, b", ["b"]),
        ("(SELECT i FROM a) UNION ALL (SELECT j FROM b EXCEPT SELECT k FROM c) ORDER BY 1", ["a", "b", "c"]),
        ("SELECT extract(year FROM i), trim(BOTH 'x' FROM j), i IS NOT DISTINCT FROM j FROM a", ["a"]),
        ("FROM a SELECT i", ["a"]),
        ("TABLE a", ["a"]),
        ("SELECT * FROM a LATERAL VIEW explode(i) v AS j LEFT SEMI JOIN b USING (k)", ["a", "b"]),
        ("SELECT * FROM (a JOIN b ON a.i = b.i) JOIN c ON TRUE", ["a", "b", "c"]),
        ("SELECT * FROM VALUES (1, 2), (3, 4) AS v(i, j), a TABLESAMPLE (10 PERCENT)", ["a"]),
        ("SELECT t.from, `from` FROM a t", ["a"]),
        ("SELECT 'FROM x', /* FROM y */ i FROM a -- FROM z", ["a"]),
    ],
)
def test_tables_are_found_wherever_a_query_names_them(text: str, expected: list[str]) -> None:
    assert tables(text) == expected


@pytest.mark.parametrize(
    ("text", "version", "timestamp"),
    [
        ("SELECT * FROM a VERSION AS OF 3 x", 3, None),
        ("SELECT * FROM a FOR VERSION AS OF 'tag'", "tag", None),
        ("SELECT * FROM a TIMESTAMP AS OF '2024-01-01' AS x", None, "2024-01-01"),
        ("SELECT * FROM a FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01'", None, "2024-01-01"),
        ("SELECT * FROM a TIMESTAMP AS OF 1678883047", None, 1678883047),
        ("SELECT version FROM a version", None, None),
    ],
)
def test_time_travel(text: str, version: object, timestamp: object) -> None:
    found = only(text)
    assert (found.version, found.timestamp) == (version, timestamp)


def test_options_of_a_hint_and_arguments_of_a_function() -> None:
    found = only("SELECT * FROM a /*+ OPTIONS('k' = 'it''s', 'l' = '2') */ x")
    assert found.options == {"k": "it's", "l": "2"}
    assert only("SELECT * FROM paimon_incremental_query('db.t', 1, 'x')").arguments == ("db.t", 1, "x")


def test_other_names_take_the_places_of_tables_and_their_aliases_stay() -> None:
    text = "SELECT a.i FROM a VERSION AS OF 3, b /*+ OPTIONS('k' = 'v') */ AS x WHERE a.i IN (SELECT j FROM c y) -- {a}"
    query = QueryText.of(text)
    found = query.replaced({each.start: f"v{at}" for at, each in enumerate(query.references)})
    assert found == "SELECT a.i FROM v0 AS `a`, v1 AS x WHERE a.i IN (SELECT j FROM v2 y) -- {a}"


def test_conditions_that_reads_apply_become_true() -> None:
    text = "SELECT a FROM b WHERE a = 1 AND c = 2"
    query = QueryText.of(text)
    ranges = [(text.index(part), text.index(part) + 5) for part in ("c = 2", "a = 1")]
    assert query.replaced({query.references[0].start: "v"}, ranges) == "SELECT a FROM v AS `b` WHERE TRUE AND TRUE"


def test_relations_that_are_sampled_or_renamed_are_not_plain_and_a_sample_precedes_the_alias() -> None:
    query = QueryText.of("SELECT 1 FROM a TABLESAMPLE (1 ROWS), b AS c(d), e, f PIVOT (max(i) FOR j IN (1))")
    relations = query.blocks[0].relations
    assert [(each.is_plain, each.takes_alias) for each in relations] == [
        (False, False), (False, True), (True, True), (False, True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("SELECT (1", InvalidInputError, r"column 8: '\(' has no closing '\)'"),
        ("SELECT 1)", InvalidInputError, r"column 9: '\)' has no opening"),
        ("SELECT * FROM", InvalidInputError, "expected a table"),
        ("SELECT * FROM a JOIN", InvalidInputError, "expected a table"),
        ("SELECT * FROM a VERSION AS OF f(1)", UnsupportedFeatureError, "VERSION AS OF f"),
        ("SELECT * FROM a /*+ BROADCAST(a) */", InvalidInputError, "OPTIONS"),
        ("WITH a SELECT 1", InvalidInputError, "expected '\\(' and a query"),
        ("SELECT * FROM " + "(SELECT * FROM " * 200 + "a" + ")" * 200, InvalidInputError, "nested too deeply"),
    ],
)
def test_wrong_queries_are_refused(text: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        QueryText.of(text)
