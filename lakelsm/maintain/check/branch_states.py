"""Checks the state files of a branch: schemas, snapshots, hints, long-lived changelogs, tags and consumers."""

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
    """Reads the state files of a branch. A missing or unreadable file is a finding."""

    def __init__(self, store: TableStore, findings: Findings) -> None:
        self._store = store
        self._findings = findings

    def schemas(self) -> dict[int, TableSchema | None]:
        """Return the schemas by id; None for an unreadable one."""
        found: dict[int, TableSchema | None] = {}
        for schema_id in self._store.schemas.ids():
            found[schema_id] = None
            path = self._store.paths.schema_file(schema_id)
            with self._findings.errors_as(SCHEMA_UNREADABLE, path, path):
                found[schema_id] = self._store.schemas.get(schema_id)
        return found

    def snapshots(self) -> list[Snapshot]:
        """Return the readable snapshots, ascending."""
        manager, hints = self._store.snapshots, Hints(self._store, self._findings)
        ids, path_of = hints.kept(manager.ids()), self._store.paths.snapshot_file
        found = self._read_all(ids, manager.try_get, path_of, SNAPSHOT_UNREADABLE)
        self._report_gaps(ids, path_of, SNAPSHOT_GAP, self._unfinished_rollback())
        hints.check_latest(ids)
        return found

    def changelogs(self) -> list[Snapshot]:
        """Return the readable long-lived changelogs, ascending."""
        manager = self._store.changelogs
        ids, path_of = manager.ids(), self._store.paths.changelog
        self._report_gaps(ids, path_of, CHANGELOG_GAP)
        return self._read_all(ids, manager.try_get, path_of, CHANGELOG_UNREADABLE)

    def tags(self) -> Iterator[tuple[str, Snapshot]]:
        """Yield the names and snapshots of the tags. A holding tag is a finding."""
        tags = self._store.tags
        for name in tags.names():
            found = None
            path = f"{self._store.paths.tag_dir}/{TAG_PREFIX}{name}"
            if name.startswith(HOLDING_TAG):  # Its files may have been deleted before it was created.
                problem = "a process is creating a tag, or was killed while it did"
                self._findings.add(TAG_UNFINISHED, path, problem, path)
                continue
            with self._findings.errors_as(TAG_UNREADABLE, path, path):
                found = tags.try_get(name)
            if found is not None:
                yield name, found.snapshot

    def check_consumers(self, first: int) -> None:
        """Report consumers that cannot be read, or whose next changes, before snapshot ``first``, are deleted."""
        consumers, paths = self._store.consumers, self._store.paths
        for name in consumers.names():
            path = f"{paths.consumer_dir}/{CONSUMER_PREFIX}{name}"
            with self._findings.errors_as(CONSUMER_UNREADABLE, path, path):
                following = consumers.try_get(name)
                is_behind = following is not None and following < first
                if is_behind and not name.startswith(ROLLBACK_CONSUMER):  # A rollback restores its snapshot.
                    problem = f"it reads snapshot {following} next, but the oldest changes are those of {first}"
                    self._findings.add(CONSUMER_BEHIND, path, problem, path)

    def _read_all(
        self, ids: Sequence[int], read: Callable[[int], Snapshot | None], path_of: Callable[[int], str], unreadable: Rule
    ) -> list[Snapshot]:
        """Return those of the given ids that can be read."""
        found = []
        for number in ids:
            path = path_of(number)
            with self._findings.errors_as(unreadable, path, path):
                each = read(number)
                if each is not None:
                    found.append(each)
        return found

    def _report_gaps(self, ids: Sequence[int], path_of: Callable[[int], str], gap: Rule, end: int | None = None) -> None:
        """Report the gaps between ids that begin below ``end``; all gaps without it."""
        for before, after in pairwise(ids):
            if after != before + 1 and (end is None or before < end):
                directory = path_of(before).rsplit("/", 1)[0]
                self._findings.add(gap, directory, f"ids {before + 1} to {after - 1} are missing", path_of(before))

    def _unfinished_rollback(self) -> int | None:
        """Return the target of an unfinished rollback. Above it there may be a gap."""
        targets = []
        for name in self._store.consumers.names():
            target = name.removeprefix(ROLLBACK_CONSUMER)
            if name != target and target.isdecimal():
                path, problem = self._store.paths.consumer(name), f"a rollback to {target} is running or was interrupted"
                self._findings.add(ROLLBACK_UNFINISHED, path, problem, path)
                targets.append(int(target))
        return min(targets, default=None)


