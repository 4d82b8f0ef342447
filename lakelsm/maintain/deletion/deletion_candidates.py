"""Which files states of a table need: taken out of what could be deleted.

A state is a snapshot, or the snapshot of a tag. Files that are needed are those that it names: manifest lists, manifests,
index manifests, index and statistics files, and the data files that are live in it. What cannot be read stops the caller.
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

Asked = ParamSpec("Asked")
Read = TypeVar("Read")

#: The identity of data files: partition, bucket and name. A file that is upgraded stays the same file.
FileKey: TypeAlias = tuple[bytes, int, str]


def file_key(entry: ManifestEntry) -> FileKey:
    """The file of an entry, whatever its level."""
    return entry.partition, entry.bucket, entry.file.file_name


@dataclass(kw_only=True)
class DeletionCandidates:
    """Files that may be deleted unless something needs them. Values of the last four are bytes from metadata."""

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
        """How many files of metadata there are."""
        return len(self.manifests) + len(self.lists) + len(self.index) + len(self.statistics)

    @property
    def bytes(self) -> int:
        """The totals. Separate indexes of data files, and statistics, are not counted: metadata lacks their sizes."""
        named = (self.manifests, self.lists, self.index, self.statistics)
        return sum(entry.file.file_size for entry in self.entries) + sum(sum(sizes.values()) for sizes in named)

    @property
    def entries(self) -> list[ManifestEntry]:
        """Entries of the data and changelog files."""
        return [*self.data.values(), *self.changelog.values()]

    def paths(self, store: TableStore) -> tuple[list[str], list[str], list[str]]:
        """Paths in the order of deletion, so that a run that stops leaves orphans alone: data and changelog files, each
        followed by those that belong to it; manifests, index and statistics files; what names these.
        """
        of = store.paths
        named = [*map(of.manifest, self.manifests), *map(of.index, self.index), *map(of.statistics, self.statistics)]
        return _data_paths(store, self.entries), named, list(map(of.manifest, self.lists))


def _data_paths(store: TableStore, entries: Iterable[ManifestEntry]) -> list[str]:
    directories: dict[tuple[bytes, int], str] = {}
    paths: list[str] = []
    for entry in entries:
        place = entry.partition, entry.bucket
        if place not in directories:
            directories[place] = store.paths.bucket_dir(store.partition_text(entry.partition), entry.bucket)
        paths += (f"{directories[place]}/{name}" for name in (entry.file.file_name, *entry.file.extra_files))
    return paths


def unexpired_snapshots(file_io: FileIO, branch: RetainedBranch) -> list[Snapshot]:
    """The snapshots of a branch without those that are expiring there, below EARLIEST."""
    begun = SnapshotManager(file_io, branch.paths).earliest_id()
    return [snapshot for snapshot in branch.snapshots if begun is None or snapshot.id >= begun]


def read_if_exists(read: Callable[Asked, Read], *args: Asked.args, **kwargs: Asked.kwargs) -> Read | None:
    """Reads from a state whose files may be deleted; None if one is.

    A run that was killed deletes files of an expiring snapshot, and the delta of a long-lived changelog stays only where
    the table's changelog consists of it.
    """
    try:
        return read(*args, **kwargs)
    except CorruptTableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


class ReferenceFilter:
    """Takes out of ``found`` what states need. Each manifest is read once, whichever states name it."""

    def __init__(self, store: TableStore, found: DeletionCandidates) -> None:
        self.found = found
        self._store = store
        self._scanned: dict[str, list[tuple[int, EntryIdentity]]] = {}

    def keep_state(self, state: Snapshot, may_hold: Callable[[FileKey], bool] = lambda key: True) -> int:
        """Keep what a state needs; return how many files that took out.

        Of data files only those are looked for that it ``may_hold``.
        """
        wanted = {key: entry for key, entry in self.found.data.items() if may_hold(key)}
        metas = read_manifest_metas(self._store.file_io, self._store.paths, state)
        kept = self._keep_names(state, metas)
        return kept + (self._keep_live(metas, wanted) if wanted else 0)

    def keep_tag(self, name: str, state: Snapshot, may_hold: Callable[[FileKey], bool] = lambda key: True) -> int:
        """`keep_state` of a tag's snapshot. Raises CorruptTableError with the remedy if files of it are missing.

        Not for a holding tag: its snapshot expired, and its creator is about to see that, or crashed before.
        """
        try:
            return self.keep_state(state, may_hold)
        except CorruptTableError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            if name.startswith(HOLDING_TAG):
                return 0
            raise CorruptTableError(
                f"Table {self._store.name}: tag {name!r} names files that are gone ({error}). Perhaps it was made while "
                f"its snapshot {state.id} expired, by a process that died then. Nothing was deleted: restore the files, "
                f"or delete the tag with table.tags.delete({name!r})."
            ) from error

    def keep_entries(self, entries: Iterable[ManifestEntry]) -> int:
        """Keep the data files of entries; return how many that took out."""
        return sum(self.found.data.pop(file_key(entry), None) is not None for entry in entries)

    def keep_manifests(self, lists: Iterable[str | None], metas: Iterable[ManifestFileMeta]) -> int:
        """Keep manifest lists and manifests; return how many that took out."""
        return _taken(self.found.lists, lists) + _taken(self.found.manifests, (meta.file_name for meta in metas))

    def keep_delta(self, changelog: Snapshot) -> int:
        """Keep what a long-lived changelog without changelog files consists of; nothing if its delta is deleted."""
        file_io, paths = self._store.file_io, self._store.paths
        metas = read_if_exists(read_delta_metas, file_io, paths, changelog)
        delta = read_if_exists(read_delta_entries, file_io, paths, changelog)
        kept = self.keep_manifests([changelog.delta_manifest_list], metas or ())
        return kept + self.keep_entries(entry for entry in delta or () if entry.kind == FileKind.ADD)

    def _keep_names(self, state: Snapshot, metas: Iterable[ManifestFileMeta]) -> int:
        found, store = self.found, self._store
        lists = (state.base_manifest_list, state.delta_manifest_list, state.index_manifest)
        kept = self.keep_manifests(lists, metas) + _taken(found.statistics, (state.statistics,))
        if found.index:
            entries = read_index_entries(store.file_io, store.paths, state)
            kept += _taken(found.index, (entry.file.file_name for entry in entries))
        return kept

    def _keep_live(self, metas: list[ManifestFileMeta], wanted: Mapping[FileKey, ManifestEntry]) -> int:
        places: dict[bytes, set[int]] = {}
        for partition, bucket, _ in wanted:
            places.setdefault(partition, set()).add(bucket)
        added: set[EntryIdentity] = set()
        deleted: set[EntryIdentity] = set()
        for meta in select_manifests(metas, places, self._store.partition_types):
            for kind, identity in self._named(meta):
                (added if kind == FileKind.ADD else deleted).add(identity)
        live = ((partition, bucket, name) for partition, bucket, _, name, *_ in added - deleted)
        return sum(self.found.data.pop(key, None) is not None for key in set(live) & wanted.keys())

    def _named(self, meta: ManifestFileMeta) -> list[tuple[int, EntryIdentity]]:
        """The entries of a manifest with the name of a found file, from the first request on."""
        if meta.file_name not in self._scanned:
            names = {name for _, _, name in self.found.data}
            store = self._store
            self._scanned[meta.file_name] = read_named_entries(store.file_io, store.paths, meta, names)
        return self._scanned[meta.file_name]


def _taken(sizes: MutableMapping[str, int], names: Iterable[str | None]) -> int:
    return sum(name is not None and sizes.pop(name, None) is not None for name in names)
