"""Long `IN` lists of plain literals in the text of a condition: read here, because an SQL parser takes seconds.

The rest of a condition is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from lakelsm.errors import InvalidInputError
from lakelsm.predicate.literals import Literal, number_literal

#: Characters of a list from which on it is long.
_LONG = 1000
#: What a condition may have: bytes of memory and seconds of a parser follow from them.
_MAX_CHARACTERS = 64 << 20
_MAX_WORDS = 50_000
_REMEDY = (
    "Write many values of a column as one IN list of literals, or pass keys as rows: in a join, to delete(keys=...) or "
    "Lookup.get_many."
)

# What a list must not be found in (texts, quoted names, comments), and a list of numbers, texts, times and NULL. A text
# that holds a quote or a backslash is not one of these, because versions of Spark differ in what it means.
_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_TIME = r"(?i:date|timestamp(?:_[nl]tz)?)"
_LITERAL = rf"(?:{_NUMBER}|(?i:null)|(?:{_TIME}\s*)?'[^'\\]*')"
_SKIPPED = r"""'[^'\\]*'|"[^"\\]*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
_TOKENS = re.compile(
    rf"{_SKIPPED}|(?<![\w.`])(?i:in)\s*\(\s*((?:{_LITERAL}\s*,\s*)*{_LITERAL})\s*\)", re.DOTALL
)
_VALUE = re.compile(rf"({_NUMBER})|(?:({_TIME})\s*)?'([^'\\]*)'|(?i:null)")
# What is no word: texts, with escapes or not, quoted names and comments.
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_WORD = re.compile(r"\w+|[^\w\s,]")


def check_size(sql: str, shortened: str) -> None:
    """Raise InvalidInputError for a condition that is too long; ``shortened`` is what `cut_long_lists` left of it."""
    if len(sql) > _MAX_CHARACTERS:
        raise InvalidInputError(f"the condition has {len(sql)} characters; it may have {_MAX_CHARACTERS}. {_REMEDY}")
    words = _WORD.finditer(_QUOTED.sub(" ", shortened)) if len(shortened) > _MAX_WORDS else iter(())
    if sum(1 for _ in islice(words, _MAX_WORDS + 1)) > _MAX_WORDS:
        raise InvalidInputError(
            f"the condition has more than {_MAX_WORDS} words and operators, quoted texts and long IN lists not counted. "
            + _REMEDY
        )


def cut_long_lists(sql: str) -> tuple[str, Mapping[str, Sequence[Literal | None]]]:
    """The condition with a single text instead of each long list, and the lists by these texts; None stands for a
    number that no type of Spark has.

    The texts occur nowhere else in the condition.
    """
    if len(sql) < _LONG or "\\" in sql or "${" in sql:
        return sql, {}
    mark = "list"
    while mark in sql:
        mark += "-"
    lists: dict[str, Sequence[Literal | None]] = {}

    def replaced(token: re.Match[str]) -> str:
        listed = token[1]
        if listed is None or len(listed) < _LONG:
            return token[0]
        name = f"{mark}{len(lists)}"
        lists[name] = [_literal(*value) for value in map(re.Match.groups, _VALUE.finditer(listed))]
        return f"IN ('{name}')"

    return _TOKENS.sub(replaced, sql), lists


def _literal(number: str | None, time: str | None, text: str | None) -> Literal | None:
    if number is not None:
        return number_literal(number)
    return Literal("null") if text is None else Literal("string" if time is None else time.lower(), text)