#: The maximum size of a hint file in bytes.
_MAX_HINT_BYTES = 64


class Hints:
    """Checks the hints of one branch against the ids of its snapshots, which ascend."""

    def __init__(self, store: TableStore, findings: Findings) -> None:
        self._store = store
        self._findings = findings

    def check_latest(self, ids: Sequence[int]) -> None:
        """Report a LATEST hint that does not name the newest snapshot."""
        paths = self._store.paths
        latest = self._hint(paths.latest_hint)
        if latest is not None and latest not in ids and not self._store.file_io.exists(paths.snapshot_file(latest)):
            self._findings.add(LATEST_HINT, paths.latest_hint, f"it says {latest}, but this snapshot does not exist")
        elif latest is not None and ids and latest < ids[-1]:
            self._findings.add(STALE_HINT, paths.latest_hint, f"it says {latest}, but the newest snapshot is {ids[-1]}")

    def kept(self, ids: Sequence[int]) -> Sequence[int]:
        """Return the snapshots from EARLIEST on. Those below it are expiring, and their files may be deleted.

        If all snapshots are newer than the hint, return all of them: Java's fast-forward copies a branch's snapshots, and
        leaves the main branch's EARLIEST in place if the branch has none. If the branch has one, it is copied, above
        older snapshots of the main branch.
        """
        paths = self._store.paths
        earliest = self._hint(paths.earliest_hint)
        if earliest is None or not ids or earliest == ids[0]:
            return ids
        if earliest not in ids:
            if not self._store.file_io.exists(paths.snapshot_file(earliest)):
                problem = f"it says {earliest}, but the oldest snapshot is {ids[0]}"
                self._findings.add(STALE_HINT, paths.earliest_hint, problem)
            return ids
        if self._are_newer([snapshot_id for snapshot_id in ids if snapshot_id < earliest]):
            return ids
        kept = [snapshot_id for snapshot_id in ids if snapshot_id >= earliest]
        if self._is_of_a_branch(earliest):
            return kept
        problem = f"snapshots from {ids[0]} on exist, but EARLIEST says that {earliest} is the oldest to keep"
        self._findings.add(EXPIRY_UNFINISHED, paths.snapshot_dir, problem, paths.snapshot_file(ids[0]))
        return kept

    def _are_newer(self, below: Sequence[int]) -> bool:
        """Return whether the files of all these snapshots were written after EARLIEST."""
        paths = self._store.paths
        times = {entry.name: entry.modified for entry in self._store.file_io.entries(paths.snapshot_dir)}
        hint, files = _name(paths.earliest_hint), [_name(paths.snapshot_file(snapshot_id)) for snapshot_id in below]
        return hint in times and all(times.get(file, 0) > times[hint] for file in files)

    def _is_of_a_branch(self, earliest: int) -> bool:
        """Return whether a fast-forward has copied the hint and its snapshot from a branch."""
        paths, file_io = self._store.paths, self._store.file_io
        if paths.branch != MAIN_BRANCH:
            return False
        for branch in map(paths.of_branch, self._store.branches.names()):
            try:
                hint = file_io.read(branch.earliest_hint, _MAX_HINT_BYTES).strip()
                files = [file_io.read(of.snapshot_file(earliest)) for of in (paths, branch) if hint == b"%d" % earliest]
            except (LakelsmError, OSError):  # The branch has no hint, or a file was deleted since.
                continue
            if files and files[0] == files[1]:
                return True
        return False

    def _hint(self, path: str) -> int | None:
        try:
            text = self._store.file_io.read(path, _MAX_HINT_BYTES).decode("ascii").strip()
            if not text.isdecimal():
                raise CorruptTableError(f"{path} has {text!r}, which is not a snapshot id")
            return int(text)
        except FileNotFoundError:
            return None
        except (LakelsmError, OSError, UnicodeDecodeError) as error:
            self._findings.add(STALE_HINT, path, str(error))
            return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
