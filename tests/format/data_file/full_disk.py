"""A file system with limited space. When it is full, writes fail, and also closing a file, as on a full disk."""

from __future__ import annotations

import errno
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.fs import LocalFileSystem


class _File(io.RawIOBase):
    def __init__(self, path: str, disk: FullDisk) -> None:
        self._file = Path(path).open("wb")  # noqa: SIM115
        self._disk = disk

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def write(self, data: Any) -> int:
        self._disk.take(len(memoryview(data)))
        return self._file.write(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
            super().close()
            if self._disk.fails_on_close:
                self._disk.take(1)


class FullDisk:
    """The parts of Arrow's local file system that writers use, with ``room`` bytes left."""

    def __init__(self, room: int, fails_on_close: bool = True) -> None:
        self.room = room
        self.fails_on_close = fails_on_close
        self._real = LocalFileSystem()

    def take(self, size: int) -> None:
        if size > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= size

    def open_output_stream(self, path: str, buffer_size: int | None = None) -> pa.PythonFile:
        return pa.PythonFile(_File(path, self), "w")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
