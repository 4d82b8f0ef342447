"""The hints of a branch: whether LATEST and EARLIEST say what is there, and which snapshots stay by EARLIEST."""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.errors import CorruptTableError, LakelsmError
from lakelsm.format.paths import MAIN_BRANCH
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.rules import EXPIRY_UNFINISHED, LATEST_HINT, STALE_HINT
from lakelsm.snapshots.table_store import TableStore

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
        """The snapshots from the one that EARLIEST names on: those below it expire, and their files may be gone.

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
            except (LakelsmError, OSError):  # The branch has none, or they went meanwhile.
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
