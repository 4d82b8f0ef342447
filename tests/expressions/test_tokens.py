"""Tokens of SQL: comments, texts and names, positions of errors, and spans of a cursor."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.expressions.tokens import TokenKind, statement_tokens, text_value, tokenize


def test_comments_are_no_tokens_and_hints_are() -> None:
    found = tokenize("SELECT /* a /* nested */ b */ 1 -- end\n, /*+ OPTIONS('k' = 'v') */ `a``b` 'it''s' 1.5e3L")
    assert [token.text for token in found] == [
        "SELECT", "1", ",", "/*+ OPTIONS('k' = 'v') */", "`a``b`", "'it''s'", "1.5e3L", ""
    ]  # fmt: skip
    kinds = [TokenKind.NAME, TokenKind.NUMBER, TokenKind.SYMBOL, TokenKind.HINT, TokenKind.QUOTED, TokenKind.TEXT]
    assert [token.kind for token in found] == [*kinds, TokenKind.NUMBER, TokenKind.END]


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT 'abc", r"line 1, column 8: ' has no closing '"),
        ("SELECT\n  `a", r"line 2, column 3: ` has no closing `"),
        ("SELECT 1 /* /* */", r"line 1, column 10: /\* has no closing \*/"),
    ],
)
def test_what_does_not_end_is_refused_with_its_line_and_column(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        tokenize(sql)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        (r"'a\'b'", "a'b"),
        (r"'\t\n\\ \%\_ A \101'", "\t\n\\ \\%\\_ A A"),
        (r"r'\t\''", r"\t\'"),
        ('"say ""x"""', 'say "x"'),
        (r"'\U0001F600'", "\U0001f600"),
    ],
)
def test_values_of_texts_have_escapes_and_doubled_quotes(literal: str, value: str) -> None:
    assert text_value(literal) == value


def test_a_script_has_statements_between_semicolons() -> None:
    found = [tokens.rest() for tokens in statement_tokens("; SELECT ';' ;; SELECT 2 -- ;\n ; ")]
    assert found == ["SELECT ';'", "SELECT 2"]


def test_a_span_passes_parentheses_and_case_as_a_whole() -> None:
    tokens = next(statement_tokens("f(a, (b)), CASE WHEN x THEN 1 END WHEN 2"))
    assert tokens.span((",",)) == "f(a, (b))"
    tokens.expect(",")
    assert tokens.span(("WHEN",)) == "CASE WHEN x THEN 1 END"
    tokens.expect("WHEN")
    assert tokens.integer("a number") == 2
    with pytest.raises(InvalidInputError, match="expected an expression, found the end of the statement"):
        tokens.span()
