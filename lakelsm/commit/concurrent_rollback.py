"""What a commit looks at because of rollbacks and expiries beside it, and why that is enough.

A rollback to snapshot T (`maintain/versions/rollback.py`) writes its consumer, writes T to LATEST, and removes the
snapshots above T, the newest first, until none is left that does not follow T without a gap. Then it reads what is
retained, deletes the files that nothing names, manifest lists last, and deletes its consumer. It may be cut off anywhere.
A rollback by Java Paimon removes and deletes too, but leaves no consumer. So no marker can replace a look at the
snapshots themselves; the consumer and LATEST only distinguish a rollback from a missing file.

A commit of snapshot N + 1 on the newest snapshot N:

1. Before an attempt, N must follow the snapshot below it, or all below it have expired. Otherwise N was published on a
   snapshot that a rollback removed, and N + 1 would bring removed rows back. The writer of N removes it by step 4. If it
   still exists at the next check, its writer crashed, and this commit removes it: only if LATEST does not name it, since
   a writer acknowledges no snapshot before step 3 and names it right after.
2. Before an attempt, N + 2 must not exist. Otherwise N + 1 would close the gap that a rollback has left so far, and the
   snapshots above would seem to follow it. A snapshot that is published above the gap after this look fails step 3.
3. After the publication, N must still exist (`is_in_history`). Then N + 1 is in the history: a rollback that removes N
   later lists the snapshots again afterwards, finds N + 1, and removes it as any other that was committed before it.
   If N is deleted, it expired if no older snapshot is left: a rollback keeps an older one, and expiry never removes the
   newest. Where N + 1 itself expires already, its id was free because an earlier N + 1 had expired, unless the newest
   snapshot knows the files of this commit.
4. If step 3 fails, the commit removes its snapshot (`remove_snapshot`). Then it reads what tags and branches retain. Who
   creates a tag writes a holding tag first and checks the snapshot afterwards. So either the tag is seen here, and the
   files are kept, or its creator sees that the snapshot is deleted.
5. If a request for the snapshot failed without an answer, N + 1 may have been visible already, and a rollback may have
   removed it and may delete its files now. Its consumer exists until the lists are deleted, which is last. So if there
   is no consumer, and after that the delta list exists, no rollback has removed N + 1 (`may_be_rolled_back`). One that
   begins later finds it. Java's rollback leaves no consumer; for it the list alone decides. Else the outcome is unknown,
   and N + 1 is removed unless another writer has published N + 2 on it (`remove_unless_followed`): that one is
   acknowledged.
6. A writer that stops between LATEST and the end leaves LATEST too high where a rollback came in between.
   `SnapshotManager.write_latest_hint` looks again, and the rollback's record explains what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lakelsm.commit.attempt_changes import AttemptChanges
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.table_store import TableStore


class ObstacleKind(Enum):
    """Why no commit can follow the newest snapshot now."""

    #: A rollback is under way, or was cut off.
    ROLLBACK = "rollback"
    #: The newest snapshot was published on a removed one. Its writer removes it, or crashed.
    ABANDONED = "abandoned"
    #: A snapshot file is missing.
    DAMAGE = "damage"
    #: There is no LATEST hint to distinguish a missing file from a rollback that leaves no consumer.
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Obstacle:
    """What keeps a commit from following the snapshot ``latest``. ``text`` describes it and the remedy."""

    kind: ObstacleKind
    latest: Snapshot
    text: str


def find_obstacle(store: TableStore, latest: Snapshot) -> Obstacle | None:
    """Look whether the newest snapshot follows the one below it, and nothing lies above it (steps 1 and 2)."""
    number, snapshots = latest.id, store.snapshots
    is_linked = snapshots.is_linked(latest)
    if is_linked and snapshots.try_get(number + 2) is None:
        return None
    missing, older = (number + 1, f"snapshot {number}") if is_linked else (number - 1, "an older snapshot")
    has_gap = is_linked or snapshots.try_get(missing) is None
    if is_linked:
        what = f"snapshot {missing} is missing, and later ones are there"
    elif has_gap:
        what = f"snapshot {number} lies above a gap: snapshot {missing} is missing"
    else:
        what = f"snapshot {number} was not published on snapshot {missing}"
    named = snapshots.hinted_latest_id()
    if not has_gap and (named or 0) < number:
        kind = ObstacleKind.ABANDONED
    elif (has_gap and named is not None and named < missing) or store.consumers.is_rolled_back(number + 1):
        kind = ObstacleKind.ROLLBACK
    else:
        kind = ObstacleKind.UNCLEAR if named is None else ObstacleKind.DAMAGE
    text = (
        f"{what}, so nothing was committed. Restore {store.paths.snapshot_file(missing)}, or roll the table back to "
        f"{older}, which removes the later ones."
    )
    return Obstacle(kind, latest, text)


def is_in_history(store: TableStore, changes: AttemptChanges, base: Snapshot | None, published: Snapshot) -> bool:
    """Whether a snapshot that was just published on ``base`` is in the history (step 3)."""
    now = None if base is None else store.snapshots.try_get(base.id)
    if base is not None and base.matches(now):
        return True
    ids = [] if base is None else store.snapshots.ids()
    if store.snapshots.is_expiring(published.id):
        return changes.is_known(store.snapshots.latest())
    return base is None or (now is None and min(ids, default=published.id) >= base.id)


def remove_snapshot(store: TableStore, snapshot: Snapshot) -> None:
    """Remove a snapshot that no writer acknowledged (steps 1 and 4): LATEST does not name it yet."""
    if snapshot.matches(store.snapshots.try_get(snapshot.id)):
        store.file_io.delete(store.paths.snapshot_file(snapshot.id))


def may_be_needed(store: TableStore, removed: Snapshot) -> bool:
    """Whether a tag or a branch may keep a removed snapshot, or one that was committed on it (step 4)."""
    try:
        retained = store.branches.retained()
    except Exception:  # noqa: BLE001  What keeps files is not known.
        return True
    states = [state for branch in retained for state in branch.snapshots]
    states += [tag.snapshot for branch in retained for tag in branch.tags.values()]
    return any(state.id >= removed.id for state in states)


def remove_unless_followed(store: TableStore, snapshot: Snapshot) -> None:
    """Remove a snapshot that is in doubt, unless another writer published one on it (step 5)."""
    if store.snapshots.try_get(snapshot.id + 1) is None:
        remove_snapshot(store, snapshot)


def may_be_rolled_back(store: TableStore, snapshot: Snapshot) -> bool:
    """Whether a rollback may have removed a snapshot without an answer (step 5)."""
    delta_list = store.paths.manifest(snapshot.delta_manifest_list)
    return store.consumers.is_rolled_back(snapshot.id) or not store.file_io.exists(delta_list)
