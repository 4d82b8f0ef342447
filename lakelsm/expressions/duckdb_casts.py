"""Casts of expressions in DuckDB's SQL, as Spark's ANSI mode has them.

A cast that the two evaluate differently is written in another form, or refused: the result is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelsm.environment import utc_zone
from lakelsm.expressions.duckdb_types import literal, text_literal, type_text
from lakelsm.predicate.expression import BOOLEAN, NULL_TYPE, STRING, Expression, Value, common_type, is_number
from lakelsm.types import INTEGER_ROOTS, AtomicType, DataType

#: The end of the reason of a failure that is not one of the value: Spark evaluates it.
IN_THIS_PROCESS = "in this process"
_FLOATS = ("FLOAT", "DOUBLE")
TIMESTAMP, TIMESTAMP_LTZ = (AtomicType(root, precision=6) for root in ("TIMESTAMP", "TIMESTAMP_LTZ"))
#: Decimal digits that a DOUBLE holds exactly.
_EXACT_DIGITS = 15
#: Digits before the point that a cast of a DOUBLE to DECIMAL must take.
_MIN_WHOLE_DIGITS = 6
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)"
_FLOAT = rf"{_NUMBER}([eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity)|(?i:nan)"
_DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
#: Texts that cast to a type on both engines, without the spaces around them; others are an error here.
_TEXTS = {
    **dict.fromkeys(INTEGER_ROOTS, r"[+-]?[0-9]+"),
    **dict.fromkeys(_FLOATS, _FLOAT),
    "DECIMAL": rf"{_NUMBER}([eE][+-]?[0-9]{{1,3}})?",
    "DATE": rf"{_DAY}([ T](?s:.*))?",
    "TIMESTAMP": r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?",
    "BOOLEAN": r"(?i)t|true|y|yes|1",
}
_FALSE = r"(?i)f|false|n|no|0"
#: What casts of texts trim.
_SPACES = text_literal("".join(map(chr, range(33))))


@dataclass(frozen=True, slots=True)
class DuckExpression(Expression):
    """An expression in DuckDB's SQL. ``sql`` is in parentheses where it is not a call or a name."""

    sql: str


def text_of(expression: Expression) -> str:
    """Return an expression in DuckDB's SQL: literals are written with their type."""
    if isinstance(expression, DuckExpression):
        return expression.sql
    assert isinstance(expression, Value)
    return "NULL" if expression.type == NULL_TYPE else literal(expression.value, expression.type)


def cast(child: Expression, target: DataType) -> Expression | None:
    """Bind ``CAST(child AS target)``; None for a cast that is not the same on both engines."""
    source = child.type
    if source == target:
        return child
    if source == NULL_TYPE:
        return Value(target, None)
    text = text_of(child)
    if TIMESTAMP_LTZ in (source, target) and utc_zone() is None:
        return None  # The connection's time zone is UTC, and that of the session is another one.
    if source == TIMESTAMP_LTZ:
        return cast(DuckExpression(TIMESTAMP, f"CAST({text} AS TIMESTAMP)"), target)
    if target == TIMESTAMP_LTZ:
        time = cast(child, TIMESTAMP)
        return None if time is None else DuckExpression(target, f"CAST({text_of(time)} AS TIMESTAMPTZ)")
    found = _cast_text(text, source, target)
    return None if found is None else DuckExpression(target, found)


def computed(expression: Expression) -> Expression:
    """Return a number that is not a literal: a literal has only its own digits in arithmetic with decimals."""
    is_number_literal = isinstance(expression, Value) and expression.type.root in INTEGER_ROOTS
    return DuckExpression(expression.type, text_of(expression)) if is_number_literal else expression


def given_text(expression: Expression) -> str | None:
    """Return the value of a literal of text; None for another expression, and for NULL."""
    value = expression.value if isinstance(expression, Value) and expression.type == STRING else None
    return value if isinstance(value, str) else None


