"""Reads the entries of a snapshot: live files, delta, changelog and index files (docs/format.md 11.1)."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.index_manifest import IndexManifestEntry, decode_index_manifest
from lakelsm.format.manifest.columns import ALL_FIELDS, COUNTED, NAMED
from lakelsm.format.manifest.entry import EntryIdentity, FileKind, ManifestEntry
from lakelsm.format.manifest.manifest_file import EntryBatch, open_manifests
from lakelsm.format.manifest.manifest_list import ManifestFileMeta, decode_manifest_list
from lakelsm.format.paths import TablePaths
from lakelsm.format.snapshot import Snapshot

if TYPE_CHECKING:
    from lakelsm.storage.file_io import FileIO

Longs: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

#: Returns whether a manifest may have wanted entries, by its ranges. It must keep each manifest that has one.
ManifestFilter: TypeAlias = Callable[[ManifestFileMeta], bool]
#: Returns for each of some distinct partitions (BinaryRows with arity) whether its entries are wanted.
PartitionFilter: TypeAlias = Callable[[Sequence[bytes]], Sequence[bool] | Mask]
#: Returns for each entry whether it is wanted, given the arrays of buckets and of total bucket counts.
BucketFilter: TypeAlias = Callable[[Longs, Longs], Mask]

#: The maximum size of a manifest, manifest list or index manifest, in bytes.
_MAX_BYTES = 256 << 20


def read_live_entries(
    file_io: FileIO,
    paths: TablePaths,
    snapshot: Snapshot,
    keep_manifest: ManifestFilter | None = None,
    keep_partitions: PartitionFilter | None = None,
    keep_buckets: BucketFilter | None = None,
    stats: bool = True,
) -> list[ManifestEntry]:
    """Return the ADD entries of ``snapshot`` whose file is live, in manifest order.

    An ADD is live unless a DELETE of the base or delta list, in any position, has its identity. The filters run before
    entries are made; they must return the same for all entries of a bucket. ``stats=False`` may leave key and value
    statistics empty, which is a third faster: for plans that do not prune, never for entries that are committed again.
    Raises CorruptTableError with the file's name if a manifest or list is missing or damaged, or adds a file twice.
    """
    metas = _metas_with_entries(file_io, paths, snapshot)
    batches = _open(file_io, paths, metas, keep_manifest)
    wanted = [_wanted(batch, keep_partitions, keep_buckets) for batch in batches]
    entries = [entry for batch, rows in _live(batches, wanted) for entry in batch.entries(rows, stats)]
    names = {entry.file.file_name for entry in entries}
    if len(names) != len(entries):  # Names are cheaper to compare than identities, and unique too.
        _check_added_once((entry.identity for entry in entries), snapshot)
    return entries


def _check_added_once(identities: Iterable[EntryIdentity], snapshot: Snapshot) -> None:
    """Refuse a snapshot that adds a file twice: its rows would be read twice. (Java: `FileEntry.mergeEntries`.)"""
    seen: set[EntryIdentity] = set()
    for identity in identities:
        if identity in seen:
            raise CorruptTableError(
                f"Snapshot {snapshot.id} adds data file {identity[3]!r} twice. Restore its manifests, or read another "
                "snapshot."
            )
        seen.add(identity)


def read_live_batches(
    file_io: FileIO, paths: TablePaths, snapshot: Snapshot, keep_partitions: PartitionFilter | None = None
) -> list[tuple[EntryBatch, Longs]]:
    """Return batches of entries and the row indexes of their live files, in manifest order: entries as columns.

    Live files and errors are as in `read_live_entries`.
    """
    batches = _open(file_io, paths, _metas_with_entries(file_io, paths, snapshot), None)
    live = list(_live(batches, [_wanted(batch, keep_partitions, None) for batch in batches]))
    names = {name for batch, rows in live for name in batch.file_names(rows)}
    if len(names) != sum(len(rows) for _, rows in live):
        _check_added_once((identity for batch, rows in live for identity in batch.identities(rows)), snapshot)
    return live


def live_entries(batches: Sequence[EntryBatch], keep_partitions: PartitionFilter | None = None) -> list[ManifestEntry]:
    """Return the live entries of a snapshot's batches, in their order. See `read_live_entries`."""
    wanted = [_wanted(batch, keep_partitions, None) for batch in batches]
    return [entry for batch, rows in _live(batches, wanted) for entry in batch.entries(rows)]


def read_batches(file_io: FileIO, paths: TablePaths, snapshot: Snapshot) -> list[EntryBatch]:
    """Return all entries of ``snapshot``, including those that delete files."""
    return _open(file_io, paths, _metas_with_entries(file_io, paths, snapshot), None)


