"""The names of all files that something retained needs: states first (snapshots, tags, long-lived changelogs), then the
manifests that they name.

A missing file is reported and does not end the search: its snapshot may be expiring. A damaged file ends it.
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

#: What both tasks yield: names of files. Of a manifest that is to be read also its ``entries``, ``size`` and ``checksum``
#: (NULL: unknown). ``required``: it must exist. ``missing``: it does not, and it is not known what it names.
NAMED_SCHEMA = pa.schema(
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
    """A state that is retained, as far as it names files. ``tagged``: its snapshot may have expired, and its changelog
    with it. ``held``: by a holding tag alone, which may have been made when files were gone. ``changelog_alone``: a
    long-lived changelog, of which other files may be gone.
    """

    snapshot: Snapshot
    _: KW_ONLY
    tagged: bool = False
    held: bool = False
    changelog_alone: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """The same for two states that need the same files."""
        return (*self.snapshot.metadata_files, self.snapshot.statistics, self.tagged, self.held, self.changelog_alone)

    @property
    def lists(self) -> Iterator[tuple[str, int | None, bool]]:
        """Its manifest lists: name, size, and whether it must exist.

        A long-lived changelog needs the list of its changelog; without one its delta is the changelog, and Java keeps the
        base list beside it (`FileDeletionBase#planManifestsCleaner`).
        """
        snapshot, name = self.snapshot, self.snapshot.changelog_manifest_list
        if name is not None:
            yield name, snapshot.changelog_manifest_list_size, not self.tagged
        if name is None or not self.changelog_alone:
            must_exist = not (self.changelog_alone or self.held)
            yield snapshot.base_manifest_list, snapshot.base_manifest_list_size, must_exist
            yield snapshot.delta_manifest_list, snapshot.delta_manifest_list_size, must_exist


def retained_states(branches: Iterable[RetainedBranch]) -> list[RetainedState]:
    """All states that branches retain, each set of files once."""
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
    """Tells what states name by themselves: metadata files, index files, and the manifests that are to be read."""

    file_io: FileIO
    paths: TablePaths

    def __call__(self, states: Sequence[RetainedState]) -> Iterator[pa.RecordBatch]:
        """Yield names, as `NAMED_SCHEMA` has them."""
        for state in states:
            yield named_batch([row for part in (self._listed(state), self._other(state)) for row in part])

    def _listed(self, state: RetainedState) -> Iterator[_Named]:
        for name, size, required in state.lists:
            yield _Named(name)
            try:
                metas = read_manifest_list(self.file_io, self.paths, state.snapshot, name, size)
            except CorruptTableError:
                if self.file_io.exists(self.paths.manifest(name)):
                    raise
                if required:
                    yield _Named(name, missing=True)
                continue
            for meta in metas:
                yield _Named(
                    meta.file_name,
                    entries=meta.entry_count,
                    size=meta.file_size,
                    checksum=meta.checksum,
                    required=required,
                )

    def _other(self, state: RetainedState) -> Iterator[_Named]:
        snapshot, name = state.snapshot, state.snapshot.index_manifest
        if state.changelog_alone:
            return
        if snapshot.statistics is not None:
            yield _Named(snapshot.statistics)
        if name is not None:
            yield _Named(name)
            try:
                entries = read_index_entries(self.file_io, self.paths, snapshot)
            except CorruptTableError:
                if self.file_io.exists(self.paths.manifest(name)):
                    raise
                if not state.held:
                    yield _Named(name, missing=True)
                return
            yield from (_Named(entry.file.file_name) for entry in entries)


@dataclass(frozen=True, kw_only=True)
class ManifestToRead:
    """A manifest as a list names it. ``required``: it must exist."""

    name: str
    entries: int
    size: int
    checksum: int | None
    required: bool


@dataclass(frozen=True)
class ReadManifests:
    """Tells the data files, and what lies beside them, that manifests name."""

    file_io: FileIO
    paths: TablePaths

    def __call__(self, manifests: Sequence[ManifestToRead]) -> Iterator[pa.RecordBatch]:
        """Yield names, as `NAMED_SCHEMA` has them."""
        for manifest in manifests:
            try:
                names = read_file_names(self.file_io, self.paths, [_meta(manifest)])
            except CorruptTableError:
                if self.file_io.exists(self.paths.manifest(manifest.name)):
                    raise
                if manifest.required:
                    yield named_batch([_Named(manifest.name, missing=True)])
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
class _Named:
    """A row of `NAMED_SCHEMA`."""

    name: str
    _: KW_ONLY
    entries: int | None = None
    size: int | None = None
    checksum: int | None = None
    required: bool = True
    missing: bool = False


def named_batch(rows: Sequence[_Named]) -> pa.RecordBatch:
    """Rows of names as a batch."""
    columns = [[getattr(row, name) for row in rows] for name in NAMED_SCHEMA.names]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, each.type) for column, each in zip(columns, NAMED_SCHEMA)], schema=NAMED_SCHEMA
    )


def _names_batch(names: Sequence[str]) -> pa.RecordBatch:
    numbers = [pa.nulls(len(names), pa.int64())] * 3
    no = pa.repeat(pa.scalar(False), len(names))
    return pa.RecordBatch.from_arrays([pa.array(names, pa.string()), *numbers, no, no], schema=NAMED_SCHEMA)
