"""Finds an earlier commit of a batch: (commit user, identifier) makes a rerun a no-op (docs/format.md 14.5).

The identifiers of two streaming queries are not comparable, because each query counts its batches from 0. So a commit
user belongs to one query, and batches of others are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakelsm.commit.commit_message import CommitOutcome, CommitRequest
from lakelsm.errors import BatchHistoryExpiredError, CommitUserTakenError, CorruptTableError
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.snapshots.manifest_scan import read_delta_entries
from lakelsm.snapshots.stream_progress import StreamProgress, stream_progress
from lakelsm.snapshots.table_store import TableStore

#: The kinds of snapshots that can be a batch. A compaction has the identifier of its write, or another one.
_WRITES = (CommitKind.APPEND, CommitKind.OVERWRITE)
#: Property of a snapshot whose identifier is lower than one that its user had committed before: the highest of these.
#: Persisted: do not change
HIGHEST_IDENTIFIER_PROPERTY = "lakelsm.highest-commit-identifier"
#: Property of a batch of a streaming query: the id of the query. Persisted: do not change
STREAM_QUERY_PROPERTY = "lakelsm.stream-query"
_NONE = -1


class ReplayCheck:
    """Looks for an earlier commit of a write, by its identifier among the writes of its user.

    Identifiers of a user ascend, as Paimon requires. One that was skipped or failed may be committed later; its snapshot
    then records the highest identifier before it. So the search goes from the newest snapshot to older ones and ends at
    the user's first snapshot that lakelsm wrote and whose highest identifier is lower: those of older ones are lower
    still. A snapshot of another engine records no highest identifier, so the search continues. If it ends because older
    snapshots have expired, the outcome is unknown, and the write is refused. There are two exceptions: a user without a
    retained snapshot counts as new, as in Paimon, and identifiers of a user that only other engines wrote are assumed to
    ascend. Each snapshot has the newest batch of each streaming query, so a query is known without a retained snapshot.
    A compaction is not searched: a rerun of it finds its input files deleted.

    A write by another query than that of the user's newest writes raises CommitUserTakenError; a write without a query is
    another one. A query may continue the writes of a user without a query, but only above their identifiers: below them
    it counts from another start.
    """

    def __init__(self, store: TableStore, request: CommitRequest) -> None:
        self._store = store
        self._snapshots = store.snapshots
        self._request = request
        self._seen: Snapshot | None = None
        self._highest = _NONE
        self._is_owner = False

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that the snapshot of this write needs for later searches."""
        found = {}
        if self._request.query_id is not None:
            found[STREAM_QUERY_PROPERTY] = self._request.query_id
        if self._is_filtered() and self._highest > self._request.identifier:
            found[HIGHEST_IDENTIFIER_PROPERTY] = str(self._highest)
        return found

    def before(self) -> CommitOutcome | None:
        """Return the outcome of this user's commit with this identifier, or None.

        Raises BatchHistoryExpiredError if an expired snapshot may be that commit, and CommitUserTakenError if the user
        belongs to another query.
        """
        if not self._is_filtered():
            return None
        self._seen = self._snapshots.latest()
        return self._search(self._seen, attempts=0, files_published=False)

    def since(self, latest: Snapshot | None, attempts: int) -> CommitOutcome | None:
        """Return the outcome as `before` does, among the snapshots that were published since the last call."""
        if not self._is_filtered() or latest is None:
            return None
        seen, self._seen = self._seen, latest
        new = [
            latest if number == latest.id else self._snapshots.try_get(number)
            for number in range(1 if seen is None else seen.id, latest.id + 1)
        ]
        followed = seen is None or (bool(new) and seen.matches(new.pop(0)))
        if not followed or None in new:
            # Snapshots expired in between, or were rolled back and their ids used again.
            self._highest, self._is_owner = _NONE, False
            return self._search(latest, attempts, files_published=True)
        for snapshot in new:
            if snapshot is not None and self._is_same(snapshot):
                return self._outcome(snapshot, attempts)
        return None

    def _of_user(self, newest: Snapshot | None) -> Iterator[Snapshot]:
        """Yield the snapshots of the user, newest first. ``newest`` is not read again."""
        user = self._request.commit_user
        if newest is not None and newest.commit_user == user:
            yield newest
        yield from self._snapshots.of_user(user, None if newest is None else newest.id)

    def _search(self, newest: Snapshot | None, attempts: int, *, files_published: bool) -> CommitOutcome | None:
        """Search the whole history. ``files_published``: a commit of the message's files may have expired since."""
        has_ours = has_lower = False
        for snapshot in self._of_user(newest):
            if self._is_same(snapshot):
                return self._outcome(snapshot, attempts)
            highest = _highest_identifier(snapshot)
            is_lower = _NONE < highest < self._request.identifier
            if is_lower and snapshot.is_ours:
                return None
            has_lower = has_lower or is_lower
            has_ours = has_ours or (snapshot.is_ours and highest > _NONE)
        progress = self._progress(newest)
        if progress is not None and progress.batch_id == self._request.identifier:
            return CommitOutcome(None, True, attempts, files_published=files_published)
        if has_lower and not has_ours:
            return None
        if self._highest > _NONE and not self._history_is_complete():
            raise BatchHistoryExpiredError(self._why_unknown())
        return None

    def _progress(self, newest: Snapshot | None) -> StreamProgress | None:
        """Return the newest batch of the query, whose snapshot may have expired. Updates the highest identifier.

        It is that of the user, or of the same query under another user: a query may restart with another one. Raises
        CommitUserTakenError if the user's is of another query than this write, or the other user's is of a later batch.
        """
        known, query = stream_progress(newest, self._snapshots.try_get), self._request.query_id
        of_query = [user for user, each in known.items() if query is not None and each.query_id == query]
        user = self._request.commit_user if self._request.commit_user in known else next(reversed(of_query), None)
        if newest is None or user is None or not self._snapshots.is_linked(newest):
            return None
        progress = known[user]
        if progress.query_id != query:
            raise CommitUserTakenError(self._why_taken(progress.query_id))
        if progress.batch_id > self._request.identifier:
            if user != self._request.commit_user:
                raise CommitUserTakenError(self._why_of_another_user(user, progress.batch_id))
            self._highest = max(self._highest, progress.batch_id)
        return progress

    def _history_is_complete(self) -> bool:
        """Return whether no snapshot has expired: expiry begins with snapshot 1."""
        ids = self._snapshots.ids()
        return list(ids) == list(range(1, len(ids) + 1))

    def _is_same(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is this write. Updates the user's highest identifier.

        Raises CommitUserTakenError if it is a write of another query.
        """
        if snapshot.commit_user != self._request.commit_user:
            return False
        self._check_query(snapshot)
        same = snapshot.commit_kind in _WRITES and snapshot.commit_identifier == self._request.identifier
        if same and not self._snapshots.is_linked(snapshot):
            return False  # An orphaned snapshot: its writer deletes it, or crashed.
        self._highest = max(self._highest, _highest_identifier(snapshot))
        return same

    def _check_query(self, snapshot: Snapshot) -> None:
        """Raise CommitUserTakenError if a snapshot of the user shows that this write is of another query."""
        query, highest = self._request.query_id, _highest_identifier(snapshot)
        if highest == _NONE:
            return
        owner = (snapshot.properties or {}).get(STREAM_QUERY_PROPERTY)
        if owner == query:
            self._is_owner = query is not None
        elif owner is not None:
            if self._snapshots.is_linked(snapshot):
                raise CommitUserTakenError(self._why_taken(owner))
        elif not self._is_owner and highest > self._request.identifier and self._snapshots.is_linked(snapshot):
            raise CommitUserTakenError(self._why_not_continued(highest))

    def _is_filtered(self) -> bool:
        return self._request.identifier != BATCH_COMMIT_IDENTIFIER and self._request.kind in _WRITES

    def _outcome(self, snapshot: Snapshot, attempts: int) -> CommitOutcome:
        return CommitOutcome(snapshot, True, attempts, files_published=self._names_our_files(snapshot))

    def _names_our_files(self, snapshot: Snapshot) -> bool:
        """Return whether the earlier commit may name the files of this message: the message was committed twice."""
        ours = self._request.message.new_file_names
        if not ours:
            return False
        try:
            delta = read_delta_entries(self._store.file_io, self._store.paths, snapshot)
        except CorruptTableError:
            return True
        return any(entry.file.file_name in ours for entry in delta)

    def _why_unknown(self) -> str:
        user, identifier = self._request.commit_user, self._request.identifier
        return (
            f"Table {self._store.name}: it is unknown whether batch {identifier} of commit user {user!r} was committed, "
            f"because batch {self._highest} is committed and snapshots before {self._snapshots.earliest_id()} have "
            f"expired. Nothing is written; if its rows are missing in the table, write them with a batch id above "
            f"{self._highest}."
        )

    def _why_taken(self, owner: str) -> str:
        user, query = self._request.commit_user, self._request.query_id
        batch = "this batch has no query" if query is None else f"this batch is of query {query!r}"
        return (
            f"Table {self._store.name}: commit user {user!r} belongs to streaming query {owner!r}, and {batch}. "
            "Nothing is committed; use another commit user."
        )

    def _why_of_another_user(self, user: str, batch_id: int) -> str:
        query, identifier = self._request.query_id, self._request.identifier
        return (
            f"Table {self._store.name}: query {query!r} has written batch {batch_id} as commit user {user!r}, so it is "
            f"unknown whether batch {identifier} was committed. Nothing is committed; use this commit user again."
        )

    def _why_not_continued(self, highest: int) -> str:
        user, query, identifier = self._request.commit_user, self._request.query_id, self._request.identifier
        return (
            f"Table {self._store.name}: commit user {user!r} has written batch {highest} without a streaming query, so "
            f"batch {identifier} of query {query!r} does not continue its batches. Nothing is committed; use another "
            "commit user, or the checkpoint of the earlier batches."
        )


def _highest_identifier(snapshot: Snapshot) -> int:
    """Return the highest identifier that the user had committed with this snapshot; -1 if it has none."""
    if snapshot.commit_kind not in _WRITES or snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return _NONE
    text = (snapshot.properties or {}).get(HIGHEST_IDENTIFIER_PROPERTY)
    if text is None:
        return snapshot.commit_identifier
    try:
        return max(snapshot.commit_identifier, int(text))
    except ValueError as error:
        raise CorruptTableError(
            f"Snapshot {snapshot.id}: property {HIGHEST_IDENTIFIER_PROPERTY!r}: {text!r} is not a number."
        ) from error
