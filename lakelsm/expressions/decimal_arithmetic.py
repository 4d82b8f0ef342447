"""Arithmetic of decimals in DuckDB's SQL, with Spark's types and rounding.

DuckDB divides decimals as DOUBLE. Here quotients and remainders are made of the digits of both sides, as HUGEINT.
"""

from __future__ import annotations

import re

from lakelsm.expressions.duckdb_casts import IN_THIS_PROCESS, DuckExpression, cast, failure, text_of
from lakelsm.expressions.duckdb_types import type_text
from lakelsm.predicate.expression import NULL_TYPE, Expression, Value, decimal, decimal_of
from lakelsm.types import MAX_DECIMAL_DIGITS, AtomicType

BIGINT = AtomicType("BIGINT")
#: Maximum steps of a long division; each one has the digits that fit HUGEINT.
_MAX_STEPS = 12
#: Digits after the point of a sum that leave 20 before it.
_MAX_SUM_SCALE = 18
_TOO_LONG = "arithmetic of decimals with so many digits is not evaluated"


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
        if max(whole) + max(scales) > MAX_DECIMAL_DIGITS and max(scales) > _MAX_SUM_SCALE:
            return None
        # A sum that has more digits is an error of the row.
        exact = decimal(min(max(whole) + max(scales) + 1, MAX_DECIMAL_DIGITS), max(scales))
        types = [exact, exact]
    else:
        fits = sum(whole) + sum(scales) < MAX_DECIMAL_DIGITS
        exact = decimal(sum(whole) + sum(scales), sum(scales)) if fits else kind
    casts = [_widened(side, each) for side, each in zip(sides, types)]
    if casts[0] is None or casts[1] is None:
        return None
    one, other = text_of(casts[0]), text_of(casts[1])
    if op == "*":
        if sum(scales) > (exact.scale or 0):
            return _wide_product(one, other, *types, kind=kind)
        one = _wide(one, types[0])
    found = DuckExpression(exact, f"CAST({one} {op} {other} AS {type_text(exact)})")
    return cast(found, kind)


def _widened(side: Expression, kind: AtomicType) -> Expression | None:
    """Return a number as a decimal that has no fewer digits after the point; it fails for too many before it."""
    whole, own = (kind.precision or 0) - (kind.scale or 0), decimal_of(side)
    if (own.precision or 0) - (own.scale or 0) > whole and isinstance(side, DuckExpression):
        failed = failure(f"{_TOO_LONG} {IN_THIS_PROCESS}", own)
        limited = with_value(f"CASE WHEN abs({{x}}) < {10**whole} THEN {{x}} ELSE {failed} END", side.sql)
        side = DuckExpression(side.type, limited)
    return cast(side, kind)


def _wide_product(
    left: str, right: str, left_type: AtomicType, right_type: AtomicType, *, kind: AtomicType
) -> Expression | None:
    """Return ``left * right``, rounded half up as in Spark: to 39 digits, then to those of ``kind``.

    ``kind`` has fewer digits after the point than the product. The longer side is cut into two parts, so that
    the products of both are HUGEINTs.
    """
    if (left_type.precision or 0) < (right_type.precision or 0):
        left, right, left_type, right_type = right, left, right_type, left_type
    low = (left_type.precision or 0) + (right_type.precision or 0) - MAX_DECIMAL_DIGITS
    dropped = (left_type.scale or 0) + (right_type.scale or 0) - (kind.scale or 0)
    if low + (right_type.precision or 0) > MAX_DECIMAL_DIGITS or dropped > MAX_DECIMAL_DIGITS:
        return None
    pair = f"{{'a': {_unscaled(left, left_type)}, 'b': {_unscaled(right, right_type)}}}"
    text = with_value(
        f"{{'h': (abs({{x}}.a) // {10**low}) * abs({{x}}.b), 'l': (abs({{x}}.a) % {10**low}) * abs({{x}}.b), "
        "'n': ({x}.a < 0) <> ({x}.b < 0)}",
        pair,
    )
    if dropped >= low:
        power = 10 ** (dropped - low)
        text = with_value(f"{{'t': {{x}}.h + {{x}}.l // {10**low}, 'l': {{x}}.l % {10**low}, 'n': {{x}}.n}}", text)
        parts = f"{{x}}.t // {power}", f"({{x}}.t % {power}) * {10**low} + {{x}}.l"
    else:
        power = 10**dropped
        parts = f"{{x}}.h * {10 ** (low - dropped)} + {{x}}.l // {power}", f"{{x}}.l % {power}"
    text = with_value(f"{{'q': {parts[0]}, 'r': {parts[1]}, 'n': {{x}}.n}}", text)
    first = f"greatest(length(CAST({{x}}.q AS VARCHAR)) + {dropped - MAX_DECIMAL_DIGITS - 1}, 0)"
    rounded = f"CASE WHEN {first} = 0 OR {first} >= {dropped} THEN 0 ELSE 5 * {_power(f'{first} - 1')} END"
    up = f"CASE WHEN {{x}}.r >= {5 * 10 ** (dropped - 1)} - {rounded} THEN 1 ELSE 0 END"
    text = with_value(f"{{'q': {{x}}.q + {up}, 'n': {{x}}.n}}", text)
    return DuckExpression(kind, with_value(_as_decimal("{x}.q", "{x}.n", kind), text))


