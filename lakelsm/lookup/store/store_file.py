"""Files of lookups on this machine: how they are created, opened, checked and mapped to memory.

A `StoreFile` has named sections of bytes, then the CRC-32 of each of their blocks of 1 MiB, then a JSON document, then a
tail. No byte is used unchecked: a block is compared with its checksum on first use, and again after a change of the
file's stamp (size, modification time, inode). So a file that was cut or changed in place raises CorruptStoreError, and is
never read beyond its end, which would kill the process.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from lakelsm.errors import CorruptStoreError, InvalidInputError, StorageError
from lakelsm.storage.refusals import refused_write

Longs = npt.NDArray[np.int64]
#: Size, modification time and inode of a file.
Stamp: TypeAlias = tuple[int, int, int]

_MAGIC = b"lakelsm\x02"
#: Sizes of the sections, the document and the file; CRC-32 of checksums and document, started with the file size.
_TAIL = struct.Struct("<QQQI8s")
_ALIGNMENT = 64
#: Blocks are not small, because each checksum lets another thread run first.
_BLOCK_BITS = 20
_BLOCK_BYTES = 1 << _BLOCK_BITS
#: Maximum parts that the system writes in one call.
_MAX_PARTS = 512
#: Nanoseconds that are added to the modification time of a finished file, so that a change within the same tick of the
#: system's clock gives another stamp.
_AFTER_TICK = 1000


class StoreFileWriter:
    """Writes a new file, section by section. If the context ends without `finish`, the file is deleted.

    ``stamp`` is the stamp of the finished file. Raises StorageError if the system refuses.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sections: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._finished = False
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _refused(path, error) from error

    def __enter__(self) -> StoreFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
        if not self._finished:
            self.path.unlink(missing_ok=True)

    def append(self, section: str, *parts: Any) -> None:
        """Append contiguous bytes to the last section, or to a new one."""
        offset = self.reserve(section, sum(memoryview(part).nbytes for part in parts))
        self._write(self._sections[section][0] + offset, parts)

    def reserve(self, section: str, size: int) -> int:
        """Extend the last section, or a new one, by bytes for `write_at`. Return their offset in the section."""
        start, before = self._sections.get(section, (-(-self._end // _ALIGNMENT) * _ALIGNMENT, 0))
        assert section not in self._sections or start + before == self._end, "another section follows"
        self._sections[section] = start, before + size
        self._end = start + before + size
        return before

    def write_at(self, section: str, offset: int, data: Any) -> None:
        """Write contiguous bytes to a section. Several threads may do so."""
        self._write(self._sections[section][0] + offset, [data])

    def read_at(self, section: str, offset: int, size: int) -> bytes:
        """Read back bytes that were written."""
        return self._read(self._sections[section][0] + offset, size)

    def finish(self, facts: dict[str, Any]) -> int:
        """Complete the file with its checksums and the facts; return its `StoreFile.seal`."""
        checksums = self._checksums()
        text = checksums + json.dumps({"sections": self._sections, "facts": facts}, separators=(",", ":")).encode()
        size = self._end + len(text) + _TAIL.size
        seal = zlib.crc32(text, size & 0xFFFFFFFF)
        self._write(self._end, [text, _TAIL.pack(self._end, len(text) - len(checksums), size, seal, _MAGIC)])
        try:
            changed = os.fstat(self._descriptor).st_mtime_ns + _AFTER_TICK
            os.utime(self._descriptor, ns=(changed, changed))
            self.stamp = _stamp(self._descriptor)
        except OSError as error:
            raise _refused(self.path, error) from error
        self._finished = True
        return seal

    def reopened(self) -> StoreFile:
        """Return the finished file, opened for reading; its name may have been removed."""
        return StoreFile(self.path, os.dup(self._descriptor))

    def _checksums(self) -> bytes:
        """Return the checksum of each block, little-endian."""
        try:
            os.ftruncate(self._descriptor, self._end)  # An empty section may begin after the last byte.
            mapped = mmap.mmap(self._descriptor, self._end, access=mmap.ACCESS_READ) if self._end else b""
        except OSError as error:
            raise _refused(self.path, error) from error
        view = memoryview(mapped)
        starts = range(0, self._end, _BLOCK_BYTES)
        return np.array([zlib.crc32(view[start : start + _BLOCK_BYTES]) for start in starts], "<u4").tobytes()

    def _read(self, offset: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, offset)
        while len(data) < size:
            more = os.pread(self._descriptor, size - len(data), offset + len(data))
            if not more:
                raise CorruptStoreError(f"{self.path} was truncated while it was written")
            data += more
        return data

    def _write(self, offset: int, parts: Sequence[Any]) -> None:
        """Write parts in sequence, in as few calls as possible, because each call lets another thread run first."""
        views = [memoryview(part).cast("B") for part in parts if memoryview(part).nbytes]
        try:
            while views:
                written = os.pwritev(self._descriptor, views[:_MAX_PARTS], offset)
                offset += written
                while views and written >= views[0].nbytes:
                    written -= views.pop(0).nbytes
                if written:
                    views[0] = views[0][written:]
        except OSError as error:
            raise _refused(self.path, error, sum(view.nbytes for view in views)) from error


class StoreFile:
    """An open and mapped file. Several threads may read it, also in forked processes.

    ``facts`` are those of `StoreFileWriter.finish`; ``seal`` is a checksum that identifies the contents. ``checked`` has
    a byte for each block: 1 once the block is checked.
    """

    def __init__(self, path: Path, descriptor: int = -1, whole: Stamp | None = None) -> None:
        """Open a file; ``descriptor`` is its descriptor if it is open already.

        ``whole`` is the stamp that its writer in this process returned: blocks need no check while the file has it.
        Raises CorruptStoreError for a missing or damaged file.
        """
        self.path = path
        self._descriptor = descriptor
        if descriptor < 0:
            self._descriptor = opened(path)
        try:
            self._stamp = _stamp(self._descriptor)
            self._open(self._stamp == whole)
        except OSError as error:
            self.close()
            raise _unreadable(path, error) from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> StoreFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    @property
    def size(self) -> int:
        """The size of the file, in bytes."""
        return self._stamp[0]

    def section(self, name: str) -> FileSection:
        """Return a section; an empty one if the file has no section of this name."""
        return FileSection(self, *self._sections.get(name, (0, 0)))

    def check(self) -> None:
        """Compare the file's stamp, before anything of the file is read. After a change, blocks are checked again.

        Raises CorruptStoreError if the size has changed, InvalidInputError if the file is closed.
        """
        if self._descriptor < 0:
            raise InvalidInputError(f"the lookup store {self.path} is closed. Open it again.")
        stamp = _stamp(self._descriptor)
        if stamp != self._stamp:
            if stamp[0] != self._stamp[0]:
                raise self.damaged(f"it has {stamp[0]} bytes instead of {self._stamp[0]}")
            self.checked: bytearray = bytearray(len(self.checked))
            self._stamp = stamp

    def check_block(self, number: int) -> None:
        """Compare a block with its checksum. Raises CorruptStoreError if they differ."""
        checked: bytearray = self.checked  # `check` replaces it after a change, so that earlier checks do not count.
        start = number << _BLOCK_BITS
        stop = min(start + _BLOCK_BYTES, self._end)
        if zlib.crc32(self.mapped[start:stop]) != self._checksums[number]:
            raise self.damaged(f"the checksum of bytes {start} to {stop} differs")
        checked[number] = 1

    def damaged(self, what: str) -> CorruptStoreError:
        """Return the error for damage of this file."""
        return CorruptStoreError(f"{self.path} is damaged: {what}. The lookup store is built again.")

    def close(self) -> None:
        """Close the file. The mapping ends with the last array that uses it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _open(self, whole: bool) -> None:
        size = self._stamp[0]
        if size < _TAIL.size:
            raise self.damaged(f"it has {size} bytes, fewer than its tail needs")
        tail = os.pread(self._descriptor, _TAIL.size, size - _TAIL.size)
        self._end, length, stored_size, self.seal, magic = _TAIL.unpack(tail)
        blocks = -(-self._end // _BLOCK_BYTES)
        if magic != _MAGIC or stored_size != size or self._end + 4 * blocks + length + _TAIL.size != size:
            raise self.damaged("its tail is invalid")
        text = os.pread(self._descriptor, 4 * blocks + length, self._end)
        if zlib.crc32(text, size & 0xFFFFFFFF) != self.seal:
            raise self.damaged("the checksum of its document differs")
        document = json.loads(text[4 * blocks :])
        self.facts: dict[str, Any] = document["facts"]
        self._sections: dict[str, tuple[int, int]] = document["sections"]
        self._checksums = np.frombuffer(text, "<u4", blocks).tolist()
        self.checked = bytearray([whole]) * blocks
        self.mapped = memoryview(mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ))


class FileSection:
    """A section of an open file. The caller compares the file's stamp first (`StoreFile.check`)."""

    def __init__(self, file: StoreFile, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self.size = size
        self._first, self._last = start >> _BLOCK_BITS, -(-(start + size) >> _BLOCK_BITS)
        self._whole: bytearray | None = None

    @property
    def is_checked(self) -> bool:
        """Whether all blocks of the section are checked."""
        checked = self._file.checked
        if self._whole is not checked and checked.find(0, self._first, self._last) < 0:
            self._whole = checked
        return self._whole is checked

    def check(self, first: int, stop: int) -> None:
        """Check the blocks of a range of bytes. Raises CorruptStoreError for a damaged block."""
        if self._whole is self._file.checked or self.is_checked:
            return
        for number in range((self._start + first) >> _BLOCK_BITS, -(-(self._start + stop) >> _BLOCK_BITS)):
            if not self._file.checked[number]:
                self._file.check_block(number)

    def check_values(self, first: Longs, stop: Longs, width: int) -> None:
        """Check the values from ``first[i]`` to before ``stop[i]``, each of ``width`` bytes."""
        if self.is_checked:
            return
        begin = (self._start + first * width) >> _BLOCK_BITS
        end = (self._start + stop * width - 1) >> _BLOCK_BITS
        needed = np.zeros(self._last + 1, np.int64)
        np.add.at(needed, begin, 1)
        np.add.at(needed, end + 1, -1)
        unchecked = np.frombuffer(self._file.checked, np.uint8, self._last) == 0
        for number in np.flatnonzero((np.cumsum(needed)[:-1] > 0) & unchecked).tolist():
            self._file.check_block(number)

    def bytes(self, first: int, stop: int) -> memoryview:
        """Return a range of mapped bytes, checked. Callers may pass on only copies of them."""
        self.check(first, stop)
        return self._file.mapped[self._start + first : self._start + stop]

    def array(self, dtype: Any) -> npt.NDArray[Any]:
        """Return the whole section as mapped values, unchecked: call `check_values` or `check` before each use."""
        return np.frombuffer(self._file.mapped[self._start : self._start + self.size], dtype)


def opened(path: Path) -> int:
    """Open a regular file for reading, and return its descriptor. It does not wait for a writer, as opening a FIFO would.

    Raises CorruptStoreError if the file is missing or is not a regular file, StorageError if the system refuses.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptStoreError(f"{path} is missing. The lookup store is built again.") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorruptStoreError(f"{path} is not a regular file. The lookup store is built again.")
    return descriptor


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file to write. It is deleted if an error is raised within the context.

    Raises StorageError, with the file and a remedy, for errors of the system within the context.
    """
    try:
        file = path.open("xb")
    except OSError as error:
        raise _refused(path, error) from error
    try:
        with file:
            yield file
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            raise _refused(path, error) from error
        raise


def _stamp(descriptor: int) -> Stamp:
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns, found.st_ino


def _refused(path: Path, error: OSError, needed: int | None = None) -> StorageError:
    return refused_write(str(path), error, needed, lost="The table is not affected")


def _unreadable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be read: {error.strerror or error}. Fix that, and look up again.")
