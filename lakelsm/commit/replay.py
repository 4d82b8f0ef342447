"""Whether a commit was made before: (commit user, identifier) makes a rerun a no-op (docs/format.md 14.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lakelsm.commit.commit_message import CommitOutcome, CommitRequest
from lakelsm.errors import BatchHistoryExpiredError, CorruptTableError
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.snapshots.manifest_scan import read_delta_entries
from lakelsm.snapshots.table_store import TableStore

#: Compactions carry the identifier of the write that they follow, or any; they do not identify writes.
_WRITES = (CommitKind.APPEND, CommitKind.OVERWRITE)
#: Snapshot property of a write whose identifier is below another that its user had committed: the highest of those.
#: Persisted: do not change
HIGHEST_IDENTIFIER_PROPERTY = "lakelsm.highest-commit-identifier"
_NONE = -1


class ReplayCheck:
    """Looks for an earlier commit of a write: for this very identifier among the writes of its user.

    Identifiers of a user ascend, as Paimon requires; one that was left out or failed may come later, and then its
    snapshot records the highest one before it. So the search goes back from the newest snapshot and ends at
    the first of the user's that lakelsm wrote and whose highest identifier is lower: what came before it is lower still.
    A snapshot of another engine records no highest identifier, so the search continues beyond it. If it
    ends because older snapshots have expired, the outcome is unknown, and the write is refused; only a user of whom
    no snapshot is retained counts as new, as in Paimon, and identifiers of a user of other engines alone are
    taken to ascend. A compaction is not looked for: a rerun of
    it finds its input files deleted.
    """

    def __init__(self, store: TableStore, request: CommitRequest) -> None:
        self._store = store
        self._snapshots = store.snapshots
        self._request = request
        self._seen: Snapshot | None = None
        self._highest = _NONE

    @property
    def properties(self) -> Mapping[str, str]:
        """What the snapshot of this write records for later searches: something only where it comes out of order."""
        if not self._is_filtered() or self._highest <= self._request.identifier:
            return {}
        return {HIGHEST_IDENTIFIER_PROPERTY: str(self._highest)}

    def before(self) -> CommitOutcome | None:
        """Return the outcome of the commit of this user with this very identifier; None: there was none.

        Raises BatchHistoryExpiredError where expired snapshots may hold it.
        """
        if not self._is_filtered():
            return None
        self._seen = self._snapshots.latest()
        return self._search(self._of_user(self._seen), attempts=0)

    def since(self, latest: Snapshot | None, attempts: int) -> CommitOutcome | None:
        """As before(), for the snapshots that have appeared since the last call."""
        if not self._is_filtered() or latest is None:
            return None
        seen, self._seen = self._seen, latest
        new = [
            latest if number == latest.id else self._snapshots.try_get(number)
            for number in range(1 if seen is None else seen.id, latest.id + 1)
        ]
        followed = seen is None or (bool(new) and seen.matches(new.pop(0)))
        if not followed or None in new:
            # They expire as fast as they come, or were rolled back, and ids come again.
            self._highest = _NONE
            return self._search(self._of_user(latest), attempts)
        for snapshot in new:
            if snapshot is not None and self._is_same(snapshot):
                return self._outcome(snapshot, attempts)
        return None

    def _of_user(self, newest: Snapshot | None) -> Iterator[Snapshot]:
        """The snapshots of the user up to the newest, which is read already, newest first."""
        user = self._request.commit_user
        if newest is not None and newest.commit_user == user:
            yield newest
        yield from self._snapshots.of_user(user, None if newest is None else newest.id)

    def _search(self, of_user: Iterable[Snapshot], attempts: int) -> CommitOutcome | None:
        has_ours = has_lower = False
        for snapshot in of_user:
            if self._is_same(snapshot):
                return self._outcome(snapshot, attempts)
            highest = _highest_identifier(snapshot)
            is_lower = _NONE < highest < self._request.identifier
            if is_lower and snapshot.is_ours:
                return None
            has_lower = has_lower or is_lower
            has_ours = has_ours or (snapshot.is_ours and highest > _NONE)
        if has_lower and not has_ours:
            return None
        if self._highest > _NONE and not self._history_is_complete():
            raise BatchHistoryExpiredError(self._why_unknown())
        return None

    def _history_is_complete(self) -> bool:
        """Whether no snapshot is missing now. Those that expire do so from the first on."""
        ids = self._snapshots.ids()
        return list(ids) == list(range(1, len(ids) + 1))

    def _is_same(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot is this write; takes note of the user's highest identifier."""
        if snapshot.commit_user != self._request.commit_user:
            return False
        same = snapshot.commit_kind in _WRITES and snapshot.commit_identifier == self._request.identifier
        if same and not self._snapshots.is_linked(snapshot):
            return False  # Its writer removes it, or crashed before it could.
        self._highest = max(self._highest, _highest_identifier(snapshot))
        return same

    def _is_filtered(self) -> bool:
        return self._request.identifier != BATCH_COMMIT_IDENTIFIER and self._request.kind in _WRITES

    def _outcome(self, snapshot: Snapshot, attempts: int) -> CommitOutcome:
        return CommitOutcome(snapshot, True, attempts, files_published=self._names_our_files(snapshot))

    def _names_our_files(self, snapshot: Snapshot) -> bool:
        """Whether the earlier commit may hold the very files of this message (the message was rerun)."""
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
            f"Table {self._store.name}: batch {identifier} of commit user {user!r} is below batch {self._highest}, "
            f"which is committed, and snapshots before {self._snapshots.earliest_id()} have expired: whether batch "
            f"{identifier} was committed can no longer be told. Nothing was written. Compare its rows with the "
            f"table; if they are missing, write them under a batch id above {self._highest}."
        )


def _highest_identifier(snapshot: Snapshot) -> int:
    """The highest identifier that the user of a write had committed with it; -1 if it records none."""
    if snapshot.commit_kind not in _WRITES or snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return _NONE
    text = (snapshot.properties or {}).get(HIGHEST_IDENTIFIER_PROPERTY)
    if text is None:
        return snapshot.commit_identifier
    try:
        return max(snapshot.commit_identifier, int(text))
    except ValueError as error:
        raise CorruptTableError(
            f"snapshot {snapshot.id} has {text!r} under {HIGHEST_IDENTIFIER_PROPERTY}, which is no number"
        ) from error
