"""Relations: joins, USING, queries and VALUES with names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from tests.sql.local.bound import table_of

ROWS = pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["x", "y"]})


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("SELECT * FROM t JOIN (SELECT 2L AS k, 'z' AS w) USING (k)", ["k", "v", "w"], [(2, "y", "z")]),
        ("SELECT * FROM t RIGHT JOIN (SELECT 3 AS k) USING (k)", ["k", "v"], [(3, None)]),
        ("SELECT * FROM t NATURAL JOIN t y ORDER BY k", ["k", "v"], [(1, "x"), (2, "y")]),
        ("SELECT k FROM t FULL JOIN (SELECT 3 AS k) USING (k) ORDER BY k", ["k"], [(1,), (2,), (3,)]),
        ("SELECT * FROM VALUES (1, 'a') AS n(i, j)", ["i", "j"], [(1, "a")]),
        ("SELECT * FROM (SELECT k FROM t) AS n(x) ORDER BY x", ["x"], [(1,), (2,)]),
        ("SELECT x.v FROM (t x JOIN t y ON x.k < y.k)", ["v"], [("x",)]),
        ("SELECT count(*) AS n FROM t, t y CROSS JOIN t z", ["n"], [(8,)]),
    ],
)
def test_relations(text: str, names: list[str], rows: list[tuple[object, ...]]) -> None:
    found = table_of(text, ROWS)
    assert (found.schema.names, list(zip(*(column.to_pylist() for column in found.columns)))) == (names, rows)


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("SELECT * FROM t JOIN t y USING (nope)", InvalidInputError, "no column has this name"),
        ("SELECT * FROM t JOIN (SELECT 'x' AS k) USING (k)", UnsupportedFeatureError, "Join with ON and a CAST"),
        ("SELECT * FROM (SELECT k FROM t) AS n(x, y)", InvalidInputError, "2 names for 1 column"),
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT)", UnsupportedFeatureError, "TABLESAMPLE"),
        ("SELECT * FROM t, LATERAL (SELECT t.k)", LakelsmError, "SQL"),
    ],
)
def test_wrong_relations(text: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        table_of(text, ROWS)


def test_both_columns_of_using_are_found_by_the_names_of_their_relations() -> None:
    text = "SELECT x.k, y.k, k AS n FROM (SELECT 1 AS k) x FULL JOIN (SELECT 2 AS k) y USING (k) ORDER BY n"
    columns = [column.to_pylist() for column in table_of(text, ROWS).columns]
    assert columns == [[1, None], [None, 2], [1, 2]]
    joined = "SELECT * FROM (SELECT 1 AS k) x JOIN (SELECT 1 AS k) y USING (k) NATURAL JOIN (SELECT 1 AS k) z"
    assert table_of(joined, ROWS).column_names == ["k"]
