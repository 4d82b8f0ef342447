"""The container of a data file's indexes: the location of each index of each column (docs/format.md 7.4)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError

#: Persisted: do not change
_MAGIC = 1493475289347502
_VERSION = 1
#: The start of an index without bytes.
_EMPTY = -1
_FIXED = struct.Struct(">qii")
_INT, _SHORT, _RANGE = struct.Struct(">i"), struct.Struct(">H"), struct.Struct(">ii")

#: The first bytes of lakelsm's checksum after a container. Persisted: do not change
_SEAL_MAGIC = b"LSMI"
_SEAL = struct.Struct(">4sI")


@dataclass(frozen=True)
class FileIndexContainer:
    """The bytes of the indexes of one data file, by column and type, in their order."""

    bodies: Mapping[str, Mapping[str, bytes]]

    def encode(self) -> bytes:
        """Return the bytes of the container."""
        head, body = [_INT.pack(len(self.bodies))], []
        named = {column: _name(column) for column in self.bodies}
        length = _FIXED.size + 2 * _INT.size
        for column, types in self.bodies.items():
            length += len(named[column]) + _INT.size + sum(len(_name(kind)) + _RANGE.size for kind in types)
        start = length
        for column, types in self.bodies.items():
            head += [named[column], _INT.pack(len(types))]
            for kind, data in types.items():
                head += [_name(kind), _RANGE.pack(start, len(data))]
                body.append(data)
                start += len(data)
        # The last number of the head is the length of additions by later versions.
        return b"".join([_FIXED.pack(_MAGIC, _VERSION, length), *head, _INT.pack(0), *body])

    @staticmethod
    def decode(data: bytes, source: str) -> FileIndexContainer:
        """Return the indexes of a container, of any type; ``source`` begins errors.

        Raises CorruptTableError if it is invalid or truncated, or if an index is outside of it.
        """
        try:
            magic, version, length = _FIXED.unpack_from(data)
            if magic != _MAGIC:
                raise CorruptTableError(f"{source} does not begin with the magic number of a file index.")
            if version != _VERSION:
                raise UnsupportedFeatureError(f"{source} has version {version}; lakelsm reads only version {_VERSION}.")
            if not _FIXED.size <= length <= len(data):
                raise struct.error(f"it claims {length} bytes, but the container has {len(data)}")
            return FileIndexContainer(_bodies(data, length))
        except (struct.error, UnicodeDecodeError) as error:
            raise CorruptTableError(f"{source} is truncated or damaged: its head cannot be decoded ({error}).") from error


def _name(text: str) -> bytes:
    data = encode_modified_utf8(text)
    return _SHORT.pack(len(data)) + data


def _bodies(data: bytes, head_length: int) -> dict[str, dict[str, bytes]]:
    cursor = _HeadReader(data[:head_length])
    found: dict[str, dict[str, bytes]] = {}
    for _ in range(cursor.count()):
        of_column = found.setdefault(cursor.name(), {})
        for _ in range(cursor.count()):
            kind, (start, length) = cursor.name(), cursor.byte_range()
            if start == _EMPTY:
                continue
            if start < head_length or length < 0 or start + length > len(data):
                raise struct.error(f"an index of {length} bytes at byte {start} exceeds {len(data)} bytes")
            of_column[kind] = data[start : start + length]
    return found


class _HeadReader:
    """Reads the parts of a head in order."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._at = _FIXED.size

    def count(self) -> int:
        (count,) = _INT.unpack_from(self._head, self._at)
        self._at += _INT.size
        if count < 0:
            raise struct.error(f"a count is {count}")
        return int(count)

    def name(self) -> str:
        (length,) = _SHORT.unpack_from(self._head, self._at)
        self._at += _SHORT.size
        text = self._head[self._at : self._at + length]
        if len(text) != length:
            raise struct.error(f"a name of {length} bytes ends after the head")
        self._at += length
        return decode_modified_utf8(text)

    def byte_range(self) -> tuple[int, int]:
        start, length = _RANGE.unpack_from(self._head, self._at)
        self._at += _RANGE.size
        return start, length


def sealed(container: bytes, file_name: str) -> bytes:
    """Return a container for a separate file: followed by a checksum of it and of the name of its data file.

    Readers find indexes by their offsets, so other readers ignore the checksum.
    """
    return container + _SEAL.pack(_SEAL_MAGIC, zlib.crc32(container, zlib.crc32(file_name.encode())))


def check_seal(data: bytes, file_name: str, source: str, *, needed: bool) -> None:
    """Raise CorruptTableError unless a container with a checksum was written for this data file.

    Containers of other writers have no checksum. A missing one is refused if ``needed``.
    """
    has_one = len(data) >= _SEAL.size and data[-_SEAL.size :].startswith(_SEAL_MAGIC)
    if not has_one and not needed:
        return
    if not has_one or data[-_SEAL.size :] != sealed(data[: -_SEAL.size], file_name)[-_SEAL.size :]:
        raise CorruptTableError(f"{source} is damaged, or belongs to another data file: its checksum differs.")


def encode_modified_utf8(text: str) -> bytes:
    """Return the bytes of a text in Java's modified UTF-8, without their length."""
    units = text.encode("utf-16-be", "surrogatepass")
    chars = [units[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(units), 2)]
    return "".join(chars).encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")


def decode_modified_utf8(data: bytes) -> str:
    """Return the text of bytes in Java's modified UTF-8. Raises UnicodeDecodeError for other bytes."""
    text = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
