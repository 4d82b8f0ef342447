"""Calls: aggregates with DISTINCT, FILTER and OVER, windows, and what is refused."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.calls import FUNCTION_NAMES
from tests.sql.local.bound import table_of

ROWS = pa.table({"g": ["a", "a", "b"], "v": pa.array([1, 2, 4], pa.int32())})


@pytest.mark.parametrize(
    ("select", "rows"),
    [
        ("g, sum(v) FILTER (WHERE v > 1) FROM t GROUP BY g ORDER BY g", [("a", 2), ("b", 4)]),
        ("count(DISTINCT g), count(DISTINCT g, v), count(*) FROM t", [(2, 3, 3)]),
        ("v, sum(v) OVER (PARTITION BY g ORDER BY v) FROM t ORDER BY v", [(1, 1), (2, 3), (4, 4)]),
        ("v, first_value(v) OVER (ORDER BY v DESC) FROM t ORDER BY v", [(1, 4), (2, 4), (4, 4)]),
        ("g, sort_array(collect_list(v)), collect_set(g) FROM t GROUP BY g ORDER BY g", [
            ("a", [1, 2], ["a"]), ("b", [4], ["b"])
        ]),
        ("collect_list(v), collect_set(g), avg(CAST(v AS DECIMAL(4, 1))) FROM t WHERE v > 9", [([], [], None)]),
        ("avg(CAST(v AS DECIMAL(4, 1))), avg(CAST(v AS DECIMAL(4, 1))) FILTER (WHERE v = 9) FROM t", [
            (Decimal("2.33333"), None)
        ]),
        ("v, avg(CAST(v AS DECIMAL(4, 1))) OVER (PARTITION BY g) FROM t ORDER BY v", [
            (1, Decimal("1.50000")), (2, Decimal("1.50000")), (4, Decimal("4.00000"))
        ]),
        ("mod(v, 3), decode(g, 'a', 1, 'b', 2L, 0), decode(nullif(v, 1), NULL, 'n', 2, 't') FROM t ORDER BY v", [
            (1, 1, "n"), (2, 1, "t"), (1, 2, None)
        ]),
        ("mod(-5.5, 2), position('b', 'abc'), position('c' IN 'abc') FROM t LIMIT 1", [(Decimal("-1.5"), 2, 3)]),
        ("substring('abc' FROM 2), substring('abc' FROM 1 FOR 2), substr('abc', -1) FROM t LIMIT 1", [("bc", "ab", "c")]),
        ("v, lead(v, 1, -1) OVER (ORDER BY v) FROM t ORDER BY v", [(1, 2), (2, 4), (4, -1)]),
        ("v, cume_dist() OVER (ORDER BY g) FROM t ORDER BY v", [(1, 2 / 3), (2, 2 / 3), (4, 1.0)]),
        (
            "v, count(*) OVER (ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM t ORDER BY v",
            [(1, 2), (2, 3), (4, 3)],
        ),
    ],
)
def test_calls(select: str, rows: list[tuple[object, ...]]) -> None:
    assert list(zip(*table_of(f"SELECT {select}", ROWS).to_pydict().values())) == rows


@pytest.mark.parametrize(
    "select",
    [
        "row_number() OVER (PARTITION BY g) FROM t",
        "lag(v) OVER () FROM t",
        "sum(DISTINCT v) OVER (ORDER BY v) FROM t",
        "sum(v) OVER (ORDER BY v RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "first(v) OVER (PARTITION BY g ROWS BETWEEN 1 PRECEDING AND x FOLLOWING) FROM t",
        "grouping(g) FROM t GROUP BY g",
        "g, corr(v, v) FROM t GROUP BY g",
        "collect_list(NULL) FROM t",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM t",
    ],
)
def test_what_is_not_built_is_refused_by_name(select: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        table_of(f"SELECT {select}", ROWS)


def test_an_aggregate_without_a_group_is_an_error_where_it_has_none() -> None:
    with pytest.raises(InvalidInputError, match="not allowed here"):
        table_of("SELECT v FROM t WHERE count(*) > 1", ROWS)


def test_windows_take_expressions_that_can_fail() -> None:
    found = table_of("SELECT count(*) OVER (PARTITION BY upper('a') ORDER BY 1 / 2) AS n FROM t", ROWS)
    assert set(found.column("n").to_pylist()) == {len(ROWS)}
    with pytest.raises(InvalidInputError, match="SQL: division by zero"):
        table_of("SELECT count(*) OVER (PARTITION BY 1 / (v - v)) FROM t", ROWS)


@pytest.mark.parametrize(
    "text", ["g, skewness(v) FROM t GROUP BY g", "first(v) FROM t", "max(g) FROM t HAVING mode(v) > 1"]
)
def test_an_unknown_aggregate_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"(?i)'(skewness|first|mode)\(v\)'"):
        table_of(f"SELECT {text}", ROWS)


def test_the_page_on_sql_lists_all_functions() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
    listed = page.partition("A function that is not in this list is refused.")[2].partition("Conditions (`where`)")[0]
    groups = (each for each in re.findall("`([^`]+)`", listed) if re.fullmatch(r"[a-z0-9_\s]+", each))
    assert {name for group in groups for name in group.split()} == FUNCTION_NAMES


def test_coalesce_of_nulls_has_no_type() -> None:
    assert str(table_of("SELECT coalesce(NULL, CASE WHEN v > 1 THEN NULL END) FROM t", ROWS).schema.types[0]) == "null"
