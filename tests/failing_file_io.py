"""Storage whose operations fail after a snapshot was published."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm import Table
from lakelsm.errors import CorruptTableError, StorageError
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO


class Mute(Exception):
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


#: Errors that operations raise, by name: errors of lakelsm, of the system, of libraries, and defects.
ERRORS: dict[str, Callable[[], BaseException]] = {
    "full": lambda: StorageError("the disk is full. Free space."),
    "io": lambda: OSError(errno.EIO, "input/output error"),
    "corrupt": lambda: CorruptTableError("a file is damaged."),
    "memory": MemoryError,
    "arrow": lambda: pa.ArrowInvalid("raw"),
    "defect": lambda: ZeroDivisionError("a defect"),
    "mute": Mute,
}


@dataclass
class Plan:
    """Lets ``times`` operations fail, from operation ``first`` (1, 2, …) after the publication of a snapshot."""

    first: int
    error: Callable[[], BaseException]
    times: int = 1 << 30
    published: bool = False
    seen: int = 0

    def step(self) -> None:
        if self.published:
            self.seen += 1
            if self.first <= self.seen < self.first + self.times:
                raise self.error()


class FailingFileIO(LocalFileIO):
    """Fails by its plan, which copies share."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self.plan.step()
        created = super().create_if_absent(path, data)
        if created and "/snapshot/snapshot-" in path:
            self.plan.published = True
        return created


def _failing(name: str) -> Callable[..., Any]:
    real = getattr(LocalFileIO, name)

    def operation(self: FailingFileIO, *arguments: Any, **named: Any) -> Any:
        self.plan.step()
        return real(self, *arguments, **named)

    return operation


for _name in (
    *("read", "check_file", "check_directory", "size", "exists", "list", "entries", "write", "make_durable"),
    *("delete", "delete_files", "delete_dir", "delete_empty_dir", "mkdirs", "filesystem"),
):
    setattr(FailingFileIO, _name, _failing(_name))


def failing_table(root: Path, plan: Plan) -> Table:
    """Return the table in a directory, on storage that fails by the plan."""
    store = TableStore.open(str(root))
    return Table(replace(store, file_io=FailingFileIO(plan).within(store.paths.root)))
