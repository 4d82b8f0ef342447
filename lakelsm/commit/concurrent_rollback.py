"""The checks of a commit against concurrent rollbacks and expiries, and why they are sufficient.

A rollback to snapshot T (`maintain/versions/rollback.py`) writes its consumer, writes T to LATEST, and deletes the
snapshots above T, the newest first, until each snapshot left above T follows T without a gap. Then it reads what is
retained, deletes the files that nothing names, manifest lists last, and deletes its consumer. It may be interrupted at
any point. A rollback by Java Paimon deletes the same files, but has no consumer. So a commit must look at the snapshots
themselves; the consumer and LATEST only distinguish a rollback from a missing file.

A commit of snapshot N + 1 on the newest snapshot N:

1. Before an attempt, N must follow the snapshot below it, or all snapshots below it have expired. Otherwise N was
   published on a snapshot that a rollback deleted, and N + 1 would bring deleted rows back. The writer of N deletes it
   by step 4. If N still exists at the next check, its writer crashed, and this commit deletes N, unless LATEST names it:
   a writer acknowledges no snapshot before step 3 and writes LATEST right after.
2. Before an attempt, N + 2 must not exist. Otherwise N + 1 would close the gap that a rollback has left so far, and the
   snapshots above would seem to follow it. A snapshot that is published above the gap after this check fails step 3.
3. After the publication, N must still exist (`is_in_history`). Then N + 1 is in the history: a rollback that deletes N
   later lists the snapshots again afterwards, finds N + 1, and deletes it like any snapshot that was committed before
   the rollback. If N is deleted and no older snapshot is left, N has expired: a rollback keeps an older snapshot, and
   expiry never deletes the newest. If N + 1 itself is expiring already, its id was free because an earlier N + 1 had
   expired, unless the manifests of the newest snapshot name files of this commit.
4. If step 3 fails, the commit deletes its snapshot (`remove_snapshot`). Then it reads what tags and branches retain.
   The creation of a tag writes a holding tag first and checks the snapshot afterwards. So either this commit sees the
   tag and keeps the files, or the creation of the tag sees that the snapshot is deleted.
5. If a request for the snapshot failed without an answer, N + 1 may have been visible already, and a rollback may have
   deleted it and may delete its files now. The consumer of the rollback exists until the lists are deleted, as the last
   files. So if there is no consumer, and after that check the delta list exists, no rollback has deleted N + 1
   (`may_be_rolled_back`); a later rollback finds it. Java's rollback has no consumer; for it the list alone decides.
   Otherwise the outcome is unknown, and N + 1 is deleted unless another writer has published N + 2 on it
   (`remove_unless_followed`), which makes N + 1 part of the history.
6. A writer that crashes after it wrote LATEST leaves LATEST too high if a rollback ran in between.
   `SnapshotManager.write_latest_hint` checks the snapshot again, and the record of the rollback explains the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lakelsm.commit.attempt_changes import AttemptChanges
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.table_store import TableStore


class ObstacleKind(Enum):
    """The reasons why no commit can follow the newest snapshot now."""

    #: A rollback is running or was interrupted.
    ROLLBACK = "rollback"
    #: The newest snapshot was published on a deleted one. Its writer deletes it, or crashed.
    ORPHANED = "orphaned"
    #: A snapshot file is missing.
    DAMAGE = "damage"
    #: Without a LATEST hint, a missing file cannot be distinguished from a rollback of Java, which has no consumer.
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Obstacle:
    """The reason why no commit can follow the snapshot ``latest``. ``text`` describes it and the remedy."""

    kind: ObstacleKind
    latest: Snapshot
    text: str


def find_obstacle(store: TableStore, latest: Snapshot) -> Obstacle | None:
    """Check that the newest snapshot follows the one below it, and that none is above it (steps 1 and 2)."""
    number, snapshots = latest.id, store.snapshots
    is_linked = snapshots.is_linked(latest)
    if is_linked and snapshots.try_get(number + 2) is None:
        return None
    missing, older = (number + 1, f"snapshot {number}") if is_linked else (number - 1, "an older snapshot")
    has_gap = is_linked or snapshots.try_get(missing) is None
    if is_linked:
        what = f"snapshot {missing} is missing, and later snapshots exist"
    elif has_gap:
        what = f"snapshot {number} exists, and snapshot {missing} below it is missing"
    else:
        what = f"snapshot {number} was not published on snapshot {missing}"
    named = snapshots.hinted_latest_id()
    if not has_gap and (named or 0) < number:
        kind = ObstacleKind.ORPHANED
    elif (has_gap and named is not None and named < missing) or store.consumers.is_rolled_back(number + 1):
        kind = ObstacleKind.ROLLBACK
    else:
        kind = ObstacleKind.UNCLEAR if named is None else ObstacleKind.DAMAGE
    text = (
        f"{what}, so nothing is committed. Restore {store.paths.snapshot_file(missing)}, or roll the table back to "
        f"{older}, which deletes the later ones."
    )
    return Obstacle(kind, latest, text)


def is_in_history(store: TableStore, changes: AttemptChanges, base: Snapshot | None, published: Snapshot) -> bool:
    """Return whether a snapshot that was just published on ``base`` is in the history (step 3)."""
    now = None if base is None else store.snapshots.try_get(base.id)
    if base is not None and base.matches(now):
        return True
    ids = [] if base is None else store.snapshots.ids()
    if store.snapshots.is_expiring(published.id):
        return changes.is_known(store.snapshots.latest())
    return base is None or (now is None and min(ids, default=published.id) >= base.id)


def remove_snapshot(store: TableStore, snapshot: Snapshot) -> None:
    """Delete a snapshot that no writer has acknowledged: LATEST does not name it yet (steps 1 and 4)."""
    if snapshot.matches(store.snapshots.try_get(snapshot.id)):
        store.file_io.delete(store.paths.snapshot_file(snapshot.id))


def may_be_needed(store: TableStore, removed: Snapshot) -> bool:
    """Return whether a tag or a branch may retain a deleted snapshot, or one that was committed on it (step 4)."""
    try:
        retained = store.branches.retained()
    except Exception:  # noqa: BLE001  It is unknown what is retained.
        return True
    states = [state for branch in retained for state in branch.snapshots]
    states += [tag.snapshot for branch in retained for tag in branch.tags.values()]
    return any(state.id >= removed.id for state in states)


def remove_unless_followed(store: TableStore, snapshot: Snapshot) -> None:
    """Delete a snapshot whose outcome is unknown, unless another writer published one on it (step 5)."""
    if store.snapshots.try_get(snapshot.id + 1) is None:
        remove_snapshot(store, snapshot)


def may_be_rolled_back(store: TableStore, snapshot: Snapshot) -> bool:
    """Return whether a rollback may have deleted a snapshot whose request had no answer (step 5)."""
    delta_list = store.paths.manifest(snapshot.delta_manifest_list)
    return store.consumers.is_rolled_back(snapshot.id) or not store.file_io.exists(delta_list)
