"""Footers of Parquet files, changed in one point: whether a column of 12-byte values is INT96 or bytes.

Arrow writes and reads INT96 only through 64-bit clocks, which lose values of Paimon. The values are twelve
plain bytes to Parquet either way, in the same encodings, so Arrow handles them as FIXED_LEN_BYTE_ARRAY(12), and the
footer alone differs. A footer is Thrift in its compact protocol; it is read into lists and written again, and
unknown parts do not change.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

MAGIC = b"PAR1"
TAIL_BYTES = 8
INT96_BYTES = 12

# Parquet's and Thrift's numbers. Persisted: do not change
_INT96, _FIXED_LENGTH = 3, 7
_TYPE, _TYPE_LENGTH = 1, 2
_ANNOTATIONS = (6, 10)  # converted_type and logicalType of a SchemaElement
_SCHEMA, _ROW_GROUPS, _COLUMNS, _META_DATA = 2, 4, 1, 3
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

_MAX_LEVELS = 32

#: A struct: (field id, Thrift type, value) in order.
Struct = list[tuple[int, int, Any]]


def read_footer(source: pa.NativeFile) -> bytes:
    """The Thrift bytes of the footer of an open file. Raises ArrowInvalid where the file cannot have one."""
    size = source.size()
    tail = source.read_at(TAIL_BYTES, size - TAIL_BYTES) if size > TAIL_BYTES else b""
    length = int.from_bytes(tail[:4], "little")
    if len(tail) != TAIL_BYTES or not 0 < length <= size - TAIL_BYTES - len(MAGIC):
        raise pa.ArrowInvalid("the length of the Parquet footer is not in the file")
    footer: bytes = source.read_at(length, size - TAIL_BYTES - length)
    return footer


def metadata_with_int96_as_bytes(footer: bytes) -> pq.FileMetaData:
    """The metadata of a file by its Thrift bytes, with INT96 columns as FIXED_LEN_BYTE_ARRAY(12).

    Raises ArrowInvalid for bytes that are no footer.
    """
    changed = _with_types(footer, lambda leaf: _value(leaf, _TYPE) == _zigzag(_INT96), _FIXED_LENGTH)
    return pq.read_metadata(pa.BufferReader(MAGIC + changed + struct.pack("<I", len(changed)) + MAGIC))


def _with_bytes_as_int96(footer: bytes) -> bytes:
    """The footer with each FIXED_LEN_BYTE_ARRAY(12) column that is no DECIMAL as INT96."""

    def is_plain(leaf: Struct) -> bool:
        fixed = _value(leaf, _TYPE) == _zigzag(_FIXED_LENGTH) and _value(leaf, _TYPE_LENGTH) == _zigzag(INT96_BYTES)
        return fixed and not any(field in _ANNOTATIONS for field, _, _ in leaf)

    return _with_types(footer, is_plain, _INT96)


class Int96Sink:
    """Passes a Parquet file on to a stream; its 12-byte columns become INT96 in the footer."""

    closed = False

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._written = 0
        self._tail: list[bytes] | None = None

    def write(self, data: bytes) -> int:
        """Take more of the file."""
        if self._tail is None:
            self._sink.write(data)
        else:
            self._tail.append(bytes(data))
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        """Bytes taken so far."""
        return self._written

    def flush(self) -> None:
        """Nothing is held back but the end of the file."""

    def begin_footer(self) -> None:
        """The last row group is written: what follows ends with the footer."""
        self._tail = []

    def finish(self) -> None:
        """Pass on the end of the file."""
        end = b"".join(self._tail or [])
        (length,) = struct.unpack("<I", end[-TAIL_BYTES:-4])
        start = len(end) - TAIL_BYTES - length
        footer = _with_bytes_as_int96(end[start:-TAIL_BYTES])
        self._sink.write(end[:start] + footer + struct.pack("<I", len(footer)) + MAGIC)


def _with_types(footer: bytes, chosen: Callable[[Struct], bool], physical: int) -> bytes:
    """The footer with another physical type for the columns whose schema element is ``chosen``."""
    try:
        metadata, end = _struct(memoryview(footer), 0, 0)
        if end != len(footer):
            raise pa.ArrowInvalid("a Parquet footer goes on after its end")
        leaves = [element for element in _value(metadata, _SCHEMA)[1] if _value(element, _TYPE) is not None]
        places = [place for place, leaf in enumerate(leaves) if chosen(leaf)]
        for place in places:
            _set(leaves[place], _TYPE, physical)
            leaves[place][:] = [field for field in leaves[place] if field[0] != _TYPE_LENGTH]
            if physical == _FIXED_LENGTH:
                leaves[place].append((_TYPE_LENGTH, _I32, _zigzag(INT96_BYTES)))
                leaves[place].sort(key=lambda field: field[0])
        for group in _value(metadata, _ROW_GROUPS)[1]:
            columns = _value(group, _COLUMNS)[1]
            for place in places:
                _set(_value(columns[place], _META_DATA), _TYPE, physical)
    except (IndexError, TypeError, struct.error) as error:
        raise pa.ArrowInvalid(f"a Parquet footer cannot be decoded: {error}") from error
    out = bytearray()
    _put_struct(out, metadata)
    return bytes(out)


def _value(fields: Struct, wanted: int) -> Any:
    return next((value for field, _, value in fields if field == wanted), None)


def _set(fields: Struct, wanted: int, number: int) -> None:
    place = next(at for at, (field, _, _) in enumerate(fields) if field == wanted)
    fields[place] = (wanted, _I32, _zigzag(number))


def _zigzag(number: int) -> int:
    """A non-negative number as Thrift has signed ones."""
    return number << 1


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while data[at] & 0x80:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return number | data[at] << shift, at + 1


def _struct(data: memoryview, at: int, level: int) -> tuple[Struct, int]:
    """A struct and where it ends."""
    fields: Struct = []
    field = 0
    while data[at]:
        head = data[at]
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            number, at = _varint(data, at)
            field = (number >> 1) ^ -(number & 1)
        kind = head & 0xF
        value, at = (kind == _TRUE, at) if kind in (_TRUE, _FALSE) else _read(data, at, kind, level)
        fields.append((field, kind, value))
    return fields, at + 1


def _read(data: memoryview, at: int, kind: int, level: int) -> tuple[Any, int]:
    """A value that is no Boolean field, and where it ends."""
    if level > _MAX_LEVELS:
        raise pa.ArrowInvalid("a Parquet footer is nested too deeply")
    if kind in (_I16, _I32, _I64):
        return _varint(data, at)
    if kind == _STRUCT:
        return _struct(data, at, level + 1)
    if kind in (_TRUE, _FALSE, _BYTE):
        return data[at], at + 1
    if kind in (_LIST, _SET):
        part, count = data[at] & 0xF, data[at] >> 4
        at += 1
        if count == 15:
            count, at = _varint(data, at)
        values = []
        for _ in range(count):
            value, at = _read(data, at, part, level + 1)
            values.append(value)
        return (part, values), at
    length = 8
    if kind == _BINARY:
        length, at = _varint(data, at)
    elif kind != _DOUBLE:
        raise pa.ArrowInvalid(f"a Parquet footer has a value of unknown kind {kind}")
    if at + length > len(data):
        raise pa.ArrowInvalid("a Parquet footer ends within a value")
    return bytes(data[at : at + length]), at + length


def _put_varint(out: bytearray, number: int) -> None:
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _put_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for field, kind, value in fields:
        if 0 < field - before < 16:
            out.append((field - before) << 4 | kind)
        else:
            out.append(kind)
            _put_varint(out, field << 1 if field >= 0 else (-field << 1) - 1)
        before = field
        if kind not in (_TRUE, _FALSE):
            _put(out, kind, value)
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    if kind in (_I16, _I32, _I64):
        _put_varint(out, value)
    elif kind == _STRUCT:
        _put_struct(out, value)
    elif kind in (_TRUE, _FALSE, _BYTE):
        out.append(value)
    elif kind in (_LIST, _SET):
        part, values = value
        out.append(min(len(values), 15) << 4 | part)
        if len(values) >= 15:
            _put_varint(out, len(values))
        for element in values:
            _put(out, part, element)
    else:
        if kind == _BINARY:
            _put_varint(out, len(value))
        out += value
