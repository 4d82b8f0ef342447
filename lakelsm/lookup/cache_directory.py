"""The directory of this machine in which a cache keeps its files: private to a process, or shared by several.

The files can be built again from the table. So they are not synced, and any of them may be damaged or deleted.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import InvalidInputError, OutOfMemoryError, StorageError, UnsupportedFeatureError
from lakelsm.storage.file_io import temporary_name
from lakelsm.storage.refusals import refused_write

Result = TypeVar("Result")

_PREFIX = "lakelsm-lookup-"
#: The directory of Linux for files in memory.
_MEMORY = Path("/dev/shm")
#: Locked by the process that owns a private directory, until the process ends.
_OWNER = ".owner"
_LOCK = ".lock"
#: Locked, in shared mode, by each process that writes a file of the directory.
_WRITERS = ".writers"
#: Symbolic links that are followed in the path of a shared directory: the limit of Linux.
_MAX_LINKS = 40
_UNHARMED = "The table is not affected"


class CacheDirectory:
    """A directory of cache files. Several threads may use it, and several processes if it is shared."""

    def __init__(self, path: Path, environment: Environment, max_bytes: int | None = None) -> None:
        """Use `private`, `in_memory` or `shared`."""
        self.path = path
        self._environment = environment
        self._max_bytes = max_bytes
        self._removal: weakref.finalize[..., CacheDirectory] | None = None

    @staticmethod
    def private(
        environment: Environment = SYSTEM, root: Path | None = None, max_bytes: int | None = None
    ) -> CacheDirectory:
        """Create a directory in ``root`` (None: the one that TMPDIR names), whose files may have ``max_bytes``.

        It is removed by `close`, or when the process ends. The next call removes the directories of killed processes.
        """
        root = Path(tempfile.gettempdir()) if root is None else root
        with _storage_errors(root / _PREFIX):
            _remove_orphans(root)
            while True:
                path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
                owner = _locked(path / _OWNER, fcntl.LOCK_EX)
                if (path / _OWNER).exists():  # Otherwise another process removed it as an orphan.
                    break
                os.close(owner)
        directory = CacheDirectory(path, environment, max_bytes)
        directory._removal = weakref.finalize(directory, _remove, path, owner, os.getpid())
        return directory

    @staticmethod
    def in_memory(max_bytes: int, environment: Environment = SYSTEM) -> CacheDirectory:
        """Do the same as `private`, in memory. Raises UnsupportedFeatureError if the system has no directory for it."""
        if not _MEMORY.is_dir():
            raise UnsupportedFeatureError(
                f"option 'lookup.cache': 'memory' needs {_MEMORY}, which this system does not have. Set it to 'full'."
            )
        return CacheDirectory.private(environment, _MEMORY, max_bytes)

    @staticmethod
    def shared(path: Path, environment: Environment = SYSTEM) -> CacheDirectory:
        """Return the directory at a path, created if missing, for all processes of this user on this machine.

        Raises InvalidInputError if another user can write to it, or can replace it or a directory above it.
        """
        with _storage_errors(path):
            directory = CacheDirectory(_trusted(path), environment)
            directory._remove_unfinished()
        return directory

    def lock(self) -> AbstractContextManager[None]:
        """Lock the directory against other threads and processes. The lock cannot be nested."""
        return _lock(self.path / _LOCK, fcntl.LOCK_EX)

    def new_name(self) -> str:
        """Return a name with which no name of a file in the directory begins."""
        return self._environment.new_uuid().replace("-", "")

    def file(self, name: str) -> Path:
        """Return the path of a file of this name."""
        return self.path / name

    def names(self) -> list[str]:
        """Return the names of the published files."""
        with _storage_errors(self.path):
            return sorted(name for name in os.listdir(self.path) if not name.startswith("."))

    def publish(self, name: str, write: Callable[[Path], Result]) -> Result:
        """Create or replace a file in one step: ``write`` fills it under a temporary name. Return what ``write`` returns.

        If that fails, an earlier file stays unchanged. Raises StorageError if the file system refuses.
        """
        temporary = self.file(temporary_name(name, self._environment.new_uuid()))
        with _storage_errors(self.file(name)), _lock(self.path / _WRITERS, fcntl.LOCK_SH):
            try:
                result = write(temporary)
                self._remove_directory(name)
                temporary.replace(self.file(name))
            finally:
                with suppress(OSError):
                    temporary.unlink()
        return result

    def size_of(self, names: Iterable[str]) -> int:
        """Return the total bytes of some files; missing files count as 0."""
        taken = 0
        for name in names:
            with suppress(OSError):  # Missing or not readable: neither a log nor a display fails for that.
                taken += self.file(name).stat().st_size
        return taken

    def check_space(self) -> None:
        """Raise OutOfMemoryError if the files of a directory in memory are larger than its limit."""
        if self._max_bytes is None:
            return
        with _storage_errors(self.path):
            taken = self.size_of(os.listdir(self.path))
        if taken > self._max_bytes:
            raise OutOfMemoryError(
                f"The rows of a lookup take {taken} bytes in memory, and 'lookup.cache-max-memory-size' allows "
                f"{self._max_bytes}. Raise the option, or set 'lookup.cache' to 'full' to keep the rows on disk."
            )

    def discard(self, name: str) -> None:
        """Remove a file or directory of this name, if it exists. Processes that have it open can still read it."""
        with _storage_errors(self.file(name)):
            self._remove_directory(name)
            self.file(name).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove a private directory and its files. A shared directory stays."""
        if self._removal is not None:
            self._removal()

    def _remove_directory(self, name: str) -> None:
        path = self.file(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)

    def _remove_unfinished(self) -> None:
        """Remove unfinished files of killed processes, unless a process is writing now."""
        with suppress(BlockingIOError), _lock(self.path / _WRITERS, fcntl.LOCK_EX | fcntl.LOCK_NB):
            for name in os.listdir(self.path):
                if name.startswith(".") and name.endswith(".tmp"):
                    self.discard(name)


