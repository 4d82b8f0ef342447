"""The file system as lakelsm needs it: whole-file reads and writes, listing, and create-if-absent.

``create_if_absent`` is the one primitive that a commit needs: nothing else makes data visible. A store that
cannot offer it must refuse by name instead of imitating it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pyarrow import fs as arrow_fs

from lakelsm.arguments import LONGEST_NAME


@dataclass(frozen=True)
class FileEntry:
    """A name in a directory. ``size`` is in bytes and ``modified`` in epoch milliseconds; of a directory both are 0."""

    name: str
    is_directory: bool
    size: int = 0
    modified: int = 0


@runtime_checkable
class FileIO(Protocol):
    """Storage operations on absolute paths of one store.

    Implementations must be picklable: they travel to Spark tasks.
    """

    def within(self, root: str) -> FileIO:
        """Return the same storage, kept to one directory: no link below ``root`` is followed out of it.

        Every operation then raises CorruptTableError, before anything is touched, on a path that leaves ``root``.
        """
        ...

    def fresh(self) -> FileIO:
        """Return the same storage, of which this process keeps nothing: what is read is what lies there now."""
        ...

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return the whole content of a file. Raises FileNotFoundError when it does not exist.

        Raises CorruptTableError for what is no regular file (it could hang or never end), and for a file of more than
        ``limit`` bytes.
        """
        ...

    def check_file(self, path: str) -> None:
        """Raise CorruptTableError if a reader that opens the path directly would not get a regular file in ``root``.

        A missing file is left to the reader.
        """
        ...

    def check_directory(self, path: str) -> None:
        """Raise CorruptTableError where files of a directory, which need not exist yet, would lie outside of ``root``."""
        ...

    def size(self, path: str) -> int:
        """Return the size of a file in bytes. Raises FileNotFoundError when it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory exists at the path."""
        ...

    def list(self, path: str) -> list[str]:
        """Return the names (not paths, unsorted) in a directory; an empty list if it does not exist."""
        ...

    def entries(self, path: str) -> Sequence[FileEntry]:
        """Return the entries of a directory, unsorted, links not followed; none if it does not exist."""
        ...

    def directories(self, path: str) -> Sequence[str]:
        """Return the names of the directories in a directory, unsorted, links followed; none if it does not exist."""
        ...

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        """Create or replace a file in one step: a reader sees the old content or the new, never a part.

        Missing directories are made. ``durable``: the content survives a power loss once this returns.
        """
        ...

    def make_durable(self, directory: str, names: Sequence[str]) -> None:
        """Return once files of a directory, written through `filesystem`, survive a power loss.

        That is their content and their names, and the names of the directories above up to the table's.
        """
        ...

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file with this content if, and only if, nothing exists at the path.

        Atomic among all processes and durable. Returns True when this call created it and False when the
        path was taken. Raises UnsupportedFeatureError, with nothing created, on a store without such an
        operation. Any other exception leaves the outcome open: the caller reads back.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete a file; it is no error when it does not exist."""
        ...

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete files, many at once where the store can. Each is tried; then the first failure is raised."""
        ...

    def delete_dir(self, path: str, last: str | None = None) -> None:
        """Delete a directory with everything in it; it is no error when it does not exist.

        The directory ``last`` directly below it is deleted last: it shows an interrupted deletion.
        """
        ...

    def delete_empty_dir(self, path: str) -> bool:
        """Delete a directory if it is empty, in one step; return whether it was. No effect without directories."""
        ...

    def rename_dir(self, path: str, target: str) -> bool:
        """Give a directory another path in one step, durably; return False, with nothing changed, if the target exists.

        Raises UnsupportedFeatureError on a store that has no such operation, and InvalidInputError for a symbolic link.
        """
        ...

    def mkdirs(self, path: str, durable: bool = True) -> None:
        """Make a directory and its parents; it is no error when it exists. ``durable`` is as in `write`.

        Raises StorageError where the directory that this storage is kept to does not exist, as does `write`.
        """
        ...

    def filesystem(self) -> arrow_fs.FileSystem:
        """Return the Arrow file system that reads and writes the same absolute paths."""
        ...


def temporary_name(name: str, uuid: str) -> str:
    """Return the name under which ``name`` is written before it is published, in the same directory.

    It begins with a dot: Java Paimon 1.3 fails on any other stray name in ``snapshot/``. Of a name that would be too
    long with it, as those of tags may be, the beginning will do.
    """
    end = f".{uuid}.tmp"
    begin = name.encode()[: LONGEST_NAME - 1 - len(end)].decode(errors="ignore")
    return f".{begin}{end}"
