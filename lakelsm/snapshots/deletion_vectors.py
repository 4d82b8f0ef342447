"""The deletion vectors of a snapshot: the masked rows of its data files (docs/format.md 13.5)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.vector_location import VectorLocation
from lakelsm.format.file_names import refuse_external_path
from lakelsm.format.index.index_manifest import DELETION_VECTORS_INDEX, IndexManifestEntry
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.manifest_scan import read_index_entries
from lakelsm.snapshots.table_store import TableStore

#: A partition (BinaryRow with arity) and a bucket of it.
_BucketId: TypeAlias = tuple[bytes, int]


@dataclass(frozen=True)
class DeletionVectors:
    """The locations of a snapshot's vectors, by bucket and data file name, and the entries of their index files."""

    locations: Mapping[_BucketId, Mapping[str, VectorLocation]] = field(default_factory=dict)
    entries: Mapping[_BucketId, Sequence[IndexManifestEntry]] = field(default_factory=dict)

    def of_bucket(self, partition: bytes, bucket: int) -> Mapping[str, VectorLocation]:
        """Return the vectors of one bucket by data file name. Vectors of missing files mask nothing."""
        return self.locations.get((partition, bucket), {})

    def of(self, entries: Iterable[ManifestEntry]) -> list[VectorLocation | None]:
        """Return the vector of each entry's data file; None for a file without masked rows."""
        return [self.of_bucket(entry.partition, entry.bucket).get(entry.file.file_name) for entry in entries]


def deletion_vectors(
    store: TableStore, snapshot: Snapshot | None, buckets: Container[_BucketId] | None = None
) -> DeletionVectors:
    """Return the vectors of a snapshot (None: of an empty table) in ``buckets`` (None: in all).

    Reads the index manifest only. Raises CorruptTableError if a data file has two vectors, or if an index file does not
    list its vectors.
    """
    if snapshot is None:
        return DeletionVectors()
    locations: dict[_BucketId, dict[str, VectorLocation]] = {}
    entries: dict[_BucketId, list[IndexManifestEntry]] = {}
    for entry in read_index_entries(store.file_io, store.paths, snapshot):
        if entry.file.index_type != DELETION_VECTORS_INDEX:
            continue
        bucket = entry.partition, entry.bucket
        if buckets is not None and bucket not in buckets:
            continue
        entries.setdefault(bucket, []).append(entry)
        known = locations.setdefault(bucket, {})
        for location in _locations(store, snapshot, entry):
            if location.data_file in known:
                raise _wrong(
                    snapshot,
                    f"has two deletion vectors of data file {location.data_file}, in "
                    f"{known[location.data_file].index_path} and {location.index_path}",
                )
            known[location.data_file] = location
    return DeletionVectors(locations, entries)


def _locations(store: TableStore, snapshot: Snapshot, entry: IndexManifestEntry) -> Iterator[VectorLocation]:
    file = entry.file
    refuse_external_path(file.external_path, file.file_name)
    if file.dv_ranges is None:
        raise _wrong(snapshot, f"has no byte ranges of the deletion vectors of index file {file.file_name}")
    path = store.paths.index(file.file_name)
    store.file_io.check_file(path)
    for vector in file.dv_ranges:
        numbers = vector.offset, vector.length, vector.cardinality or 0
        if min(numbers) < 0 or vector.offset + vector.length > file.file_size:
            raise _wrong(
                snapshot,
                f"has an invalid deletion vector of data file {vector.data_file_name}: {vector.length} bytes from byte "
                f"{vector.offset} of index file {file.file_name} with {file.file_size} bytes, masking "
                f"{vector.cardinality} rows",
            )
        yield VectorLocation(
            path,
            index_size=file.file_size,
            data_file=vector.data_file_name,
            offset=vector.offset,
            length=vector.length,
            cardinality=vector.cardinality,
            index_checksum=file.checksum,
        )


def _wrong(snapshot: Snapshot, problem: str) -> CorruptTableError:
    return CorruptTableError(
        f"Index manifest {snapshot.index_manifest} {problem}. Restore it, or read a snapshot before {snapshot.id}."
    )
