"""The bucket of a key: the 32-bit hash of its BinaryRow, and Paimon's three bucket functions.

Sources: docs/format.md 9 and upstream `paimon-core/.../bucket/*.java`. The hash consumes a row four bytes at a
time; one such step is done here for a whole block of rows before the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.binary_row import Column, column_blocks, encode_rows, row_header
from lakelsm.format.row.binary_row_slots import (
    FieldSlots,
    Longs,
    byte_layout,
    field_slots,
    normalise,
    null_mask,
    primitive_values,
    require_row_type,
)
from lakelsm.format.row.hive_hash import hive_hashes
from lakelsm.format.row.row_bytes import RowBytes, load_numbers
from lakelsm.types import DataType

Hashes = npt.NDArray[np.int32]
UInts = npt.NDArray[np.uint32]
BucketFunction = Literal["default", "mod", "hive"]

_SEED = 42  # Persisted: do not change
_C1, _C2 = 0xCC9E2D51, 0x1B873593  # Persisted: do not change
_ADD = 0xE6546B64  # Persisted: do not change
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35  # Persisted: do not change
_FULL = 0xFFFFFFFF

_BLOCK_ROWS = 1 << 14  # The working arrays of a block stay in the processor's cache.
_FEW_ROWS = 32  # Up to this number of rows, Python integers are faster than arrays.
_WORDS_ALONE = 1 << 16  # Words of one row that are converted to Python integers together.


def hash_rows(rows: pa.BinaryArray) -> Hashes:
    """Return the hash of each row's bytes (without arity). Their length is a multiple of 4, as in every BinaryRow."""
    offsets, data = byte_layout(rows)
    lengths = offsets[1:] - offsets[:-1]
    if (lengths & 3).any():
        raise InvalidInputError("row bytes have a length that is not a multiple of 4")
    data = data[int(offsets[0]) : int(offsets[-1])]
    words = np.ascontiguousarray(data).view(np.uint8)
    words = words if words.ctypes.data % 4 == 0 else words.copy()
    starts = (offsets[:-1] - offsets[0]) >> 2
    out = np.empty(len(rows), dtype=np.int32)
    for first in range(0, len(rows), _BLOCK_ROWS):
        block = slice(first, first + _BLOCK_ROWS)
        out[block] = _hash_block(words.view(np.uint32), starts[block], lengths[block] >> 2)
    return out


def key_hashes(arrays: Sequence[Column], types: Sequence[DataType]) -> Hashes:
    """Return the hash of the key in each row of the columns: ``hash_rows(encode_rows(arrays, types))``.

    The rows' bytes are not built if all rows of a block have equal lengths. Errors as for :func:`encode_rows`.
    """
    if len(arrays) != len(types) or not arrays:
        raise InvalidInputError(f"a key has {len(arrays)} columns and {len(types)} types")
    out = np.empty(len(arrays[0]), dtype=np.int32)
    first = 0
    for block in column_blocks(arrays, _BLOCK_ROWS):
        rows = len(block[0])
        fields = [field_slots(array, data_type) for array, data_type in zip(block, types, strict=True)]
        if all(isinstance(field.var_words, int) for field in fields):
            out[first : first + rows] = _hash_fields(fields, rows)
        else:
            out[first : first + rows] = hash_rows(encode_rows(block, types))
        first += rows
    return out


def bucket_ids(
    arrays: Sequence[Column],
    types: Sequence[DataType],
    num_buckets: int,
    function: BucketFunction = "default",
) -> Hashes:
    """Return the bucket (0 .. num_buckets - 1) of each row, by Paimon's ``bucket-function.type``.

    ``mod`` takes one INT or BIGINT column, ``hive`` all types except for timestamps and nested types.
    """
    if num_buckets <= 0:
        raise InvalidInputError(f"the number of buckets must be positive, not {num_buckets}")
    if function == "default":
        return _hash_buckets(key_hashes(arrays, types), num_buckets)
    if function == "mod":
        return _mod_buckets(arrays, types, num_buckets)
    if function == "hive":
        if len(arrays) != len(types) or not arrays:
            raise InvalidInputError(f"a bucket key has {len(arrays)} columns and {len(types)} types")
        blocks = [hive_hashes(block, types) for block in column_blocks(arrays, 1 << 16)]
        positive = np.concatenate([np.empty(0, np.uint32), *blocks]) & np.uint32(0x7FFFFFFF)
        return _remainder(positive, num_buckets)
    raise InvalidInputError(f"option 'bucket-function.type': {function!r} is not default, mod or hive.")


def _hash_buckets(hashes: Hashes, num_buckets: int) -> Hashes:
    """Return abs(hash % num_buckets) with Java's remainder, which has the sign of the hash."""
    sign = hashes >> np.int32(31)
    return _remainder(((hashes ^ sign) - sign).view(np.uint32), num_buckets)


