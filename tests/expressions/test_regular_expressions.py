"""Regular expressions in this process: Java's matches, and the patterns that are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import UnsupportedFeatureError
from tests.sql.local.bound import ONE_ROW, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'abc' RLIKE 'b'", True),
        ("'abc' RLIKE '^b'", False),
        ("'abc' NOT RLIKE '^a.*c$'", False),
        ("NULL RLIKE 'a'", None),
        (r"regexp_like('a.c', r'a\.c')", True),
        (r"rlike('abc', r'a\.c')", False),
        (r"'a\nb' RLIKE 'a.b'", False),
        ("'a\u2028b' RLIKE 'a.b'", False),
        ("'\x0b' RLIKE r'\\s'", True),
        ("'\u0660' RLIKE r'\\d'", False),
        ("regexp('b-', '[a-c][-_]')", True),
        (r"regexp_extract('2024-05-17', r'(\d+)-(\d+)')", "2024"),
        (r"regexp_extract('2024-05-17', r'(\d+)-(\d+)', 2)", "05"),
        ("regexp_extract('abc', 'b', 0)", "b"),
        ("regexp_extract('abc', '(x)')", ""),
        ("regexp_extract(NULL, '(x)')", None),
        ("regexp_replace('a1b22', '[0-9]+', '#')", "a#b#"),
        (r"regexp_replace('k=v', r'(\w)=(\w)', '$2{x}$1')", "v{x}k"),
        ("regexp_replace('aaa', 'a{2}', '')", "a"),
    ],
)
def test_matches(expression: str, value: object) -> None:
    assert value_of(expression) == value


def test_an_end_before_a_line_end_is_an_error_of_the_row() -> None:
    with pytest.raises(UnsupportedFeatureError, match="ends with a line end is not evaluated in this process"):
        value_of(r"'ab\n' RLIKE 'b$'")


@pytest.mark.parametrize(
    "pattern",
    [
        "(", "a)", "*a", "a**", "a++", "(?i)a", "(?=a)", r"\\bfoo", r"\\p{L}", "[[:alpha:]]", "[a&&b]", r"\\Q.\\E",
        r"(a)\\1", r"[\\D]", "[", "a{,2}", "]",
    ],
)  # fmt: skip
def test_other_patterns_are_refused_by_name(pattern: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(f"'a' RLIKE '{pattern}'")


@pytest.mark.parametrize(
    "expression",
    [
        "regexp_extract('a', '(a)', 2)", "regexp_extract('a', '(a)+')", "regexp_replace('a', 'a*', 'x')",
        "regexp_replace('a', 'a', '$1')", "regexp_replace('a', 'a', r'\\\\')", "'a' RLIKE t", "1 RLIKE 'a'",
    ],
)  # fmt: skip
def test_other_calls_are_refused_by_name(expression: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(expression, ONE_ROW.append_column("t", pa.array(["a"])))
