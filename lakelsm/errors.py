"""Errors of lakelsm: one base class; the kind of each says what the caller must do (see `ErrorKind`).

* :class:`InvalidInputError` — fix the input (schema, option, predicate, rows, name).
* :class:`UnsupportedFeatureError` — the table or request needs a part that lakelsm does not have.
* :class:`CommitConflictError` — another commit won; repeat the work on the newest snapshot.
* :class:`CommitOutcomeUnknownError` — the commit may or may not be visible; rerun it with the same batch id.
* :class:`CorruptTableError` — metadata or data on storage is missing or damaged; report it.
* :class:`LookupServiceError` — a server of lookups does not answer; look up again, or start one.
* :class:`StorageError` — the file system refused a write; fix that (space, permission) and run again.
* :class:`StorageUnavailableError` — the store cannot be reached or returns its own errors; run it again later.
* :class:`OutOfMemoryError` — the machine has not the memory that the work needs; give its tasks less, or run fewer.
* :class:`SparkUnavailableError` — no Spark session runs lakelsm's tasks; install or set what the message names.

An error of a task reaches the driver by the name of its class (`lakelsm.spark.task_errors`): each takes one text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import ClassVar


class ErrorKind(Enum):
    """What the caller of a failed operation must do. Schedulers depend on the texts: do not change them."""

    #: Others came first, or a store or server is unavailable; no commit of the operation is visible: run the same again.
    RETRY = "retry"
    #: Mend what the message names (the call, an option, the disk, the session), then run it again.
    FIX = "fix"
    #: A file of the table is missing or damaged: restore it. Running again does not help.
    CORRUPT = "corrupt"
    #: lakelsm has not built what the table or the call needs: another engine does it.
    UNSUPPORTED = "unsupported"
    #: Whether the commit is visible is not known: run it again with the same commit user and batch id.
    UNKNOWN = "unknown"


class LakelsmError(Exception):
    """Base of every error that lakelsm raises on purpose. Never raised itself: each subclass has a ``kind``.

    ``keeps_files``: a snapshot or a tag may name the files of the operation that failed, so none was deleted.
    """

    kind: ClassVar[ErrorKind]
    keeps_files: bool = False


class InvalidInputError(LakelsmError, ValueError):
    """The caller's input is wrong; the message names it and the remedy."""

    kind = ErrorKind.FIX


class UnsupportedFeatureError(LakelsmError):
    """A feature that lakelsm has not built, refused by name."""

    kind = ErrorKind.UNSUPPORTED


class TableNotFoundError(InvalidInputError):
    """No table at that name or path."""


class TableAlreadyExistsError(InvalidInputError):
    """A table of that name exists."""


class SnapshotNotFoundError(InvalidInputError):
    """The requested snapshot, tag or time does not exist, or has expired.

    ``was_removed``: the snapshot existed when the operation began, and expired or was rolled back since.
    """

    def __init__(self, text: str, *, was_removed: bool = False) -> None:
        super().__init__(text)
        self.was_removed = was_removed


class BatchHistoryExpiredError(InvalidInputError):
    """It is unknown whether a batch id was committed: a later one of its user is, and older snapshots have expired."""


class CommitConflictError(LakelsmError):
    """The commit lost to another one; nothing of it is visible. Redo the work and commit again.

    ``keeps_files``: its snapshot was visible before a rollback removed the one below it, and a tag may be made of it.
    """

    kind = ErrorKind.RETRY

    def __init__(self, text: str, *, keeps_files: bool = False) -> None:
        super().__init__(text)
        self.keeps_files = keeps_files


class SequenceConflictError(CommitConflictError):
    """Another commit used the sequence numbers of this write; renumber and commit again."""


class BucketAssignConflictError(CommitConflictError):
    """Another commit assigned keys of the same partition to dynamic buckets; assign again."""


class RowsChangedError(CommitConflictError):
    """Another commit wrote keys of the rows that this delete or update was worked out from: do it again from new ones."""


class VectorsChangedError(CommitConflictError):
    """Another commit changed deletion vectors that the work was done under, and nothing else stands against it.

    ``files`` are the data files concerned; their masked rows can be mapped to the work's own files.
    """

    def __init__(self, text: str, files: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.files = files


class CommitOutcomeUnknownError(LakelsmError):
    """Publishing failed in a way that leaves the outcome open; no file was deleted. Rerun with the same batch id."""

    kind = ErrorKind.UNKNOWN
    keeps_files = True


class CorruptTableError(LakelsmError):
    """A file that the table's metadata names is missing or cannot be decoded."""

    kind = ErrorKind.CORRUPT


class CorruptStoreError(CorruptTableError):
    """A lookup store, a file that lakelsm made on this machine, is missing or damaged: it is built again."""


class LookupServiceError(LakelsmError):
    """A server of lookups does not answer, or not as it should. Nothing is changed: look up again, or start one."""

    kind = ErrorKind.RETRY


class LookupServiceSetupError(LookupServiceError):
    """A table has no query service, or the service refuses the client's token: start one, or set what the text names."""

    kind = ErrorKind.FIX


class StorageError(LakelsmError, OSError):
    """The file system refused a write or a read. What a file that was written belonged to is not committed."""

    kind = ErrorKind.FIX


class StorageUnavailableError(StorageError):
    """The store or the way to it failed for now, also after waits: run the same again later. Nothing is committed."""

    kind = ErrorKind.RETRY


class OutOfMemoryError(LakelsmError, MemoryError):
    """The memory that a task of this process needs could not be had. What it wrote belongs to nothing."""

    kind = ErrorKind.FIX


class SparkUnavailableError(LakelsmError):
    """No Spark session could be had that runs lakelsm's tasks, or its JVM ended; the message says what to do."""

    kind = ErrorKind.FIX


@contextmanager
def error_context(subject: str) -> Iterator[None]:
    """Errors of lakelsm that are raised within begin with what they are about; their class, attributes and cause stay."""
    try:
        yield
    except LakelsmError as error:
        raise _with_text(error, f"{subject}: {error}") from (error.__cause__ or error)


def with_outcome(error: LakelsmError, outcome: str) -> LakelsmError:
    """A copy of an error whose text ends with what was changed in spite of it, a sentence."""
    return _with_text(error, f"{str(error).rstrip('.')}. {outcome}")


def _with_text(error: LakelsmError, text: str) -> LakelsmError:
    """A copy of an error with another text. The error itself may be kept somewhere and raised again."""
    told = type(error)(text)
    vars(told).update(vars(error))
    return told
