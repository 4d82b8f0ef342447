"""The tree of a query: functions by name, and literals with escapes and types."""

from __future__ import annotations

import pytest
from sqlglot import exp

from lakelsm.errors import InvalidInputError
from lakelsm.expressions.local_dialect import QueryTree
from lakelsm.predicate.expression import STRING, Value


def test_functions_are_calls_by_their_names() -> None:
    tree = QueryTree("SELECT upper(a), date_add(b, 1), count(DISTINCT c), if(a, b, c) FROM t")
    names = [node.this for node in tree.root.find_all(exp.Anonymous)]
    assert sorted(names) == ["count", "date_add", "if", "upper"]


def test_texts_with_quotes_and_typed_numbers_keep_their_values() -> None:
    tree = QueryTree(r"""SELECT 'it''s', "a'b", 'x\ty', 'plain', 5L, 1.5BD, 2.5e0D, 1e3""")
    values = [value.value for value in tree.values.values()]
    assert [str(value) for value in values] == ["it's", "a'b", "x\ty", "5", "1.5", "2.5"]
    assert next(iter(tree.values.values())) == Value(STRING, "it's")


def test_messages_show_the_names_of_tables_that_the_text_has_others_for() -> None:
    tree = QueryTree("SELECT a FROM x_1 AS `b`, x_2", tables={"x_1": "sales"})
    tables = list(tree.root.find_all(exp.Table))
    assert [tree.table_name(each) for each in tables] == ["x_1", "x_2"]
    assert "x_1" not in tree.root.sql() and "sales" in tree.root.sql()


@pytest.mark.parametrize(
    "text", ["SELECT 1 +", "SELECT (", "SELECT 99999999999999999999L", "SELECT a b c", "SELECT 0x1F"]
)
def test_text_that_is_no_query_is_one_error(text: str) -> None:
    with pytest.raises(InvalidInputError, match="SQL: "):
        QueryTree(text)
