"""The container of a data file's indexes: which index of which column lies where (docs/format.md 7.4)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError

#: Persisted: do not change
_MAGIC = 1493475289347502
_VERSION = 1
#: Start of an index of which there are no bytes.
_EMPTY = -1
_FIXED = struct.Struct(">qii")
_INT, _SHORT, _PLACE = struct.Struct(">i"), struct.Struct(">H"), struct.Struct(">ii")

#: How lakelsm's checksum behind a container begins. Persisted: do not change
_SEAL_MARK = b"LSMI"
_SEAL = struct.Struct(">4sI")


@dataclass(frozen=True)
class FileIndexContainer:
    """The bytes of the indexes of one data file, by column and type, in their order."""

    bodies: Mapping[str, Mapping[str, bytes]]

    def encode(self) -> bytes:
        """The container's bytes."""
        head, body = [_INT.pack(len(self.bodies))], []
        named = {column: _name(column) for column in self.bodies}
        length = _FIXED.size + 2 * _INT.size
        for column, types in self.bodies.items():
            length += len(named[column]) + _INT.size + sum(len(_name(kind)) + _PLACE.size for kind in types)
        start = length
        for column, types in self.bodies.items():
            head += [named[column], _INT.pack(len(types))]
            for kind, data in types.items():
                head += [_name(kind), _PLACE.pack(start, len(data))]
                body.append(data)
                start += len(data)
        # The last number of the head is the length of what a later version may add to it.
        return b"".join([_FIXED.pack(_MAGIC, _VERSION, length), *head, _INT.pack(0), *body])

    @staticmethod
    def decode(data: bytes, source: str) -> FileIndexContainer:
        """The indexes in a container, of any type; ``source`` begins messages.

        Raises CorruptTableError if it is invalid, truncated, or locates an index outside itself.
        """
        try:
            magic, version, length = _FIXED.unpack_from(data)
            if magic != _MAGIC:
                raise CorruptTableError(f"{source} does not begin with the magic number of a file index.")
            if version != _VERSION:
                raise UnsupportedFeatureError(f"{source} has version {version}, and lakelsm knows version {_VERSION}.")
            if not _FIXED.size <= length <= len(data):
                raise struct.error(f"a head of {length} bytes in {len(data)}")
            return FileIndexContainer(_bodies(data, length))
        except (struct.error, UnicodeDecodeError) as error:
            raise CorruptTableError(f"{source} is cut off or damaged: its head cannot be decoded ({error}).") from error


def _name(text: str) -> bytes:
    data = encode_modified_utf8(text)
    return _SHORT.pack(len(data)) + data


def _bodies(data: bytes, head_length: int) -> dict[str, dict[str, bytes]]:
    cursor = _HeadReader(data[:head_length])
    found: dict[str, dict[str, bytes]] = {}
    for _ in range(cursor.count()):
        of_column = found.setdefault(cursor.name(), {})
        for _ in range(cursor.count()):
            kind, (start, length) = cursor.name(), cursor.place()
            if start == _EMPTY:
                continue
            if start < head_length or length < 0 or start + length > len(data):
                raise struct.error(f"an index of {length} bytes at {start} of {len(data)}")
            of_column[kind] = data[start : start + length]
    return found


class _HeadReader:
    """Reads the parts of a head, one after the other."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._at = _FIXED.size

    def count(self) -> int:
        (count,) = _INT.unpack_from(self._head, self._at)
        self._at += _INT.size
        if count < 0:
            raise struct.error(f"a count of {count}")
        return int(count)

    def name(self) -> str:
        (length,) = _SHORT.unpack_from(self._head, self._at)
        self._at += _SHORT.size
        text = self._head[self._at : self._at + length]
        if len(text) != length:
            raise struct.error(f"a name of {length} bytes that ends beyond the head")
        self._at += length
        return decode_modified_utf8(text)

    def place(self) -> tuple[int, int]:
        start, length = _PLACE.unpack_from(self._head, self._at)
        self._at += _PLACE.size
        return start, length


def sealed(container: bytes, file_name: str) -> bytes:
    """A container in a separate file: followed by a checksum of it and of the name of its data file.

    Readers find indexes by their offsets, so other readers ignore it.
    """
    return container + _SEAL.pack(_SEAL_MARK, zlib.crc32(container, zlib.crc32(file_name.encode())))


def check_seal(data: bytes, file_name: str, source: str, *, needed: bool) -> None:
    """Raise CorruptTableError unless a container with a checksum is what was written for the data file.

    Other writers' have none, which is refused where one is ``needed``.
    """
    has_one = len(data) >= _SEAL.size and data[-_SEAL.size :].startswith(_SEAL_MARK)
    if not has_one and not needed:
        return
    if not has_one or data[-_SEAL.size :] != sealed(data[: -_SEAL.size], file_name)[-_SEAL.size :]:
        raise CorruptTableError(f"{source} is damaged, or is that of another data file: its checksum does not hold.")


def encode_modified_utf8(text: str) -> bytes:
    """The bytes of a text, without their length."""
    units = text.encode("utf-16-be", "surrogatepass")
    chars = [units[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(units), 2)]
    return "".join(chars).encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")


def decode_modified_utf8(data: bytes) -> str:
    """The text of some bytes. Raises UnicodeDecodeError if they are not text."""
    text = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
