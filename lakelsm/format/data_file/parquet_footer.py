"""Parquet footers with one change: whether a column of 12-byte values is INT96 or bytes.

Arrow reads and writes INT96 only through 64-bit clocks, which lose values of Paimon. For Parquet the values are twelve
plain bytes in either case, in the same encodings. Arrow therefore handles them as FIXED_LEN_BYTE_ARRAY(12), and only
the footer differs. A footer is Thrift in its compact protocol. It is read into lists and written again; unknown parts
do not change.
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

# Numbers of Parquet and Thrift. Persisted: do not change
_INT96, _FIXED_LENGTH = 3, 7
_TYPE, _TYPE_LENGTH = 1, 2
_ANNOTATIONS = (6, 10)  # converted_type and logicalType of a SchemaElement
_SCHEMA, _ROW_GROUPS, _COLUMNS, _META_DATA = 2, 4, 1, 3
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

_MAX_LEVELS = 32

#: A struct: (field id, Thrift type, value) of each field, in order.
Struct = list[tuple[int, int, Any]]


def read_footer(source: pa.NativeFile) -> bytes:
    """Return the Thrift bytes of the footer of an open file. Raises ArrowInvalid if the file cannot have a footer."""
    size = source.size()
    tail = source.read_at(TAIL_BYTES, size - TAIL_BYTES) if size > TAIL_BYTES else b""
    length = int.from_bytes(tail[:4], "little")
    if len(tail) != TAIL_BYTES or not 0 < length <= size - TAIL_BYTES - len(MAGIC):
        raise pa.ArrowInvalid("the length of the Parquet footer exceeds the file")
    footer: bytes = source.read_at(length, size - TAIL_BYTES - length)
    return footer


def metadata_with_int96_as_bytes(footer: bytes) -> pq.FileMetaData:
    """Return the metadata of a file from its Thrift bytes, with INT96 columns as FIXED_LEN_BYTE_ARRAY(12).

    Raises ArrowInvalid for bytes that are not a footer.
    """
    changed = _with_types(footer, lambda leaf: _value(leaf, _TYPE) == _zigzag(_INT96), _FIXED_LENGTH)
    return pq.read_metadata(pa.BufferReader(MAGIC + changed + struct.pack("<I", len(changed)) + MAGIC))


def _with_bytes_as_int96(footer: bytes) -> bytes:
    """Return the footer with FIXED_LEN_BYTE_ARRAY(12) columns as INT96, except for columns that are DECIMAL."""

    def is_plain(leaf: Struct) -> bool:
        fixed = _value(leaf, _TYPE) == _zigzag(_FIXED_LENGTH) and _value(leaf, _TYPE_LENGTH) == _zigzag(INT96_BYTES)
        return fixed and not any(field in _ANNOTATIONS for field, _, _ in leaf)

    return _with_types(footer, is_plain, _INT96)


class Int96Sink:
    """Forwards a Parquet file to a stream and makes its 12-byte columns INT96 in the footer."""

    closed = False

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._written = 0
        self._tail: list[bytes] | None = None

    def write(self, data: bytes) -> int:
        """Write a part of the file."""
        if self._tail is None:
            self._sink.write(data)
        else:
            self._tail.append(bytes(data))
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._written

    def flush(self) -> None:
        """Do nothing: only the end of the file is delayed."""

    def begin_footer(self) -> None:
        """Record that the last row group is written. The following bytes end with the footer."""
        self._tail = []

    def finish(self) -> None:
        """Write the end of the file with the changed footer."""
        end = b"".join(self._tail or [])
        (length,) = struct.unpack("<I", end[-TAIL_BYTES:-4])
        start = len(end) - TAIL_BYTES - length
        footer = _with_bytes_as_int96(end[start:-TAIL_BYTES])
        self._sink.write(end[:start] + footer + struct.pack("<I", len(footer)) + MAGIC)


def _with_types(footer: bytes, chosen: Callable[[Struct], bool], physical: int) -> bytes:
    """Return the footer with another physical type for the columns whose schema element is ``chosen``."""
    try:
        metadata, end = _struct(memoryview(footer), 0, 0)
        if end != len(footer):
            raise pa.ArrowInvalid("a Parquet footer has bytes after its end")
        leaves = [element for element in _value(metadata, _SCHEMA)[1] if _value(element, _TYPE) is not None]
        positions = [position for position, leaf in enumerate(leaves) if chosen(leaf)]
        for position in positions:
            _set(leaves[position], _TYPE, physical)
            leaves[position][:] = [field for field in leaves[position] if field[0] != _TYPE_LENGTH]
            if physical == _FIXED_LENGTH:
                leaves[position].append((_TYPE_LENGTH, _I32, _zigzag(INT96_BYTES)))
                leaves[position].sort(key=lambda field: field[0])
        for group in _value(metadata, _ROW_GROUPS)[1]:
            columns = _value(group, _COLUMNS)[1]
            for position in positions:
                _set(_value(columns[position], _META_DATA), _TYPE, physical)
    except (IndexError, TypeError, struct.error) as error:
        raise pa.ArrowInvalid(f"a Parquet footer cannot be decoded: {error}") from error
    out = bytearray()
    _put_struct(out, metadata)
    return bytes(out)


def _value(fields: Struct, wanted: int) -> Any:
    return next((value for field, _, value in fields if field == wanted), None)


def _set(fields: Struct, wanted: int, number: int) -> None:
    position = next(at for at, (field, _, _) in enumerate(fields) if field == wanted)
    fields[position] = (wanted, _I32, _zigzag(number))


def _zigzag(number: int) -> int:
    """Return a non-negative number in Thrift's form for signed numbers."""
    return number << 1


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while data[at] & 0x80:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return number | data[at] << shift, at + 1


def _struct(data: memoryview, at: int, level: int) -> tuple[Struct, int]:
    """Return a struct and its end."""
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
    """Return a value that is not a Boolean field, and its end."""
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
