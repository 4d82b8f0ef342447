"""The tasks that read which files retained states need: states first (snapshots, tags, long-lived changelogs), then the
manifests that they name.

A missing file is reported and does not end the search, because its snapshot may be expiring. A damaged file ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

import pyarrow as pa

from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import EMPTY_STATS, ManifestFileMeta
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.branch_store import RetainedBranch
from lakelsm.snapshots.manifest_scan import read_file_names, read_index_entries, read_manifest_list
from lakelsm.snapshots.tag_store import HOLDING_TAG
from lakelsm.storage import FileIO

#: The rows that both tasks yield: names of files. A manifest to read also has ``entries``, ``size`` and ``checksum``
#: (NULL: unknown). ``required``: the file must exist. ``missing``: it does not, so the names in it are unknown.
REFERENCE_SCHEMA = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("entries", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("checksum", pa.int64()),
        pa.field("required", pa.bool_()),
        pa.field("missing", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class RetainedState:
    """A retained state, as far as it names files.

    ``tagged``: its snapshot may have expired, and its changelog with it. ``held``: only a holding tag keeps it, which may
    have been created after files were deleted. ``changelog_alone``: a long-lived changelog, whose other files may be
    deleted.
    """

    snapshot: Snapshot
    _: KW_ONLY
    tagged: bool = False
    held: bool = False
    changelog_alone: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two states that need the same files."""
        return (*self.snapshot.metadata_files, self.snapshot.statistics, self.tagged, self.held, self.changelog_alone)

    @property
    def lists(self) -> Iterator[tuple[str, int | None, bool]]:
        """The manifest lists of the state: name, size, and whether the list must exist.

        A long-lived changelog needs its changelog list. Without one, its delta is the changelog, and Java keeps the base
        list too (`FileDeletionBase#planManifestsCleaner`).
        """
        snapshot, name = self.snapshot, self.snapshot.changelog_manifest_list
        if name is not None:
            yield name, snapshot.changelog_manifest_list_size, not self.tagged
        if name is None or not self.changelog_alone:
            must_exist = not (self.changelog_alone or self.held)
            yield snapshot.base_manifest_list, snapshot.base_manifest_list_size, must_exist
            yield snapshot.delta_manifest_list, snapshot.delta_manifest_list_size, must_exist


def retained_states(branches: Iterable[RetainedBranch]) -> list[RetainedState]:
    """Return all states that branches retain, without duplicates."""
    states = [
        state
        for branch in branches
        for state in (
            *(RetainedState(snapshot) for snapshot in branch.snapshots),
            *(
                RetainedState(tag.snapshot, tagged=True, held=name.startswith(HOLDING_TAG))
                for name, tag in branch.tags.items()
            ),
            *(RetainedState(snapshot, changelog_alone=True) for snapshot in branch.changelogs),
        )
    ]
    return list({state.key: state for state in states}.values())


@dataclass(frozen=True)
class ReadStates:
    """Yields the names that states contain themselves: metadata files, index files, and the manifests to read."""

    file_io: FileIO
    paths: TablePaths

    def __call__(self, states: Sequence[RetainedState]) -> Iterator[pa.RecordBatch]:
        """Yield the names as rows of `REFERENCE_SCHEMA`."""
        for state in states:
            yield reference_batch([row for part in (self._listed(state), self._other(state)) for row in part])

    def _listed(self, state: RetainedState) -> Iterator[_Reference]:
        for name, size, required in state.lists:
            yield _Reference(name)
            try:
                metas = read_manifest_list(self.file_io, self.paths, state.snapshot, name, size)
            except CorruptTableError:
                if self.file_io.exists(self.paths.manifest(name)):
                    raise
                if required:
                    yield _Reference(name, missing=True)
                continue
            for meta in metas:
                yield _Reference(
                    meta.file_name,
                    entries=meta.entry_count,
                    size=meta.file_size,
                    checksum=meta.checksum,
                    required=required,
                )

    def _other(self, state: RetainedState) -> Iterator[_Reference]:
        snapshot, name = state.snapshot, state.snapshot.index_manifest
        if state.changelog_alone:
            return
        if snapshot.statistics is not None:
            yield _Reference(snapshot.statistics)
        if name is not None:
            yield _Reference(name)
            try:
                entries = read_index_entries(self.file_io, self.paths, snapshot)
            except CorruptTableError:
                if self.file_io.exists(self.paths.manifest(name)):
                    raise
                if not state.held:
                    yield _Reference(name, missing=True)
                return
            yield from (_Reference(entry.file.file_name) for entry in entries)


@dataclass(frozen=True, kw_only=True)
class ManifestToRead:
    """A manifest as a manifest list names it. ``required``: it must exist."""

    name: str
    entries: int
    size: int
    checksum: int | None
    required: bool


@dataclass(frozen=True)
class ReadManifests:
    """Yields the data files that manifests name, with their extra files."""

    file_io: FileIO
    paths: TablePaths

    def __call__(self, manifests: Sequence[ManifestToRead]) -> Iterator[pa.RecordBatch]:
        """Yield the names as rows of `REFERENCE_SCHEMA`."""
        for manifest in manifests:
            try:
                names = read_file_names(self.file_io, self.paths, [_meta(manifest)])
            except CorruptTableError:
                if self.file_io.exists(self.paths.manifest(manifest.name)):
                    raise
                if manifest.required:
                    yield reference_batch([_Reference(manifest.name, missing=True)])
                continue
            yield _names_batch(names)


def _meta(manifest: ManifestToRead) -> ManifestFileMeta:
    return ManifestFileMeta(
        manifest.name,
        manifest.size,
        num_added_files=manifest.entries,
        num_deleted_files=0,
        partition_stats=EMPTY_STATS,
        schema_id=0,
        checksum=manifest.checksum,
    )


@dataclass(frozen=True)
class _Reference:
    """A row of `REFERENCE_SCHEMA`."""

    name: str
    _: KW_ONLY
    entries: int | None = None
    size: int | None = None
    checksum: int | None = None
    required: bool = True
    missing: bool = False


def reference_batch(rows: Sequence[_Reference]) -> pa.RecordBatch:
    """Return rows as a batch."""
    columns = [[getattr(row, name) for row in rows] for name in REFERENCE_SCHEMA.names]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, each.type) for column, each in zip(columns, REFERENCE_SCHEMA)], schema=REFERENCE_SCHEMA
    )


def _names_batch(names: Sequence[str]) -> pa.RecordBatch:
    unknown = [pa.nulls(len(names), pa.int64())] * 3
    no = pa.repeat(pa.scalar(False), len(names))
    return pa.RecordBatch.from_arrays([pa.array(names, pa.string()), *unknown, no, no], schema=REFERENCE_SCHEMA)