def _trusted(path: Path) -> Path:
    """Return the path without symbolic links, and create its missing directories.

    Each directory and link up to the root must belong to root or to this user, as OpenSSH requires of its files. A sticky
    directory above the last one (/tmp) may be writable by all: users cannot rename the entries of others there.
    Raises InvalidInputError otherwise.
    """
    current, names, links = Path("/"), list(reversed(path.absolute().parts[1:])), 0
    _is_link(current, is_last=not names)
    while names:
        name = names.pop()
        if name == "..":
            current = current.parent
            continue
        entry = current / name
        if not entry.exists():
            with suppress(FileExistsError):  # A dangling link, or another process created it.
                os.mkdir(entry, 0o700)
        if not _is_link(entry, is_last=not names):
            current = entry
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = Path(os.readlink(entry))
        names += reversed(target.parts)
        if target.is_absolute():
            current = Path(names.pop())
    return current


def _is_link(entry: Path, *, is_last: bool) -> bool:
    """Return whether an entry of a path is a symbolic link. Raises InvalidInputError if another user controls it."""
    status = os.lstat(entry)
    is_link, mode = stat.S_ISLNK(status.st_mode), stat.S_IMODE(status.st_mode)
    # The group bits also limit what a POSIX access list grants to other users.
    is_shared = mode & 0o022 and (is_last or not mode & stat.S_ISVTX)
    if status.st_uid not in (os.geteuid(), 0):
        what, remedy = f"belongs to another user (uid {status.st_uid})", "change its owner"
    elif is_last if is_link else not stat.S_ISDIR(status.st_mode):
        what, remedy = "is not a directory", "remove it"
    elif is_shared and not is_link:
        what, remedy = f"can be written to by other users (mode {mode:o})", f"run 'chmod go-w {entry}'"
    else:
        return is_link
    raise InvalidInputError(
        f"{entry} {what}, so a lookup cannot trust its files. Fix this ({remedy}), or use another directory."
    )


def _remove(path: Path, owner: int, process: int) -> None:
    """Remove a private directory in the process that created it: a forked process has this object too."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
        os.close(owner)


def _remove_orphans(root: Path) -> None:
    """Remove private directories of this user whose process has ended."""
    for name in os.listdir(root):  # Not Path.glob, which takes ten times as long in a full /tmp.
        if not name.startswith(_PREFIX):
            continue
        path = root / name
        with suppress(OSError):  # It belongs to another user, or another process has removed it.
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or not (path / _OWNER).exists():
                continue
            owner = _locked(path / _OWNER, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            os.close(owner)


def _locked(path: Path, operation: int) -> int:
    """Open a file, created if missing, and lock it for the process and all its threads. Return the descriptor."""
    with _storage_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, operation)
        except BaseException:
            os.close(descriptor)
            raise
    return descriptor


@contextmanager
def _lock(path: Path, operation: int) -> Iterator[None]:
    descriptor = _locked(path, operation)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # Before the close: a forked process may have the descriptor too.
        os.close(descriptor)


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    """Raise errors of the system as a StorageError that names the file."""
    try:
        yield
    except (StorageError, BlockingIOError):  # BlockingIOError: another process has the lock.
        raise
    except OSError as error:
        raise refused_write(str(path), error, lost=_UNHARMED) from error
