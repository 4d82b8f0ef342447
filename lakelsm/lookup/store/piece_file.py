"""Files of lookups in pieces, each with its checksum, which are mapped into memory and never believed unchecked.

A file is sections of pieces, one after the other at multiples of 64 bytes, then a document in JSON that says where they
are, then a tail that says where the document is. A piece is compared with its checksum when it is first touched, and
again once the file's stamp (size, time of change, inode) is another one: a file that was cut or changed meanwhile is
told as damaged, and not read past its end, which would end the process.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lakelsm.errors import CorruptStoreError, InvalidInputError, StorageError
from lakelsm.lookup.store.open_file import opened
from lakelsm.storage.refused_writes import refused_write

Longs = npt.NDArray[np.int64]
#: Size, time of change and inode of a file.
Stamp: TypeAlias = tuple[int, int, int]

_MAGIC = b"lakelsm\x01"
_TAIL = struct.Struct("<QQQI8s")  # Start and size of the document, size of the file, the document's checksum.
_ALIGNMENT = 64
#: How much later than the system says a file that is finished was changed, in nanoseconds: what changes it then, within
#: the same tick of the system's clock, gives it another stamp.
_AFTER_TICK = 1000


class Piece(NamedTuple):
    """Bytes of a file that are checked together."""

    start: int
    size: int
    checksum: int


class PieceWriter:
    """Writes a new file. Leaving the context without `finish` deletes it.

    ``stamp`` is that of the file once it is finished.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sections: dict[str, list[Piece]] = {}
        self._end = 0
        self._finished = False
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _refused(path, error) from error

    def __enter__(self) -> PieceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
        if not self._finished:
            self.path.unlink(missing_ok=True)

    def append(self, section: str, data: Any) -> None:
        """Add a piece to a section: anything that is contiguous bytes."""
        view = memoryview(data).cast("B")
        start = self.reserve(len(view))
        self.write_at(start, view)
        self.place(section, [Piece(start, len(view), zlib.crc32(view))])

    def reserve(self, size: int) -> int:
        """Leave room for so many bytes, which `write_at` fills and `place` tells of; return where it begins."""
        start = -(-self._end // _ALIGNMENT) * _ALIGNMENT
        self._end = start + size
        return start

    def write_at(self, start: int, data: Any) -> None:
        """Write bytes to their place, from any thread."""
        view = memoryview(data).cast("B")
        try:
            while len(view):
                written = os.pwrite(self._descriptor, view, start)
                view, start = view[written:], start + written
        except OSError as error:
            raise _refused(self.path, error, len(view)) from error

    def read_at(self, start: int, size: int) -> bytearray:
        """Read bytes back that were written."""
        data = bytearray(size)
        view = memoryview(data)
        while len(view):
            read = os.preadv(self._descriptor, [view], start)
            if not read:
                raise CorruptStoreError(f"{self.path} was cut while it was written")
            view, start = view[read:], start + read
        return data

    def reopened(self) -> PieceFile:
        """The file to be read, once it is finished; it need not have a name any more."""
        return PieceFile(self.path, os.dup(self._descriptor))

    def place(self, section: str, pieces: Sequence[Piece]) -> None:
        """Add pieces that were written by `write_at` to a section."""
        self._sections.setdefault(section, []).extend(pieces)

    def pieces(self, section: str) -> Sequence[Piece]:
        """The pieces of a section so far."""
        return tuple(self._sections.get(section, ()))

    def finish(self, facts: dict[str, Any]) -> int:
        """End the file with its document, which has the facts; return its `PieceFile.seal`."""
        text = json.dumps({"sections": self._sections, "facts": facts}, separators=(",", ":")).encode()
        start = self.reserve(len(text) + _TAIL.size)
        checksum = zlib.crc32(text, self._end & 0xFFFFFFFF)
        self.write_at(start, text + _TAIL.pack(start, len(text), self._end, checksum, _MAGIC))
        try:
            changed = os.fstat(self._descriptor).st_mtime_ns + _AFTER_TICK
            os.utime(self._descriptor, ns=(changed, changed))
            self.stamp = _stamp(self._descriptor)
        except OSError as error:
            raise _refused(self.path, error) from error
        self._finished = True
        return checksum


class PieceFile:
    """A file that is open and mapped. Several threads, and processes that were forked, may read it.

    ``facts`` are those that it was finished with; ``seal`` is a number that other contents hardly share.
    """

    def __init__(self, path: Path, descriptor: int = -1, whole: Stamp | None = None) -> None:
        """``descriptor`` is the file's where it is open, ``whole`` the stamp under which its pieces need no check.

        That is its writer's, in the same process. Raises CorruptStoreError for one that is missing or damaged.
        """
        self.path = path
        self._whole = whole
        self._descriptor = descriptor
        if descriptor < 0:
            self._descriptor = opened(path)
        try:
            self._stamp = _stamp(self._descriptor)
            self._open()
        except OSError as error:
            self.close()
            reason = error.strerror or error
            raise StorageError(f"{path} cannot be read: {reason}. Mend that, and look up again.") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PieceFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._stamp[0]

    def section(self, name: str) -> Section:
        """A section; one without pieces where the file has none of the name."""
        return self._sections.get(name) or Section(self, ())

    def check(self) -> None:
        """Look at the file's stamp, before anything of it is read: pieces of one that changed are checked again.

        Raises CorruptStoreError for a file that has not the size that it had, InvalidInputError for one that is closed.
        """
        if self._descriptor < 0:
            raise InvalidInputError(f"the lookup store {self.path} is closed: open it again.")
        stamp = _stamp(self._descriptor)
        if stamp != self._stamp:
            if stamp[0] != self._stamp[0]:
                raise self.damaged(f"it has {stamp[0]} bytes instead of {self._stamp[0]}")
            for section in self._sections.values():
                section.forget()
            self._stamp = stamp

    def bytes_at(self, start: int, size: int) -> memoryview:
        """Bytes as they are mapped. They are not to be handed out: a copy is."""
        return memoryview(self._mapped)[start : start + size]

    def damaged(self, what: str) -> CorruptStoreError:
        """The error for this file."""
        return CorruptStoreError(f"{self.path} is damaged: {what}. The lookup store is made anew.")

    def close(self) -> None:
        """Give the file back; what is mapped goes with the last array that has it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _open(self) -> None:
        size = self._stamp[0]
        if size < _TAIL.size:
            raise self.damaged(f"it has only {size} bytes")
        start, length, whole, checksum, magic = _TAIL.unpack(os.pread(self._descriptor, _TAIL.size, size - _TAIL.size))
        if magic != _MAGIC or whole != size or start + length + _TAIL.size != size:
            raise self.damaged("its end is not that of a store")
        text = os.pread(self._descriptor, length, start)
        if zlib.crc32(text, size & 0xFFFFFFFF) != checksum:
            raise self.damaged("its document has another checksum")
        document = json.loads(text)
        self.facts: dict[str, Any] = document["facts"]
        self.seal: int = checksum
        self._mapped = mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)
        self._sections = {
            name: Section(self, [Piece(*piece) for piece in pieces], self._stamp == self._whole)
            for name, pieces in document["sections"].items()
        }


class Section:
    """Pieces of an open file, which are compared with their checksums unless they are ``whole``."""

    def __init__(self, file: PieceFile, pieces: Sequence[Piece], whole: bool = False) -> None:
        self._file = file
        self.pieces = pieces
        self._state = _Checked(len(pieces), whole)
        self._ends = np.array([piece.start + piece.size for piece in pieces], dtype=np.int64)

    def forget(self) -> None:
        """Check each piece again before it is used."""
        self._state = _Checked(len(self.pieces))

    def check(self, number: int) -> None:
        """Compare a piece with its checksum, once. Raises CorruptStoreError where it has another."""
        state = self._state
        if not state.pieces[number]:
            start, size, checksum = self.pieces[number]
            if zlib.crc32(self._file.bytes_at(start, size)) != checksum:
                raise self._file.damaged(f"the bytes from {start} to {start + size} have another checksum")
            state.pieces[number] = 1
            state.all = not state.pieces.count(0)

    def piece(self, number: int) -> memoryview:
        """The bytes of a piece, checked."""
        self.check(number)
        start, size, _ = self.pieces[number]
        return self._file.bytes_at(start, size)

    def whole(self, dtype: Any) -> npt.NDArray[Any]:
        """All pieces as one array; those of its values that are used are to be checked before, by `check_values`.

        They lie one after the other, without room between them.
        """
        if not self.pieces:
            return np.empty(0, dtype)
        start = self.pieces[0].start
        return np.frombuffer(self._file.bytes_at(start, int(self._ends[-1]) - start), dtype)

    @property
    def is_checked(self) -> bool:
        """Whether all pieces are checked."""
        return self._state.all

    def check_values(self, first: Longs, last: Longs, width: int) -> None:
        """Check the pieces of values of so many bytes in `whole`: those from ``first[i]`` to ``last[i]`` included."""
        if self._state.all or not len(first):
            return
        if len(first) >= len(self.pieces):  # Most are touched: each is looked at.
            for number in range(len(self.pieces)):
                self.check(number)
            return
        origin = self.pieces[0].start
        touched = np.zeros(len(self.pieces) + 1, dtype=np.int64)
        np.add.at(touched, np.searchsorted(self._ends, origin + first * width, side="right"), 1)
        np.add.at(touched, np.searchsorted(self._ends, origin + last * width, side="right") + 1, -1)
        for number in np.flatnonzero(np.cumsum(touched)[:-1]).tolist():
            self.check(number)

    def check_value(self, first: int, last: int, width: int) -> None:
        """As `check_values`, of one range."""
        if not self._state.all:
            origin = self.pieces[0].start
            number = bisect_right(self._ends, origin + first * width)
            while number < len(self.pieces) and self.pieces[number].start <= origin + last * width:
                self.check(number)
                number += 1


class _Checked:
    """Which pieces are checked: one object, so that a thread that still has a former one changes nothing of the new."""

    def __init__(self, pieces: int, whole: bool = False) -> None:
        self.pieces = bytearray([whole]) * pieces
        self.all = whole or not pieces


def _stamp(descriptor: int) -> Stamp:
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns, found.st_ino


def _refused(path: Path, error: OSError, needed: int | None = None) -> StorageError:
    return refused_write(str(path), error, needed, lost="The table is unharmed")


__all__ = ["Piece", "PieceFile", "PieceWriter", "Section", "Stamp"]
