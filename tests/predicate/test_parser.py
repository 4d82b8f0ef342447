"""The parser of conditions: refused texts, messages, and the cost of calls without a condition."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lakelsm.errors import InvalidInputError
from tests.predicate.typed_columns import parse


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("i >", "line 1, column 3, near '>'"),
        ("i = 1 AND", "column 7"),
        ("i = 1 foo", "near 'foo'"),
        ("i = 1; DROP TABLE x", "';'|near 'DROP'|more than one"),
        ("SELECT 1", "near 'SELECT'"),
        ("text = 'abc", "not closed"),
        ("", "empty"),
        ("5", "is only a value"),
        ("nope = 1", r"column 'nope' does not exist. Columns: i, l, f"),
        ("length(nope) = 1", "'nope'"),
        ("i.x = 1", r"'i\.x'"),
        ("t.i = 1", r"'t\.i'"),
    ],
)
def test_an_invalid_condition_is_refused(sql: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse(sql)


def test_deep_nesting_is_refused_with_a_message() -> None:
    with pytest.raises(InvalidInputError, match="deep"):
        parse("(" * 5000 + "i = 1" + ")" * 5000)


def test_the_sql_parser_is_loaded_with_the_first_condition() -> None:
    program = (
        "import sys; from lakelsm.predicate.parser import parse_where; before = 'sqlglot' in sys.modules; "
        "parse_where('TRUE', []); print(before, 'sqlglot' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]
