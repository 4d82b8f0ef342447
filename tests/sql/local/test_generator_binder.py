"""Rows that explode makes: LATERAL VIEW, and explode in SELECT."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from tests.sql.local.bound import table_of

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "tags": [["a", None], [], None]})


def rows(text: str) -> list[tuple[object, ...]]:
    found = table_of(text, ROWS)
    return sorted(zip(*(column.to_pylist() for column in found.columns)), key=repr)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id, e FROM t LATERAL VIEW explode(tags) v AS e", [(1, "a"), (1, None)]),
        ("id, v.col FROM t LATERAL VIEW OUTER explode(tags) v", [(1, "a"), (1, None), (2, None), (3, None)]),
        ("p, e FROM t LATERAL VIEW posexplode(tags) AS p, e WHERE e = 'a' AND id = 1", [(0, "a")]),
        ("e, f FROM t LATERAL VIEW explode(tags) AS e LATERAL VIEW explode(array(e)) AS f", [("a", "a"), (None, None)]),
        ("key, value FROM t LATERAL VIEW explode(map(id, 'x')) v WHERE id < 3", [(1, "x"), (2, "x")]),
        ("v.*, id FROM t LATERAL VIEW explode(tags) v AS e", [("a", 1), (None, 1)]),
        ("count(*), max(e) FROM t LATERAL VIEW explode(tags) v AS e", [(2, "a")]),
        ("explode(tags) AS e, id + 1 FROM t", [("a", 2), (None, 2)]),
        ("id, explode_outer(tags) FROM t WHERE id < 3", [(1, "a"), (1, None), (2, None)]),
        ("posexplode(array('x', 'y')) AS (p, e)", [(0, "x"), (1, "y")]),
        ("explode_outer(array('x'))", [("x",)]),
        ("DISTINCT explode(array(id, 1)) AS e FROM t ORDER BY e DESC LIMIT 2", [(2,), (3,)]),
    ],
)
def test_rows(text: str, expected: list[tuple[object, ...]]) -> None:
    assert rows(f"SELECT {text}") == sorted(expected, key=repr)


def test_columns_have_spark_s_names() -> None:
    assert table_of("SELECT explode(tags) FROM t", ROWS).schema.names == ["col"]
    assert table_of("SELECT posexplode(map('a', 1)) FROM t", ROWS).schema.names == ["pos", "key", "value"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("explode(tags), explode(tags) FROM t", UnsupportedFeatureError),
        ("explode(tags) || 'x' FROM t", UnsupportedFeatureError),
        ("count(*), explode(array(1)) FROM t", UnsupportedFeatureError),
        ("explode(id) FROM t", UnsupportedFeatureError),
        ("id FROM t LATERAL VIEW stack(1, id) v", UnsupportedFeatureError),
        ("id FROM t LATERAL VIEW explode(tags) v AS a, b", InvalidInputError),
        ("id FROM t, LATERAL (SELECT id + 1)", LakelsmError),
    ],
)
def test_what_is_not_evaluated_is_one_typed_error(text: str, error: type[LakelsmError]) -> None:
    with pytest.raises(error, match="SQL: "):
        rows(f"SELECT {text}")
