"""Long `IN` lists of plain literals in a condition. They are parsed here, because an SQL parser takes seconds for them.

The size of the rest of a condition is limited.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from lakelsm.errors import InvalidInputError
from lakelsm.predicate.literals import Literal, number_literal

#: The minimum number of characters of a long list.
_LONG = 1000
#: The limits of a condition; the memory and the time of the parser depend on them.
_MAX_CHARACTERS = 64 << 20
_MAX_WORDS = 50_000
_REMEDY = (
    "Write many values of a column as one IN list of literals, or pass keys as rows: in a join, to delete(keys=...) or "
    "Lookup.get_many."
)

# Tokens in which no list is searched (texts, quoted names, comments), and a list of numbers, texts, times and NULL. A
# list with a text that has a quote or a backslash is excluded, because versions of Spark read such texts differently.
_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_TIME = r"(?i:date|timestamp(?:_[nl]tz)?)"
_LITERAL = rf"(?:{_NUMBER}|(?i:null)|(?:{_TIME}\s*)?'[^'\\]*')"
_SKIPPED = r"""'[^'\\]*'|"[^"\\]*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
_TOKENS = re.compile(
    rf"{_SKIPPED}|(?<![\w.`])(?i:in)\s*\(\s*((?:{_LITERAL}\s*,\s*)*{_LITERAL})\s*\)", re.DOTALL
)
_VALUE = re.compile(rf"({_NUMBER})|(?:({_TIME})\s*)?'([^'\\]*)'|(?i:null)")
# Tokens that do not count as words: texts, with or without escapes, quoted names and comments.
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_WORD = re.compile(r"\w+|[^\w\s,]")


def check_size(sql: str, shortened: str) -> None:
    """Raise InvalidInputError for a condition that is too long; ``shortened`` is the result of `cut_long_lists`."""
    if len(sql) > _MAX_CHARACTERS:
        raise InvalidInputError(f"the condition has {len(sql)} characters, more than {_MAX_CHARACTERS}. {_REMEDY}")
    words = _WORD.finditer(_QUOTED.sub(" ", shortened)) if len(shortened) > _MAX_WORDS else iter(())
    if sum(1 for _ in islice(words, _MAX_WORDS + 1)) > _MAX_WORDS:
        raise InvalidInputError(
            f"the condition has more than {_MAX_WORDS} words and operators outside quoted texts and long IN lists. "
            + _REMEDY
        )


def cut_long_lists(sql: str) -> tuple[str, Mapping[str, Sequence[Literal | None]]]:
    """Replace each long list of a condition by a list of one text. Returns the condition, and the lists by these texts.

    The texts occur nowhere else in the condition. A number that no type of Spark can hold is None.
    """
    if len(sql) < _LONG or "\\" in sql or "${" in sql:
        return sql, {}
    prefix = "list"
    while prefix in sql:
        prefix += "-"
    lists: dict[str, Sequence[Literal | None]] = {}

    def replaced(token: re.Match[str]) -> str:
        listed = token[1]
        if listed is None or len(listed) < _LONG:
            return token[0]
        name = f"{prefix}{len(lists)}"
        lists[name] = [_literal(*value) for value in map(re.Match.groups, _VALUE.finditer(listed))]
        return f"IN ('{name}')"

    return _TOKENS.sub(replaced, sql), lists


def _literal(number: str | None, time: str | None, text: str | None) -> Literal | None:
    if number is not None:
        return number_literal(number)
    return Literal("null") if text is None else Literal("string" if time is None else time.lower(), text)
