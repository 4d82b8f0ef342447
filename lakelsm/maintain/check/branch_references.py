"""What a branch retains, and whether all that it names is there, from schemas and snapshots down to files.

The newest snapshot, the oldest and the tags are judged as states, of the others what each adds to the one before: so no
file of a retained state is left out, and none is looked at for each snapshot that has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import pairwise

import numpy as np

from lakelsm.arguments import CONSUMER_PREFIX, TAG_PREFIX
from lakelsm.errors import LakelsmError
from lakelsm.format.file_names import refuse_external_path
from lakelsm.format.index.index_manifest import IndexManifestEntry
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.manifest.manifest_file import EntryBatch
from lakelsm.format.manifest.manifest_list import ManifestFileMeta
from lakelsm.format.snapshot import Snapshot
from lakelsm.json_document import parse_object
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.hints import Hints
from lakelsm.maintain.check.manifests import ManifestDigest, Manifests, live_files
from lakelsm.maintain.check.rules import (
    CHANGELOG_GAP,
    CHANGELOG_UNREADABLE,
    CONSUMER_BEHIND,
    CONSUMER_UNREADABLE,
    FILE_NOT_ADDED,
    FILE_TWICE,
    INDEX_FILE_MISSING,
    INDEX_FILE_SIZE,
    INDEX_MANIFEST_UNREADABLE,
    MANIFEST_LIST_UNREADABLE,
    MANIFEST_TWICE,
    ROLLBACK_UNFINISHED,
    SCHEMA_UNREADABLE,
    SNAPSHOT_COUNTS,
    SNAPSHOT_GAP,
    SNAPSHOT_UNREADABLE,
    STATISTICS_UNREADABLE,
    TAG_UNFINISHED,
    TAG_UNREADABLE,
    Rule,
)
from lakelsm.maintain.check.stored_files import StoredFiles
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.consumer_store import ROLLBACK_CONSUMER
from lakelsm.snapshots.manifest_scan import read_index_entries, read_manifest_list
from lakelsm.snapshots.snapshot_manager import MAX_SNAPSHOT_BYTES
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG

#: A size that no statistics file has.
_MAX_STATISTICS_BYTES = 64 << 20


@dataclass
class CheckedState:
    """A snapshot as its manifests have it; ``is_whole``: all of them could be read.

    ``index_entries`` is None where the index manifest cannot be read.
    """

    snapshot: Snapshot
    owner: str
    _: KW_ONLY
    batches: list[EntryBatch] = field(default_factory=list)
    index_entries: Sequence[IndexManifestEntry] | None = ()
    is_whole: bool = True


@dataclass
class _Listed:
    """The manifests of one snapshot: of its base list and delta list; None for a list that cannot be read."""

    base: list[ManifestFileMeta] | None
    delta: list[ManifestFileMeta] | None

    @property
    def metas(self) -> list[ManifestFileMeta]:
        found = {meta.file_name: meta for meta in (*(self.base or ()), *(self.delta or ()))}
        return list(found.values())

    @property
    def whole(self) -> bool:
        return self.base is not None and self.delta is not None


class BranchReferences:
    """Follows the references of one branch. ``proceed`` is asked before each snapshot whether there is time left.

    ``named`` takes the names of the metadata files that are read (`StrayManifests.named`).
    ``judge_tag`` is called with the state of each tag and ``judge_changelog`` with the entries of each changelog, where
    these are asked for.
    """

    def __init__(
        self,
        store: TableStore,
        stored: StoredFiles,
        findings: Findings,
        proceed: Callable[[], bool],
        *,
        named: set[str],
        judge_tag: Callable[[CheckedState], None] | None = None,
        judge_changelog: Callable[[Sequence[ManifestEntry], str], None] | None = None,
    ) -> None:
        self._store = store
        self._stored = stored
        self._findings = findings
        self._proceed = proceed
        self._named = named
        self._judge_tag = judge_tag
        self._judge_changelog = judge_changelog
        self._manifests = Manifests(store, stored, findings)
        self._seen: set[str] = set()
        self._marks: dict[str, str] = {}
        self._schema_ids: Sequence[int] = ()
        self._index_entries: dict[str, Sequence[IndexManifestEntry] | None] = {}
        self.schemas: dict[int, TableSchema] = {}
        self.snapshots = self.tags = 0

    @property
    def manifests(self) -> int:
        """How many manifests have been read."""
        return self._manifests.count

    def replaced(self, owners: Collection[str]) -> Iterator[str]:
        """Those of some snapshots and tags that are others now: after a rollback a commit takes a removed id again."""
        for owner in self._marks.keys() & owners:
            with suppress(LakelsmError, OSError):  # It is gone, or damaged by now.
                found = Snapshot.from_json(self._store.file_io.read(owner, MAX_SNAPSHOT_BYTES), owner)
                if found.mark != self._marks[owner]:
                    yield owner

    def follow(self) -> CheckedState | None:
        """Follow all references; return the newest snapshot of which all manifests can be read."""
        self._read_schemas()
        snapshots = self._read_snapshots()
        changelogs = self._read_changelogs()
        first = min([snapshot.id for snapshot in (*snapshots, *changelogs)], default=1)
        self._check_consumers(first)
        newest = None
        for place, snapshot in enumerate(reversed(snapshots)):
            if not self._proceed():
                return newest
            owner = self._store.paths.snapshot_file(snapshot.id)
            is_end = newest is None or place == len(snapshots) - 1
            state = self._follow_state(snapshot, owner, is_end, keeps_batches=newest is None)
            newest = newest or (state if state.is_whole else None)
        for name, tagged in self._read_tags():
            if self._proceed():
                # A tag keeps a state; the changes of its commit go with the snapshot.
                kept = replace(tagged, changelog_manifest_list=None, changelog_record_count=None)
                judged = self._judge_tag is not None
                state = self._follow_state(kept, self._store.paths.tag(name), is_end=True, keeps_batches=judged)
                if self._judge_tag is not None and state.is_whole:
                    self._judge_tag(state)
        for changelog in changelogs:
            if self._proceed():
                self._follow_changelog(changelog, self._store.paths.changelog(changelog.id))
        return newest

    # -- what a branch retains ----------------------------------------------------------------------------------------

    def _read_schemas(self) -> None:
        self._schema_ids = self._store.schemas.ids()
        for schema_id in self._schema_ids:
            path = self._store.paths.schema_file(schema_id)
            with self._findings.instead_of_errors(SCHEMA_UNREADABLE, path, path):
                self.schemas[schema_id] = self._store.schemas.get(schema_id)

    def _read_snapshots(self) -> list[Snapshot]:
        """Those that can be read, ascending."""
        manager, hints = self._store.snapshots, Hints(self._store, self._findings)
        ids, path_of = hints.kept(manager.ids()), self._store.paths.snapshot_file
        found = self._read_row(ids, manager.try_get, path_of, SNAPSHOT_UNREADABLE)
        self._tell_gaps(ids, path_of, SNAPSHOT_GAP, self._unfinished_rollback())
        self.snapshots = len(found)
        hints.check_latest(ids)
        return found

    def _read_changelogs(self) -> list[Snapshot]:
        changelogs = self._store.changelogs
        ids, path_of = changelogs.ids(), self._store.paths.changelog
        self._tell_gaps(ids, path_of, CHANGELOG_GAP)
        return self._read_row(ids, changelogs.try_get, path_of, CHANGELOG_UNREADABLE)

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

    def _read_tags(self) -> Iterator[tuple[str, Snapshot]]:
        tags = self._store.tags
        for name in tags.names():
            found = None
            path = f"{self._store.paths.tag_dir}/{TAG_PREFIX}{name}"
            if name.startswith(HOLDING_TAG):  # What it names may have been gone when it was made.
                problem = "a process is making a tag, or was killed while it did"
                self._findings.add(TAG_UNFINISHED, path, problem, path)
                continue
            with self._findings.instead_of_errors(TAG_UNREADABLE, path, path):
                found = tags.try_get(name)
            if found is not None:
                self.tags += 1
                yield name, found.snapshot

    def _check_consumers(self, first: int) -> None:
        consumers, paths = self._store.consumers, self._store.paths
        for name in consumers.names():
            path = f"{paths.consumer_dir}/{CONSUMER_PREFIX}{name}"
            with self._findings.instead_of_errors(CONSUMER_UNREADABLE, path, path):
                following = consumers.try_get(name)
                is_behind = following is not None and following < first
                if is_behind and not name.startswith(ROLLBACK_CONSUMER):  # A rollback brings back what it holds.
                    problem = f"it reads snapshot {following} next, and the oldest changes are those of {first}"
                    self._findings.add(CONSUMER_BEHIND, path, problem, path)

    # -- what a state names -------------------------------------------------------------------------------------------

    def _follow_state(self, snapshot: Snapshot, owner: str, is_end: bool, keeps_batches: bool) -> CheckedState:
        """Follow a snapshot; ``is_end``: all of its live files, else those that it adds."""
        state = CheckedState(snapshot, owner)
        self._marks[owner] = snapshot.mark
        if snapshot.schema_id not in self.schemas:
            path = self._store.paths.schema_file(snapshot.schema_id)
            if snapshot.schema_id not in self._schema_ids:
                self._findings.add(SCHEMA_UNREADABLE, path, "it does not exist, but a snapshot names it", owner)
        for schema in self.schemas.values():
            self._check_schema(schema, snapshot, owner)
        listed = _Listed(
            self._list(snapshot, snapshot.base_manifest_list, snapshot.base_manifest_list_size, owner),
            self._list(snapshot, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size, owner),
        )
        self._check_named_once(listed, owner)
        if keeps_batches:
            state.batches = [batch for meta in listed.metas for batch in self._manifests.opened(meta, owner)]
        digests = {meta.file_name: self._manifests.digest(meta, owner) for meta in listed.metas}
        read = [digest for digest in digests.values() if digest is not None]
        state.is_whole = listed.whole and len(read) == len(digests)
        if state.is_whole:
            own = {meta.file_name for meta in listed.delta or ()}
            delta = [digest for name, digest in digests.items() if digest is not None and name in own]
            self._check_counts(snapshot, read, delta, owner)
            if is_end:
                self._check_identities(read, owner)
            self._manifests.tell_missed(read if is_end else delta, live_files(read) if is_end else None, owner)
        self._follow_changelog(snapshot, owner)
        state.index_entries = self._follow_index_manifest(snapshot, owner)
        self._follow_statistics(snapshot, owner)
        return state

    def _check_schema(self, schema: TableSchema, snapshot: Snapshot, owner: str) -> None:
        """Compare a schema file with what a snapshot knows of it, until one finds a fault."""
        path = self._store.paths.schema_file(schema.id)
        if path in self._seen:
            return
        try:
            self._store.schemas.check_file(schema, snapshot)
        except LakelsmError as error:
            self._seen.add(path)
            self._findings.add(SCHEMA_UNREADABLE, path, str(error), owner)

    def _list(self, snapshot: Snapshot, name: str, size: int | None, owner: str) -> list[ManifestFileMeta] | None:
        path = self._store.paths.manifest(name)
        try:
            metas = read_manifest_list(self._store.file_io, self._store.paths, snapshot, name, size)
            self._named.update((name, *(meta.file_name for meta in metas)))
            return metas
        except (LakelsmError, OSError) as error:
            self._findings.add(MANIFEST_LIST_UNREADABLE, path, str(error), owner)
            return None

    def _check_named_once(self, listed: _Listed, owner: str) -> None:
        names = Counter(meta.file_name for meta in (*(listed.base or ()), *(listed.delta or ())))
        for name, times in names.items():
            if times > 1:
                problem = f"the manifest lists of {owner} name it {times} times"
                self._findings.add(MANIFEST_TWICE, self._store.paths.manifest(name), problem, owner)

    def _check_counts(
        self, snapshot: Snapshot, digests: Sequence[ManifestDigest], delta: Sequence[ManifestDigest], owner: str
    ) -> None:
        for name, said, found in (
            ("totalRecordCount", snapshot.total_record_count, sum(digest.rows for digest in digests)),
            ("deltaRecordCount", snapshot.delta_record_count, sum(digest.rows for digest in delta)),
        ):
            if said != found:
                problem = f"its {name} is {said}, but its files have {found} rows"
                self._findings.add(SNAPSHOT_COUNTS, owner, problem, owner)

    def _check_identities(self, digests: Sequence[ManifestDigest], owner: str) -> None:
        added = np.concatenate([np.empty(0, np.int64), *(digest.added for digest in digests)])
        deleted = np.concatenate([np.empty(0, np.int64), *(digest.deleted for digest in digests)])
        twice = len(added) - len(np.unique(added))
        if twice:
            self._findings.add(FILE_TWICE, owner, f"its manifests add {twice} data files more than once", owner)
        unknown = int((~np.isin(deleted, added)).sum())
        if unknown:
            self._findings.add(FILE_NOT_ADDED, owner, f"its manifests delete {unknown} files that they do not add", owner)

    def _follow_changelog(self, snapshot: Snapshot, owner: str) -> None:
        name, size = snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size
        if name is None:
            if snapshot.changelog_record_count:
                problem = f"its changelogRecordCount is {snapshot.changelog_record_count}, but it has no changelog"
                self._findings.add(SNAPSHOT_COUNTS, owner, problem, owner)
            return
        if name in self._seen:
            return
        self._seen.add(name)
        metas = self._list(snapshot, name, size, owner)
        digests = [self._manifests.digest(meta, owner, changelog=True) for meta in metas or ()]
        read = [digest for digest in digests if digest is not None]
        self._manifests.tell_missed(read, None, owner, changelog=True)
        if self._judge_changelog is not None:
            batches = [batch for meta in metas or () for batch in self._manifests.opened(meta, owner)]
            self._judge_changelog([e for batch in batches for e in batch.entries(np.arange(batch.count))], owner)
        said, found = snapshot.changelog_record_count, sum(digest.rows for digest in read)
        if metas is not None and len(read) == len(metas) and said is not None and said != found:
            problem = f"its changelogRecordCount is {said}, but its changelog files have {found} rows"
            self._findings.add(SNAPSHOT_COUNTS, owner, problem, owner)

    def _follow_index_manifest(self, snapshot: Snapshot, owner: str) -> Sequence[IndexManifestEntry] | None:
        """Its entries, None where it cannot be read."""
        name, paths = snapshot.index_manifest, self._store.paths
        if name is None:
            return ()
        self._named.add(name)
        if name not in self._index_entries:
            self._index_entries[name] = None
            with self._findings.instead_of_errors(INDEX_MANIFEST_UNREADABLE, paths.manifest(name), owner):
                entries = read_index_entries(self._store.file_io, paths, snapshot)
                self._index_entries[name] = entries
                for entry in entries:
                    self._check_index_file(entry, owner)
        return self._index_entries[name]

    def _check_index_file(self, entry: IndexManifestEntry, owner: str) -> None:
        file, paths = entry.file, self._store.paths
        path = paths.index(file.file_name)
        with self._findings.instead_of_errors(INDEX_FILE_MISSING, path, owner):
            refuse_external_path(file.external_path, file.file_name)
            found = self._stored.size(paths.index_dir, file.file_name)
            if found == file.file_size:
                return
            try:
                found = self._store.file_io.size(path)
            except FileNotFoundError:
                self._findings.add(INDEX_FILE_MISSING, path, "it does not exist, but an index manifest names it", owner)
                return
            if found != file.file_size:
                problem = f"it has {found} bytes, but an index manifest says {file.file_size}"
                self._findings.add(INDEX_FILE_SIZE, path, problem, owner)

    def _follow_statistics(self, snapshot: Snapshot, owner: str) -> None:
        name, paths = snapshot.statistics, self._store.paths
        if name is None or name in self._seen:
            return
        self._seen.add(name)
        path = paths.statistics(name)
        with self._findings.instead_of_errors(STATISTICS_UNREADABLE, path, owner):
            found = parse_object(self._store.file_io.read(path, _MAX_STATISTICS_BYTES), path)
            if type(found.get("snapshotId")) is not int or type(found.get("schemaId")) is not int:
                problem = "it does not say which snapshot and schema it is of"
                self._findings.add(STATISTICS_UNREADABLE, path, problem, owner)
