"""Arithmetic and casts of numbers in arrays, with the results of Spark's ANSI mode.

Decimals are exact: they are computed as Python integers in numpy arrays of objects, because a product of two has up to 76
digits. A double becomes a decimal by its shortest text, rounded half up.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.schema.row_rules import refused_rows
from lakelsm.types import MAX_DECIMAL_DIGITS, DataType, to_arrow

Numbers = npt.NDArray[Any]

_WORD = 1 << 64
_POWERS = np.array([10**digits for digits in range(2 * MAX_DECIMAL_DIGITS + 2)], dtype=object)
#: The shortest text of a double.
_DOUBLE_TEXT = r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<part>\d+))?(?:e(?P<exponent>[+-]?\d+))?$"
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_PLAIN = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def computed(op: str, left: pa.Array, right: pa.Array, result: DataType) -> pa.Array:
    """Compute ``left op right``, NULL if a side is NULL. Both sides have the type of the result, or are decimals.

    Raises InvalidInputError for an overflow and for a divisor that is zero.
    """
    kind = to_arrow(result)
    if op in "/%":
        _check_divisor(op, left, right)
    if pa.types.is_decimal(kind):
        return _decimals_computed(op, left, right, kind, result)
    if op in _PLAIN:
        try:
            return (_PLAIN if pa.types.is_floating(kind) else _CHECKED)[op](left, right)
        except pa.ArrowInvalid as error:
            raise _overflow(op, result) from error
    valid = pc.and_(left.is_valid(), right.is_valid()).to_numpy(zero_copy_only=False)
    one, other = (pc.fill_null(side, pa.scalar(1, kind)).to_numpy(zero_copy_only=False) for side in (left, right))
    other = np.where(valid, other, other.dtype.type(1))
    with np.errstate(all="ignore"):
        if op == "/":
            found = one / other
        elif pa.types.is_floating(kind):
            found = np.fmod(one, other)
        else:  # The smallest integer % -1 would overflow.
            found = np.where(other == -1, other.dtype.type(0), np.fmod(one, np.where(other == -1, 1, other)))
    return pa.array(found.astype(one.dtype), kind, mask=~valid)


def negated(values: pa.Array, kind: DataType) -> pa.Array:
    """Compute ``-values``. Raises InvalidInputError for the smallest integer."""
    if pa.types.is_decimal(values.type):
        return _decimals(-_unscaled(values), values.is_valid(), values.type)
    try:
        return pc.negate_checked(values)
    except pa.ArrowInvalid as error:
        raise _overflow("-", kind) from error


def number_cast(values: pa.Array, target: DataType) -> pa.Array:
    """Cast numbers to another type: rounded half up to decimals, cut to integers; NULL if the value does not fit."""
    kind = to_arrow(target)
    if values.type == kind:
        return values
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_decimal(kind):
        return _as_decimals(values, kind)
    if pa.types.is_floating(kind):
        # Arrow's cast from a decimal multiplies by a power of ten, which is not exact in binary; its parser is exact.
        return (values.cast(pa.string()) if pa.types.is_decimal(values.type) else values).cast(kind, safe=False)
    return _as_integers(values, kind)


def decimal_texts(values: pa.Array) -> pa.Array:
    """Convert decimals to texts with all digits after the point."""
    scale = values.type.scale
    whole = _decimals(_unscaled(values), values.is_valid(), pa.decimal128(MAX_DECIMAL_DIGITS, 0)).cast(pa.string())
    if not scale:
        return whole
    sign = pc.if_else(pc.starts_with(whole, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(whole, "-"), scale + 1, "0")
    parts = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, parts[0], ""), parts[1], ".")


def _check_divisor(op: str, left: pa.Array, right: pa.Array) -> None:
    zero = pc.equal(right, _zero(right.type))
    if pc.any(pc.and_(zero, left.is_valid())).as_py():
        raise refused_rows(f"the divisor of '{op}' is zero in a matching row")


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(Decimal(0) if pa.types.is_decimal(kind) else 0, kind)


def _overflow(op: str, kind: DataType) -> Exception:
    return refused_rows(f"'{op}' overflows {kind.sql()} in a matching row")


# -- decimals --------------------------------------------------------------------------------------------------------


def _unscaled(values: pa.Array) -> Numbers:
    """Return the numbers without decimal point, as Python integers; 0 for NULL."""
    values = pc.fill_null(values, _zero(values.type)) if values.null_count else values
    start, stop = 2 * values.offset, 2 * (values.offset + len(values))
    words = np.frombuffer(values.buffers()[1] or b"", "<u8")[start:stop]
    low, high = words[0::2], words[1::2].view("<i8")
    if values.type.precision <= 18:
        return low.view("<i8").astype(object)
    found: Numbers = high.astype(object) * _WORD + low.astype(object)
    return found


def _decimals(unscaled: Numbers, valid: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return decimals of a type; NULL if ``valid`` is false or the type has too few digits."""
    fits = (abs(unscaled) < 10**kind.precision).astype(bool)
    unscaled = np.where(fits, unscaled, 0)
    words = np.empty(2 * len(unscaled), "<u8")
    words[0::2] = (unscaled & (_WORD - 1)).astype(np.uint64)
    words[1::2] = (unscaled >> 64).astype(np.int64).view(np.uint64)
    found = pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(words)])
    return pc.if_else(pc.and_(valid, pa.array(fits)), found, pa.scalar(None, kind))