def read_live_counts(
    file_io: FileIO, paths: TablePaths, snapshot: Snapshot, keep_partitions: PartitionFilter | None = None
) -> list[tuple[EntryBatch, Longs]]:
    """Return batches with only the columns that counts need, and the row indexes of their live files.

    No entries can be made of such batches. Live files and errors are as in `read_live_entries`.
    """
    batches = _open(file_io, paths, _metas_with_entries(file_io, paths, snapshot), None, COUNTED)
    return list(_live(batches, [_wanted(batch, keep_partitions, None) for batch in batches]))


def _metas_with_entries(file_io: FileIO, paths: TablePaths, snapshot: Snapshot) -> list[ManifestFileMeta]:
    metas = read_manifest_metas(file_io, paths, snapshot)
    return [meta for meta in metas if meta.num_added_files or meta.num_deleted_files]


def _live(batches: Sequence[EntryBatch], wanted: Sequence[Mask]) -> Iterator[tuple[EntryBatch, Longs]]:
    """Yield each batch with the row indexes of its wanted live files."""
    deleted: set[EntryIdentity] = set()
    for batch, mask in zip(batches, wanted, strict=True):
        deleted.update(batch.identities(np.flatnonzero(mask & (batch.kinds == FileKind.DELETE))))
    for batch, mask in zip(batches, wanted, strict=True):
        yield batch, _without(batch, np.flatnonzero(mask & (batch.kinds == FileKind.ADD)), deleted)


def read_delta_entries(
    file_io: FileIO,
    paths: TablePaths,
    snapshot: Snapshot,
    keep_partitions: PartitionFilter | None = None,
) -> list[ManifestEntry]:
    """Return the entries of the delta of ``snapshot``, in order. Errors are as in `read_live_entries`."""
    return _read_all(file_io, paths, read_delta_metas(file_io, paths, snapshot), keep_partitions)


def read_delta_partitions(file_io: FileIO, paths: TablePaths, snapshot: Snapshot) -> set[bytes]:
    """Return the partitions of the entries of the delta of ``snapshot``. Errors are as in `read_live_entries`."""
    batches = _open(file_io, paths, read_delta_metas(file_io, paths, snapshot), None, COUNTED)
    return {partition for batch in batches for partition in batch.partitions}


def read_changelog_entries(
    file_io: FileIO,
    paths: TablePaths,
    snapshot: Snapshot,
    keep_partitions: PartitionFilter | None = None,
) -> list[ManifestEntry]:
    """Return the changelog files of ``snapshot``, if it has any. Errors are as in `read_live_entries`."""
    return _read_all(file_io, paths, read_changelog_metas(file_io, paths, snapshot), keep_partitions)


def read_index_entries(file_io: FileIO, paths: TablePaths, snapshot: Snapshot) -> list[IndexManifestEntry]:
    """Return all index files of ``snapshot``; an empty list if it has no index manifest."""
    if snapshot.index_manifest is None:
        return []
    path = paths.manifest(snapshot.index_manifest)
    checksum = snapshot.checksum_of(snapshot.index_manifest)
    return decode_index_manifest(read_metadata(file_io, path, f"snapshot {snapshot.id}", checksum=checksum), path)


def read_delta_metas(file_io: FileIO, paths: TablePaths, snapshot: Snapshot) -> list[ManifestFileMeta]:
    """Return the manifests of the delta of ``snapshot``."""
    return read_manifest_list(file_io, paths, snapshot, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)


def read_changelog_metas(file_io: FileIO, paths: TablePaths, snapshot: Snapshot) -> list[ManifestFileMeta]:
    """Return the manifests of the changelog of ``snapshot``, if it has one."""
    name, size = snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size
    return [] if name is None else read_manifest_list(file_io, paths, snapshot, name, size)


def read_manifest_metas(file_io: FileIO, paths: TablePaths, snapshot: Snapshot) -> list[ManifestFileMeta]:
    """Return the manifests of ``snapshot``: those of its base list, then those of its delta list.

    Raises CorruptTableError if one is named twice.
    """
    base = read_manifest_list(file_io, paths, snapshot, snapshot.base_manifest_list, snapshot.base_manifest_list_size)
    metas = [*base, *read_delta_metas(file_io, paths, snapshot)]
    name, times = Counter(meta.file_name for meta in metas).most_common(1)[0] if metas else ("", 1)
    if times > 1:
        raise CorruptTableError(
            f"The manifest lists of snapshot {snapshot.id} name {paths.manifest(name)} {times} times. Restore them, or "
            "read another snapshot."
        )
    return metas


