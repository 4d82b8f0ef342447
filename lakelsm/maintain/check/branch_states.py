"""What a branch retains: schemas, snapshots, hints, long-lived changelogs, tags and consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from lakelsm.arguments import CONSUMER_PREFIX, TAG_PREFIX
from lakelsm.errors import CorruptTableError, LakelsmError
from lakelsm.format.paths import MAIN_BRANCH
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.rules import (
    CHANGELOG_GAP,
    CHANGELOG_UNREADABLE,
    CONSUMER_BEHIND,
    CONSUMER_UNREADABLE,
    EXPIRY_UNFINISHED,
    LATEST_HINT,
    ROLLBACK_UNFINISHED,
    SCHEMA_UNREADABLE,
    SNAPSHOT_GAP,
    SNAPSHOT_UNREADABLE,
    STALE_HINT,
    TAG_UNFINISHED,
    TAG_UNREADABLE,
    Rule,
)
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.consumer_store import ROLLBACK_CONSUMER
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG


class BranchStates:
    """Reads what a branch retains; what is missing or cannot be read is a finding."""

    def __init__(self, store: TableStore, findings: Findings) -> None:
        self._store = store
        self._findings = findings

    def schemas(self) -> dict[int, TableSchema | None]:
        """The schemas by id; None for one that cannot be read."""
        found: dict[int, TableSchema | None] = {}
        for schema_id in self._store.schemas.ids():
            found[schema_id] = None
            path = self._store.paths.schema_file(schema_id)
            with self._findings.instead_of_errors(SCHEMA_UNREADABLE, path, path):
                found[schema_id] = self._store.schemas.get(schema_id)
        return found

    def snapshots(self) -> list[Snapshot]:
        """The snapshots that can be read, ascending."""
        manager, hints = self._store.snapshots, Hints(self._store, self._findings)
        ids, path_of = hints.kept(manager.ids()), self._store.paths.snapshot_file
        found = self._read_row(ids, manager.try_get, path_of, SNAPSHOT_UNREADABLE)
        self._tell_gaps(ids, path_of, SNAPSHOT_GAP, self._unfinished_rollback())
        hints.check_latest(ids)
        return found

    def changelogs(self) -> list[Snapshot]:
        """The long-lived changelogs that can be read, ascending."""
        manager = self._store.changelogs
        ids, path_of = manager.ids(), self._store.paths.changelog
        self._tell_gaps(ids, path_of, CHANGELOG_GAP)
        return self._read_row(ids, manager.try_get, path_of, CHANGELOG_UNREADABLE)

    def tags(self) -> Iterator[tuple[str, Snapshot]]:
        """Names of tags and the snapshots that they have. A tag that is being made is a finding."""
        tags = self._store.tags
        for name in tags.names():
            found = None
            path = f"{self._store.paths.tag_dir}/{TAG_PREFIX}{name}"
            if name.startswith(HOLDING_TAG):  # Its files may have been deleted when it was created.
                problem = "a process is making a tag, or was killed while it did"
                self._findings.add(TAG_UNFINISHED, path, problem, path)
                continue
            with self._findings.instead_of_errors(TAG_UNREADABLE, path, path):
                found = tags.try_get(name)
            if found is not None:
                yield name, found.snapshot

    def check_consumers(self, first: int) -> None:
        """Find consumers that cannot be read, or read deleted changes before those of ``first``."""
        consumers, paths = self._store.consumers, self._store.paths
        for name in consumers.names():
            path = f"{paths.consumer_dir}/{CONSUMER_PREFIX}{name}"
            with self._findings.instead_of_errors(CONSUMER_UNREADABLE, path, path):
                following = consumers.try_get(name)
                is_behind = following is not None and following < first
                if is_behind and not name.startswith(ROLLBACK_CONSUMER):  # A rollback brings back what it holds.
                    problem = f"it reads snapshot {following} next, and the oldest changes are those of {first}"
                    self._findings.add(CONSUMER_BEHIND, path, problem, path)

    def _read_row(
        self, ids: Sequence[int], read: Callable[[int], Snapshot | None], path_of: Callable[[int], str], unreadable: Rule
    ) -> list[Snapshot]:
        """Those of some ids that can be read."""
        found = []
        for number in ids:
            path = path_of(number)
            with self._findings.instead_of_errors(unreadable, path, path):
                each = read(number)
                if each is not None:
                    found.append(each)
        return found

    def _tell_gaps(self, ids: Sequence[int], path_of: Callable[[int], str], gap: Rule, end: int | None = None) -> None:
        """Tell of gaps between ids, but for those that begin at ``end`` or above."""
        for before, after in pairwise(ids):
            if after != before + 1 and (end is None or before < end):
                directory = path_of(before).rsplit("/", 1)[0]
                self._findings.add(gap, directory, f"none between {before} and {after} is there", path_of(before))

    def _unfinished_rollback(self) -> int | None:
        """The snapshot to which a rollback has begun that is not finished: from there on there may be a gap."""
        goals = []
        for name in self._store.consumers.names():
            goal = name.removeprefix(ROLLBACK_CONSUMER)
            if name != goal and goal.isdecimal():
                path, problem = self._store.paths.consumer(name), f"a rollback to {goal} is under way, or was cut off"
                self._findings.add(ROLLBACK_UNFINISHED, path, problem, path)
                goals.append(int(goal))
        return min(goals, default=None)


#: A size that no hint has.
_MAX_HINT_BYTES = 64


class Hints:
    """Judges the hints of one branch by the ids of its snapshots, which ascend."""

    def __init__(self, store: TableStore, findings: Findings) -> None:
        self._store = store
        self._findings = findings

    def check_latest(self, ids: Sequence[int]) -> None:
        """Tell of a LATEST that names no snapshot, or not the newest."""
        paths = self._store.paths
        latest = self._hint(paths.latest_hint)
        if latest is not None and latest not in ids and not self._store.file_io.exists(paths.snapshot_file(latest)):
            self._findings.add(LATEST_HINT, paths.latest_hint, f"it says {latest}, and there is no such snapshot")
        elif latest is not None and ids and latest < ids[-1]:
            self._findings.add(STALE_HINT, paths.latest_hint, f"it says {latest}, and the newest is {ids[-1]}")

    def kept(self, ids: Sequence[int]) -> Sequence[int]:
        """The snapshots from EARLIEST on: those below it are expiring, and their files may be deleted.

        Unless all of them are newer than the hint: Java's fast-forward copies a branch's snapshots below the EARLIEST of
        the main branch, which it leaves where the branch has none. A branch's EARLIEST it copies, above older snapshots
        of the main branch.
        """
        paths = self._store.paths
        earliest = self._hint(paths.earliest_hint)
        if earliest is None or not ids or earliest == ids[0]:
            return ids
        if earliest not in ids:
            if not self._store.file_io.exists(paths.snapshot_file(earliest)):
                self._findings.add(STALE_HINT, paths.earliest_hint, f"it says {earliest}, and the oldest is {ids[0]}")
            return ids
        if self._are_newer([snapshot_id for snapshot_id in ids if snapshot_id < earliest]):
            return ids
        kept = [snapshot_id for snapshot_id in ids if snapshot_id >= earliest]
        if self._is_of_a_branch(earliest):
            return kept
        problem = f"snapshots from {ids[0]} on are there, and EARLIEST says that {earliest} is the oldest that stays"
        self._findings.add(EXPIRY_UNFINISHED, paths.snapshot_dir, problem, paths.snapshot_file(ids[0]))
        return kept

    def _are_newer(self, below: Sequence[int]) -> bool:
        """Whether the files of all these snapshots were written after EARLIEST."""
        paths = self._store.paths
        times = {entry.name: entry.modified for entry in self._store.file_io.entries(paths.snapshot_dir)}
        hint, files = _name(paths.earliest_hint), [_name(paths.snapshot_file(snapshot_id)) for snapshot_id in below]
        return hint in times and all(times.get(file, 0) > times[hint] for file in files)

    def _is_of_a_branch(self, earliest: int) -> bool:
        """Whether the hint and its snapshot are those of a branch, from which a fast-forward has copied them."""
        paths, file_io = self._store.paths, self._store.file_io
        if paths.branch != MAIN_BRANCH:
            return False
        for branch in map(paths.of_branch, self._store.branches.names()):
            try:
                hint = file_io.read(branch.earliest_hint, _MAX_HINT_BYTES).strip()
                files = [file_io.read(of.snapshot_file(earliest)) for of in (paths, branch) if hint == b"%d" % earliest]
            except (LakelsmError, OSError):  # The branch has none, or they were deleted since.
                continue
            if files and files[0] == files[1]:
                return True
        return False

    def _hint(self, path: str) -> int | None:
        try:
            text = self._store.file_io.read(path, _MAX_HINT_BYTES).decode("ascii").strip()
            if not text.isdecimal():
                raise CorruptTableError(f"{path} has {text!r}, which is no snapshot id")
            return int(text)
        except FileNotFoundError:
            return None
        except (LakelsmError, OSError, UnicodeDecodeError) as error:
            self._findings.add(STALE_HINT, path, str(error))
            return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
