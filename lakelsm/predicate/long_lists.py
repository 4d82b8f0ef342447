"""Long `IN` lists of plain literals in the text of a condition: read here, because an SQL parser takes seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lakelsm.predicate.literals import Literal

#: Characters of a list from which on it is long.
_LONG = 1000

# What a list must not be found in (texts, quoted names, comments), and a list of whole numbers and texts. A text that
# holds a quote or a backslash is none of these, as versions of Spark differ in what it means.
_LITERAL = r"(?:-?\d+|'[^'\\]*')"
_SKIPPED = r"""'[^'\\]*'|"[^"\\]*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
_TOKENS = re.compile(
    rf"{_SKIPPED}|(?<![\w.`])(?i:in)\s*\(\s*((?:{_LITERAL}\s*,\s*)*{_LITERAL})\s*\)", re.DOTALL
)
_VALUE = re.compile(r"(-?\d+)|'([^'\\]*)'")


def cut_long_lists(sql: str) -> tuple[str, Mapping[str, Sequence[Literal]]]:
    """The condition with a single text in the place of each long list, and the lists by these texts.

    The texts occur nowhere else in the condition.
    """
    if len(sql) < _LONG or "\\" in sql or "${" in sql:
        return sql, {}
    mark = "list"
    while mark in sql:
        mark += "-"
    lists: dict[str, Sequence[Literal]] = {}

    def replaced(token: re.Match[str]) -> str:
        listed = token[1]
        if listed is None or len(listed) < _LONG:
            return token[0]
        name = f"{mark}{len(lists)}"
        lists[name] = [
            Literal("integer", int(number)) if number else Literal("string", text)
            for number, text in _VALUE.findall(listed)
        ]
        return f"IN ('{name}')"

    return _TOKENS.sub(replaced, sql), lists