def read_manifest(file_io: FileIO, paths: TablePaths, meta: ManifestFileMeta) -> list[ManifestEntry]:
    """Return the entries of one manifest, in order. Errors are as in `read_live_entries`."""
    return _read_all(file_io, paths, [meta], None)


def read_file_names(file_io: FileIO, paths: TablePaths, metas: Sequence[ManifestFileMeta]) -> list[str]:
    """Return the names of all files that the manifests add or delete: data files and their extra files.

    Errors are as in `read_live_entries`.
    """
    return [name for batch in _open(file_io, paths, metas, None, NAMED) for name in batch.stored_names()]


def read_named_entries(
    file_io: FileIO, paths: TablePaths, meta: ManifestFileMeta, names: Collection[str]
) -> list[tuple[int, EntryIdentity]]:
    """Return kind and identity of the entries of one manifest whose file name is in ``names``. Errors are as above."""
    found: list[tuple[int, EntryIdentity]] = []
    for batch in _open(file_io, paths, [meta], None, COUNTED):
        everything = np.arange(batch.count)
        rows = everything[batch.have_names(everything, names)]
        found += zip(batch.kinds[rows].tolist(), batch.identities(rows))
    return found


def _read_all(
    file_io: FileIO,
    paths: TablePaths,
    metas: Sequence[ManifestFileMeta],
    keep_partitions: PartitionFilter | None,
) -> list[ManifestEntry]:
    entries: list[ManifestEntry] = []
    for batch in _open(file_io, paths, metas, None):
        entries += batch.entries(np.flatnonzero(_wanted(batch, keep_partitions, None)))
    return entries


def _open(
    file_io: FileIO,
    paths: TablePaths,
    metas: Sequence[ManifestFileMeta],
    keep_manifest: ManifestFilter | None,
    fields: frozenset[str] = ALL_FIELDS,
) -> list[EntryBatch]:
    def contents() -> Iterator[tuple[bytes, str, int]]:
        for meta in metas:
            if keep_manifest is None or keep_manifest(meta):
                path = paths.manifest(meta.file_name)
                data = read_metadata(file_io, path, "a manifest list", meta.file_size, meta.checksum)
                yield data, path, meta.entry_count

    return open_manifests(contents(), fields)


def _wanted(
    batch: EntryBatch, keep_partitions: PartitionFilter | None, keep_buckets: BucketFilter | None
) -> Mask:
    mask: Mask = np.ones(batch.count, np.bool_)
    if keep_partitions is not None and batch.count:
        mask &= np.asarray(keep_partitions(batch.partitions), np.bool_)[batch.partition_codes]
    if keep_buckets is not None:
        mask &= keep_buckets(batch.buckets, batch.total_buckets)
    return mask


def _without(batch: EntryBatch, rows: Longs, deleted: set[EntryIdentity]) -> Longs:
    """Return the row indexes of ``rows`` whose identity is not in ``deleted``."""
    if not deleted:
        return rows
    suspects = batch.have_names(rows, {identity[3] for identity in deleted})
    identities = batch.identities(rows[suspects])
    alive = np.ones(len(rows), np.bool_)
    alive[suspects] = [identity not in deleted for identity in identities]
    return rows[alive]


def read_manifest_list(
    file_io: FileIO, paths: TablePaths, snapshot: Snapshot, name: str, size: int | None
) -> list[ManifestFileMeta]:
    """Return the manifests of a list of ``snapshot``; ``size`` is its recorded size in bytes (None: unknown)."""
    path = paths.manifest(name)
    data = read_metadata(file_io, path, f"snapshot {snapshot.id}", size, snapshot.checksum_of(name))
    return decode_manifest_list(data, path)


def read_metadata(file_io: FileIO, path: str, owner: str, size: int | None = None, checksum: int | None = None) -> bytes:
    """Read a metadata file that ``owner`` names, with the size and CRC-32 that it records (None: not recorded).

    Raises CorruptTableError with the file's name if it is missing, damaged or another file.
    """
    try:
        data = file_io.read(path, _MAX_BYTES)
    except FileNotFoundError as error:
        raise CorruptTableError(
            f"{path} is missing, but {owner} names it. Restore the file, or read another snapshot."
        ) from error
    if size is not None and len(data) != size:
        raise CorruptTableError(
            f"{path} has {len(data)} bytes instead of {size}, which {owner} records. Restore the file, or read another "
            "snapshot."
        )
    if checksum is not None and zlib.crc32(data) != checksum:
        raise CorruptTableError(
            f"{path} is damaged: its checksum differs from the one that {owner} records. Restore the file, or read "
            "another snapshot."
        )
    return data
