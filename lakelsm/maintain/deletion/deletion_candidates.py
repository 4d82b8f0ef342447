"""Files that may be deleted, and the check which of them a retained state needs.

A state is a snapshot, or the snapshot of a tag. It needs the files that it names: manifest lists, manifests, index
manifests, index files, statistics files, and its live data files. If a state cannot be read, the caller stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import ParamSpec, TypeAlias, TypeVar

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.index_manifest import IndexManifestEntry
from lakelsm.format.manifest import FileKind, ManifestEntry, ManifestFileMeta
from lakelsm.format.manifest.entry import EntryIdentity
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.branch_store import RetainedBranch
from lakelsm.snapshots.manifest_prune import select_manifests
from lakelsm.snapshots.manifest_scan import (
    read_delta_entries,
    read_delta_metas,
    read_index_entries,
    read_manifest_metas,
    read_named_entries,
)
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.tag_store import HOLDING_TAG
from lakelsm.storage import FileIO

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: Identifies a data file: partition, bucket and name. An upgrade changes the level only, so the file keeps its key.
FileKey: TypeAlias = tuple[bytes, int, str]


def file_key(entry: ManifestEntry) -> FileKey:
    """Return the key of the file of an entry. It does not depend on the level."""
    return entry.partition, entry.bucket, entry.file.file_name


@dataclass(kw_only=True)
class DeletionCandidates:
    """Files that are deleted unless a retained state needs them. The values of the last four maps are sizes in bytes."""

    data: dict[FileKey, ManifestEntry] = field(default_factory=dict)
    changelog: dict[FileKey, ManifestEntry] = field(default_factory=dict)
    manifests: dict[str, int] = field(default_factory=dict)
    lists: dict[str, int] = field(default_factory=dict)
    index: dict[str, int] = field(default_factory=dict)
    statistics: dict[str, int] = field(default_factory=dict)

    def add_list(self, name: str, size: int | None, metas: Iterable[ManifestFileMeta]) -> None:
        """Add a manifest list and the manifests that it names."""
        self.lists[name] = size or 0
        self.manifests.update((meta.file_name, meta.file_size) for meta in metas)

    def add_index(self, name: str, entries: Iterable[IndexManifestEntry]) -> None:
        """Add an index manifest and the index files that it names."""
        self.lists[name] = 0
        self.index.update((entry.file.file_name, entry.file.file_size) for entry in entries)

    @property
    def metadata(self) -> int:
        """The number of metadata files."""
        return len(self.manifests) + len(self.lists) + len(self.index) + len(self.statistics)

    @property
    def bytes(self) -> int:
        """The total size. Without file indexes and statistics files, because metadata does not record their sizes."""
        named = (self.manifests, self.lists, self.index, self.statistics)
        return sum(entry.file.file_size for entry in self.entries) + sum(sum(sizes.values()) for sizes in named)

    @property
    def entries(self) -> list[ManifestEntry]:
        """The entries of the data and changelog files."""
        return [*self.data.values(), *self.changelog.values()]

    def paths(self, store: TableStore) -> tuple[list[str], list[str], list[str]]:
        """Return three lists of paths in the order of deletion, so that an interrupted run leaves only orphan files.

        Data and changelog files with their extra files; manifests, index and statistics files; the lists of these.
        """
        of = store.paths
        named = [*map(of.manifest, self.manifests), *map(of.index, self.index), *map(of.statistics, self.statistics)]
        return _data_paths(store, self.entries), named, list(map(of.manifest, self.lists))


def _data_paths(store: TableStore, entries: Iterable[ManifestEntry]) -> list[str]:
    directories: dict[tuple[bytes, int], str] = {}
    paths: list[str] = []
    for entry in entries:
        bucket = entry.partition, entry.bucket
        if bucket not in directories:
            directories[bucket] = store.paths.bucket_dir(store.partition_text(entry.partition), entry.bucket)
        paths += (f"{directories[bucket]}/{name}" for name in (entry.file.file_name, *entry.file.extra_files))
    return paths


def unexpired_snapshots(file_io: FileIO, branch: RetainedBranch) -> list[Snapshot]:
    """Return the snapshots of a branch from EARLIEST on. Those below it are expiring."""
    earliest = SnapshotManager(file_io, branch.paths).earliest_id()
    return [snapshot for snapshot in branch.snapshots if earliest is None or snapshot.id >= earliest]


def read_if_exists(
    read: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result | None:
    """Call a function that reads metadata of a state; return None if a file is missing.

    A killed run may have deleted files of an expiring snapshot. The delta of a long-lived changelog exists only if the
    table has no changelog files.
    """
    try:
        return read(*args, **kwargs)
    except CorruptTableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


class ReferenceFilter:
    """Removes the files that retained states need from ``candidates``. Reads each manifest once."""

    def __init__(self, store: TableStore, candidates: DeletionCandidates) -> None:
        self.candidates = candidates
        self._store = store
        self._scanned: dict[str, list[tuple[int, EntryIdentity]]] = {}

    def keep_state(self, state: Snapshot, may_hold: Callable[[FileKey], bool] = lambda key: True) -> int:
        """Keep the files that a state needs. Return the number of candidates removed.

        ``may_hold`` says which data files the state may need; the others are not looked up.
        """
        wanted = {key: entry for key, entry in self.candidates.data.items() if may_hold(key)}
        metas = read_manifest_metas(self._store.file_io, self._store.paths, state)
        kept = self._keep_metadata(state, metas)
        return kept + (self._keep_live(metas, wanted) if wanted else 0)

    def keep_tag(self, name: str, state: Snapshot, may_hold: Callable[[FileKey], bool] = lambda key: True) -> int:
        """Keep the files that the snapshot of a tag needs. Raises CorruptTableError with a remedy if one is missing.

        A holding tag with missing files is ignored: its snapshot expired, and its creator will notice or has crashed.
        """
        try:
            return self.keep_state(state, may_hold)
        except CorruptTableError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            if name.startswith(HOLDING_TAG):
                return 0
            raise CorruptTableError(
                f"Table {self._store.name}: tag {name!r} names missing files ({error}), perhaps because its creator was "
                f"killed while snapshot {state.id} expired. Nothing was deleted: restore the files, or delete the tag "
                f"with table.tags.delete({name!r})."
            ) from error

    def keep_entries(self, entries: Iterable[ManifestEntry]) -> int:
        """Keep the data files of entries. Return the number of candidates removed."""
        return sum(self.candidates.data.pop(file_key(entry), None) is not None for entry in entries)

    def keep_manifests(self, lists: Iterable[str | None], metas: Iterable[ManifestFileMeta]) -> int:
        """Keep manifest lists and manifests. Return the number of candidates removed."""
        return _removed(self.candidates.lists, lists) + _removed(
            self.candidates.manifests, (meta.file_name for meta in metas)
        )

    def keep_delta(self, changelog: Snapshot) -> int:
        """Keep the delta of a long-lived changelog without changelog files, if the delta still exists."""
        file_io, paths = self._store.file_io, self._store.paths
        metas = read_if_exists(read_delta_metas, file_io, paths, changelog)
        delta = read_if_exists(read_delta_entries, file_io, paths, changelog)
        kept = self.keep_manifests([changelog.delta_manifest_list], metas or ())
        return kept + self.keep_entries(entry for entry in delta or () if entry.kind == FileKind.ADD)

    def _keep_metadata(self, state: Snapshot, metas: Iterable[ManifestFileMeta]) -> int:
        candidates, store = self.candidates, self._store
        lists = (state.base_manifest_list, state.delta_manifest_list, state.index_manifest)
        kept = self.keep_manifests(lists, metas) + _removed(candidates.statistics, (state.statistics,))
        if candidates.index:
            entries = read_index_entries(store.file_io, store.paths, state)
            kept += _removed(candidates.index, (entry.file.file_name for entry in entries))
        return kept

    def _keep_live(self, metas: list[ManifestFileMeta], wanted: Mapping[FileKey, ManifestEntry]) -> int:
        buckets: dict[bytes, set[int]] = {}
        for partition, bucket, _ in wanted:
            buckets.setdefault(partition, set()).add(bucket)
        added: set[EntryIdentity] = set()
        deleted: set[EntryIdentity] = set()
        for meta in select_manifests(metas, buckets, self._store.partition_types):
            for kind, identity in self._candidate_entries(meta):
                (added if kind == FileKind.ADD else deleted).add(identity)
        live = ((partition, bucket, name) for partition, bucket, _, name, *_ in added - deleted)
        return sum(self.candidates.data.pop(key, None) is not None for key in set(live) & wanted.keys())

    def _candidate_entries(self, meta: ManifestFileMeta) -> list[tuple[int, EntryIdentity]]:
        """Return the entries of a manifest whose file name is that of a candidate at the first call."""
        if meta.file_name not in self._scanned:
            names = {name for _, _, name in self.candidates.data}
            store = self._store
            self._scanned[meta.file_name] = read_named_entries(store.file_io, store.paths, meta, names)
        return self._scanned[meta.file_name]


def _removed(sizes: MutableMapping[str, int], names: Iterable[str | None]) -> int:
    return sum(name is not None and sizes.pop(name, None) is not None for name in names)
