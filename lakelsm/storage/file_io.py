"""The file system that lakelsm needs: whole-file reads and writes, listing, and create-if-absent.

``create_if_absent`` is the one primitive that a commit needs: nothing else makes data visible. A store without it must
refuse by name instead of imitating it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pyarrow import fs as arrow_fs

from lakelsm.arguments import LONGEST_NAME


@dataclass(frozen=True)
class FileEntry:
    """An entry of a directory: ``size`` in bytes, ``modified`` in epoch milliseconds; both are 0 for a directory."""

    name: str
    is_directory: bool
    size: int = 0
    modified: int = 0


@runtime_checkable
class FileIO(Protocol):
    """Storage operations on absolute paths of one store.

    Implementations must be picklable, because they are sent to Spark tasks.
    """

    def within(self, root: str) -> FileIO:
        """Return the same storage, restricted to one directory: links below ``root`` may not lead out of it.

        Every operation on a path that leaves ``root`` then raises CorruptTableError before it touches anything.
        """
        ...

    def uncached(self) -> FileIO:
        """Return the same storage without its cache: each read returns the present content."""
        ...

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return the whole content of a file. Raises FileNotFoundError if it does not exist.

        Raises CorruptTableError if the path is not a regular file (a read could hang or never end), or if the file has
        more than ``limit`` bytes.
        """
        ...

    def check_file(self, path: str) -> None:
        """Raise CorruptTableError if the path exists and is not a regular file in ``root``.

        For readers that open the path themselves. A missing file raises nothing.
        """
        ...

    def check_directory(self, path: str) -> None:
        """Raise CorruptTableError if files of a directory, which need not exist yet, would be outside ``root``."""
        ...

    def size(self, path: str) -> int:
        """Return the size of a file in bytes. Raises FileNotFoundError if it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists at the path."""
        ...

    def list(self, path: str) -> list[str]:
        """Return the names (not paths, unsorted) in a directory; an empty list if it does not exist."""
        ...

    def entries(self, path: str) -> Sequence[FileEntry]:
        """Return the entries of a directory, unsorted; empty if it does not exist. Links are not followed."""
        ...

    def directories(self, path: str) -> Sequence[str]:
        """Return the names of the directories in a directory, unsorted, links followed; empty if it does not exist."""
        ...

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        """Create or replace a file in one step: a reader sees either the old or the new content.

        Missing directories are created. ``durable``: the content survives a power loss after this call returns.
        """
        ...

    def make_durable(self, directory: str, names: Sequence[str]) -> None:
        """Make files of a directory that were written through `filesystem` durable.

        After the return, their content, their names and the names of all directories up to the table's survive a power
        loss.
        """
        ...

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file with this content if, and only if, nothing exists at the path.

        Atomic among all processes, and durable. Returns True if this call created the file, False if the path was
        taken. Raises UnsupportedFeatureError, with nothing created, on a store without such an operation. After any
        other exception the outcome is unknown, and the caller must read the file.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete a file. A missing file is not an error."""
        ...

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete files, many in one request if the store can. All are tried; then the first failure is raised."""
        ...

    def delete_dir(self, path: str, last: str | None = None) -> None:
        """Delete a directory with all its content. A missing directory is not an error.

        The subdirectory ``last`` is deleted last, so that it shows an interrupted deletion.
        """
        ...

    def delete_empty_dir(self, path: str) -> bool:
        """Delete a directory if it is empty, in one step; return whether it was. No effect without directories."""
        ...

    def rename_dir(self, path: str, target: str) -> bool:
        """Rename a directory in one step, durably; return False, with nothing changed, if the target exists.

        Raises UnsupportedFeatureError on a store without such an operation, InvalidInputError for a symbolic link.
        """
        ...

    def mkdirs(self, path: str, durable: bool = True) -> None:
        """Create a directory and its parents. An existing one is not an error. ``durable`` is as in `write`.

        Like `write`, raises StorageError if the directory that this storage is restricted to does not exist.
        """
        ...

    def filesystem(self) -> arrow_fs.FileSystem:
        """Return the Arrow file system for the same absolute paths."""
        ...


def temporary_name(name: str, uuid: str) -> str:
    """Return the name under which ``name`` is written before it is published, in the same directory.

    It begins with a dot, because Java Paimon 1.3 fails on any other unknown name in ``snapshot/``. If the name would
    be too long, as for some tags, ``name`` is cut.
    """
    end = f".{uuid}.tmp"
    begin = name.encode()[: LONGEST_NAME - 1 - len(end)].decode(errors="ignore")
    return f".{begin}{end}"