def _remainder(values: UInts, divisor: int) -> Hashes:
    by = np.uint32(divisor)
    rest: UInts = values - values // by * by
    return rest.view(np.int32)


def _mod_buckets(arrays: Sequence[Column], types: Sequence[DataType], num_buckets: int) -> Hashes:
    roots = [require_row_type(data_type).root for data_type in types]
    if len(arrays) != 1 or roots not in (["INT"], ["BIGINT"]):
        raise InvalidInputError(
            f"option 'bucket-function.type' = 'mod' needs one bucket key of type INT or BIGINT, not {roots}."
        )
    out = np.empty(len(arrays[0]), dtype=np.int32)
    first = 0
    for (block,) in column_blocks(arrays, 1 << 16):
        plain = normalise(block, require_row_type(types[0]))
        nulls = null_mask(plain)
        values = primitive_values(plain)
        # A null key's slot contains 0, and Java takes the remainder of it.
        values = values if nulls is None else np.where(nulls, 0, values)
        out[first : first + len(block)] = values % num_buckets
        first += len(block)
    return out


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _FULL


def mixed_words(words: Sequence[int], state: int = _SEED) -> int:
    """Return the hash state of one row after more words of four bytes. `finished_hash` computes the hash from it."""
    for word in words:
        word = word * _C1 & _FULL
        state ^= (word << 15 | word >> 17) * _C2 & _FULL
        state = ((state << 13 | state >> 19) * 5 + _ADD) & _FULL
    return state


def finished_hash(state: int, byte_length: int) -> int:
    """Return the unsigned hash of one row from its state after all words and its length in bytes."""
    state ^= byte_length
    state = (state ^ state >> 16) * _F1 & _FULL
    state = (state ^ state >> 13) * _F2 & _FULL
    return state ^ state >> 16


class _Mixer:
    """The hash state of a block of rows: one number while it is equal for all rows, then an array."""

    def __init__(self, rows: int) -> None:
        self.common: int | None = _SEED
        self.state: UInts = np.empty(rows, dtype=np.uint32)
        self._word: UInts = np.empty(rows, dtype=np.uint32)
        self._other: UInts = np.empty(rows, dtype=np.uint32)

    def mix_common(self, word: int) -> None:
        """Add four bytes that are equal in every row."""
        if self.common is not None:
            self.common = mixed_words([word], self.common)
            return
        if word:
            self.state ^= np.uint32(_rotated(word * _C1 & _FULL, 15) * _C2 & _FULL)
        self._turn(len(self.state))

    def mix(self, words: UInts) -> None:
        """Add the next four bytes of the first ``len(words)`` rows."""
        rows = len(words)
        self._part()
        word, other = self._word[:rows], self._other[:rows]
        np.multiply(words, np.uint32(_C1), out=word)
        np.right_shift(word, np.uint32(17), out=other)
        np.left_shift(word, np.uint32(15), out=word)
        np.bitwise_or(word, other, out=word)
        np.multiply(word, np.uint32(_C2), out=word)
        state = self.state[:rows]
        np.bitwise_xor(state, word, out=state)
        self._turn(rows)

    def mix_table(self, words: UInts) -> None:
        """Add the next words of all rows, one column for each word."""
        if len(words) <= _FEW_ROWS:
            for row, own in enumerate(words):
                self.mix_alone(row, own)
        else:
            for column in range(words.shape[1]):
                self.mix(words[:, column])

    def mix_alone(self, row: int, words: UInts) -> None:
        """Add the next words of one row. Each step needs the state of the one before, so only the words are an array."""
        self._part()
        state = int(self.state[row])
        for start in range(0, len(words), _WORDS_ALONE):
            part = words[start : start + _WORDS_ALONE] * np.uint32(_C1)
            part = (part << np.uint32(15) | part >> np.uint32(17)) * np.uint32(_C2)
            for word in part.tolist():
                state ^= word
                state = ((state << 13 | state >> 19) * 5 + _ADD) & _FULL
        self.state[row] = state

    def finish(self, byte_lengths: int | UInts) -> Hashes:
        """Return the hashes, given the rows' lengths in bytes."""
        self._part()
        state, other = self.state, self._other
        state ^= np.uint32(byte_lengths) if isinstance(byte_lengths, int) else byte_lengths
        for shift, factor in ((16, _F1), (13, _F2)):
            np.right_shift(state, np.uint32(shift), out=other)
            state ^= other
            state *= np.uint32(factor)
        np.right_shift(state, np.uint32(16), out=other)
        state ^= other
        return state.view(np.int32)

    def _part(self) -> None:
        """Give each row its own state."""
        if self.common is not None:
            self.state.fill(self.common)
            self.common = None

    def _turn(self, rows: int) -> None:
        state, other = self.state[:rows], self._other[:rows]
        np.right_shift(state, np.uint32(19), out=other)
        np.left_shift(state, np.uint32(13), out=state)
        np.bitwise_or(state, other, out=state)
        np.multiply(state, np.uint32(5), out=state)
        np.add(state, np.uint32(_ADD), out=state)


