"""The hash of one key of Python values, equal to `lakelsm.format.row.bucket_hash.key_hashes` for arrays of one row.

Arrays of one row take hundreds of microseconds. Here a hash takes a few, except for floats and nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

from lakelsm.format.row.binary_row import header_words
from lakelsm.format.row.binary_row_slots import (
    INLINE_FLAG,
    MAX_INLINE_BYTES,
    TIMESTAMP_ROOTS,
    WIDE_DECIMAL_WORDS,
    is_wide_decimal,
)
from lakelsm.format.row.bucket_hash import finished_hash, mixed_words
from lakelsm.types import BINARY_ROOTS, INTEGER_BITS, STRING_ROOTS, AtomicType, DataType

_FIRST_DAY = date(1970, 1, 1).toordinal()

_EPOCH = datetime(1970, 1, 1)
_UTC_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECONDS = 3
_MICROSECONDS = 6

#: Returns a value's slot; or its bytes, of any length; or the low half of its slot and its variable part as words.
_Encode = Callable[[Any], "int | bytes | tuple[int, tuple[int, ...]]"]


class SingleHash:
    """Hashes keys of the given types, one at a time."""

    def __init__(self, types: Sequence[DataType]) -> None:
        self._types = tuple(types)
        encoders = [_encoder(each) for each in types]
        self._encoders = None if None in encoders else [each for each in encoders if each is not None]
        header = 2 * header_words(len(self._types))
        self._state = mixed_words([0] * header)
        self._header = header
        self._fixed_words = header + 2 * len(self._types)

    @property
    def is_plain(self) -> bool:
        """Whether keys are hashed without arrays. Such keys are equal exactly if their Python values are."""
        return self._encoders is not None

    def __call__(self, key: Sequence[Any]) -> int:
        """Return the hash, from 0 to 2^32 - 1, if `is_plain`. Values are as in `pa.Array.to_pylist`, without NULL."""
        assert self._encoders is not None, "only keys of plain types are hashed one at a time"
        words: list[int] = []
        rest: list[int] = []
        for encode, value in zip(self._encoders, key, strict=True):
            encoded = encode(value)
            if isinstance(encoded, bytes):
                size = len(encoded)
                if size > MAX_INLINE_BYTES:
                    words += size, 4 * (self._fixed_words + len(rest))
                    padded = encoded + bytes(-size % 8)
                    rest += struct.unpack(f"<{len(padded) // 4}I", padded)
                    continue
                encoded = int.from_bytes(encoded, "little") | (INLINE_FLAG | size) << 56
            elif isinstance(encoded, tuple):
                words += encoded[0], 4 * (self._fixed_words + len(rest))
                rest += encoded[1]
                continue
            words += encoded & 0xFFFFFFFF, encoded >> 32
        words += rest
        return finished_hash(mixed_words(words, self._state), 4 * (self._header + len(words)))


def _encoder(data_type: DataType) -> _Encode | None:
    if not isinstance(data_type, AtomicType):
        return None
    bits = INTEGER_BITS.get(data_type.root)
    if bits is not None:
        mask = (1 << bits) - 1
        return mask.__and__
    if data_type.root in STRING_ROOTS:
        return str.encode
    if data_type.root in BINARY_ROOTS:
        return bytes
    if data_type.root == "DECIMAL":
        wide, scale = is_wide_decimal(data_type), data_type.scale or 0
        return lambda value: (_wide_decimal if wide else _narrow)(_unscaled(value, scale))
    if data_type.root in TIMESTAMP_ROOTS:
        return _timestamp_encoder(data_type)
    return _OTHERS.get(data_type.root)


def _timestamp_encoder(data_type: AtomicType) -> _Encode | None:
    epoch = _EPOCH if data_type.root == "TIMESTAMP" else _UTC_EPOCH
    precision = data_type.precision or 0
    if precision > _MICROSECONDS:
        return None

    def encode(value: datetime) -> int | tuple[int, tuple[int, ...]]:
        since = value - epoch
        millis, micros = divmod(since.microseconds, 1000)
        millis = _narrow((since.days * 86_400 + since.seconds) * 1000 + millis)
        return millis if precision <= _MILLISECONDS else (micros * 1000, (millis & 0xFFFFFFFF, millis >> 32))

    return encode


def _narrow(number: int) -> int:
    return number & 0xFFFFFFFFFFFFFFFF


def _unscaled(value: Decimal, scale: int) -> int:
    """Return the unscaled value, cut if it has more digits than its type. Then no row has the value."""
    sign, digits, exponent = value.as_tuple()
    number, shift = int("".join(map(str, digits))), int(exponent) + scale
    power: int = 10 ** abs(shift)
    number = number * power if shift >= 0 else number // power
    return -number if sign else number


def _wide_decimal(number: int) -> tuple[int, tuple[int, ...]]:
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    width = 8 * WIDE_DECIMAL_WORDS
    data = number.to_bytes(max(size, width), "big", signed=True)[-size:][:width]
    return size, struct.unpack("<4I", data.ljust(width, b"\0"))


def _days(value: date) -> int:
    return (value.toordinal() - _FIRST_DAY) & 0xFFFFFFFF


def _millis_of_day(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


_OTHERS: dict[str, _Encode] = {"BOOLEAN": int, "DATE": _days, "TIME": _millis_of_day}
