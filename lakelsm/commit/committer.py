"""The optimistic commit (docs/format.md 14): nothing is visible until ``snapshot-N`` exists, then all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakelsm.commit.commit_identity import checked_batch_id, checked_commit_user
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

    ``step`` is called with a name of COMMIT_STEPS after each durable step; what it raises ends the commit there, as a
    fault would.
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
        properties: Mapping[str, str] | None = None,
        operation: str | None = None,
        statistics: str | None = None,
    ) -> CommitOutcome:
        """Publish a message as one snapshot, or find that it was published before.

        An APPEND or COMPACT without changes publishes nothing; an OVERWRITE always does. An APPEND that deletes files is
        published as an OVERWRITE, as in Java. ``identifier`` ascends per user; a write with one that the user has
        committed already is a no-op, and one that was left out may come later (see ReplayCheck; the default identifier is
        never looked for). ``statistics`` is the name of a file in ``statistics/``.

        Raises CommitConflictError (or SequenceConflictError, BucketAssignConflictError, RowsChangedError,
        VectorsChangedError: which part of the work to redo) when the table does not have it and never will, and
        CommitOutcomeUnknownError when that is not certain. The caller deletes its data files after an Exception unless
        its ``keeps_files`` is true; a BaseException (a signal) does not decide the outcome. The metadata
        files of a commit that failed are removed by the same rule.
        """
        _validate(kind, message, commit_user, identifier)
        if message.is_empty and statistics is None and kind is not CommitKind.OVERWRITE:
            return CommitOutcome(None, files_published=False)
        published_kind = CommitKind.OVERWRITE if kind is CommitKind.APPEND and message.removes else kind
        request = CommitRequest(
            kind=published_kind,
            message=message,
            commit_user=commit_user,
            identifier=identifier,
            replaces_partitions=kind is CommitKind.OVERWRITE,
            checks_base=kind is CommitKind.APPEND,
            properties=dict(properties or {}),
            operation=operation or _OPERATIONS.get(kind),
            statistics=statistics,
        )
        return CommitRun(self._store, request, self._environment, self._step).execute()

    def committed(self, commit_user: str, identifier: int) -> CommitOutcome | None:
        """Return the outcome of the write that this user committed under this identifier, or None.

        A writer calls this before the work; `commit` checks again.
        """
        request = CommitRequest(
            kind=CommitKind.APPEND, message=CommitMessage(), commit_user=commit_user, identifier=identifier
        )
        return ReplayCheck(self._store, request).before()


def _validate(kind: CommitKind, message: CommitMessage, commit_user: str, identifier: int) -> None:
    checked_commit_user(commit_user)
    if identifier != BATCH_COMMIT_IDENTIFIER:
        checked_batch_id(identifier)
    if kind is CommitKind.OVERWRITE:
        if message.changelog_entries:
            raise InvalidInputError("an overwrite carries no changelog files")
        if any(entry.kind == FileKind.DELETE for entry in message.entries):
            raise InvalidInputError(
                "an overwrite works out itself which files it deletes; give it only new files"
            )
    elif message.overwrite_partitions is not None:
        raise InvalidInputError(f"overwrite_partitions is for an OVERWRITE, not for {kind.value}")
    if any(entry.kind != FileKind.ADD for entry in message.changelog_entries):
        raise InvalidInputError("changelog entries only add files")
