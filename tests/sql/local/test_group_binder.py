"""GROUP BY with ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import LakelsmError, UnsupportedFeatureError
from tests.sql.local.bound import table_of

ROWS = pa.table({"a": ["x", "x", None], "b": pa.array([1, 2, 1], pa.int32()), "n": pa.array([1, 2, 4], pa.int32())})


def rows(text: str) -> list[tuple[object, ...]]:
    found = table_of(text, ROWS)
    return sorted(zip(*(column.to_pylist() for column in found.columns)), key=repr)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, sum(n) FROM t GROUP BY ROLLUP (a)", [("x", 3), (None, 4), (None, 7)]),
        ("a, sum(n) FROM t GROUP BY a WITH ROLLUP", [("x", 3), (None, 4), (None, 7)]),
        ("a, grouping(a), sum(n) FROM t GROUP BY CUBE (a)", [("x", 0, 3), (None, 0, 4), (None, 1, 7)]),
        ("b, grouping_id(), sum(n) FROM t GROUP BY b, ROLLUP (a) HAVING grouping(a) = 1", [(1, 1, 5), (2, 1, 2)]),
        ("b + 1 AS c, sum(b) FROM t GROUP BY GROUPING SETS ((c), ())", [(2, 2), (3, 2), (None, 4)]),
        ("sum(n) FROM t GROUP BY GROUPING SETS ((a, b), (b))", [(1,), (2,), (2,), (4,), (5,)]),
        ("coalesce(a, 'all'), count(*) FROM t WHERE n < 4 GROUP BY 1 WITH CUBE", [("x", 2), (None, 2)]),
        ("a, count(*) FROM t WHERE n > 9 GROUP BY ROLLUP (a)", []),
    ],
)
def test_rows(text: str, expected: list[tuple[object, ...]]) -> None:
    assert rows(f"SELECT {text}") == sorted(expected, key=repr)


@pytest.mark.parametrize(
    "text",
    [
        "a FROM t GROUP BY a, b GROUPING SETS ((a), b)",
        "count(*) FROM t GROUP BY ROLLUP ('x')",
        "a FROM t GROUP BY GROUPING SETS (ROLLUP (a))",
        "array(a) FROM t GROUP BY array(a)",
        "grouping(n) FROM t GROUP BY ROLLUP (a)",
    ],
)
def test_what_is_not_evaluated_is_refused(text: str) -> None:
    with pytest.raises((UnsupportedFeatureError, LakelsmError), match="SQL: "):
        rows(f"SELECT {text}")
