"""Arithmetic of decimals in DuckDB's SQL, with Spark's types and rounding.

DuckDB divides decimals as DOUBLE. Here quotients and remainders are made of the digits of both sides, as HUGEINT.
"""

from __future__ import annotations

from lakelsm.expressions.duckdb_casts import DuckExpression, cast, failure, text_of
from lakelsm.expressions.duckdb_types import type_text
from lakelsm.predicate.expression import NULL_TYPE, Expression, Value, decimal, decimal_of
from lakelsm.types import MAX_DECIMAL_DIGITS, AtomicType

BIGINT = AtomicType("BIGINT")
#: Maximum steps of a long division; each one has the digits that fit HUGEINT.
_MAX_STEPS = 6


def decimal_arithmetic(op: str, left: Expression, right: Expression, kind: AtomicType) -> Expression | None:
    """Return ``left op right`` (op is one of + - * / %); None for types whose exact results need more than 38 digits."""
    sides = [Value(kind, None) if side.type == NULL_TYPE else side for side in (left, right)]
    types = [decimal_of(side) for side in sides]
    scales = [each.scale or 0 for each in types]
    whole = [(each.precision or 0) - (each.scale or 0) for each in types]
    if op in "/%":
        casts = [cast(side, each) for side, each in zip(sides, types)]
        if casts[0] is None or casts[1] is None:
            return None
        texts = (text_of(casts[0]), text_of(casts[1]))
        return quotient(*texts, *types, kind=kind) if op == "/" else _remainder(*texts, *types, kind=kind)
    if op in "+-":
        exact = decimal(max(whole) + max(scales) + 1, max(scales))
        types = [exact, exact]
        fits = max(whole) + max(scales) + 1 <= MAX_DECIMAL_DIGITS
    else:
        exact, fits = decimal(sum(whole) + sum(scales), sum(scales)), sum(whole) + sum(scales) < MAX_DECIMAL_DIGITS
    casts = [cast(side, each) for side, each in zip(sides, types)]
    if not fits or casts[0] is None or casts[1] is None:
        return None
    one, other = text_of(casts[0]), text_of(casts[1])
    if op == "*":
        one = _wide(one, types[0])
    found = DuckExpression(exact, f"CAST({one} {op} {other} AS {type_text(exact)})")
    return cast(found, kind)


