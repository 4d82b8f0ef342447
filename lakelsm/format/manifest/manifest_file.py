"""Manifests (docs/format.md 5.3): encoding, and decoding for scans, into columns if they have many blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import Container, decode_records, read_container, write_container
from lakelsm.format.avro.lanes import UnsupportedLayoutError
from lakelsm.format.file_names import check_names
from lakelsm.format.manifest.avro_schemas import MANIFEST_SCHEMA, MANIFEST_VERSION
from lakelsm.format.manifest.columns import ALL_FIELDS, EntryColumns, FileCounts
from lakelsm.format.manifest.data_file_meta import DataFileMeta
from lakelsm.format.manifest.entry import EntryIdentity, ManifestEntry
from lakelsm.format.manifest.entry_numbers import check_entries
from lakelsm.format.manifest.file_checksums import checksum_header, checksums_of
from lakelsm.format.manifest.file_table import file_table
from lakelsm.format.manifest.record import entry_from_record, entry_to_record

Longs: TypeAlias = npt.NDArray[np.int64]

# One step of decoding in lanes costs as much as fastavro needs for about this many records (measured).
_RECORDS_A_STEP = 32


def encode_manifest(entries: Sequence[ManifestEntry], compression: str = "zstandard") -> bytes:
    """Return the bytes of a manifest file with ``entries``, in order."""
    header = checksum_header([entry.file.footer_checksum for entry in entries])
    return write_container(MANIFEST_SCHEMA, [entry_to_record(entry) for entry in entries], compression, metadata=header)


def decode_manifest(data: bytes, source: str) -> list[ManifestEntry]:
    """Return the entries of a manifest file, in order; ``source`` names it in errors.

    Raises CorruptTableError for damaged bytes and UnsupportedFeatureError for another ``_VERSION``.
    """
    batches = open_manifests([(data, source, None)])
    return [entry for batch in batches for entry in batch.entries(np.arange(batch.count))]


def encode_entries(entries: Sequence[ManifestEntry]) -> bytes:
    """Encode entries for a message between a Spark task and the driver. This form is not stored."""
    return encode_manifest(entries)


def decode_entries(data: bytes) -> list[ManifestEntry]:
    """Decode the result of encode_entries."""
    return decode_manifest(data, "a task's result")


class EntryBatch(Protocol):
    """Entries of one or more manifests, in order. ``rows`` are entry numbers; arrays have ``count`` values.

    ``partitions`` are the distinct partition rows; ``partition_codes`` has the index of each entry's partition.
    """

    count: int
    kinds: Longs
    buckets: Longs
    total_buckets: Longs
    partitions: list[bytes]
    partition_codes: Longs

    def file_names(self, rows: Longs) -> list[str]:
        """Return the names of the data files of the entries ``rows``."""
        ...

    def stored_names(self) -> list[str]:
        """Return the names of all files of the entries: data files and their extra files."""
        ...

    def have_names(self, rows: Longs, names: Collection[str]) -> npt.NDArray[np.bool_]:
        """Return which of the files of the entries ``rows`` have one of the names."""
        ...

    def identities(self, rows: Longs) -> list[EntryIdentity]:
        """Return the identities of the entries ``rows``."""
        ...

    def counts(self, rows: Longs) -> FileCounts:
        """Return level, row counts and source of the files of the entries ``rows``."""
        ...

    def key_bounds(self, rows: Longs) -> tuple[pa.LargeBinaryArray, pa.LargeBinaryArray]:
        """Return the minimum and the maximum key of each of the files of the entries ``rows``."""
        ...

    def file_table(self, rows: Longs) -> pa.RecordBatch:
        """Return the files of the entries ``rows`` as a batch of `FILE_TABLE`."""
        ...

    def entries(self, rows: Longs, stats: bool = True) -> list[ManifestEntry]:
        """Return the entries ``rows``, in that order. Without ``stats``, they may have EMPTY_STATS."""
        ...


class EntryList:
    """A batch of entries that are Python objects."""

    def __init__(self, entries: Sequence[ManifestEntry]) -> None:
        codes: dict[bytes, int] = {}
        self._entries = entries
        self.count = len(entries)
        self.kinds = self._longs(entry.kind for entry in entries)
        self.buckets = self._longs(entry.bucket for entry in entries)
        self.total_buckets = self._longs(entry.total_buckets for entry in entries)
        self.partition_codes = self._longs(codes.setdefault(entry.partition, len(codes)) for entry in entries)
        self.partitions = list(codes)

    def file_names(self, rows: Longs) -> list[str]:
        """Return the names of the data files of the entries ``rows``."""
        return [self._entries[row].file.file_name for row in rows.tolist()]

    def stored_names(self) -> list[str]:
        """Return the names of all files of the entries: data files and their extra files."""
        return [name for entry in self._entries for name in (entry.file.file_name, *entry.file.extra_files)]

    def have_names(self, rows: Longs, names: Collection[str]) -> npt.NDArray[np.bool_]:
        """Return which of the files of the entries ``rows`` have one of the names."""
        return np.array([file.file_name in names for file in self._files(rows)], np.bool_)

    def identities(self, rows: Longs) -> list[EntryIdentity]:
        """Return the identities of the entries ``rows``."""
        return [self._entries[row].identity for row in rows.tolist()]

    def counts(self, rows: Longs) -> FileCounts:
        """Return level, row counts and source of the files of the entries ``rows``."""
        files = self._files(rows)
        return FileCounts(
            np.array([file.level for file in files], np.int64),
            np.array([file.row_count for file in files], np.int64),
            np.array([-1 if file.delete_row_count is None else file.delete_row_count for file in files], np.int64),
            np.array([-1 if file.file_source is None else file.file_source for file in files], np.int64),
        )

    def key_bounds(self, rows: Longs) -> tuple[pa.LargeBinaryArray, pa.LargeBinaryArray]:
        """Return the minimum and the maximum key of each of the files of the entries ``rows``."""
        files = self._files(rows)
        return (
            pa.array([file.min_key for file in files], pa.large_binary()),
            pa.array([file.max_key for file in files], pa.large_binary()),
        )

    def file_table(self, rows: Longs) -> pa.RecordBatch:
        """Return the files of the entries ``rows`` as a batch of `FILE_TABLE`."""
        return file_table(self._files(rows))

    def entries(self, rows: Longs, stats: bool = True) -> list[ManifestEntry]:
        """Return the entries ``rows``, in that order. Without ``stats``, they may have EMPTY_STATS."""
        return [self._entries[row] for row in rows.tolist()]

    def _files(self, rows: Longs) -> list[DataFileMeta]:
        return [self._entries[row].file for row in rows.tolist()]

    def _longs(self, values: Iterable[int]) -> Longs:
        return np.fromiter(values, np.int64, self.count)


def open_manifests(
    manifests: Iterable[tuple[bytes, str, int | None]], fields: frozenset[str] = ALL_FIELDS
) -> list[EntryBatch]:
    """Decode manifest files, given as (bytes, name for errors, number of entries if known), into batches in their order.

    ``fields`` are the needed fields (`columns.COUNTED`); others may be omitted.
    Raises CorruptTableError for damaged bytes and UnsupportedFeatureError for another ``_VERSION``.
    """
    containers = [_checked(read_container(data, source), count) for data, source, count in manifests]
    batches: list[EntryBatch] = []
    for _, group in groupby(containers, key=lambda container: container.schema):
        batches.append(_open(list(group), fields))
    return batches


def _checked(container: Container, count: int | None) -> Container:
    if count is not None and container.record_count != count:
        raise CorruptTableError(
            f"{container.source} has {container.record_count} entries instead of {count}. Restore the file."
        )
    return container


def _open(containers: Sequence[Container], fields: frozenset[str]) -> EntryBatch:
    """Open manifests that share a schema."""
    records = sum(container.record_count for container in containers)
    steps = max((block.count for container in containers for block in container.blocks), default=0)
    if records >= _RECORDS_A_STEP * steps > 0:
        try:
            return EntryColumns(containers, fields)
        except UnsupportedLayoutError:
            pass  # Lanes do not support this schema; fastavro supports all.
    entries: list[ManifestEntry] = []
    for container in containers:
        found = decode_records(container, MANIFEST_VERSION, entry_from_record, "manifest")
        check_names([entry.file.file_name for entry in found], "_FILE_NAME", container.source)
        check_entries(found, container.source)
        for entry, checksum in zip(found, checksums_of(container, len(found))):
            entry.file.footer_checksum = checksum
        entries += found
    return EntryList(entries)
