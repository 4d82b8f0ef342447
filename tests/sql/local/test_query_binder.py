"""Queries: names of columns, groups, order, set operations, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from tests.sql.local.bound import table_of

ROWS = pa.table({"a": pa.array([2, 1, None], pa.int32()), "B": ["x", "y", "x"]})


def test_columns_have_the_names_that_the_query_gives_them() -> None:
    text = "SELECT *, a AS n, a + 1, t.B, a FROM t"
    assert table_of(text, ROWS).schema.names == ["a", "B", "n", "a + 1", "B", "a"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT a FROM t ORDER BY a", [None, 1, 2]),
        ("SELECT a FROM t ORDER BY a DESC", [2, 1, None]),
        ("SELECT a + 1 AS b FROM t ORDER BY b DESC LIMIT 1", [3]),
        ("SELECT a AS B FROM t ORDER BY t.B, B", [None, 2, 1]),
        ("SELECT B FROM t GROUP BY B HAVING count(a) = 1 AND max(a) = 2", ["x"]),
        ("SELECT upper(B) FROM t GROUP BY ALL ORDER BY 1", ["X", "Y"]),
        ("(SELECT a FROM t ORDER BY a LIMIT 1) UNION ALL SELECT 9 ORDER BY 1", [None, 9]),
        ("SELECT a FROM t UNION SELECT 1L ORDER BY 1", [None, 1, 2]),
        ("SELECT a FROM (SELECT a, B FROM t WHERE B = 'x') ORDER BY 1", [None, 2]),
        ("WITH w AS (SELECT a FROM t), w2 AS (SELECT a FROM w WHERE a > 1) SELECT a FROM w2", [2]),
        ("SELECT * EXCEPT (B) FROM t ORDER BY a", [None, 1, 2]),
        ("SELECT col1 FROM (VALUES (1), (2)) ORDER BY 1", [1, 2]),
        ("VALUES (1)", [1]),
        ("SELECT NULL", [None]),
        ("SELECT 1 WHERE FALSE", []),
        ("SELECT a, B FROM t ORDER BY ALL DESC", [2, 1, None]),
        ("SELECT DISTINCT a FROM t ORDER BY ALL", [None, 1, 2]),
        ("SELECT *, count(*) FROM (SELECT a FROM t) GROUP BY ALL ORDER BY ALL", [None, 1, 2]),
        ("SELECT 5, count(*) FROM t GROUP BY ALL", [5]),
    ],
)
def test_rows(text: str, rows: list[object]) -> None:
    assert table_of(text, ROWS).column(0).to_pylist() == rows


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("SELECT", InvalidInputError, "SELECT has no columns"),
        ("SELECT a FROM t ORDER BY 3", InvalidInputError, "ORDER BY 3: the query has 1 column"),
        ("SELECT DISTINCT a FROM t ORDER BY B", InvalidInputError, "not a column of SELECT DISTINCT"),
        ("SELECT a FROM t UNION SELECT 1, 2", InvalidInputError, "have 1 and 2 columns"),
        ("SELECT a FROM t UNION SELECT 'x'", UnsupportedFeatureError, "Cast one of them"),
        ("SELECT a FROM t LIMIT a", InvalidInputError, "LIMIT takes a whole number"),
        ("VALUES (1), (1, 2)", InvalidInputError, "different numbers of columns"),
        ("WITH w(a, b) AS (SELECT 1) SELECT * FROM w", InvalidInputError, "2 names for 1 column"),
        ("WITH RECURSIVE w AS (SELECT 1) SELECT * FROM w", UnsupportedFeatureError, "WITH RECURSIVE"),
        ("SELECT a FROM t QUALIFY a > 1", LakelsmError, "SQL"),
        ("SELECT a AS x, b AS x FROM t ORDER BY x", InvalidInputError, "ORDER BY x: more than one column"),
    ],
)
def test_wrong_queries_and_what_is_not_built(text: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        table_of(text, ROWS)


def test_constants_order_nothing_and_literals_keep_their_text_in_names() -> None:
    found = table_of(r"SELECT DISTINCT 'it\'s' || '\t' FROM t ORDER BY 1", ROWS)
    assert found.to_pydict() == {r"'it\'s' || '\t'": ["it's\t"]}
    assert table_of("SELECT 'x' AS x FROM t ORDER BY x, 'y' LIMIT 1", ROWS).to_pydict() == {"x": ["x"]}
