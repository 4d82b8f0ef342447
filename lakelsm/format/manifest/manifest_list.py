"""Manifest lists: the manifests of a snapshot, with ranges that let a scan skip some (docs/format.md 5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import decode_records, read_container, write_container
from lakelsm.format.file_names import check_names
from lakelsm.format.manifest.avro_schemas import MANIFEST_LIST_SCHEMA, MANIFEST_VERSION
from lakelsm.format.manifest.data_file_meta import EMPTY_STATS, SimpleStats
from lakelsm.format.manifest.entry import FileKind, ManifestEntry
from lakelsm.format.manifest.file_checksums import checksum_header, checksums_of
from lakelsm.format.manifest.partition_stats import partition_stats
from lakelsm.format.manifest.record import stats_from_record, stats_to_record

if TYPE_CHECKING:
    from lakelsm.types import DataType


@dataclass(frozen=True)
class ManifestFileMeta:
    """One manifest. Counts are of its entries; the ranges (None: unknown) cover the files of all its entries.

    ``partition_stats`` has untruncated bounds of the partition columns; ``schema_id`` is the maximum. ``checksum`` is
    the CRC-32 of the manifest's bytes, which only the lists of lakelsm have (None: unknown).
    """

    file_name: str
    file_size: int
    _: KW_ONLY
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None
    checksum: int | None = field(default=None, compare=False)

    @property
    def entry_count(self) -> int:
        """The number of entries of the manifest."""
        return self.num_added_files + self.num_deleted_files


def encode_manifest_list(metas: Sequence[ManifestFileMeta], compression: str = "zstandard") -> bytes:
    """Return the bytes of a manifest list. An empty one is valid: the base list of a first snapshot."""
    header = checksum_header([meta.checksum for meta in metas])
    return write_container(MANIFEST_LIST_SCHEMA, [_to_record(meta) for meta in metas], compression, metadata=header)


def decode_manifest_list(data: bytes, source: str) -> list[ManifestFileMeta]:
    """Decode a manifest list, which ``source`` names in errors.

    Raises CorruptTableError for damaged bytes and UnsupportedFeatureError for another ``_VERSION``.
    """
    container = read_container(data, source)
    checksums = iter(checksums_of(container, sum(block.count for block in container.blocks)))
    metas = decode_records(
        container, MANIFEST_VERSION, lambda record: _from_record(record, next(checksums)), "manifest list"
    )
    check_names([meta.file_name for meta in metas], "_FILE_NAME", source)
    for meta in metas:
        _check_numbers(meta, source)
    return metas


def _check_numbers(meta: ManifestFileMeta, source: str) -> None:
    """Raise CorruptTableError for numbers that no writer writes. Scans use these numbers to skip manifests."""
    counts = (meta.file_size, meta.num_added_files, meta.num_deleted_files, meta.schema_id)
    ranges = (
        (meta.min_bucket, meta.max_bucket, -2),
        (meta.min_level, meta.max_level, 0),
        (meta.min_row_id, meta.max_row_id, 0),
    )
    # The ranges of a manifest without entries have no order.
    recorded = [(low, high, minimum) for low, high, minimum in ranges if low is not None and high is not None]
    known = recorded if meta.num_added_files or meta.num_deleted_files else []
    numbers = (*counts, *(bound for low, high, _ in known for bound in (low, high)))
    if (
        any(type(number) is not int for number in numbers)
        or min(counts) < 0
        or any(low < minimum or high < low for low, high, minimum in known)
    ):
        raise CorruptTableError(
            f"{source} is damaged: the entry of {meta.file_name} has numbers out of range: size {meta.file_size}, "
            f"{meta.num_added_files} and {meta.num_deleted_files} entries, schema {meta.schema_id}, buckets "
            f"{meta.min_bucket} to {meta.max_bucket}, levels {meta.min_level} to {meta.max_level}, row ids "
            f"{meta.min_row_id} to {meta.max_row_id}. Restore the file, or read an older snapshot."
        )


def summarize(
    file_name: str,
    file_size: int,
    entries: Sequence[ManifestEntry],
    partition_types: Sequence[DataType],
) -> ManifestFileMeta:
    """Return the list record of a manifest that contains ``entries`` (at least one)."""
    added = sum(entry.kind == FileKind.ADD for entry in entries)
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    row_ids = _row_id_range(entries)
    return ManifestFileMeta(
        file_name=file_name,
        file_size=file_size,
        num_added_files=added,
        num_deleted_files=len(entries) - added,
        partition_stats=_partition_stats(entries, partition_types),
        schema_id=max((entry.file.schema_id for entry in entries), default=0),
        min_bucket=min(buckets, default=None),
        max_bucket=max(buckets, default=None),
        min_level=min(levels, default=None),
        max_level=max(levels, default=None),
        min_row_id=row_ids[0],
        max_row_id=row_ids[1],
    )


def _row_id_range(entries: Sequence[ManifestEntry]) -> tuple[int | None, int | None]:
    """Return the first and last row id of row-tracking files; None if one entry has no row id."""
    first = [entry.file.first_row_id for entry in entries]
    known = [row_id for row_id in first if row_id is not None]
    if not known or len(known) != len(first):
        return None, None
    last = max(row_id + entry.file.row_count - 1 for row_id, entry in zip(known, entries, strict=True))
    return min(known), last


def _partition_stats(entries: Sequence[ManifestEntry], types: Sequence[DataType]) -> SimpleStats:
    if not types:
        return EMPTY_STATS
    return partition_stats([entry.partition for entry in entries], types)


def _to_record(meta: ManifestFileMeta) -> dict[str, Any]:
    return {
        "_VERSION": MANIFEST_VERSION,
        "_FILE_NAME": meta.file_name,
        "_FILE_SIZE": meta.file_size,
        "_NUM_ADDED_FILES": meta.num_added_files,
        "_NUM_DELETED_FILES": meta.num_deleted_files,
        "_PARTITION_STATS": stats_to_record(meta.partition_stats),
        "_SCHEMA_ID": meta.schema_id,
        "_MIN_BUCKET": meta.min_bucket,
        "_MAX_BUCKET": meta.max_bucket,
        "_MIN_LEVEL": meta.min_level,
        "_MAX_LEVEL": meta.max_level,
        "_MIN_ROW_ID": meta.min_row_id,
        "_MAX_ROW_ID": meta.max_row_id,
    }


def _from_record(record: Mapping[str, Any], checksum: int | None) -> ManifestFileMeta:
    return ManifestFileMeta(
        file_name=record["_FILE_NAME"],
        file_size=record["_FILE_SIZE"],
        num_added_files=record["_NUM_ADDED_FILES"],
        num_deleted_files=record["_NUM_DELETED_FILES"],
        partition_stats=stats_from_record(record["_PARTITION_STATS"]),
        schema_id=record["_SCHEMA_ID"],
        min_bucket=record.get("_MIN_BUCKET"),
        max_bucket=record.get("_MAX_BUCKET"),
        min_level=record.get("_MIN_LEVEL"),
        max_level=record.get("_MAX_LEVEL"),
        min_row_id=record.get("_MIN_ROW_ID"),
        max_row_id=record.get("_MAX_ROW_ID"),
        checksum=checksum,
    )
