"""The files of states that are deleted for another reason than their age: of deleted tags, and of a rollback.

Files of such a state are candidates. They are deleted unless a state needs them that is retained afterwards.
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

#: Attempts to read what is retained if some of it is deleted during the read.
_TRIES = 5


def are_retained(store: TableStore, branches: Sequence[RetainedBranch]) -> bool:
    """Whether all that branches retained when they were read still exists and is not expiring."""
    return _fingerprints(store, branches) <= _fingerprints(store, store.branches.retained())


def _fingerprints(store: TableStore, branches: Sequence[RetainedBranch]) -> set[tuple[str, str, str]]:
    found: set[tuple[str, str, str]] = set()
    for branch in branches:
        name, begun = branch.paths.branch, SnapshotManager(store.file_io, branch.paths).earliest_id() or 0
        found.update((name, "snapshot", each.fingerprint) for each in branch.snapshots if each.id >= begun)
        found.update((name, f"tag {tag}", each.snapshot.fingerprint) for tag, each in branch.tags.items())
        found.update((name, "changelog", each.fingerprint) for each in branch.changelogs)
    return found


def _whole(branch: RetainedBranch) -> RetainedBranch:
    return branch


class RemovedStates:
    """Gathers the files of states that go, while they can still be read, and then what of them nothing needs."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._changelogs: dict[str, Snapshot] = {}
        self._changelog_files: dict[str, tuple[Sequence[ManifestFileMeta], Sequence[ManifestEntry]]] = {}
        self._seen: set[tuple[str, str]] = set()
        self._re_adds = False
        self._newest_state = 0
        self.found = DeletionCandidates()

    @property
    def files(self) -> int:
        """How many there are, those beside data files not counted."""
        return len(self.found.data) + len(self.found.changelog) + self.found.metadata

    def add_state(self, state: Snapshot) -> None:
        """All that a state names but its changelog, which goes when the snapshot expires."""
        live = read_live_entries(self._store.file_io, self._store.paths, state, stats=False)
        self.found.data.update((file_key(entry), entry) for entry in live)
        self._add_metadata(state)
        self._newest_state = max(self._newest_state, state.id)

    def add_commit(self, snapshot: Snapshot) -> None:
        """What a snapshot has beside the one before it: the files that its delta adds, its changelog and metadata."""
        self._add_files(read_delta_entries(self._store.file_io, self._store.paths, snapshot))
        self._add_metadata(snapshot)
        if snapshot.changelog_manifest_list is not None:
            self._changelogs[snapshot.changelog_manifest_list] = snapshot
        self._re_adds |= snapshot.commit_kind is CommitKind.OVERWRITE

    def add_changelog(self, changelog: Snapshot) -> None:
        """A long-lived changelog: its changelog files, or what its delta adds, with the manifests of these."""
        if changelog.changelog_manifest_list is not None:
            self._changelogs[changelog.changelog_manifest_list] = changelog
            return
        delta = read_if_exists(read_delta_entries, self._store.file_io, self._store.paths, changelog)
        if delta is not None:
            self._add_files(delta)
            self._add_list(changelog, changelog.delta_manifest_list, changelog.delta_manifest_list_size)

    def keep_retained(
        self, newest: Snapshot | None = None, left: Callable[[RetainedBranch], RetainedBranch] = _whole
    ) -> None:
        """`keep` of all that is retained now, or what is ``left`` of each branch; tried again where some of it goes."""
        for attempt in range(_TRIES):
            try:
                return self.keep([left(branch) for branch in self._store.branches.retained()], newest)
            except CommitConflictError:
                if attempt + 1 == _TRIES:
                    raise

    def keep(self, retained: Sequence[RetainedBranch], newest: Snapshot | None = None) -> None:
        """Take out what anything retained needs; ``newest`` is the one before the commits that went.

        Called before any deletion, so that an unreadable state stops everything, and again afterwards, for what is
        retained since: only that is then read. Raises CorruptTableError if something retained cannot be
        read, CommitConflictError if some of it expired or was removed during the read.
        """
        try:
            self._keep(retained, newest)
        except CorruptTableError as error:
            if are_retained(self._store, retained):
                raise
            raise CommitConflictError(
                f"Table {self._store.name}: others expire or remove what it retains while it is looked at which files "
                "that needs. None was deleted: run it again; what nobody needs any more goes with remove_orphans() too."
            ) from error

    def _keep(self, retained: Sequence[RetainedBranch], newest: Snapshot | None) -> None:
        self._find_changelog_files(retained)
        needed = ReferenceFilter(self._store, self.found)
        for tag, state in self._states(retained, newest):
            lists = state.base_manifest_list, state.delta_manifest_list
            if lists not in self._seen and self.files:
                needed.keep_state(state) if tag is None else needed.keep_tag(tag, state)
                self._seen.add(lists)
        for changelog in (changelog for branch in retained for changelog in branch.changelogs):
            if changelog.changelog_manifest_list is None and self.files:
                needed.keep_delta(changelog)

    def delete(self) -> DeletedFiles:
        """Delete what is left, in the order of `DeletionCandidates.paths`."""
        waves = self.found.paths(self._store)
        return sum((delete_unneeded(self._store.file_io, paths) for paths in waves), DeletedFiles())

    def _states(
        self, retained: Sequence[RetainedBranch], newest: Snapshot | None
    ) -> Iterator[tuple[str | None, Snapshot]]:
        """What may need a candidate, with the name of its tag where it is one's.

        Of the branch's own snapshots those are enough that come right after a state that went, or right before: files
        come and go by deltas, so no other has one of its files, unless an overwrite adds it again, or the state is one of
        a tag that outlived a rollback: what it went on from may be any. Other branches may have any part of the history.
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
        """Add the files of changelogs that nothing retained has, and take those out for good that something has."""
        states = (state for branch in retained for state in (*branch.snapshots, *branch.changelogs))
        kept = {state.changelog_manifest_list for state in states}
        for name, snapshot in list(self._changelogs.items()):
            if name in kept:
                del self._changelogs[name]
                self.found.lists.pop(name, None)
                metas, entries = self._changelog_files.pop(name, ((), ()))
                for meta in metas:
                    self.found.manifests.pop(meta.file_name, None)
                for entry in entries:
                    self.found.changelog.pop(file_key(entry), None)
            elif name not in self._changelog_files:
                entries = read_changelog_entries(self._store.file_io, self._store.paths, snapshot)
                metas = self._add_list(snapshot, name, snapshot.changelog_manifest_list_size)
                self._changelog_files[name] = metas, entries
                self.found.changelog.update((file_key(entry), entry) for entry in entries)

    def _add_files(self, delta: Iterable[ManifestEntry]) -> None:
        self.found.data.update((file_key(entry), entry) for entry in delta if entry.kind == FileKind.ADD)

    def _add_metadata(self, state: Snapshot) -> None:
        self._add_list(state, state.base_manifest_list, state.base_manifest_list_size)
        self._add_list(state, state.delta_manifest_list, state.delta_manifest_list_size)
        if state.index_manifest is not None:
            entries = read_index_entries(self._store.file_io, self._store.paths, state)
            self.found.add_index(state.index_manifest, entries)
        if state.statistics is not None:
            self.found.statistics[state.statistics] = 0

    def _add_list(self, snapshot: Snapshot, name: str, size: int | None) -> Sequence[ManifestFileMeta]:
        metas = read_manifest_list(self._store.file_io, self._store.paths, snapshot, name, size)
        self.found.add_list(name, size, metas)
        return metas