def _hash_fields(fields: Sequence[FieldSlots], rows: int) -> Hashes:
    """Return hashes of rows of equal length, directly from their fields."""
    mixer = _Mixer(rows)
    header = row_header(fields, rows)
    for bits in header:
        if bits is None:
            mixer.mix_common(0)
            mixer.mix_common(0)
        else:
            _mix_longs(mixer, bits)
    cursor = len(header) + len(fields)
    for field in fields:
        if field.var_data is None:
            _mix_longs(mixer, field.slots)
        else:
            mixer.mix(field.slots.astype(np.uint32))
            mixer.mix_common(cursor * 8)
            cursor += int(field.var_words)
    for field in fields:
        if field.var_data is not None:
            mixer.mix_table(field.var_data.view(np.uint32).reshape(rows, -1))
    return mixer.finish(cursor * 8)


def _mix_longs(mixer: _Mixer, longs: npt.NDArray[np.uint64]) -> None:
    halves = np.ascontiguousarray(longs).view(np.uint32)
    mixer.mix(halves[0::2])
    mixer.mix(halves[1::2])


def hash_bytes(rows: RowBytes) -> Hashes:
    """Return the hash of byte strings of any lengths, as for keys in the bloom filters of Paimon's lookup files."""
    out = np.empty(len(rows.starts), dtype=np.int32)
    for first in range(0, len(out), _BLOCK_ROWS):
        block = slice(first, first + _BLOCK_ROWS)
        starts, lengths = rows.starts[block], rows.lengths[block]
        for tail in range(4):  # Strings with this number of bytes after their last group of four.
            here = np.flatnonzero((lengths & 3) == tail)
            if len(here):
                out[first + here] = _hash_strings(rows.buffer, starts[here], lengths[here], tail)
    return out


def _hash_strings(buffer: npt.NDArray[np.uint8], starts: Longs, lengths: Longs, tail: int) -> Hashes:
    """Hash strings with ``tail`` bytes after a multiple of four, the longest first as in :func:`_hash_block`."""
    mixer = _Mixer(len(starts))
    order = np.argsort(-lengths, kind="stable")
    sorted_starts, counts = starts[order], lengths[order] >> 2
    step, active = 0, _longer(counts, 0)
    while active > _FEW_ROWS:
        mixer.mix(load_numbers(buffer, sorted_starts[:active] + 4 * step, "<u4"))
        step += 1
        active = _longer(counts, step)
    for row in range(active):
        start = int(sorted_starts[row])
        mixer.mix_alone(row, buffer[start + 4 * step : start + 4 * int(counts[row])].copy().view("<u4"))
    for byte in range(tail):
        # Each byte is added as a separate signed number.
        mixer.mix(buffer[sorted_starts + (counts << 2) + byte].view(np.int8).astype(np.int32).view(np.uint32))
    hashes = np.empty(len(starts), dtype=np.int32)
    hashes[order] = mixer.finish(lengths[order].astype(np.uint32))
    return hashes


def _hash_block(words: UInts, starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Hashes:
    """Return hashes of rows of ``counts`` 4-byte words. The longest are first, so that each step takes a prefix."""
    rows = len(starts)
    mixer = _Mixer(rows)
    first = int(counts[0])
    if bool((counts == first).all()) and bool((np.diff(starts) == first).all()):
        mixer.mix_table(words[int(starts[0]) : int(starts[0]) + rows * first].reshape(rows, first))
        return mixer.finish(4 * first)
    order = np.argsort(-counts, kind="stable")
    sorted_starts, sorted_counts = starts[order], counts[order]
    step, active = 0, _longer(sorted_counts, 0)
    while active > _FEW_ROWS:
        mixer.mix(words[sorted_starts[:active] + step])
        step += 1
        active = _longer(sorted_counts, step)
    for row in range(active):
        start = int(sorted_starts[row])
        mixer.mix_alone(row, words[start + step : start + int(sorted_counts[row])])
    hashes = np.empty(rows, dtype=np.int32)
    hashes[order] = mixer.finish((sorted_counts << 2).astype(np.uint32))
    return hashes


def _longer(counts: Longs, step: int) -> int:
    """Return how many of the descending ``counts`` are above ``step``."""
    return int(np.searchsorted(-counts, -step, side="left"))
