"""Files of the manifest directory that no retained state names: of a running or killed commit, or of a deleted branch."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakelsm.errors import CorruptTableError, LakelsmError
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.rules import MANIFEST_STRAY
from lakelsm.snapshots.manifest_scan import read_manifest_list
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG

_PREFIXES = ("manifest-", "index-manifest-")


class UnreferencedManifests:
    """Lists the manifest directory when it is created. Create it before any snapshot is read.

    A check adds to ``named`` the names of the manifest lists, manifests and index manifests that it reads. It adds a list
    together with the manifests in it.
    """

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._listed = self._found()
        self.named: set[str] = set()

    def report(self, findings: Findings) -> None:
        """Report the listed files that no retained state names now. Nothing if a state cannot be read in full."""
        if self._listed <= self.named:
            return
        try:
            for snapshot, needed in self._retained():
                self._name(snapshot, needed)
        except (LakelsmError, OSError):  # Another rule reports it. The names in this state are unknown.
            return
        directory = self._store.paths.manifest_dir
        for name in sorted((self._listed - self.named) & self._found()):
            problem = "no retained state names it: its commit is running or was killed, or its branch was deleted"
            findings.add(MANIFEST_STRAY, f"{directory}/{name}", problem)

    def _found(self) -> set[str]:
        entries = self._store.file_io.entries(self._store.paths.manifest_dir)
        return {entry.name for entry in entries if not entry.is_directory and entry.name.startswith(_PREFIXES)}

    def _retained(self) -> Iterator[tuple[Snapshot, Collection[str | None]]]:
        """Yield the retained states of all branches, each with the lists that must exist. Other lists may have expired.

        Raises CorruptTableError if a state is missing or cannot be read.
        """
        branches = self._store.branches
        for paths in branches.paths():
            try:
                SnapshotManager(self._store.file_io, paths).check_complete()
            except CorruptTableError:
                if branches.is_whole(paths.branch):
                    raise
        for branch in branches.retained():
            yield from ((snapshot, snapshot.metadata_files) for snapshot in branch.snapshots)
            for name, tag in branch.tags.items():
                lists = (tag.snapshot.base_manifest_list, tag.snapshot.delta_manifest_list)
                yield tag.snapshot, () if name.startswith(HOLDING_TAG) else lists
            yield from ((changelog, (changelog.changelog_manifest_list,)) for changelog in branch.changelogs)

    def _name(self, snapshot: Snapshot, needed: Collection[str | None]) -> None:
        paths, lists = self._store.paths, set(snapshot.metadata_files) - {snapshot.index_manifest}
        if snapshot.index_manifest is not None:
            self.named.add(snapshot.index_manifest)
        for name in lists - self.named:
            try:
                metas = read_manifest_list(self._store.file_io, paths, snapshot, name, None)
            except CorruptTableError:
                if name in needed or self._store.file_io.exists(paths.manifest(name)):
                    raise
                continue
            self.named.update((name, *(meta.file_name for meta in metas)))
