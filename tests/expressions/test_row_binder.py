"""Conditions on rows in DuckDB's SQL: the columns that a part names, and parts that are evaluated only where needed."""

from __future__ import annotations

import duckdb
import pytest

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.expressions.local_dialect import QueryTree
from lakelsm.expressions.row_binder import RowBinder, any_true, every_true
from tests.expressions.typed_rows import FIELDS


def binder(text: str) -> tuple[RowBinder, QueryTree]:
    tree = QueryTree(text, is_expression=True)
    return RowBinder(tree, FIELDS), tree


def test_the_columns_of_a_part() -> None:
    found, tree = binder("r.q = 1 AND upper(T) = 'x'")
    assert [column.field.name for column in found.columns(tree.root)] == ["t", "r"]
    assert [column.field.name for column in found.columns(tree.root.this)] == ["r"]
    found, tree = binder("length('x') = 1")
    assert [column.field.name for column in found.columns(tree.root)] == ["i"]


def test_names_of_columns_are_numbers() -> None:
    found, tree = binder("upper(t) = 'x'")
    assert "c1" in found.condition(tree.root) and '"t"' not in found.condition(tree.root)


def test_queries_and_windows_are_refused() -> None:
    for text in ("i IN (SELECT 1)", "EXISTS (SELECT 1)", "(SELECT 1) = 1", "sum(i) OVER () = 1", "rank() OVER () = 1"):
        found, tree = binder(text)
        with pytest.raises(UnsupportedFeatureError):
            found.condition(tree.root)


@pytest.mark.parametrize("one", [True, False, None])
@pytest.mark.parametrize("other", [True, False, None])
def test_parts_that_are_joined(one: bool | None, other: bool | None) -> None:
    parts = [f"CAST({'NULL' if each is None else each} AS BOOLEAN)" for each in (one, other, True)]
    for sql, expected in (
        (every_true(parts), (one and other) is True),
        (any_true(parts[:2]), (one or other) is True),
        (every_true(parts[:1]), one),
    ):
        assert duckdb.sql(f"SELECT {sql}").fetchall() == [(expected,)]
