"""States that a rollback or the deletion of tags removes, and the files that only they needed.

Expiry removes states by age, in another way (`maintain/expiry/expired_files.py`). The files of a removed state are
deletion candidates. They are deleted unless a retained state needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from lakelsm.errors import CommitConflictError, CorruptTableError
from lakelsm.format.manifest import FileKind, ManifestEntry, ManifestFileMeta
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.maintain.deletion.deletion_candidates import (
    DeletionCandidates,
    ReferenceFilter,
    file_key,
    read_if_exists,
    unexpired_snapshots,
)
from lakelsm.maintain.deletion.file_deletion import DeletedFiles, delete_unneeded
from lakelsm.snapshots.branch_store import RetainedBranch
from lakelsm.snapshots.manifest_scan import (
    read_changelog_entries,
    read_delta_entries,
    read_index_entries,
    read_live_entries,
    read_manifest_list,
)
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.table_store import TableStore

#: Attempts to read the retained states if one of them is deleted during the read.
_TRIES = 5


def are_retained(store: TableStore, branches: Sequence[RetainedBranch]) -> bool:
    """Return whether all states that branches retained when they were read still exist and are not expiring."""
    return _fingerprints(store, branches) <= _fingerprints(store, store.branches.retained())


def _fingerprints(store: TableStore, branches: Sequence[RetainedBranch]) -> set[tuple[str, str, str]]:
    found: set[tuple[str, str, str]] = set()
    for branch in branches:
        name, earliest = branch.paths.branch, SnapshotManager(store.file_io, branch.paths).earliest_id() or 0
        found.update((name, "snapshot", each.fingerprint) for each in branch.snapshots if each.id >= earliest)
        found.update((name, f"tag {tag}", each.snapshot.fingerprint) for tag, each in branch.tags.items())
        found.update((name, "changelog", each.fingerprint) for each in branch.changelogs)
    return found


class RemovedStates:
    """Collects the files of removed states while these can be read. Then keeps those that retained states need."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._changelogs: dict[str, Snapshot] = {}
        self._changelog_files: dict[str, tuple[Sequence[ManifestFileMeta], Sequence[ManifestEntry]]] = {}
        self._seen: set[tuple[str, str]] = set()
        self._re_adds = False
        self._newest_state = 0
        self.candidates = DeletionCandidates()

    @property
    def files(self) -> int:
        """The number of candidates, without file indexes and other extra files of data files."""
        return len(self.candidates.data) + len(self.candidates.changelog) + self.candidates.metadata

    def add_state(self, state: Snapshot) -> None:
        """Add what a state names, except its changelog, which is deleted when the snapshot expires."""
        live = read_live_entries(self._store.file_io, self._store.paths, state, stats=False)
        self.candidates.data.update((file_key(entry), entry) for entry in live)
        self._add_metadata(state)
        self._newest_state = max(self._newest_state, state.id)

    def add_commit(self, snapshot: Snapshot) -> None:
        """Add what a snapshot has beyond its predecessor: files that its delta adds, its changelog and its metadata."""
        self._add_files(read_delta_entries(self._store.file_io, self._store.paths, snapshot))
        self._add_metadata(snapshot)
        if snapshot.changelog_manifest_list is not None:
            self._changelogs[snapshot.changelog_manifest_list] = snapshot
        self._re_adds |= snapshot.commit_kind is CommitKind.OVERWRITE

    def add_changelog(self, changelog: Snapshot) -> None:
        """Add a long-lived changelog: its changelog files or the files that its delta adds, and their manifests."""
        if changelog.changelog_manifest_list is not None:
            self._changelogs[changelog.changelog_manifest_list] = changelog
            return
        delta = read_if_exists(read_delta_entries, self._store.file_io, self._store.paths, changelog)
        if delta is not None:
            self._add_files(delta)
            self._add_list(changelog, changelog.delta_manifest_list, changelog.delta_manifest_list_size)

    def keep_retained(
        self,
        newest: Snapshot | None = None,
        remaining: Callable[[RetainedBranch], RetainedBranch] = lambda branch: branch,
    ) -> None:
        """Call `keep` with all branches, each as ``remaining`` returns it. Retries if a retained state is deleted."""
        for attempt in range(_TRIES):
            try:
                return self.keep([remaining(branch) for branch in self._store.branches.retained()], newest)
            except CommitConflictError:
                if attempt + 1 == _TRIES:
                    raise

    def keep(self, retained: Sequence[RetainedBranch], newest: Snapshot | None = None) -> None:
        """Remove the candidates that retained states need. ``newest`` is the snapshot before the removed commits.

        Call it before any deletion, so that an unreadable state stops everything, and again after the states are removed:
        the second call reads only states that are new since the first. Raises CorruptTableError if a retained state
        cannot be read, and CommitConflictError if one of them expired or was deleted during the read.
        """
        try:
            self._keep(retained, newest)
        except CorruptTableError as error:
            if are_retained(self._store, retained):
                raise
            raise CommitConflictError(
                f"Table {self._store.name}: other processes expired or deleted states while this call read them. No file "
                "was deleted: run it again, or call remove_orphans() later."
            ) from error

    def _keep(self, retained: Sequence[RetainedBranch], newest: Snapshot | None) -> None:
        self._find_changelog_files(retained)
        needed = ReferenceFilter(self._store, self.candidates)
        for tag, state in self._states(retained, newest):
            lists = state.base_manifest_list, state.delta_manifest_list
            if lists not in self._seen and self.files:
                needed.keep_state(state) if tag is None else needed.keep_tag(tag, state)
                self._seen.add(lists)
        for changelog in (changelog for branch in retained for changelog in branch.changelogs):
            if changelog.changelog_manifest_list is None and self.files:
                needed.keep_delta(changelog)

    def delete(self) -> DeletedFiles:
        """Delete the remaining candidates, in the order of `DeletionCandidates.paths`."""
        waves = self.candidates.paths(self._store)
        return sum((delete_unneeded(self._store.file_io, paths) for paths in waves), DeletedFiles())

    def _states(
        self, retained: Sequence[RetainedBranch], newest: Snapshot | None
    ) -> Iterator[tuple[str | None, Snapshot]]:
        """Yield the states that may need a candidate, with the name of the tag if the state is that of a tag.

        Of the branch's own snapshots, the ones directly after and before the removed states are enough: files come and
        go by deltas, so no other snapshot has a file of these states. There are two exceptions: an overwrite may add a
        file again, and a tag that outlived a rollback may be based on any snapshot. Other branches may share any part of
        the history.
        """
        for branch in retained:
            snapshots = unexpired_snapshots(self._store.file_io, branch)
            own = branch.paths == self._store.paths
            is_older = not snapshots or self._newest_state < snapshots[0].id
            overwrites = any(each.commit_kind is CommitKind.OVERWRITE for each in snapshots)
            if own and is_older and not self._re_adds and not overwrites:
                snapshots = [*snapshots[:1], *([newest] if newest is not None else [])]
            yield from ((None, snapshot) for snapshot in snapshots)
            yield from ((name, tag.snapshot) for name, tag in branch.tags.items())

    def _find_changelog_files(self, retained: Sequence[RetainedBranch]) -> None:
        """Add the changelog files of removed states, and drop those that a retained state has."""
        states = (state for branch in retained for state in (*branch.snapshots, *branch.changelogs))
        kept = {state.changelog_manifest_list for state in states}
        for name, snapshot in list(self._changelogs.items()):
            if name in kept:
                del self._changelogs[name]
                self.candidates.lists.pop(name, None)
                metas, entries = self._changelog_files.pop(name, ((), ()))
                for meta in metas:
                    self.candidates.manifests.pop(meta.file_name, None)
                for entry in entries:
                    self.candidates.changelog.pop(file_key(entry), None)
            elif name not in self._changelog_files:
                entries = read_changelog_entries(self._store.file_io, self._store.paths, snapshot)
                metas = self._add_list(snapshot, name, snapshot.changelog_manifest_list_size)
                self._changelog_files[name] = metas, entries
                self.candidates.changelog.update((file_key(entry), entry) for entry in entries)

    def _add_files(self, delta: Iterable[ManifestEntry]) -> None:
        self.candidates.data.update((file_key(entry), entry) for entry in delta if entry.kind == FileKind.ADD)

    def _add_metadata(self, state: Snapshot) -> None:
        self._add_list(state, state.base_manifest_list, state.base_manifest_list_size)
        self._add_list(state, state.delta_manifest_list, state.delta_manifest_list_size)
        if state.index_manifest is not None:
            entries = read_index_entries(self._store.file_io, self._store.paths, state)
            self.candidates.add_index(state.index_manifest, entries)
        if state.statistics is not None:
            self.candidates.statistics[state.statistics] = 0

    def _add_list(self, snapshot: Snapshot, name: str, size: int | None) -> Sequence[ManifestFileMeta]:
        metas = read_manifest_list(self._store.file_io, self._store.paths, snapshot, name, size)
        self.candidates.add_list(name, size, metas)
        return metas
