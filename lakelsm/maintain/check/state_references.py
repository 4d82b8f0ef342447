"""Checks that everything that one state of a branch names exists and matches, from manifest lists down to files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from lakelsm.errors import LakelsmError
from lakelsm.format.file_names import refuse_external_path
from lakelsm.format.index.index_manifest import IndexManifestEntry
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.manifest.manifest_file import EntryBatch
from lakelsm.format.manifest.manifest_list import ManifestFileMeta
from lakelsm.format.snapshot import Snapshot
from lakelsm.json_document import parse_object
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.manifests import ManifestDigest, Manifests, StoredFiles, live_files
from lakelsm.maintain.check.rules import (
    FILE_NOT_ADDED,
    FILE_TWICE,
    INDEX_FILE_MISSING,
    INDEX_FILE_SIZE,
    INDEX_MANIFEST_UNREADABLE,
    MANIFEST_LIST_UNREADABLE,
    MANIFEST_TWICE,
    SCHEMA_UNREADABLE,
    SNAPSHOT_COUNTS,
    STATISTICS_UNREADABLE,
)
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.manifest_scan import read_index_entries, read_manifest_list
from lakelsm.snapshots.table_store import TableStore

#: The maximum size of a statistics file in bytes.
_MAX_STATISTICS_BYTES = 64 << 20


@dataclass
class CheckedState:
    """A snapshot and what was read of its manifests. ``is_whole``: all manifests are readable.

    ``index_entries`` is None if the index manifest is unreadable.
    """

    snapshot: Snapshot
    owner: str
    _: KW_ONLY
    batches: list[EntryBatch] = field(default_factory=list)
    index_entries: Sequence[IndexManifestEntry] | None = ()
    is_whole: bool = True


@dataclass
class _Listed:
    """The manifests in the base list and the delta list of one snapshot; None for an unreadable list."""

    base: list[ManifestFileMeta] | None
    delta: list[ManifestFileMeta] | None

    @property
    def metas(self) -> list[ManifestFileMeta]:
        found = {meta.file_name: meta for meta in (*(self.base or ()), *(self.delta or ()))}
        return list(found.values())

    @property
    def whole(self) -> bool:
        return self.base is not None and self.delta is not None


class StateReferences:
    """Follows the references of the states of a branch. A file that several states name is checked once.

    It adds the names of the metadata files that it reads to ``named`` (`UnreferencedManifests.named`). It calls
    ``check_changelog``, if given, with the entries of each changelog.
    """

    def __init__(
        self,
        store: TableStore,
        stored: StoredFiles,
        findings: Findings,
        schemas: Mapping[int, TableSchema | None],
        *,
        named: set[str],
        check_changelog: Callable[[Sequence[ManifestEntry], str], None] | None = None,
    ) -> None:
        self._store = store
        self._stored = stored
        self._findings = findings
        self._schemas = schemas
        self._named = named
        self._check_changelog = check_changelog
        self._manifests = Manifests(store, stored, findings)
        self._seen: set[str] = set()
        self._index_entries: dict[str, Sequence[IndexManifestEntry] | None] = {}

    @property
    def manifests(self) -> int:
        """The number of manifests read."""
        return self._manifests.count

    def follow(self, snapshot: Snapshot, owner: str, is_end: bool, keeps_batches: bool) -> CheckedState:
        """Follow a snapshot. ``is_end``: check all of its live files; otherwise only the files that it adds."""
        state = CheckedState(snapshot, owner)
        if snapshot.schema_id not in self._schemas:
            path = self._store.paths.schema_file(snapshot.schema_id)
            self._findings.add(SCHEMA_UNREADABLE, path, "it does not exist, but a snapshot names it", owner)
        for schema in filter(None, self._schemas.values()):
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
            self._manifests.report_suspects(read if is_end else delta, live_files(read) if is_end else None, owner)
        self.follow_changelog(snapshot, owner)
        state.index_entries = self._follow_index_manifest(snapshot, owner)
        self._follow_statistics(snapshot, owner)
        return state

    def follow_changelog(self, snapshot: Snapshot, owner: str) -> None:
        """Check the changelog files that a snapshot or a long-lived changelog names."""
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
        self._manifests.report_suspects(read, None, owner, changelog=True)
        if self._check_changelog is not None:
            batches = [batch for meta in metas or () for batch in self._manifests.opened(meta, owner)]
            self._check_changelog([e for batch in batches for e in batch.entries(np.arange(batch.count))], owner)
        recorded, found = snapshot.changelog_record_count, sum(digest.rows for digest in read)
        if metas is not None and len(read) == len(metas) and recorded is not None and recorded != found:
            problem = f"its changelogRecordCount is {recorded}, but its changelog files have {found} rows"
            self._findings.add(SNAPSHOT_COUNTS, owner, problem, owner)

    def _check_schema(self, schema: TableSchema, snapshot: Snapshot, owner: str) -> None:
        """Compare a schema file with what snapshots record of it, until one reveals a fault."""
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
        for name, recorded, found in (
            ("totalRecordCount", snapshot.total_record_count, sum(digest.rows for digest in digests)),
            ("deltaRecordCount", snapshot.delta_record_count, sum(digest.rows for digest in delta)),
        ):
            if recorded != found:
                problem = f"its {name} is {recorded}, but its files have {found} rows"
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

    def _follow_index_manifest(self, snapshot: Snapshot, owner: str) -> Sequence[IndexManifestEntry] | None:
        """Return the entries of the index manifest; None if it is unreadable."""
        name, paths = snapshot.index_manifest, self._store.paths
        if name is None:
            return ()
        self._named.add(name)
        if name not in self._index_entries:
            self._index_entries[name] = None
            with self._findings.errors_as(INDEX_MANIFEST_UNREADABLE, paths.manifest(name), owner):
                entries = read_index_entries(self._store.file_io, paths, snapshot)
                self._index_entries[name] = entries
                for entry in entries:
                    self._check_index_file(entry, owner)
        return self._index_entries[name]

    def _check_index_file(self, entry: IndexManifestEntry, owner: str) -> None:
        file, paths = entry.file, self._store.paths
        path = paths.index(file.file_name)
        with self._findings.errors_as(INDEX_FILE_MISSING, path, owner):
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
        with self._findings.errors_as(STATISTICS_UNREADABLE, path, owner):
            found = parse_object(self._store.file_io.read(path, _MAX_STATISTICS_BYTES), path)
            if type(found.get("snapshotId")) is not int or type(found.get("schemaId")) is not int:
                problem = "it does not name its snapshot and schema"
                self._findings.add(STATISTICS_UNREADABLE, path, problem, owner)
