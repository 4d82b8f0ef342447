"""What expired snapshots and changelogs leave behind, and what of it nothing that stays needs.

A data file is a candidate where the delta of an expired snapshot, or of the first that stays, deletes it and does not add
it again: files come and go by deltas alone, so it is in no later snapshot of the branch, unless a delta adds it again.
Only overwrites can do that (a rollback that is committed as the newest state), so their deltas are looked at. Where a
delta is missing, the first snapshot that stays is read whole instead. A candidate goes unless a tag, another branch or a
long-lived changelog needs it:

* A tag of the branch's own history with the id of a snapshot that existed before or exists now has what that
  snapshot has. Of the older tags the one nearest before the deletion is always looked at: had an older one the file, so
  would this. That rests on the tags being of one history, which a rollback that was killed, or of an engine that leaves
  tags behind, may break. So the other tags are looked at too, unless the file is days younger than they are.
* Another branch is looked at as its oldest snapshot, its overwrites and its tags: it shares files from the time when it
  was made, and has ever fewer of them. After a fast-forward both have one history, by the same ids, so its snapshots
  with ids of expired ones are looked at too. So are its long-lived changelogs.
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

#: A file is younger than a snapshot that was committed so many milliseconds before it was made. Times of making are wall
#: clocks of any zone (26 hours apart at most), and clocks may be wrong by a day.
_YOUNGER = 50 * 3_600_000


class ExpiredFiles:
    """Finds what expires with an `ExpiryRange`. ``kept_by`` has the files that are kept, by what keeps them."""

    def __init__(self, store: TableStore, going: ExpiryRange) -> None:
        self._store = store
        self._going = going
        self._deleted_at: dict[FileKey, int] = {}
        self._has_gap = False
        self._keeps_deltas = _ever_without_changelog_files(store)
        self.found = DeletionCandidates()
        self.kept_by: dict[str, int] = {}

    def find(self, retained: Sequence[RetainedBranch]) -> DeletionCandidates:
        """Return what may be deleted. ``retained`` is all that the table keeps, read after the expiry was announced.

        Raises CorruptTableError where something that stays cannot be read.
        """
        own = next(branch for branch in retained if branch.paths == self._store.paths)
        others = [branch for branch in retained if branch is not own]
        self._find_data()
        file_io = self._store.file_io
        elsewhere = (s for branch in others for s in (*unexpired_snapshots(file_io, branch), *branch.changelogs))
        self._find_changelog_files({snapshot.changelog_manifest_list for snapshot in elsewhere})
        self._find_metadata()
        needed = ReferenceFilter(self._store, self.found)
        self._keep_own_snapshots(needed, own)
        self._keep_changelogs(needed)
        self._keep_own_tags(needed, own)
        for branch in others:
            self._keep_branch(needed, branch)
        return self.found

    # -- what goes -------------------------------------------------------------------------------------------------

    def _find_data(self) -> None:
        going, store = self._going, self._store
        for changelog in going.changelogs:
            if changelog.changelog_manifest_list is None:
                delta = read_if_exists(read_delta_entries, store.file_io, store.paths, changelog)
                self._add_deletions(changelog.id, delta or [])
        snapshots = [*going.snapshots, going.first]
        for before, snapshot in pairwise(snapshots):
            if snapshot is going.first:
                delta = read_delta_entries(store.file_io, store.paths, snapshot)
            else:
                delta = read_if_exists(read_delta_entries, store.file_io, store.paths, snapshot)
            self._has_gap |= delta is None or snapshot.id != before.id + 1
            self._add_deletions(snapshot.id, delta or [])
        if self._keeps_deltas and (going.turned or going.kept_changelogs):
            self._put_off_appended()

    def _add_deletions(self, snapshot_id: int, delta: Sequence[ManifestEntry]) -> None:
        deleted = {entry.identity for entry in delta if entry.kind == FileKind.DELETE}
        staying = {file_key(entry) for entry in delta if entry.kind == FileKind.ADD and entry.identity not in deleted}
        for key in staying:
            self.found.data.pop(key, None)
        for entry in delta:
            key = file_key(entry)
            if entry.kind == FileKind.DELETE and key not in staying:
                self.found.data[key] = entry
                self._deleted_at[key] = snapshot_id

    def _put_off_appended(self) -> None:
        """Leave to the expiry of changelogs what they may need: files of appends, which are the changelog of a table that
        writes no changelog files."""
        first = self._going.first_changelog
        for key, entry in list(self.found.data.items()):
            appended = entry.file.file_source in (None, FileSource.APPEND)
            if appended and self._deleted_at[key] >= first:
                del self.found.data[key]

    def _find_changelog_files(self, of_branches: Collection[str | None]) -> None:
        turned = {snapshot.id for snapshot in self._going.turned}
        dying = [snapshot for snapshot in self._going.snapshots if snapshot.id not in turned]
        for snapshot in (*self._going.changelogs, *dying):
            name = snapshot.changelog_manifest_list
            if name is None:
                continue
            if name in of_branches:
                self.kept_by["branches"] = self.kept_by.get("branches", 0) + 1
                continue
            metas = self._add_list(snapshot, name, snapshot.changelog_manifest_list_size)
            store = self._store
            for meta in metas:
                entries = read_if_exists(read_manifest, store.file_io, store.paths, meta)
                for entry in entries or ():
                    self.found.changelog[file_key(entry)] = entry

    def _find_metadata(self) -> None:
        store = self._store
        turned = {snapshot.id for snapshot in self._going.turned}
        for snapshot in self._going.snapshots:
            self._add_list(snapshot, snapshot.base_manifest_list, snapshot.base_manifest_list_size)
            if not (snapshot.id in turned and self._keeps_deltas and snapshot.changelog_manifest_list is None):
                self._add_list(snapshot, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
            if snapshot.index_manifest is not None:
                entries = read_if_exists(read_index_entries, store.file_io, store.paths, snapshot)
                self.found.add_index(snapshot.index_manifest, entries or ())
            if snapshot.statistics is not None:
                self.found.statistics[snapshot.statistics] = 0
        for changelog in self._going.changelogs:
            if changelog.changelog_manifest_list is None:
                self._add_list(changelog, changelog.base_manifest_list, changelog.base_manifest_list_size)
                self._add_list(changelog, changelog.delta_manifest_list, changelog.delta_manifest_list_size)

    def _add_list(self, snapshot: Snapshot, name: str, size: int | None) -> Sequence[ManifestFileMeta]:
        """Add a manifest list and its manifests; return these: none where a run that was killed deleted the list."""
        store = self._store
        metas = read_if_exists(read_manifest_list, store.file_io, store.paths, snapshot, name, size)
        self.found.add_list(name, size, metas or ())
        return metas or ()

    # -- what stays ------------------------------------------------------------------------------------------------

    def _keep_own_snapshots(self, needed: ReferenceFilter, own: RetainedBranch) -> None:
        needed.keep_state(self._going.first, lambda key: self._has_gap)
        store = self._store
        for snapshot in own.snapshots:
            if snapshot.id > self._going.first.id and snapshot.commit_kind is CommitKind.OVERWRITE:
                needed.keep_state(snapshot, lambda key: False)
                delta = read_delta_entries(store.file_io, store.paths, snapshot)
                needed.keep_entries(entry for entry in delta if entry.kind == FileKind.ADD)

    def _keep_changelogs(self, needed: ReferenceFilter) -> None:
        """Keep the manifests of long-lived changelogs that are deltas; those of changelog files are in no snapshot."""
        if not self._keeps_deltas or not self.found.manifests:
            return
        store = self._store
        kept = (store.changelogs.try_get(snapshot_id) for snapshot_id in self._going.kept_changelogs)
        for changelog in (*self._going.turned, *(each for each in kept if each is not None)):
            if changelog.changelog_manifest_list is None:
                metas = read_if_exists(read_delta_metas, store.file_io, store.paths, changelog)
                needed.keep_manifests([changelog.delta_manifest_list], metas or ())

    def _keep_own_tags(self, needed: ReferenceFilter, own: RetainedBranch) -> None:
        going = self._going
        history = {snapshot.id: _lists(snapshot) for snapshot in (*own.snapshots, *going.snapshots, going.first)}
        tagged = {tag.snapshot.id for tag in own.tags.values()}
        ids = set(self._deleted_at.values())
        nearest = {at: max((number for number in tagged if number < at), default=None) for at in ids}
        for name, tag in sorted(own.tags.items(), key=lambda item: item[1].snapshot.id, reverse=True):
            state = tag.snapshot
            in_history = history.get(state.id) == _lists(state)
            if in_history and state.id >= going.first.id:
                continue  # That snapshot stays, and what it needs is kept.
            may_hold = partial(self._may_hold, state, in_history, nearest)
            self._count(f"tag {name}", needed.keep_tag(name, state, may_hold))

    def _may_hold(self, state: Snapshot, in_history: bool, nearest: Mapping[int, int | None], key: FileKey) -> bool:
        """Whether a tag's state may have a file that went later; ``nearest`` are the last tags before deletions."""
        deleted_at = self._deleted_at[key]
        if in_history and deleted_at <= state.id:
            return False
        return nearest[deleted_at] == state.id or not self._is_younger(key, state)

    def _keep_branch(self, needed: ReferenceFilter, branch: RetainedBranch) -> None:
        name = "the main branch" if branch.paths.branch == MAIN_BRANCH else f"branch {branch.paths.branch}"
        snapshots = unexpired_snapshots(self._store.file_io, branch)
        first = self._going.first.id
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
        made = self.found.data[key].file.creation_time_millis
        return made is not None and made > state.time_millis + _YOUNGER

    def _count(self, who: str, files: int) -> None:
        if files:
            self.kept_by[who] = self.kept_by.get(who, 0) + files


def _lists(snapshot: Snapshot) -> tuple[str, str]:
    return snapshot.base_manifest_list, snapshot.delta_manifest_list


def _ever_without_changelog_files(store: TableStore) -> bool:
    """Whether the table's appended files may be its changelog: by the options that it has, or had under any schema."""
    if store.options.changelog_producer is ChangelogProducer.NONE:
        return True
    schemas = map(store.schemas.get, store.schemas.ids())
    return any(schema.options.get("changelog-producer", "none") == "none" for schema in schemas)
