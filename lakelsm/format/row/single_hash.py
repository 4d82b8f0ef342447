"""The hash of one key of Python values: what `lakelsm.format.row.bucket_hash.key_hashes` has for arrays of one row.

Arrays of one row take tens of microseconds; whole numbers, texts, bytes and dates are hashed here in a few.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from lakelsm.format.row.binary_row import header_words
from lakelsm.format.row.binary_row_slots import INLINE_FLAG, MAX_INLINE_BYTES
from lakelsm.format.row.bucket_hash import finished_hash, key_hashes, mixed_words
from lakelsm.types import BINARY_ROOTS, STRING_ROOTS, AtomicType, DataType, to_arrow

_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_FIRST_DAY = date(1970, 1, 1).toordinal()

#: Gives a value's bytes: of a fixed width, or of any length.
_Encode = Callable[[Any], "int | bytes"]


class SingleHash:
    """Hashes keys of these types, one at a time."""

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
        """Whether keys are hashed without arrays. Python values of such keys are equal exactly where keys are."""
        return self._encoders is not None

    def __call__(self, key: Sequence[Any]) -> int:
        """The hash, from 0 to 2^32 - 1. Values are as `pa.Array.to_pylist` has them; none is NULL."""
        if self._encoders is None:
            columns = [pa.array([value], to_arrow(kind)) for value, kind in zip(key, self._types, strict=True)]
            return int(key_hashes(columns, self._types)[0]) & 0xFFFFFFFF
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
            words += encoded & 0xFFFFFFFF, encoded >> 32
        words += rest
        return finished_hash(mixed_words(words, self._state), 4 * (self._header + len(words)))


def _encoder(data_type: DataType) -> _Encode | None:
    if not isinstance(data_type, AtomicType):
        return None
    bits = _INTEGER_BITS.get(data_type.root)
    if bits is not None:
        mask = (1 << bits) - 1
        return mask.__and__
    if data_type.root in STRING_ROOTS:
        return str.encode
    if data_type.root in BINARY_ROOTS:
        return bytes
    if data_type.root == "BOOLEAN":
        return int
    return _days if data_type.root == "DATE" else None


def _days(value: date) -> int:
    return (value.toordinal() - _FIRST_DAY) & 0xFFFFFFFF