def _rescaled(unscaled: Numbers, digits: int) -> Numbers:
    """Add ``digits`` digits after the point; a negative number removes digits, rounded half up."""
    return np.multiply(unscaled, 10**digits) if digits >= 0 else _quotients(unscaled, 10**-digits)


def _quotients(numbers: Numbers, divisors: Any) -> Numbers:
    """Return the integers nearest to ``numbers / divisors``, with halves away from zero."""
    nearest = (2 * abs(numbers) + abs(divisors)) // (2 * abs(divisors))
    found: Numbers = np.where((numbers < 0) != (divisors < 0), -nearest, nearest)
    return found


def _decimals_computed(op: str, left: pa.Array, right: pa.Array, kind: pa.DataType, result: DataType) -> pa.Array:
    s1, s2 = left.type.scale, right.type.scale
    one, other = _unscaled(left), _unscaled(right)
    valid = pc.and_(left.is_valid(), right.is_valid())
    scale = max(s1, s2)
    if op == "*":
        found, scale = _in_38_digits(one * other, s1 + s2, kind.scale)
    elif op == "/":
        # Spark first divides to 38 digits after the point, and then rounds the result.
        divisors = np.where(other == 0, 1, other)
        found, scale = _quotients(one * 10 ** (MAX_DECIMAL_DIGITS + s2 - s1), divisors), MAX_DECIMAL_DIGITS
    else:
        one, other = one * 10 ** (scale - s1), other * 10 ** (scale - s2)
        if op == "%":
            found = abs(one) % abs(np.where(other == 0, 1, other))
            found = np.where(one < 0, -found, found)
        else:
            found = one + other if op == "+" else one - other
    values = _decimals(_rescaled(found, kind.scale - scale), valid, kind)
    if values.null_count > len(valid) - valid.true_count:
        raise _overflow(op, result)
    return values


def _in_38_digits(products: Numbers, scale: int, wanted: int) -> tuple[Numbers, int]:
    """Round products to 38 digits, half up, as Spark does before it sets their scale. Returns them with their scale.

    If the ``wanted`` scale is not smaller than ``scale``, or no product has more than 38 digits, they are unchanged.
    """
    wide = np.flatnonzero(abs(products) >= 10**MAX_DECIMAL_DIGITS)
    if not len(wide) or wanted >= scale:
        return products, scale
    products = products.copy()
    dropped = np.searchsorted(_POWERS, abs(products[wide]), side="right") - MAX_DECIMAL_DIGITS
    for digits in np.unique(dropped).tolist():
        at = wide[dropped == digits]
        products[at] = _quotients(products[at], 10**digits) * 10**digits
    return products, scale


def _as_decimals(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_floating(values.type):
        return _doubles_as_decimals(values.cast(pa.float64()), kind)
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    if pa.types.is_integer(values.type):
        unscaled = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(object)
    else:
        unscaled = _unscaled(values)
    return _decimals(_rescaled(unscaled, kind.scale - scale), values.is_valid(), kind)


def _doubles_as_decimals(values: pa.Array, kind: pa.DataType) -> pa.Array:
    valid = pc.fill_null(pc.is_finite(values), False)
    parts = pc.extract_regex(pc.if_else(valid, values, 0.0).cast(pa.string()), _DOUBLE_TEXT)
    sign, whole, part, exponent = (parts.field(name) for name in ("sign", "whole", "part", "exponent"))
    digits = pc.binary_join_element_wise(whole, part, "").cast(pa.decimal128(MAX_DECIMAL_DIGITS, 0))
    exponents = pc.if_else(pc.equal(exponent, ""), "0", pc.utf8_ltrim(exponent, "+")).cast(pa.int64()).to_numpy()
    shifts = exponents - pc.utf8_length(part).to_numpy() + kind.scale
    unscaled = _unscaled(digits)
    # A double has 17 digits: beyond these bounds the result is zero, or too large for a decimal.
    up, down = np.clip(shifts, 0, MAX_DECIMAL_DIGITS + 1), np.clip(-shifts, 0, 2 * MAX_DECIMAL_DIGITS)
    found = _quotients(unscaled * _POWERS[up], _POWERS[down])
    return _decimals(np.where(pc.equal(sign, "-").to_numpy(zero_copy_only=False), -found, found), valid, kind)


def _as_integers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    bound = 1 << (kind.bit_width - 1)
    valid = values.is_valid()
    if pa.types.is_decimal(values.type):
        unscaled, factor = _unscaled(values), 10**values.type.scale
        whole = abs(unscaled) // factor
        numbers = np.where(unscaled < 0, -whole, whole)
        fits = ((numbers >= -bound) & (numbers < bound)).astype(bool)
        numbers = np.where(fits, numbers, 0).astype(np.int64)
    elif pa.types.is_floating(values.type):
        cut = np.trunc(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False).astype(np.float64))
        fits = (cut >= -bound) & ((cut <= bound) if bound == 1 << 63 else (cut < bound))
        # As a double, the largest BIGINT is 2^63, which Spark converts to the largest BIGINT.
        numbers = np.where(fits & (cut < bound), cut, 0).astype(np.int64)
        numbers = np.where(fits & (cut >= bound), bound - 1, numbers)
    else:
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        fits = (numbers >= -bound) & (numbers <= bound - 1)
        numbers = np.where(fits, numbers, 0)
    known = pc.and_(valid, pa.array(fits)).to_numpy(zero_copy_only=False)
    return pa.array(numbers.astype(kind.to_pandas_dtype()), kind, mask=~known)


__all__ = ["computed", "decimal_texts", "negated", "number_cast"]