def _power(exponent: str) -> str:
    """Return 10 to the power of an expression, as HUGEINT."""
    return f"CAST('1' || repeat('0', {exponent}) AS HUGEINT)"


def quotient(left: str, right: str, left_type: AtomicType, right_type: AtomicType, *, kind: AtomicType) -> DuckExpression:
    """Return ``left / right``, rounded half up as in Spark: to 38 digits after the point, then to those of ``kind``.

    It fails for a divisor with more digits than a step of the division can have.
    """
    pair = _digits(left, right, left_type, right_type)
    scale = kind.scale or 0
    divisor_digits = (right_type.precision or 0) + max(0, (left_type.scale or 0) - (right_type.scale or 0))
    step = max(MAX_DECIMAL_DIGITS - divisor_digits, -(-scale // _MAX_STEPS), 1)
    if divisor_digits + step > MAX_DECIMAL_DIGITS:
        pair = with_value(f"{{'a': {{x}}.a, 'b': {_limited('{x}.b', MAX_DECIMAL_DIGITS - step)}}}", pair)
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
    return DuckExpression(BIGINT, with_value("CAST({x}.a // {x}.b AS BIGINT)", pair))


def _remainder(
    left: str, right: str, left_type: AtomicType, right_type: AtomicType, *, kind: AtomicType
) -> Expression | None:
    scale = max(left_type.scale or 0, right_type.scale or 0)
    if scale != (kind.scale or 0):
        return None
    pair = _digits(left, right, left_type, right_type)
    text = with_value("{'q': abs({x}.a) % abs({x}.b), 'n': {x}.a < 0}", pair)
    return DuckExpression(kind, with_value(_as_decimal("{x}.q", "{x}.n", kind), text))


#: The divisor, and whether the quotient is negative.
_SIGN = "'b': abs({x}.b), 'n': ({x}.a < 0) <> ({x}.b < 0)"


def _digits(left: str, right: str, left_type: AtomicType, right_type: AtomicType) -> str:
    """Return a struct of both sides without their points, as integers of one scale.

    It fails if b is 0, and if a side has more than 38 digits.
    """
    scale = max(left_type.scale or 0, right_type.scale or 0)
    parts = []
    for text, kind in ((left, left_type), (right, right_type)):
        added = scale - (kind.scale or 0)
        found = _unscaled(text, kind)
        if (kind.precision or 0) + added > MAX_DECIMAL_DIGITS:
            found = _limited(found, MAX_DECIMAL_DIGITS - added)
        parts.append(f"{found} * {10**added}" if added else found)
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


def _limited(text: str, digits: int) -> str:
    """Return an integer, which fails if it has more digits."""
    failed = failure(f"{_TOO_LONG} {IN_THIS_PROCESS}", AtomicType("DECIMAL", precision=MAX_DECIMAL_DIGITS, scale=0))
    return with_value(f"CASE WHEN abs({{x}}) < {10**digits} THEN {{x}} ELSE CAST({failed} AS HUGEINT) END", text)


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
    """Return an expression of ``x``, written {x}, whose value is computed once; {x}.a is its member."""
    # In HAVING, DuckDB reads x.a as a column.
    named = re.sub(r"\{x\}\.([a-z])", r"x['\1']", body).replace("{x}", "x")
    return f"list_transform([{value}], lambda x: {named})[1]"
