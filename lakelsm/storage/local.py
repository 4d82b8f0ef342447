"""The local (or POSIX-mounted) file system."""

from __future__ import annotations

import contextlib
import copy
import errno
import os
import shutil
import stat
from collections.abc import Sequence

from pyarrow import fs as arrow_fs

from lakelsm.environment import SYSTEM
from lakelsm.errors import CorruptTableError, InvalidInputError, LakelsmError, StorageError, UnsupportedFeatureError
from lakelsm.storage.file_io import FileEntry, temporary_name
from lakelsm.storage.refusals import (
    deleting,
    listing,
    refused_deletion,
    refused_read,
    refused_write,
    require_regular,
    status_of,
)

# Errors of link(2) which prove that it created no name.
_REFUSALS = frozenset({errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG})

# Errors of link(2) on a file system without hard links. Too many links or another device cannot be the reason: the
# temporary file has one link and is in the target's directory.
_NO_LINK_SUPPORT = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EINVAL})

class LocalFileIO:
    """FileIO on files of the operating system. It has no state but its root."""

    #: The real path of the directory that no link may lead out of; None: no restriction.
    _root: str | None = None

    def within(self, root: str) -> LocalFileIO:
        """Return the same storage, restricted to one directory. ``root`` itself and directories above it may be links."""
        kept = copy.copy(self)
        kept._root = os.path.realpath(root)
        return kept

    def uncached(self) -> LocalFileIO:
        """Return this storage, which has no cache."""
        return self

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return the content of a file of at most ``limit`` bytes. Raises FileNotFoundError if it does not exist."""
        self._check_inside(path)
        require_regular(path, status_of(path))
        with os.fdopen(_opened(path), "rb") as file:
            status = os.fstat(file.fileno())
            require_regular(path, status)
            if limit is not None and status.st_size > limit:
                raise CorruptTableError(
                    f"{path} has {status.st_size} bytes; a file of its kind has at most {limit}. Restore the file."
                )
            return file.read()

    def check_file(self, path: str) -> None:
        """Raise CorruptTableError if the path exists and is not a regular file; its directory has been checked."""
        try:
            status = os.lstat(path)
        except OSError:
            return
        if stat.S_ISLNK(status.st_mode):
            self._check_inside(path)
            if not os.path.exists(path):
                return
            status = status_of(path)
        require_regular(path, status)

    def check_directory(self, path: str) -> None:
        """Raise CorruptTableError if files of the directory would be outside the root."""
        self._check_inside(path)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes. Raises FileNotFoundError if it does not exist."""
        self._check_inside(path)
        return status_of(path).st_size

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists at the path."""
        return os.path.exists(path)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, unsorted; an empty list if it does not exist."""
        self._check_inside(path)
        names: list[str] = []
        with listing(path):
            names = os.listdir(path)
        return names

    def entries(self, path: str) -> Sequence[FileEntry]:
        """Return the entries of a directory, unsorted. Entries that are deleted during the call are left out."""
        self._check_inside(path)
        found: list[FileEntry] = []
        with listing(path), os.scandir(path) as names:
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    found.append(_entry(name))
        return found

    def directories(self, path: str) -> Sequence[str]:
        """Return the names of the directories in a directory and of links to directories, unsorted."""
        return [name for name in self.list(path) if os.path.isdir(os.path.join(path, name))]

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        """Replace or create a file in one step (temporary dot-file in the same directory, then rename)."""
        temporary = self._write_temporary(path, data, durable)
        try:
            os.replace(temporary, path)
        except OSError as error:
            self._delete_temporary(temporary)
            raise refused_write(path, error, len(data)) from error
        if durable:
            _sync_directory(os.path.dirname(path))

    def make_durable(self, directory: str, names: Sequence[str]) -> None:
        """Sync each file, then the directory and those above it up to the table's, because all of them may be new."""
        for name in names:
            path = f"{directory}/{name}"
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise refused_write(path, error) from error
        folder = os.path.realpath(directory)
        _sync_directory(folder)
        while self._root is not None and folder.startswith(f"{self._root}/"):
            folder = os.path.dirname(folder)
            _sync_directory(folder)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file if the path is free: temporary dot-file, fsync, hard link, which never overwrites.

        Returns False if the path is taken. Raises UnsupportedFeatureError if the file system has no hard links: every
        other way either overwrites (rename) or shows half-written content (O_EXCL).
        """
        if os.path.lexists(path):
            return False
        temporary = self._write_temporary(path, data, durable=True)
        try:
            os.link(temporary, path)
        except FileExistsError:
            # On a network file system a repeated request can fail with "exists" because the first one succeeded.
            return _is_same_file(temporary, path)
        except OSError as failure:
            if failure.errno in _NO_LINK_SUPPORT and not _is_same_file(temporary, path):
                raise UnsupportedFeatureError(
                    f"{path}: this file system does not allow hard links ({failure.strerror}), and without them a "
                    "commit could overwrite another writer's. Use a file system with hard links."
                ) from failure
            if failure.errno in _REFUSALS and not _is_same_file(temporary, path):
                raise refused_write(path, failure, len(data)) from failure
            raise
        finally:
            self._delete_temporary(temporary)
        _sync_directory(os.path.dirname(path))
        return True

    def delete(self, path: str) -> None:
        """Delete a file. A missing file is not an error."""
        self._check_inside(os.path.dirname(path))
        with deleting(path):
            os.unlink(path)

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete files. All are tried; then the first failure is raised."""
        failures: list[Exception] = []
        for path in paths:
            try:
                self.delete(path)
            except (OSError, LakelsmError) as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def delete_dir(self, path: str, last: str | None = None) -> None:
        """Delete a directory with all its content, ``last`` at the end. A missing directory is not an error.

        Links in it are deleted, not followed. Raises InvalidInputError if the directory itself is a link.
        """
        self._check_inside(path)
        _refuse_link(path, "Delete")
        if last is not None:
            for entry in self.entries(path):
                if entry.is_directory and entry.name != last:
                    with deleting(path):
                        shutil.rmtree(os.path.join(path, entry.name))
        with deleting(path):
            shutil.rmtree(path)

    def delete_empty_dir(self, path: str) -> bool:
        """Delete a directory if it is empty and not a link; return whether it was."""
        self._check_inside(path)
        try:
            os.rmdir(path)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
                return False
            raise refused_deletion(path, error) from error
        return True

    def rename_dir(self, path: str, target: str) -> bool:
        """Rename a directory; return False, with nothing changed, if the target exists."""
        self._check_inside(path)
        _refuse_link(path, "Rename")
        if os.path.lexists(target):
            return False
        try:
            # If a directory appears at the target now, the system replaces it only if it is empty.
            os.rename(path, target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                return False
            raise refused_write(target, error, lost=f"{path} is unchanged") from error
        _sync_directory(os.path.dirname(path))
        _sync_directory(os.path.dirname(target))
        return True

    def mkdirs(self, path: str, durable: bool = True) -> None:
        """Create a directory and its parents. An existing one is not an error."""
        self._check_inside(path)
        self._require_root(path)
        try:
            if durable:
                _make_directories(path)
            else:
                os.makedirs(path, exist_ok=True)
        except FileExistsError as error:
            raise CorruptTableError(f"{path} is not a directory. Restore it.") from error

    def filesystem(self) -> arrow_fs.FileSystem:
        """Return Arrow's local file system."""
        return arrow_fs.LocalFileSystem()

    def _check_inside(self, path: str) -> None:
        """Raise CorruptTableError if a path below the root really is outside it."""
        if self._root is None:
            return
        real = os.path.realpath(path)
        if real != self._root and not real.startswith(f"{self._root}/"):
            raise CorruptTableError(
                f"{path} is {real}, outside the table's directory {self._root}. lakelsm does not follow links out of it: "
                "replace the link with the files."
            )

    def _require_root(self, path: str) -> None:
        """Raise StorageError if the root was deleted: files created below it would belong to no table."""
        if self._root is not None and not os.path.isdir(self._root):
            raise StorageError(
                f"{path} cannot be written: {self._root} does not exist any more, because the table was dropped or "
                "renamed. Nothing of this commit is visible. Open the table by its present name."
            )

    def _delete_temporary(self, temporary: str) -> None:
        """Delete a temporary file. A failure is ignored: the file does not belong to the table."""
        with contextlib.suppress(OSError):
            self.delete(temporary)

    def _write_temporary(self, path: str, data: bytes, durable: bool) -> str:
        """Write the content beside the target, under a name that begins with a dot and that no reader parses.

        Raises StorageError, with nothing left behind, if the file system refuses.
        """
        folder, name = os.path.split(path)
        self._check_inside(folder)
        temporary = os.path.join(folder, temporary_name(name, SYSTEM.new_uuid()))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            try:
                descriptor = os.open(temporary, flags, 0o666)
            except FileNotFoundError:
                self._require_root(path)
                _make_directories(folder)
                descriptor = os.open(temporary, flags, 0o666)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
        except StorageError:  # `_require_root` raised it.
            raise
        except OSError as error:
            self._delete_temporary(temporary)
            raise refused_write(path, error, len(data)) from error
        except BaseException:
            self._delete_temporary(temporary)
            raise
        return temporary


def _opened(path: str) -> int:
    """Return a descriptor to read from. O_NONBLOCK: a FIFO that replaced the file would wait for a writer."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise refused_read(path, error) from error


def _refuse_link(path: str, verb: str) -> None:
    """Raise InvalidInputError if a directory is a symbolic link."""
    if os.path.islink(path):
        raise InvalidInputError(
            f"{path} is a symbolic link to {os.path.realpath(path)}. {verb} that directory and the link yourself."
        )


def _entry(found: os.DirEntry[str]) -> FileEntry:
    """Return an entry of a directory. Raises FileNotFoundError if it was deleted."""
    if found.is_dir(follow_symlinks=False):
        return FileEntry(found.name, is_directory=True)
    status = found.stat(follow_symlinks=False)
    return FileEntry(found.name, False, status.st_size, status.st_mtime_ns // 1_000_000)


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _make_directories(path: str) -> None:
    """Create a directory and its parents, and make the names of new ones durable."""
    new: list[str] = []
    folder = path
    while not os.path.exists(folder):
        new.append(folder)
        folder = os.path.dirname(folder)
    os.makedirs(path, exist_ok=True)
    for made in new:
        _sync_directory(os.path.dirname(made))


def _sync_directory(folder: str) -> None:
    """Make a new name durable. Best effort, because some file systems refuse fsync on a directory."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
