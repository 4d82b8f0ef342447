"""Floating-point numbers as text, as Double.toString and Float.toString of JDK 8 to 18 return them.

JDK 19 and later return the shortest text that denotes the same number, earlier versions often one digit more: 2.0E10
but 4.91000005E11 for a FLOAT, where JDK 19 has 4.91E11. Paimon's directory names depend on the JDK that writes or
reads them; most installations run JDK 8 to 17, so their rule is implemented here.

The rule is that of Steele and White. Its bounds are half a unit in the last place, computed from the number of
significant bits. Integers are exact, without the digits that those bits do not determine.
"""

from __future__ import annotations

import math
import struct

# All persisted, in directory names: do not change.
_FRACTION_BITS = 52
_LARGEST_INTEGER_EXPONENT = 62
_MIN_PLAIN, _MAX_PLAIN = -2, 7
#: Bits of powers of five are counted exactly up to this exponent, and estimated as three bits a power above.
_COUNTED_POWERS = 27


def double_text(value: float) -> str:
    """Return Java's text of a DOUBLE."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return _text(value, bits & ((1 << 63) - 1), _FRACTION_BITS, 1023)


def float_text(value: float) -> str:
    """Return Java's text of a FLOAT; ``value`` is exactly that FLOAT."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return _text(value, bits & ((1 << 31) - 1), 23, 127)


def _text(value: float, bits: int, fraction_bits: int, bias: int) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if bits == 0:
        return f"{sign}0.0"
    exponent, fraction = bits >> fraction_bits, bits & ((1 << fraction_bits) - 1)
    if exponent:
        fraction |= 1 << fraction_bits
    else:
        exponent = 1
    significant = fraction.bit_length()
    exponent += significant - 1 - fraction_bits - bias
    digits, point = _digits(fraction << (_FRACTION_BITS + 1 - significant), exponent, significant)
    return sign + _notation(digits, point)


def _notation(digits: str, point: int) -> str:
    """Place the decimal point before digit ``point``; numbers outside [1e-3, 1e7) get the scientific form."""
    if 0 < point <= _MAX_PLAIN:
        return f"{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if _MIN_PLAIN <= point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _digits(fraction: int, exponent: int, significant: int) -> tuple[str, int]:
    """Return (digits, position of the point) of ``fraction * 2 ** (exponent - 52)``; the fraction has 53 bits."""
    trailing = (fraction & -fraction).bit_length() - 1
    used = _FRACTION_BITS + 1 - trailing
    after_point = max(0, used - exponent - 1)
    if 0 <= exponent <= _LARGEST_INTEGER_EXPONENT and after_point == 0:
        return _integer_digits((fraction << exponent) >> _FRACTION_BITS, exponent - significant)
    return _shortened_digits(fraction, exponent, significant, used, after_point)


def _integer_digits(number: int, beyond: int) -> tuple[str, int]:
    """Return the digits of an integer; about the last ``beyond`` bits of it are not significant."""
    dropped = len(str(1 << beyond - 1)) - 1 if beyond > 2 else 0
    if dropped:
        number = (number + 10**dropped // 2) // 10**dropped
    text = str(number)
    return text.rstrip("0") or "0", len(text) + dropped


def _shortened_digits(
    fraction: int, exponent: int, significant: int, used: int, after_point: int
) -> tuple[str, int]:
    """Return digits of ``number / scale`` until they distinguish the number from ``number ± margin``."""
    power = _estimated_power(fraction, exponent)
    fives, scale_fives = max(0, -power), max(0, power)
    twos, scale_twos = fives + after_point + exponent, scale_fives + after_point
    margin_twos = twos - significant
    twos -= used - 1
    common = min(twos, scale_twos)
    twos, scale_twos, margin_twos = twos - common, scale_twos - common, margin_twos - common
    if used == 1:  # The next smaller number is half as distant as the next greater one.
        margin_twos -= 1
    if margin_twos < 0:
        twos, scale_twos, margin_twos = twos - margin_twos, scale_twos - margin_twos, 0
    number = (fraction >> (_FRACTION_BITS + 1 - used)) * 5**fives << twos
    scale = 5**scale_fives << scale_twos
    margin = 5**fives << margin_twos
    number_bits = used + twos + _bits_of_five(fives)
    scale_bits = scale_twos + 1 + _bits_of_five(scale_fives + 1)
    return _generate(number, scale, margin, power, _word_bits(max(number_bits, scale_bits)))


def _generate(number: int, scale: int, margin: int, power: int, word: int | None) -> tuple[str, int]:
    """Return the digits and the exponent. ``word`` is the bit size of Java's integers here, None for any size."""
    tens = scale * 10
    digits: list[int] = []
    digit, number = divmod(number, scale)
    number, margin = number * 10, _wrapped(margin * 10, word)
    low, high = number < margin, _exceeds(number + margin, tens, word)
    if digit == 0 and not high:
        power -= 1
    else:
        digits.append(digit)
    if not -3 <= power < 8:  # The text has at least one digit after the point.
        low = high = False
    while not low and not high:
        digit, number = divmod(number, scale)
        number, margin = number * 10, _wrapped(margin * 10, word)
        low, high = number < margin, _exceeds(number + margin, tens, word)
        if word is not None and margin <= 0:
            low = high = True
        digits.append(digit)
    twice = number * 2
    if high and (not low or twice > tens or (twice == tens and digits[-1] % 2)):
        power += _round_up(digits)
    text = "".join(map(str, digits))
    return text, power + 1


def _round_up(digits: list[int]) -> int:
    """Add one to the last digit. Return 1 if that adds a digit in front, else 0."""
    at = len(digits) - 1
    while digits[at] == 9 and at > 0:
        digits[at] = 0
        at -= 1
    if digits[at] == 9:
        digits[0] = 1
        return 1
    digits[at] += 1
    return 0


def _estimated_power(fraction: int, exponent: int) -> int:
    """Return Java's estimate of the decimal exponent: a tangent of the logarithm at 1.5."""
    mantissa = fraction / (1 << _FRACTION_BITS)
    return math.floor((mantissa - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)


def _bits_of_five(power: int) -> int:
    return (5**power).bit_length() if power < _COUNTED_POWERS else 3 * power


def _word_bits(bits: int) -> int | None:
    return 32 if bits < 32 else 64 if bits < 64 else None


def _wrapped(number: int, word: int | None) -> int:
    """Return a number as it overflows in a machine word."""
    if word is None:
        return number
    half = 1 << word - 1
    return (number + half) % (1 << word) - half


def _exceeds(sum_: int, tens: int, word: int | None) -> bool:
    return sum_ >= tens if word is None else _wrapped(sum_, word) > tens
