"""Files of lookups on this machine: how they are created, opened, checked and mapped into memory.

A `StoreFile` is named sections of bytes, then the CRC-32 of each block of 1 MiB of them, then a JSON document, then a
tail. No byte of it is used unchecked: a block is compared with its checksum on its first use, and again after the file's
stamp (size, time of change, inode) changed. So a file that was cut or changed in place raises CorruptStoreError, and is
not read past its end, which would kill the process.
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
#: Size, time of change and inode of a file.
Stamp: TypeAlias = tuple[int, int, int]

_MAGIC = b"lakelsm\x02"
#: Bytes of the sections, of the document and of the file; CRC-32 of checksums and document, started with the file's size.
_TAIL = struct.Struct("<QQQI8s")
_ALIGNMENT = 64
#: Each checksum lets another thread run first, so blocks are not small.
_BLOCK_BITS = 20
_BLOCK_BYTES = 1 << _BLOCK_BITS
#: Parts that the system takes in one call.
_MAX_PARTS = 512
#: Nanoseconds that are added to a finished file's time of change: a change within the same tick of the system's clock
#: then gives another stamp.
_AFTER_TICK = 1000


class StoreFileWriter:
    """Writes a new file, one section after the other. Leaving the context without `finish` deletes it.

    ``stamp`` is the stamp of the finished file. Raises StorageError for what the system refuses.
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
        """Add parts of contiguous bytes to the end of the last section, or of a new one."""
        offset = self.reserve(section, sum(memoryview(part).nbytes for part in parts))
        self._write(self._sections[section][0] + offset, parts)

    def reserve(self, section: str, size: int) -> int:
        """Extend the last section, or a new one, by bytes that `write_at` fills. Returns their offset in the section."""
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
        """The finished file, to be read; its name may be gone."""
        return StoreFile(self.path, os.dup(self._descriptor))

    def _checksums(self) -> bytes:
        """The checksum of each block, little-endian."""
        try:
            os.ftruncate(self._descriptor, self._end)  # An empty section may begin behind the last byte.
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
                raise CorruptStoreError(f"{self.path} was cut while it was written")
            data += more
        return data

    def _write(self, offset: int, parts: Sequence[Any]) -> None:
        """Write parts one after the other, in as few calls as can be: each lets another thread run first."""
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
    """A file that is open and mapped. Several threads, and processes that were forked, may read it.

    ``facts`` are those that it was finished with; ``seal`` is a number that other contents hardly share. ``checked`` has
    a byte for each block: 1 once it is checked.
    """

    def __init__(self, path: Path, descriptor: int = -1, whole: Stamp | None = None) -> None:
        """Open a file; ``descriptor`` is the file's where it is open already.

        ``whole`` is the stamp that its writer in this process has: blocks need no check while the file has that stamp.
        Raises CorruptStoreError for a file that is missing or damaged.
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
        """The size of the file in bytes."""
        return self._stamp[0]

    def section(self, name: str) -> FileSection:
        """A section; an empty one where the file has none of the name."""
        return FileSection(self, *self._sections.get(name, (0, 0)))

    def check(self) -> None:
        """Compare the file's stamp, before anything of it is read. After a change blocks are checked again.

        Raises CorruptStoreError for a file that has another size than before, InvalidInputError for one that is closed.
        """
        if self._descriptor < 0:
            raise InvalidInputError(f"the lookup store {self.path} is closed: open it again.")
        stamp = _stamp(self._descriptor)
        if stamp != self._stamp:
            if stamp[0] != self._stamp[0]:
                raise self.damaged(f"it has {stamp[0]} bytes instead of {self._stamp[0]}")
            self.checked: bytearray = bytearray(len(self.checked))
            self._stamp = stamp

    def check_block(self, number: int) -> None:
        """Compare a block with its checksum. Raises CorruptStoreError where they differ."""
        checked: bytearray = self.checked  # `check` replaces it: what was compared before a change counts no more.
        start = number << _BLOCK_BITS
        stop = min(start + _BLOCK_BYTES, self._end)
        if zlib.crc32(self.mapped[start:stop]) != self._checksums[number]:
            raise self.damaged(f"the bytes from {start} to {stop} have another checksum")
        checked[number] = 1

    def damaged(self, what: str) -> CorruptStoreError:
        """The error for this file."""
        return CorruptStoreError(f"{self.path} is damaged: {what}. The lookup store is made anew.")

    def close(self) -> None:
        """Close the file; the mapping ends with the last array of it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _open(self, whole: bool) -> None:
        size = self._stamp[0]
        if size < _TAIL.size:
            raise self.damaged(f"it has only {size} bytes")
        tail = os.pread(self._descriptor, _TAIL.size, size - _TAIL.size)
        self._end, length, stored_size, self.seal, magic = _TAIL.unpack(tail)
        blocks = -(-self._end // _BLOCK_BYTES)
        if magic != _MAGIC or stored_size != size or self._end + 4 * blocks + length + _TAIL.size != size:
            raise self.damaged("its end is not that of a store")
        text = os.pread(self._descriptor, 4 * blocks + length, self._end)
        if zlib.crc32(text, size & 0xFFFFFFFF) != self.seal:
            raise self.damaged("its document has another checksum")
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
        """Whether all of it is checked."""
        checked = self._file.checked
        if self._whole is not checked and checked.find(0, self._first, self._last) < 0:
            self._whole = checked
        return self._whole is checked

    def check(self, first: int, stop: int) -> None:
        """Check the blocks of some bytes. Raises CorruptStoreError where one is damaged."""
        if self._whole is self._file.checked or self.is_checked:
            return
        for number in range((self._start + first) >> _BLOCK_BITS, -(-(self._start + stop) >> _BLOCK_BITS)):
            if not self._file.checked[number]:
                self._file.check_block(number)

    def check_values(self, first: Longs, stop: Longs, width: int) -> None:
        """Check the values from ``first[i]`` up to ``stop[i]``, each of so many bytes."""
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
        """Bytes as they are mapped, checked. Only a copy of them is to be handed out."""
        self.check(first, stop)
        return self._file.mapped[self._start + first : self._start + stop]

    def array(self, dtype: Any) -> npt.NDArray[Any]:
        """All of it as mapped values, unchecked: `check_values` and `check` come before each use."""
        return np.frombuffer(self._file.mapped[self._start : self._start + self.size], dtype)


def opened(path: Path) -> int:
    """A descriptor of a regular file, to be read. It does not wait for a writer, as opening a FIFO would.

    Raises CorruptStoreError where there is no such file or something else has its name, and StorageError for what the
    system refuses.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptStoreError(f"{path} is missing: the lookup store is made anew") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorruptStoreError(f"{path} is no regular file: the lookup store is made anew")
    return descriptor


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A new file to be written. It is deleted where anything is raised within.

    Raises StorageError, with the file and the remedy, for what the system refuses within.
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
    return refused_write(str(path), error, needed, lost="The table is unharmed")


def _unreadable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be read: {error.strerror or error}. Mend that, and look up again.")
