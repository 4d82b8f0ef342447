"""Scripts: the texts of their statements, which semicolons separate."""

from __future__ import annotations

import pytest

from lakelsm.sql.syntax.script import split_script


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("", []),
        (" ;; -- c;\n/* a;b */ ;", []),
        ("SELECT 1", [("SELECT 1", 1, False)]),
        ("SELECT 1;", [("SELECT 1", 1, True)]),
        ("-- c\n\nSELECT 'a;b', `c;d` -- e;\n;\n  X /* ; */ Y ; Z",
         [("SELECT 'a;b', `c;d`", 3, True), ("X /* ; */ Y", 5, True), ("Z", 5, False)]),
        ("A;\n B 'open;\n C;", [("A", 1, True), ("B 'open;\n C;", 2, False)]),
        ("A; -- c\n /* open; B", [("A", 1, True), ("-- c\n /* open; B", 1, False)]),
    ],
)  # fmt: skip
def test_a_script_is_split_at_semicolons_outside_of_quotes_and_comments(
    script: str, statements: list[tuple[str, int, bool]]
) -> None:
    assert [(each.text, each.line, each.is_complete) for each in split_script(script)] == statements


def test_the_first_line_of_a_statement_is_without_its_line_break() -> None:
    (statement,) = split_script("\nSELECT 1,  \r\n 2;")
    assert statement.first_line == "SELECT 1,"
