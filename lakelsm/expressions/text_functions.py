"""Functions of texts in DuckDB's SQL that differ from Spark's by more than their name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakelsm.expressions.duckdb_casts import DuckExpression, cast, failure, given_text, text_of
from lakelsm.expressions.duckdb_functions import Call, accepted, fixed
from lakelsm.expressions.duckdb_types import text_literal
from lakelsm.predicate.expression import INT, STRING, Expression, Value
from lakelsm.types import ArrayType

#: Letters whose other case is several letters, depends on its neighbours, or is not the same in all versions of Unicode.
_NEW_LETTERS = r"\x{10A0}-\x{10FF}\x{1C80}-\x{1CBF}\x{A7C0}-\x{A7FF}\x{10000}-\x{1EFFF}"
_NO_UPPER = (
    r"\x{DF}\x{149}\x{19B}\x{1F0}\x{264}\x{390}\x{3B0}\x{587}\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFF}\x{FB00}-\x{FB17}"
    + _NEW_LETTERS
)
_NO_LOWER = r"\x{130}\x{3A3}" + _NEW_LETTERS
_NO_TITLE = r"\x{1C4}-\x{1CC}\x{1F1}-\x{1F3}\x{3F4}\x{2126}\x{212A}\x{212B}" + _NO_UPPER + r"\x{130}\x{3A3}"
#: Characters that mean something else than themselves in a regular expression.
_SPECIAL = frozenset(".$|()[{^?*+\\")
#: Escapes of a pattern of LIKE in DuckDB.
ESCAPE = "\\"


def _cased(template: str, excluded: str, name: str) -> Call:
    """Return a function of the case of letters; a text with an excluded letter is an error of its row."""

    def call(arguments: Sequence[Expression]) -> Expression | None:
        given = accepted(arguments[0], "s") if len(arguments) == 1 else None
        if given is None:
            return None
        text = text_of(given)
        is_known = f"{text} IS NULL OR regexp_full_match({text}, '(?s)[^{excluded}]*')"
        return DuckExpression(
            STRING, f"CASE WHEN {is_known} THEN {template.format(text)} ELSE {failure(name, STRING)} END"
        )

    return call


def lowered(text: Expression) -> Expression | None:
    """Return a text in lower case."""
    return TEXT_FUNCTIONS["lower"]([text])


def _split(arguments: Sequence[Expression]) -> Expression | None:
    """Bind split(text, pattern) where the pattern is one plain text."""
    if len(arguments) != 2:
        return None
    text, separator = accepted(arguments[0], "s"), _plain_pattern(given_text(arguments[1]))
    if text is None or not separator:
        return None
    return DuckExpression(ArrayType(STRING), f"string_split({text_of(text)}, {text_literal(separator)})")


def _plain_pattern(pattern: str | None) -> str | None:
    """Return the only text that a regular expression matches; None for other expressions."""
    found, rest = "", pattern or ""
    while rest:
        escaped = rest[0] == "\\" and len(rest) > 1 and not rest[1].isalnum() and rest[1].isascii()
        if rest[0] in _SPECIAL and not escaped:
            return None
        found += rest[1] if escaped else rest[0]
        rest = rest[2:] if escaped else rest[1:]
    return found


def _joined_with(arguments: Sequence[Expression]) -> Expression | None:
    """Bind concat_ws(separator, texts and arrays of texts): NULL is left out."""
    separator = accepted(arguments[0], "s") if arguments else None
    lists = []
    for each in arguments[1:]:
        if isinstance(each.type, ArrayType):
            if each.type.element.root != "VARCHAR":
                return None
            lists.append(f"coalesce({text_of(each)}, [])")
        else:
            text = cast(each, STRING)
            if text is None:
                return None
            lists.append(f"[{text_of(text)}]")
    if separator is None:
        return None
    parts = f"list_concat({', '.join(lists)})" if len(lists) > 1 else "".join(lists) or "CAST([] AS VARCHAR[])"
    return DuckExpression(STRING, joined_list(parts, separator))


def joined_list(array: str, separator: Expression) -> str:
    """Return the texts of an array with a separator between them; NULL is left out, and a NULL separator gives NULL."""
    known, text = f"list_filter({array}, lambda e: e IS NOT NULL)", text_of(separator)
    if isinstance(separator, Value):
        return f"CASE WHEN {text} IS NOT NULL THEN array_to_string({known}, {text}) END"
    # The separator of array_to_string is a constant.
    joined = f"list_reduce({known}, lambda a, b: a || {text} || b)"
    return f"CASE WHEN {array} IS NULL OR {text} IS NULL THEN NULL WHEN len({known}) = 0 THEN '' ELSE {joined} END"


def _padded(name: str) -> Call:
    """Return the maker of lpad and rpad: without a text to pad with, a text is only cut."""

    def call(arguments: Sequence[Expression]) -> Expression | None:
        given = [*arguments, Value(STRING, " ")] if len(arguments) == 2 else arguments
        if len(given) != 3:
            return None
        parts = [accepted(each, kind) for each, kind in zip(given, "sis")]
        if parts[0] is None or parts[1] is None or parts[2] is None:
            return None
        text, length, pad = (text_of(each) for each in parts if each is not None)
        known = f"{text} IS NULL OR {length} IS NULL OR {pad} IS NULL"
        return DuckExpression(
            STRING,
            f"CASE WHEN {known} THEN NULL WHEN {length} <= 0 THEN '' "
            f"WHEN {pad} = '' THEN substring({text}, 1, {length}) ELSE {name}({text}, {length}, {pad}) END",
        )

    return call


def _parts(name: str) -> Call:
    """Return the maker of left and right, which are empty for a length below 1."""
    return fixed(f"CASE WHEN {{1}} <= 0 AND {{0}} IS NOT NULL THEN '' ELSE {name}({{0}}, {{1}}) END", "si", STRING)


def like_pattern(pattern: str, escape: str) -> str | None:
    """Return a pattern of LIKE with DuckDB's escape; None where an escape precedes another character, as in Spark."""
    found, at = "", 0
    while at < len(pattern):
        one, following = pattern[at], pattern[at + 1 : at + 2]
        if one == escape:
            if following not in ("%", "_", escape) or not following:
                return None
            found += ESCAPE + following if following in "%_\\" else following
            at += 1
        else:
            found += ESCAPE + one if one == ESCAPE else one
        at += 1
    return found


_TITLE = (
    "array_to_string(list_transform(string_split(lower({0}), ' '), lambda w: upper(substring(w, 1, 1)) || "
    "substring(w, 2)), ' ')"
)
TEXT_FUNCTIONS: Mapping[str, Call] = {
    "upper": _cased("upper({0})", _NO_UPPER, "upper"),
    "ucase": _cased("upper({0})", _NO_UPPER, "upper"),
    "lower": _cased("lower({0})", _NO_LOWER, "lower"),
    "lcase": _cased("lower({0})", _NO_LOWER, "lower"),
    "initcap": _cased(_TITLE, _NO_TITLE, "initcap"),
    "split": _split,
    "concat_ws": _joined_with,
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    "left": _parts("left"),
    "right": _parts("right"),
    "repeat": fixed("repeat({0}, {1})", "si", STRING),
    "locate": fixed("CAST(instr({1}, {0}) AS INTEGER)", "ss", INT),
    "position": fixed("CAST(instr({1}, {0}) AS INTEGER)", "ss", INT),
    "btrim": fixed("trim({0}, ' ')", "s", STRING),
}
