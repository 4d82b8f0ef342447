"""Functions of texts: letters of any script, lengths, separators, and patterns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.text_functions import like_pattern
from tests.sql.local.bound import table_of, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("upper('München, São Paulo, Żółw')", "MÜNCHEN, SÃO PAULO, ŻÓŁW"),
        ("lower('МОСКВА 東京 🙂 \\n')", "москва 東京 🙂 \n"),
        ("initcap('hello-world  ÉCOLE o''neil\\tx')", "Hello-world  École O'neil\tx"),
        ("concat_ws(',', 'a', NULL, 1, TRUE)", "a,1,true"),
        ("concat_ws(',', array('a', NULL), 'b', split('c d', ' '))", "a,b,c,d"),
        ("concat_ws(',')", ""),
        ("concat_ws(NULL, 'a')", None),
        ("split('a.b..', '\\\\.')", ["a", "b", "", ""]),
        ("split('', ',')", [""]),
        ("lpad('abc', 5, 'xy')", "xyabc"),
        ("lpad('abc', 2)", "ab"),
        ("lpad('abc', -1, 'x')", ""),
        ("rpad('abc', 5, '')", "abc"),
        ("rpad('abc', NULL, 'x')", None),
        ("left('abc', 2) || right('abc', 1)", "abc"),
        ("left('abc', -1)", ""),
        ("right('abc', 9)", "abc"),
        ("repeat('ab', 2)", "abab"),
        ("repeat('ab', -1)", ""),
        ("locate('b', 'abc')", 2),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize("text", ["upper('\\u00df')", "lower('\\u0130')", "lower('Σ')", "initcap('ǆ')"])
def test_letters_whose_case_duckdb_changes_otherwise_are_an_error(text: str) -> None:
    with pytest.raises(InvalidInputError, match=f"SQL: {text.partition('(')[0]}"):
        value_of(text)


@pytest.mark.parametrize("text", ["split('a', 'b+')", "split('a', '')", "split('a', ',', 2)", "concat_ws(',', array(1))"])
def test_other_patterns_and_types_are_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(text)


def test_separators_can_be_columns() -> None:
    rows = pa.table({"s": ["-", None], "t": ["a", "b"]})
    found = table_of("SELECT concat_ws(s, t, 'x') AS v, concat_ws(s, CAST(NULL AS STRING)) AS w FROM t", rows)
    assert found.to_pydict() == {"v": ["a-x", None], "w": ["", None]}


def test_patterns_have_duckdb_s_escape() -> None:
    found = [like_pattern(text, "!") for text in ("a!%_", "a!!", "a\\%", "a!b", "!")]
    assert found == ["a\\%_", "a!", "a\\\\%", None, None]
    assert [like_pattern(text, "\\") for text in ("a\\_", "a\\\\", "a\\b")] == ["a\\_", "a\\\\", None]