def quotient(
    left: str, right: str, left_type: AtomicType, right_type: AtomicType, *, kind: AtomicType
) -> Expression | None:
    """Return ``left / right``, rounded half up as in Spark: to 38 digits after the point, then to those of ``kind``."""
    pair = _digits(left, right, left_type, right_type)
    scale = kind.scale or 0
    divisor_digits = (right_type.precision or 0) + max(0, (left_type.scale or 0) - (right_type.scale or 0))
    step = MAX_DECIMAL_DIGITS - divisor_digits
    if pair is None or step < 1 or -(-scale // step) > _MAX_STEPS:
        return None
    text = with_value(f"{{'q': abs({{x}}.a) // abs({{x}}.b), 'r': abs({{x}}.a) % abs({{x}}.b), {_SIGN}}}", pair)
    for taken in range(0, scale, step):
        power = 10 ** min(step, scale - taken)
        text = with_value(
            f"{{'q': {{x}}.q * {power} + ({{x}}.r * {power}) // {{x}}.b, 'r': ({{x}}.r * {power}) % {{x}}.b, "
            "'b': {x}.b, 'n': {x}.n}",
            text,
        )
    # Of the remainder r / b, 38 - scale digits are rounded half up, and then the first of them decides.
    up = f"CASE WHEN {{x}}.b - 2 * {{x}}.r <= {{x}}.b // {10 ** (MAX_DECIMAL_DIGITS - scale)} THEN 1 ELSE 0 END"
    text = with_value(f"{{'q': {{x}}.q + {up}, 'n': {{x}}.n}}", text)
    return DuckExpression(kind, with_value(_as_decimal("{x}.q", "{x}.n", kind), text))


def whole_quotient(left: Expression, right: Expression) -> Expression | None:
    """Return ``left DIV right`` of decimals and integers: BIGINT."""
    types = [decimal_of(side) for side in (left, right)]
    casts = [cast(side, each) for side, each in zip((left, right), types)]
    if casts[0] is None or casts[1] is None:
        return None
    pair = _digits(text_of(casts[0]), text_of(casts[1]), *types)
    return None if pair is None else DuckExpression(BIGINT, with_value("CAST({x}.a // {x}.b AS BIGINT)", pair))


def _remainder(
    left: str, right: str, left_type: AtomicType, right_type: AtomicType, *, kind: AtomicType
) -> Expression | None:
    scale = max(left_type.scale or 0, right_type.scale or 0)
    pair = _digits(left, right, left_type, right_type)
    if pair is None or scale != (kind.scale or 0):
        return None
    text = with_value("{'q': abs({x}.a) % abs({x}.b), 'n': {x}.a < 0}", pair)
    return DuckExpression(kind, with_value(_as_decimal("{x}.q", "{x}.n", kind), text))


#: The divisor, and whether the quotient is negative.
_SIGN = "'b': abs({x}.b), 'n': ({x}.a < 0) <> ({x}.b < 0)"


def _digits(left: str, right: str, left_type: AtomicType, right_type: AtomicType) -> str | None:
    """Return a struct of both sides without their points, as integers of one scale; it fails if b is 0."""
    scale = max(left_type.scale or 0, right_type.scale or 0)
    parts = []
    for text, kind in ((left, left_type), (right, right_type)):
        added = scale - (kind.scale or 0)
        if (kind.precision or 0) + added > MAX_DECIMAL_DIGITS:
            return None
        parts.append(f"{_unscaled(text, kind)} * {10**added}" if added else _unscaled(text, kind))
    zero = failure("division by zero", AtomicType("DECIMAL", precision=MAX_DECIMAL_DIGITS, scale=0))
    checked = f"CASE WHEN {{x}}.b = 0 AND {{x}}.a IS NOT NULL THEN CAST({zero} AS HUGEINT) ELSE {{x}}.b END"
    return with_value(f"{{'a': {{x}}.a, 'b': {checked}}}", f"{{'a': {parts[0]}, 'b': {parts[1]}}}")


def _unscaled(text: str, kind: AtomicType) -> str:
    precision, scale = kind.precision or 0, kind.scale or 0
    if not scale:
        return f"CAST({text} AS HUGEINT)"
    if precision + scale < MAX_DECIMAL_DIGITS:
        return f"CAST({_wide(text, kind)} * CAST({10**scale} AS DECIMAL({scale + 1}, 0)) AS HUGEINT)"
    return f"CAST(replace(CAST({text} AS VARCHAR), '.', '') AS HUGEINT)"


def _wide(text: str, kind: AtomicType) -> str:
    """Return a decimal of which products have up to 38 digits; those of decimals with 18 digits have 18 in DuckDB."""
    return f"CAST({text} AS DECIMAL({max(kind.precision or 0, 19)}, {kind.scale}))"


def _as_decimal(digits: str, negative: str, kind: AtomicType) -> str:
    """Return a decimal from its digits as a positive HUGEINT, by its text."""
    scale = kind.scale or 0
    power = 10**scale
    text = f"CAST({digits} // {power} AS VARCHAR)"
    if scale:
        text += f" || '.' || lpad(CAST({digits} % {power} AS VARCHAR), {scale}, '0')"
    return f"CAST(CASE WHEN {negative} THEN '-' ELSE '' END || {text} AS {type_text(kind)})"


def with_value(body: str, value: str) -> str:
    """Return an expression of ``x``, written {x}, whose value is computed once."""
    return f"list_transform([{value}], lambda x: {body.replace('{x}', 'x')})[1]"
