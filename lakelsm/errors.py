"""The errors of lakelsm. They have one base class; the kind of an error says what the caller must do (`ErrorKind`).

* :class:`InvalidInputError` — fix the input (schema, option, predicate, rows, name).
* :class:`UnsupportedFeatureError` — the table or the request needs a feature that lakelsm does not have.
* :class:`CommitConflictError` — another commit won; repeat the work on the newest snapshot.
* :class:`CommitOutcomeUnknownError` — the commit may or may not be visible; rerun it with the same batch id.
* :class:`CorruptTableError` — metadata or data on storage is missing or damaged; restore it.
* :class:`LookupServiceError` — the query service does not answer; look up again, or start a server.
* :class:`StorageError` — the file system refused a request; fix the cause (space, permission) and run again.
* :class:`StorageUnavailableError` — the store cannot be reached or returns server errors; run it again later.
* :class:`OutOfMemoryError` — there is not enough memory; give tasks less memory, or run fewer of them.
* :class:`SparkUnavailableError` — no Spark session can run lakelsm's tasks; install or set what the message names.

The constructor of each takes one text: an error of a Spark task reaches the driver as the name of its class and its text
(`lakelsm.spark.task_errors`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import ClassVar


class ErrorKind(Enum):
    """The reaction that a failed operation needs from its caller. Schedulers depend on the texts: do not change them."""

    #: Another commit won, or a store or server is unavailable. Nothing is committed: run the same operation again.
    RETRY = "retry"
    #: Fix what the message names (the call, an option, the disk, the session), then run the operation again.
    FIX = "fix"
    #: A file of the table is missing or damaged: restore it. A retry does not help.
    CORRUPT = "corrupt"
    #: The table or the call needs a feature that lakelsm does not have: use another engine.
    UNSUPPORTED = "unsupported"
    #: The commit may or may not be visible: run it again with the same commit user and batch id.
    UNKNOWN = "unknown"


class LakelsmError(Exception):
    """Base class of all errors that lakelsm raises. Only subclasses are raised; each has a ``kind``.

    ``keeps_files``: a snapshot or a tag may name files of the failed operation, so its files were not deleted.
    """

    kind: ClassVar[ErrorKind]
    keeps_files: bool = False


class InvalidInputError(LakelsmError, ValueError):
    """The caller's input is invalid. The message names the input and the remedy."""

    kind = ErrorKind.FIX


class UnsupportedFeatureError(LakelsmError):
    """The table or the call needs a feature that lakelsm does not have. The message names it."""

    kind = ErrorKind.UNSUPPORTED


class TableNotFoundError(InvalidInputError):
    """There is no table with this name or at this path."""


class TableAlreadyExistsError(InvalidInputError):
    """A table with this name exists."""


class SnapshotNotFoundError(InvalidInputError):
    """The requested snapshot, tag or time does not exist, or has expired.

    ``was_removed``: the snapshot existed when the operation began; it has expired or was rolled back since.
    """

    def __init__(self, text: str, *, was_removed: bool = False) -> None:
        super().__init__(text)
        self.was_removed = was_removed


class StreamOffsetError(InvalidInputError):
    """An offset of a stream is not valid for this table: another or a re-created table, or a rollback since."""


class BatchHistoryExpiredError(InvalidInputError):
    """It is unknown whether a batch was committed: its user committed a higher id, and older snapshots have expired."""


class CommitUserTakenError(InvalidInputError):
    """The commit user of a batch belongs to another streaming query, whose batches have the same ids."""


class CommitConflictError(LakelsmError):
    """The commit lost a race against another one. Nothing of it is visible; repeat the work and commit again.

    ``keeps_files``: its snapshot was visible until a rollback removed the base, so a tag may refer to it.
    """

    kind = ErrorKind.RETRY

    def __init__(self, text: str, *, keeps_files: bool = False) -> None:
        super().__init__(text)
        self.keeps_files = keeps_files


class StreamSchemaChangedError(LakelsmError):
    """The columns of a table changed while a stream read it. Start it again: it continues with the new columns."""

    kind = ErrorKind.RETRY


class SequenceConflictError(CommitConflictError):
    """Another commit used the sequence numbers of this write; the rows need new numbers."""


class BucketAssignConflictError(CommitConflictError):
    """Another commit assigned keys of the same partition to dynamic buckets; the keys must be assigned again."""


class RowsChangedError(CommitConflictError):
    """Another commit wrote keys of rows that this delete or update read; it must be computed again."""


class VectorsChangedError(CommitConflictError):
    """Another commit changed deletion vectors that this compaction applied; there is no other conflict.

    ``files`` are the data files of these vectors. Their masked rows can be mapped to the files of the compaction.
    """

    def __init__(self, text: str, files: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.files = files


class CommitOutcomeUnknownError(LakelsmError):
    """It is unknown whether the snapshot was published, so no file was deleted. Rerun with the same batch id."""

    kind = ErrorKind.UNKNOWN
    keeps_files = True


class CorruptTableError(LakelsmError):
    """A file that the table's metadata names is missing, damaged or another file."""

    kind = ErrorKind.CORRUPT


class CorruptStoreError(CorruptTableError):
    """A store of a lookup, a file on the local disk, is missing or damaged. It is built again."""


class LookupServiceError(LakelsmError):
    """The query service does not answer, or gives an invalid answer. Look up again, or start a server."""

    kind = ErrorKind.RETRY


class LookupServiceSetupError(LookupServiceError):
    """A table has no query service, or the service refuses the client's token. The message names the remedy."""

    kind = ErrorKind.FIX


class StorageError(LakelsmError, OSError):
    """The file system refused a write or a read. The operation is not committed."""

    kind = ErrorKind.FIX


class StorageUnavailableError(StorageError):
    """The store or the network failed, also after retries. Nothing is committed; run the operation again later."""

    kind = ErrorKind.RETRY


class OutOfMemoryError(LakelsmError, MemoryError):
    """A task of this process could not allocate memory. Nothing is committed."""

    kind = ErrorKind.FIX


class SparkUnavailableError(LakelsmError):
    """No Spark session can run lakelsm's tasks, or it ended or cancelled them. The message names the remedy."""

    kind = ErrorKind.FIX


@contextmanager
def error_context(subject: str) -> Iterator[None]:
    """Prefix the text of errors of lakelsm with ``subject`` and a colon. Class, attributes and cause stay the same."""
    try:
        yield
    except LakelsmError as error:
        raise _with_text(error, f"{subject}: {error}") from (error.__cause__ or error)


def with_outcome(error: LakelsmError, outcome: str) -> LakelsmError:
    """Return a copy of an error whose text ends with ``outcome``, a sentence on what was changed despite the error."""
    return _with_text(error, f"{str(error).rstrip('.')}. {outcome}")


def _with_text(error: LakelsmError, text: str) -> LakelsmError:
    """Return a copy of an error with another text. The error itself may be kept by a caller and raised again."""
    copy = type(error)(text)
    vars(copy).update(vars(error))
    return copy
