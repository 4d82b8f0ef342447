"""Regular expressions of Java in DuckDB's SQL: RLIKE, regexp_like, regexp_extract and regexp_replace.

DuckDB has RE2, which reads some parts of a pattern otherwise: `.`, `$` and classes such as `\\s`. A pattern is translated
if it has only parts that both have; another part is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakelsm.expressions.duckdb_casts import IN_THIS_PROCESS, DuckExpression, failure, given_text, text_of
from lakelsm.expressions.duckdb_functions import Call, accepted
from lakelsm.expressions.duckdb_types import text_literal
from lakelsm.predicate.expression import BOOLEAN, INT, STRING, Expression, Value

_LINE_ENDS = r"\n\r\x{0085}\x{2028}\x{2029}"
#: Classes within brackets, as Java has them without flags.
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\x0B\f\r"}
_CONTROLS = {letter: f"\\{letter}" for letter in "tnrf"}
_CLASS = re.compile(r"\[(\^?)((?:\\.|[^\[\]\\&])+)\]", re.DOTALL)
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![+*?{])")
_REFERENCE = re.compile(r"\$([1-9])(?!\d)|([^$\\]+)")


@dataclass(frozen=True)
class _Pattern:
    """A pattern of RE2. ``repeats_group``: a quantifier follows a group."""

    text: str
    groups: int
    repeats_group: bool
    has_end: bool

    @property
    def is_empty(self) -> bool:
        """Whether it may match an empty text."""
        python = self.text.replace(r"\z", r"\Z").replace(r"\x{0085}\x{2028}\x{2029}", "")
        return re.match(python, "") is not None


def _pattern(text: str) -> _Pattern | None:
    """Translate a pattern; None for one with a part that RE2 lacks, or reads otherwise."""
    parts: list[str] = []
    position, groups, depth, repeats, has_end = 0, 0, 0, False, False
    can_repeat = False
    while position < len(text):
        one, rest = text[position], text[position:]
        quantifier, bracket = _QUANTIFIER.match(rest), _CLASS.match(rest)
        taken, part, repeatable = 1, one, True
        if quantifier is not None:
            if not can_repeat:
                return None
            repeats = repeats or parts[-1] == ")"
            taken, part, repeatable = quantifier.end(), quantifier[0], False
        elif one == "\\":
            escaped = _escaped(rest[1:2], bracketed=False)
            if escaped is None:
                return None
            taken, part = 2, escaped
        elif bracket is not None:
            content = _bracketed(bracket[2])
            if content is None:
                return None
            taken, part = bracket.end(), f"[{bracket[1]}{content}]"
        elif one == "(":
            is_group = not rest.startswith("(?")
            if not is_group and not rest.startswith("(?:"):
                return None
            taken, part, repeatable = (1, "(", False) if is_group else (3, "(?:", False)
            groups, depth = groups + is_group, depth + 1
        elif one in ")|^$":
            part, repeatable = {"^": r"\A", "$": r"\z"}.get(one, one), one == ")"
            depth, has_end = depth - (one == ")"), has_end or one == "$"
        elif one in "[]{}*+?\0":
            return None
        elif one == ".":
            part = f"[^{_LINE_ENDS}]"
        if depth < 0:
            return None
        parts.append(part)
        position, can_repeat = position + taken, repeatable
    return _Pattern("".join(parts), groups, repeats, has_end) if depth == 0 else None


def _escaped(letter: str, *, bracketed: bool) -> str | None:
    if letter.lower() in _CLASSES and not bracketed:
        return f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]"
    if letter in _CLASSES or letter in _CONTROLS:
        return _CLASSES.get(letter) or _CONTROLS[letter]
    return f"\\{letter}" if letter and letter.isascii() and not letter.isalnum() and letter.isprintable() else None


def _bracketed(content: str) -> str | None:
    """Translate the content of [ ]; a letter after \\ may be no class with other letters than d, w and s."""
    found = [
        _escaped(each[1], bracketed=True) if each[0] == "\\" else each
        for each in re.findall(r"\\.|[^\\]", content, re.DOTALL)
    ]
    known = [each for each in found if each is not None]
    is_range = re.search(r"(?:\\[dws])-.|-\\[dws]", content) is not None
    return "".join(known) if len(known) == len(found) and not is_range and "^" not in content[:1] else None


def _subject(arguments: Sequence[Expression]) -> tuple[Expression, _Pattern] | None:
    """Return the text and the pattern of a call; None for another pattern than a literal."""
    text = accepted(arguments[0], "s") if len(arguments) > 1 else None
    given = given_text(arguments[1]) if text is not None else None
    pattern = None if given is None else _pattern(given)
    return None if text is None or pattern is None else (text, pattern)


def _checked(call: DuckExpression, text: Expression, pattern: _Pattern) -> DuckExpression:
    """Return a call on a text. `$` of Java matches before a line end at the end of the text too, which RE2 does not."""
    if not pattern.has_end:
        return call
    failed = failure(f"$ for a text that ends with a line end is not evaluated {IN_THIS_PROCESS}", call.type)
    ends = f"regexp_matches({text_of(text)}, {text_literal(f'[{_LINE_ENDS}]' + chr(92) + 'z')})"
    return DuckExpression(call.type, f"CASE WHEN {ends} THEN {failed} ELSE {call.sql} END")


def matched(arguments: Sequence[Expression]) -> Expression | None:
    """Bind ``text RLIKE pattern``."""
    found = _subject(arguments) if len(arguments) == 2 else None
    if found is None:
        return None
    text, pattern = found
    call = DuckExpression(BOOLEAN, f"regexp_matches({text_of(text)}, {text_literal(pattern.text)})")
    return _checked(call, text, pattern)


def _extracted(arguments: Sequence[Expression]) -> Expression | None:
    """Bind regexp_extract(text, pattern [, group]): empty without a match. The group is 1 if it is not given."""
    found = _subject(arguments[:2]) if 2 <= len(arguments) <= 3 else None
    group = arguments[2] if len(arguments) == 3 else Value(INT, 1)
    if found is None or not isinstance(group, Value) or group.type != INT or group.value is None:
        return None
    text, pattern = found
    if pattern.repeats_group or not 0 <= group.value <= min(pattern.groups, 9):
        return None
    call = DuckExpression(STRING, f"regexp_extract({text_of(text)}, {text_literal(pattern.text)}, {group.value})")
    return _checked(call, text, pattern)


def _replaced(arguments: Sequence[Expression]) -> Expression | None:
    """Bind regexp_replace(text, pattern, replacement), with $1 … $9 in the replacement."""
    found = _subject(arguments[:2]) if len(arguments) == 3 else None
    replacement = given_text(arguments[2]) if found is not None else None
    if found is None or replacement is None:
        return None
    text, pattern = found
    references = list(_REFERENCE.finditer(replacement))
    if "".join(each[0] for each in references) != replacement or pattern.is_empty or pattern.repeats_group:
        return None
    if any(int(each[1]) > pattern.groups for each in references if each[1]):
        return None
    new = "".join(f"\\{each[1]}" if each[1] else each[2] for each in references)
    texts = f"{text_of(text)}, {text_literal(pattern.text)}, {text_literal(new)}"
    return _checked(DuckExpression(STRING, f"regexp_replace({texts}, 'g')"), text, pattern)


REGULAR_EXPRESSIONS: Mapping[str, Call] = {
    **dict.fromkeys(("regexp", "regexp_like", "rlike"), matched),
    "regexp_extract": _extracted,
    "regexp_replace": _replaced,
}