def alike(expressions: Sequence[Expression]) -> list[Expression] | None:
    """Return expressions as their common type; None where they have none. NULLs alone are BOOLEANs.

    Dates and times beside times with a time zone are cast to these.
    """
    if any(each.type == TIMESTAMP_LTZ for each in expressions):
        in_zone = [cast(each, TIMESTAMP_LTZ) if each.type.root in ("DATE", "TIMESTAMP") else each for each in expressions]
        if None in in_zone:
            return None
        expressions = [each for each in in_zone if each is not None]
    kind = common_type(each.type for each in expressions)
    if kind is None:
        return None
    found = [cast(each, BOOLEAN if kind == NULL_TYPE else kind) for each in expressions]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _cast_text(text: str, source: DataType, target: DataType) -> str | None:
    if not (isinstance(source, AtomicType) and isinstance(target, AtomicType)):
        return None
    plain = f"CAST({text} AS {type_text(target)})"
    if is_number(source) and is_number(target):
        return _number(text, source, target, plain)
    if source.root == "BOOLEAN":
        return plain if (is_number(target) and target.root != "DECIMAL") or target.root == "VARCHAR" else None
    if target.root == "BOOLEAN" and is_number(source):
        return f"({text} <> 0)"
    if target.root == "VARCHAR":
        return _to_text(text, source, plain)
    if source.root == "VARCHAR":
        return _from_text(text, target)
    if {source.root, target.root} <= {"DATE", "TIMESTAMP"}:
        if source.root == target.root and (source.precision or 0) > (target.precision or 0):
            return f"date_trunc('microsecond', {text})::TIMESTAMP"
        return plain
    return None


def _number(text: str, source: AtomicType, target: AtomicType, plain: str) -> str | None:
    to_integer = target.root in INTEGER_ROOTS
    if to_integer and source.root not in INTEGER_ROOTS:
        return f"CAST(trunc({text}) AS {type_text(target)})"
    if source.root in _FLOATS and target.root == "DECIMAL":
        return _float_as_decimal(text, target)
    if source.root == "DECIMAL" and target.root in _FLOATS:
        # DuckDB divides the digits by a power of ten, which is exact for few digits only.
        is_exact = target.root == "DOUBLE" and (source.precision or 0) <= _EXACT_DIGITS
        return plain if is_exact else f"CAST(CAST({text} AS VARCHAR) AS {type_text(target)})"
    return plain


def _float_as_decimal(text: str, target: AtomicType) -> str | None:
    """Return the shortest decimal text of a DOUBLE, as Spark has it; NULL for NaN and infinity.

    Java 17 prints more digits than that beyond the 15th, so a number that has more in the result is an error.
    """
    found = f"CAST(CAST(CAST({text} AS DOUBLE) AS VARCHAR) AS {type_text(target)})"
    if (target.precision or 0) > _EXACT_DIGITS:
        whole = _EXACT_DIGITS - (target.scale or 0)
        if whole < _MIN_WHOLE_DIGITS:
            return None
        reason = f"a {target.sql()} with more than {_EXACT_DIGITS} digits is not made of a DOUBLE {IN_THIS_PROCESS}"
        found = f"CASE WHEN abs({text}) < {10**whole} THEN {found} ELSE {failure(reason, target)} END"
    return f"CASE WHEN isfinite({text}) THEN {found} END"


def _to_text(text: str, source: AtomicType, plain: str) -> str | None:
    if source.root in INTEGER_ROOTS or source.root == "DECIMAL":
        return plain
    if source.root in ("DATE", "TIMESTAMP") and (source.precision or 0) <= 6:
        return f"CASE WHEN year({text}) NOT BETWEEN 1 AND 9999 THEN {failure('year', STRING)} ELSE {plain} END"
    return None


def _from_text(text: str, target: AtomicType) -> str | None:
    pattern = _TEXTS.get(target.root)
    if pattern is None or (target.root == "TIMESTAMP" and (target.precision or 0) > 6):
        return None
    if target.root == "BOOLEAN":
        found = f"WHEN {_matches(text, pattern)} THEN TRUE WHEN {_matches(text, _FALSE)} THEN FALSE"
    else:
        is_day = target.root == "DATE"
        taken = f"regexp_extract({text}, {text_literal(_DAY)})" if is_day else f"trim({text}, {_SPACES})"
        found = f"WHEN {_matches(text, pattern)} THEN CAST({taken} AS {type_text(target)})"
    wrong = failure(f"a text cannot be cast to {target.sql()}", target)
    return f"CASE WHEN {text} IS NULL THEN NULL {found} ELSE {wrong} END"


def _matches(text: str, pattern: str) -> str:
    regex = rf"[\x00-\x20]*({pattern})[\x00-\x20]*"
    return f"regexp_full_match({text}, {text_literal(regex)})"


def failure(reason: str, kind: DataType) -> str:
    """Return an expression of a type that fails where it is evaluated; `local_query` has the messages.

    It is a cast that fails, as DuckDB refuses its function `error` in windows: that function is volatile.
    """
    failed = f"CAST(CAST({text_literal('lakelsm: ' + reason)} AS INTEGER) AS VARCHAR)"
    return failed if kind == STRING else f"CAST({failed} AS {type_text(kind)})"
