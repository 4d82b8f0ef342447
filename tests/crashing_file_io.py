"""Simulates a process that crashes at a change of the store: all its later operations fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyarrow import fs as arrow_fs

from lakelsm import Table
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO


class Killed(BaseException):
    """The end of the simulated process."""


class CrashingFileIO(LocalFileIO):
    """Crashes the process at its n-th change of the store. Every later operation fails, cleanup included."""

    def __init__(self, last: int) -> None:
        self.state = [last]

    @property
    def crashed(self) -> bool:
        return self.state[0] <= 0

    def _change(self, after: bool = False) -> None:
        if after:
            self.state[0] -= 1
        if self.crashed:
            raise Killed

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        self._change()
        super().write(path, data, durable)
        self._change(after=True)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self._change()
        created = super().create_if_absent(path, data)
        self._change(after=True)
        return created

    def make_durable(self, directory: str, names: Any) -> None:
        self._change()
        self._change(after=True)

    def delete(self, path: str) -> None:
        self._change()
        super().delete(path)

    def delete_files(self, paths: Any) -> None:
        self._change()
        super().delete_files(paths)

    def filesystem(self) -> arrow_fs.FileSystem:
        self._change()
        return super().filesystem()


def crashes(root: Path, work: Callable[[Table], object], last: int) -> bool:
    """Run ``work`` in a process that crashes at its ``last`` change of the store. Return whether it crashed."""
    store = TableStore.open(str(root))
    file_io = CrashingFileIO(last)
    try:
        work(Table(replace(store, file_io=file_io.within(store.paths.root))))
    except Killed:
        return True
    return file_io.crashed
