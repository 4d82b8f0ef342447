"""Files of the manifest directory that nothing retained names: of a commit under way, a killed one, a deleted branch."""

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
    """Lists the manifest directory when it is made, which must be before any snapshot is read.

    ``named`` takes the names of the lists, manifests and index manifests that a check has read. A list is in it only with
    the manifests that it names.
    """

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._listed = self._found()
        self.named: set[str] = set()

    def tell(self, findings: Findings) -> None:
        """Tell of the listed files that no retained state names now; of none where a state cannot be read in full."""
        if self._listed <= self.named:
            return
        try:
            for snapshot, needed in self._retained():
                self._name(snapshot, needed)
        except (LakelsmError, OSError):  # A finding of another rule. What the state names is not known.
            return
        directory = self._store.paths.manifest_dir
        for name in sorted((self._listed - self.named) & self._found()):
            problem = "nothing retained names it: it is of a commit under way, of a killed one, or of a deleted branch"
            findings.add(MANIFEST_STRAY, f"{directory}/{name}", problem)

    def _found(self) -> set[str]:
        entries = self._store.file_io.entries(self._store.paths.manifest_dir)
        return {entry.name for entry in entries if not entry.is_directory and entry.name.startswith(_PREFIXES)}

    def _retained(self) -> Iterator[tuple[Snapshot, Collection[str | None]]]:
        """The states that all branches retain, each with the lists that must exist; others go with their snapshot.

        Raises CorruptTableError where a state is missing or cannot be read.
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
