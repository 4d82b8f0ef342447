"""A table of metadata with empty data files, and a simple, slow computation of the files that its states need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lakelsm.format.manifest import DataFileMeta, FileKind, ManifestEntry
from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.format.snapshot import CommitKind, Snapshot, Tag
from lakelsm.maintain.expiry.retention import Retention
from lakelsm.maintain.expiry.snapshot_expiry import expire_snapshots
from lakelsm.results import ExpiryResult
from lakelsm.snapshots.manifest_scan import (
    read_changelog_entries,
    read_delta_entries,
    read_delta_metas,
    read_index_entries,
    read_live_entries,
    read_manifest_list,
    read_manifest_metas,
)
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, delete, file, upgrade

#: The fields of a snapshot that a long-lived changelog keeps.
CHANGELOG, DELTA = "changelog", "delta"


class ExpiryTable(CommitTable):
    """Commits whose files exist as empty files."""

    @property
    def store(self) -> TableStore:
        store = TableStore.open(str(self.root))
        return replace(store, file_io=self.file_io)

    def new(self, dt: str = "a", bucket: int = 0, source: FileSource = FileSource.APPEND) -> ManifestEntry:
        entry = add(self.file(file_source=source), dt=dt, bucket=bucket)
        self.put(entry)
        return entry

    def changelog(self, dt: str = "a", bucket: int = 0) -> ManifestEntry:
        made = self.file()
        made.file_name = f"changelog-{made.file_name}"
        entry = add(made, dt=dt, bucket=bucket)
        self.put(entry)
        return entry

    def file(self, **more: FileSource) -> DataFileMeta:
        """Create a file with a key range that no other file overlaps."""
        now = self.tick()
        return file(creation_time_millis=now, keys=(now, now), **more)

    def put(self, entry: ManifestEntry) -> None:
        path = Path(self.store.data_path(entry.partition, entry.bucket, entry.file.file_name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def rewritten(self, *entries: ManifestEntry) -> list[ManifestEntry]:
        """Return the entries of a compaction of files of one bucket into a new file."""
        first = entries[0]
        dt = self.store.partition_values(first.partition)["dt"]
        made = self.new(dt, first.bucket, FileSource.COMPACT)
        return [*map(delete, entries), replace(made, file=made.file.upgraded(5))]

    def moved(self, entry: ManifestEntry) -> list[ManifestEntry]:
        return upgrade(entry, entry.file.level + 1)

    def expire_to(self, last: int, **more: int) -> ExpiryResult:
        """Expire all but the newest ``last`` snapshots."""
        retention = Retention(min_count=last, max_count=last, older_than=0, limit=more.get("limit", 1000))
        return expire_snapshots(self.store, retention)

    def tag(self, name: str, snapshot: Snapshot | None = None) -> None:
        found = snapshot or self.snapshots.latest()
        assert found is not None
        self.file_io.write(self.paths.tag(name), Tag(found).to_json().encode())

    def on_disk(self) -> set[str]:
        """Return all files except schemas, hints, consumers, tags and the state files of branches."""
        own = ("schema/", "tag/", "branch/", "consumer/", "snapshot/", "changelog/")
        paths = (path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())
        return {path for path in paths if not path.startswith(own)}

    def needed(self) -> set[str]:
        """Return the files that the retained states need, computed state by state."""
        found: set[str] = set()
        for branch in self.store.branches.retained():
            for snapshot in branch.snapshots:
                found |= self.of_state(snapshot) | self.of_changelog(snapshot, CHANGELOG)
            for tag in branch.tags.values():
                found |= self.of_state(tag.snapshot)
            for changelog in branch.changelogs:
                found |= self.of_changelog(changelog, CHANGELOG if changelog.changelog_manifest_list else DELTA)
        return found

    def of_state(self, state: Snapshot) -> set[str]:
        store = self.store
        around = (store.file_io, store.paths, state)
        names = [state.base_manifest_list, state.delta_manifest_list, state.index_manifest]
        names += [meta.file_name for meta in read_manifest_metas(*around)]
        found = {f"manifest/{name}" for name in names if name}
        found |= {f"index/{entry.file.file_name}" for entry in read_index_entries(*around)}
        found |= {f"statistics/{state.statistics}"} if state.statistics else set()
        return found | self.data(read_live_entries(*around))

    def of_changelog(self, snapshot: Snapshot, kind: str) -> set[str]:
        store = self.store
        around = (store.file_io, store.paths, snapshot)
        if kind == DELTA:
            if not store.file_io.exists(store.paths.manifest(snapshot.delta_manifest_list)):
                return set()
            metas = read_delta_metas(*around)
            entries = read_delta_entries(*around)
            added = [entry for entry in entries if entry.kind == FileKind.ADD]
            data = self.data(added if snapshot.commit_kind is CommitKind.APPEND else [])
            return data | {f"manifest/{name}" for name in [snapshot.delta_manifest_list, *(m.file_name for m in metas)]}
        if snapshot.changelog_manifest_list is None:
            return set()
        metas = read_manifest_list(*around, snapshot.changelog_manifest_list, None)
        names = [snapshot.changelog_manifest_list, *(meta.file_name for meta in metas)]
        return {f"manifest/{name}" for name in names} | self.data(read_changelog_entries(*around))

    def data(self, entries: Iterable[ManifestEntry]) -> set[str]:
        store = self.store
        paths = (store.data_path(entry.partition, entry.bucket, entry.file.file_name) for entry in entries)
        return {Path(path).relative_to(self.root).as_posix() for path in paths}

    def missing(self) -> set[str]:
        """Return the needed files that do not exist."""
        return self.needed() - self.on_disk()
