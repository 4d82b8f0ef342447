"""The optimistic commit (docs/format.md 14): nothing is visible before ``snapshot-N`` exists, and then everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakelsm.commit.commit_identity import checked_batch_id, checked_commit_user, checked_query_id
from lakelsm.commit.commit_message import CommitMessage, CommitOutcome, CommitRequest
from lakelsm.commit.commit_run import CommitRun
from lakelsm.commit.replay import ReplayCheck
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import InvalidInputError
from lakelsm.format.manifest import FileKind
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from lakelsm.snapshots.table_store import TableStore

#: The default kind of an operation. Persisted: do not change.
_OPERATIONS = {CommitKind.APPEND: "WRITE", CommitKind.OVERWRITE: "OVERWRITE"}


def _no_step(name: str) -> None:
    """Do nothing after a step of a commit."""


class Committer:
    """Publishes snapshots of one table.

    ``step`` is called with a name of `COMMIT_STEPS` after each durable step. An error that it raises ends the commit
    there, for tests of faults.
    """

    def __init__(
        self, store: TableStore, step: Callable[[str], None] = _no_step, environment: Environment = SYSTEM
    ) -> None:
        self._store, self._step, self._environment = store, step, environment

    def commit(
        self,
        kind: CommitKind,
        message: CommitMessage,
        commit_user: str,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        *,
        query_id: str | None = None,
        properties: Mapping[str, str] | None = None,
        operation: str | None = None,
        statistics: str | None = None,
    ) -> CommitOutcome:
        """Publish a message as one snapshot, or return the earlier commit if it was published before.

        An APPEND or COMPACT without changes publishes nothing; an OVERWRITE always publishes. An APPEND that deletes
        files is published as an OVERWRITE, as in Java. ``identifier`` ascends for each user. A write with an identifier
        that the user has committed is a no-op; one that was skipped may be committed later (see `ReplayCheck`; the
        default identifier is not compared). ``query_id`` is the streaming query of a batch, which its commit user then
        belongs to. ``statistics`` is the name of a file in ``statistics/``.

        Raises CommitUserTakenError if the commit user belongs to another query, CommitConflictError if the message is
        not in the table and never will be; its subclasses SequenceConflictError, BucketAssignConflictError,
        RowsChangedError and VectorsChangedError say which part of the work to repeat. Raises CommitOutcomeUnknownError
        if that is not certain. After an Exception the caller deletes its data files unless ``keeps_files`` of the error
        is true; after a BaseException (a signal) the outcome is unknown. The metadata files of a failed commit are
        deleted by the same rule.
        """
        _validate(kind, message, commit_user, identifier)
        checked_query_id(query_id, identifier)
        if message.is_empty and statistics is None and kind is not CommitKind.OVERWRITE:
            return CommitOutcome(None, files_published=False)
        published_kind = CommitKind.OVERWRITE if kind is CommitKind.APPEND and message.removes else kind
        request = CommitRequest(
            kind=published_kind,
            message=message,
            commit_user=commit_user,
            identifier=identifier,
            query_id=query_id,
            replaces_partitions=kind is CommitKind.OVERWRITE,
            checks_base=kind is CommitKind.APPEND,
            properties=dict(properties or {}),
            operation=operation or _OPERATIONS.get(kind),
            statistics=statistics,
        )
        return CommitRun(self._store, request, self._environment, self._step).execute()

    def committed(self, commit_user: str, identifier: int, query_id: str | None = None) -> CommitOutcome | None:
        """Return the outcome of the write that this user committed with this identifier, or None.

        A writer calls this before its work; `commit` checks again. Raises CommitUserTakenError as `commit`.
        """
        request = CommitRequest(
            kind=CommitKind.APPEND,
            message=CommitMessage(),
            commit_user=commit_user,
            identifier=identifier,
            query_id=checked_query_id(query_id, identifier),
        )
        return ReplayCheck(self._store, request).before()


def _validate(kind: CommitKind, message: CommitMessage, commit_user: str, identifier: int) -> None:
    checked_commit_user(commit_user)
    if identifier != BATCH_COMMIT_IDENTIFIER:
        checked_batch_id(identifier)
    if kind is CommitKind.OVERWRITE:
        if message.changelog_entries:
            raise InvalidInputError("message: an OVERWRITE has no changelog files.")
        if any(entry.kind == FileKind.DELETE for entry in message.entries):
            raise InvalidInputError("message: an OVERWRITE has new files only; the commit adds the deleted files.")
    elif message.overwrite_partitions is not None:
        raise InvalidInputError(f"overwrite_partitions: only an OVERWRITE has them; this commit is {kind.value}.")
    if any(entry.kind != FileKind.ADD for entry in message.changelog_entries):
        raise InvalidInputError("message: changelog entries must add files.")
