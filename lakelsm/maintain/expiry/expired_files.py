"""The files of expiring snapshots and changelogs that no retained state needs.

A data file is a candidate if the delta of an expiring snapshot, or of the first snapshot that stays, deletes it and does
not add it again. Files come and go by deltas alone, so no later snapshot of the branch has the file unless a delta adds
it again. Only an overwrite can do that (for example a rollback that is committed as the newest state), so the deltas of
overwrites are read. If a delta is missing, the whole first snapshot that stays is read instead. A candidate is deleted
unless a tag, another branch or a long-lived changelog needs it:

* A tag of the branch's own history, with the id of an expiring or retained snapshot, has the files of that snapshot. Of
  the older tags, the nearest one before the deletion is always read: if an older tag had the file, this one would too.
  This holds if all tags are of one history. A killed rollback, or an engine that leaves tags behind, may break it.
  Therefore the other tags are read too, unless the file is days younger than these tags.
* Of another branch, the oldest snapshot, the overwrites and the tags are read: the branch shares files from the time of
  its creation, and has ever fewer of them. After a fast-forward both branches have one history with the same ids, so
  its snapshots with ids of expiring ones are read too. So are its long-lived changelogs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import pairwise

from lakelsm.format.manifest import FileKind, ManifestEntry, ManifestFileMeta
from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.format.paths import MAIN_BRANCH
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.maintain.deletion.deletion_candidates import (
    DeletionCandidates,
    FileKey,
    ReferenceFilter,
    file_key,
    read_if_exists,
    unexpired_snapshots,
)
from lakelsm.maintain.expiry.expiry_range import ExpiryRange
from lakelsm.options import ChangelogProducer
from lakelsm.snapshots.branch_store import RetainedBranch
from lakelsm.snapshots.manifest_scan import (
    read_delta_entries,
    read_delta_metas,
    read_index_entries,
    read_manifest,
    read_manifest_list,
)
from lakelsm.snapshots.table_store import TableStore

#: A file counts as younger than a snapshot if it was created this many milliseconds after it. Creation times are wall
#: clocks of any zone (at most 26 hours apart), and clocks may be wrong by a day.
_YOUNGER = 50 * 3_600_000


class ExpiredFiles:
    """Finds the files that an `ExpiryRange` leaves behind. ``kept_by``: the number of files kept, by what keeps them."""

    def __init__(self, store: TableStore, expiring: ExpiryRange) -> None:
        self._store = store
        self._expiring = expiring
        self._deleted_at: dict[FileKey, int] = {}
        self._has_gap = False
        self._keeps_deltas = _ever_without_changelog_files(store)
        self.candidates = DeletionCandidates()
        self.kept_by: dict[str, int] = {}

    def find(self, retained: Sequence[RetainedBranch]) -> DeletionCandidates:
        """Return the files to delete. ``retained`` is all that the table keeps, read after the expiry was announced.

        Raises CorruptTableError if a state that stays cannot be read.
        """
        own = next(branch for branch in retained if branch.paths == self._store.paths)
        others = [branch for branch in retained if branch is not own]
        self._find_data()
        file_io = self._store.file_io
        elsewhere = (s for branch in others for s in (*unexpired_snapshots(file_io, branch), *branch.changelogs))
        self._find_changelog_files({snapshot.changelog_manifest_list for snapshot in elsewhere})
        self._find_metadata()
        needed = ReferenceFilter(self._store, self.candidates)
        self._keep_own_snapshots(needed, own)
        self._keep_changelogs(needed)
        self._keep_own_tags(needed, own)
        for branch in others:
            self._keep_branch(needed, branch)
        return self.candidates

    # -- candidates ------------------------------------------------------------------------------------------------

    def _find_data(self) -> None:
        expiring, store = self._expiring, self._store
        for changelog in expiring.changelogs:
            if changelog.changelog_manifest_list is None:
                delta = read_if_exists(read_delta_entries, store.file_io, store.paths, changelog)
                self._add_deletions(changelog.id, delta or [])
        snapshots = [*expiring.snapshots, expiring.first]
        for before, snapshot in pairwise(snapshots):
            if snapshot is expiring.first:
                delta = read_delta_entries(store.file_io, store.paths, snapshot)
            else:
                delta = read_if_exists(read_delta_entries, store.file_io, store.paths, snapshot)
            self._has_gap |= delta is None or snapshot.id != before.id + 1
            self._add_deletions(snapshot.id, delta or [])
        if self._keeps_deltas and (expiring.new_changelogs or expiring.kept_changelogs):
            self._leave_appended_files()

    def _add_deletions(self, snapshot_id: int, delta: Sequence[ManifestEntry]) -> None:
        deleted = {entry.identity for entry in delta if entry.kind == FileKind.DELETE}
        staying = {file_key(entry) for entry in delta if entry.kind == FileKind.ADD and entry.identity not in deleted}
        for key in staying:
            self.candidates.data.pop(key, None)
        for entry in delta:
            key = file_key(entry)
            if entry.kind == FileKind.DELETE and key not in staying:
                self.candidates.data[key] = entry
                self._deleted_at[key] = snapshot_id

    def _leave_appended_files(self) -> None:
        """Leave appended files to the expiry of changelogs: they are the changelog of a table without changelog files,
        and changelogs that stay may need them."""
        first = self._expiring.first_changelog
        for key, entry in list(self.candidates.data.items()):
            appended = entry.file.file_source in (None, FileSource.APPEND)
            if appended and self._deleted_at[key] >= first:
                del self.candidates.data[key]

    def _find_changelog_files(self, names_of_branches: Collection[str | None]) -> None:
        kept_ids = {snapshot.id for snapshot in self._expiring.new_changelogs}
        without_changelog = [snapshot for snapshot in self._expiring.snapshots if snapshot.id not in kept_ids]
        for snapshot in (*self._expiring.changelogs, *without_changelog):
            name = snapshot.changelog_manifest_list
            if name is None:
                continue
            if name in names_of_branches:
                self.kept_by["branches"] = self.kept_by.get("branches", 0) + 1
                continue
            metas = self._add_list(snapshot, name, snapshot.changelog_manifest_list_size)
            store = self._store
            for meta in metas:
                entries = read_if_exists(read_manifest, store.file_io, store.paths, meta)
                for entry in entries or ():
                    self.candidates.changelog[file_key(entry)] = entry

    def _find_metadata(self) -> None:
        store = self._store
        kept_ids = {snapshot.id for snapshot in self._expiring.new_changelogs}
        for snapshot in self._expiring.snapshots:
            self._add_list(snapshot, snapshot.base_manifest_list, snapshot.base_manifest_list_size)
            if not (snapshot.id in kept_ids and self._keeps_deltas and snapshot.changelog_manifest_list is None):
                self._add_list(snapshot, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
            if snapshot.index_manifest is not None:
                entries = read_if_exists(read_index_entries, store.file_io, store.paths, snapshot)
                self.candidates.add_index(snapshot.index_manifest, entries or ())
            if snapshot.statistics is not None:
                self.candidates.statistics[snapshot.statistics] = 0
        for changelog in self._expiring.changelogs:
            if changelog.changelog_manifest_list is None:
                self._add_list(changelog, changelog.base_manifest_list, changelog.base_manifest_list_size)
                self._add_list(changelog, changelog.delta_manifest_list, changelog.delta_manifest_list_size)

    def _add_list(self, snapshot: Snapshot, name: str, size: int | None) -> Sequence[ManifestFileMeta]:
        """Add a manifest list and its manifests; return the manifests, none if a killed run has deleted the list."""
        store = self._store
        metas = read_if_exists(read_manifest_list, store.file_io, store.paths, snapshot, name, size)
        self.candidates.add_list(name, size, metas or ())
        return metas or ()

    # -- retained states -------------------------------------------------------------------------------------------

    def _keep_own_snapshots(self, needed: ReferenceFilter, own: RetainedBranch) -> None:
        needed.keep_state(self._expiring.first, lambda key: self._has_gap)
        store = self._store
        for snapshot in own.snapshots:
            if snapshot.id > self._expiring.first.id and snapshot.commit_kind is CommitKind.OVERWRITE:
                needed.keep_state(snapshot, lambda key: False)
                delta = read_delta_entries(store.file_io, store.paths, snapshot)
                needed.keep_entries(entry for entry in delta if entry.kind == FileKind.ADD)

    def _keep_changelogs(self, needed: ReferenceFilter) -> None:
        """Keep the manifests of changelogs that are deltas. Manifests of changelog files are in no snapshot."""
        if not self._keeps_deltas or not self.candidates.manifests:
            return
        store = self._store
        kept = (store.changelogs.try_get(snapshot_id) for snapshot_id in self._expiring.kept_changelogs)
        for changelog in (*self._expiring.new_changelogs, *(each for each in kept if each is not None)):
            if changelog.changelog_manifest_list is None:
                metas = read_if_exists(read_delta_metas, store.file_io, store.paths, changelog)
                needed.keep_manifests([changelog.delta_manifest_list], metas or ())

    def _keep_own_tags(self, needed: ReferenceFilter, own: RetainedBranch) -> None:
        expiring = self._expiring
        history = {snapshot.id: _lists(snapshot) for snapshot in (*own.snapshots, *expiring.snapshots, expiring.first)}
        tagged = {tag.snapshot.id for tag in own.tags.values()}
        ids = set(self._deleted_at.values())
        nearest = {at: max((number for number in tagged if number < at), default=None) for at in ids}
        for name, tag in sorted(own.tags.items(), key=lambda item: item[1].snapshot.id, reverse=True):
            state = tag.snapshot
            in_history = history.get(state.id) == _lists(state)
            if in_history and state.id >= expiring.first.id:
                continue  # The snapshot with this id stays, and its files are kept.
            may_hold = partial(self._may_hold, state, in_history, nearest)
            self._count(f"tag {name}", needed.keep_tag(name, state, may_hold))

    def _may_hold(self, state: Snapshot, in_history: bool, nearest: Mapping[int, int | None], key: FileKey) -> bool:
        """Return whether a tag may need a file deleted later. ``nearest``: the last tag id before each deletion."""
        deleted_at = self._deleted_at[key]
        if in_history and deleted_at <= state.id:
            return False
        return nearest[deleted_at] == state.id or not self._is_younger(key, state)

    def _keep_branch(self, needed: ReferenceFilter, branch: RetainedBranch) -> None:
        name = "the main branch" if branch.paths.branch == MAIN_BRANCH else f"branch {branch.paths.branch}"
        snapshots = unexpired_snapshots(self._store.file_io, branch)
        first = self._expiring.first.id
        later = (s for s in snapshots[1:] if s.id < first or s.commit_kind is CommitKind.OVERWRITE)
        states = [*snapshots[:1], *later]
        for state in states:
            self._count(name, needed.keep_state(state))
        for tag_name, tag in branch.tags.items():
            self._count(name, needed.keep_tag(tag_name, tag.snapshot))
        for changelog in branch.changelogs:
            if changelog.changelog_manifest_list is None:
                self._count(name, needed.keep_delta(changelog))

    def _is_younger(self, key: FileKey, state: Snapshot) -> bool:
        made = self.candidates.data[key].file.creation_time_millis
        return made is not None and made > state.time_millis + _YOUNGER

    def _count(self, keeper: str, files: int) -> None:
        if files:
            self.kept_by[keeper] = self.kept_by.get(keeper, 0) + files


def _lists(snapshot: Snapshot) -> tuple[str, str]:
    return snapshot.base_manifest_list, snapshot.delta_manifest_list


def _ever_without_changelog_files(store: TableStore) -> bool:
    """Return whether appended files may be the table's changelog, by the options of its newest or an older schema."""
    if store.options.changelog_producer is ChangelogProducer.NONE:
        return True
    schemas = map(store.schemas.get, store.schemas.ids())
    return any(schema.options.get("changelog-producer", "none") == "none" for schema in schemas)
