"""Errors of lakelsm: one base class; the kind says what the caller must do.

* :class:`InvalidInputError` — fix the input (schema, option, predicate, rows, name).
* :class:`UnsupportedFeatureError` — the table or request needs a part that lakelsm does not have.
* :class:`CommitConflictError` — somebody else committed first; redo the work on the newest snapshot.
* :class:`CorruptTableError` — metadata or data on storage is missing or damaged; report it.
* :class:`StorageError` — the file system refused a write; mend that (space, permission) and run again.
"""

from __future__ import annotations


class LakelsmError(Exception):
    """Base of every error that lakelsm raises on purpose."""


class InvalidInputError(LakelsmError, ValueError):
    """The caller's input is wrong; the message names it and the remedy."""


class UnsupportedFeatureError(LakelsmError):
    """A feature that lakelsm has not built, refused by name."""


class TableNotFoundError(InvalidInputError):
    """No table at that name or path."""


class TableAlreadyExistsError(InvalidInputError):
    """A table of that name exists."""


class SnapshotNotFoundError(InvalidInputError):
    """The snapshot, tag or time asked for does not exist, or has expired."""


class BatchHistoryExpiredError(InvalidInputError):
    """Whether a batch id was committed cannot be told: a later one of its user is, and older snapshots have expired."""


class CommitConflictError(LakelsmError):
    """The commit lost to another one; nothing of it is visible. Redo the work and commit again."""


class SequenceConflictError(CommitConflictError):
    """Another commit used the sequence numbers of this write; renumber and commit again."""


class BucketAssignConflictError(CommitConflictError):
    """Another commit assigned keys of the same partition to dynamic buckets; assign again."""


class RowsChangedError(CommitConflictError):
    """Another commit wrote keys of the rows that this delete was worked out from; read them anew and delete again."""


class CommitOutcomeUnknownError(LakelsmError):
    """Publishing failed in a way that leaves the outcome open; no file was deleted. Rerun with the same batch id."""


class CorruptTableError(LakelsmError):
    """A file that the table's metadata names is missing or cannot be decoded."""


class StorageError(LakelsmError, OSError):
    """The file system refused a write or a read. What a file that was written belonged to is not committed."""
