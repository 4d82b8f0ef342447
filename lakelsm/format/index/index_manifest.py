"""Index manifests: the complete list of a snapshot's live index files (docs/format.md 5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import decode_records, read_container, write_container
from lakelsm.format.file_names import check_names
from lakelsm.format.manifest.avro_schemas import INDEX_MANIFEST_SCHEMA, INDEX_MANIFEST_VERSION
from lakelsm.format.manifest.entry import FileKind
from lakelsm.format.manifest.file_checksums import checksum_header, checksums_of

#: The ``index_type`` of the key hashes of a dynamic bucket. Persisted: do not change
HASH_INDEX = "HASH"
#: The ``index_type`` of deletion vectors. Persisted: do not change
DELETION_VECTORS_INDEX = "DELETION_VECTORS"


@dataclass(frozen=True)
class DeletionVectorRange:
    """The range of one data file's deletion vector in an index file; ``cardinality`` is the number of deleted rows."""

    data_file_name: str
    offset: int
    length: int
    cardinality: int | None


@dataclass(frozen=True, kw_only=True)
class GlobalIndexMeta:
    """The metadata of a global index, which lakelsm keeps without interpreting it."""

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None
    index_meta: bytes | None
    source_meta: bytes | None


@dataclass(frozen=True)
class IndexFileMeta:
    """An index file. ``row_count`` is its number of hashes (HASH) or of vectors (DELETION_VECTORS).

    ``checksum`` is the CRC-32 of its bytes (None: unknown).
    """

    index_type: str
    file_name: str
    file_size: int
    row_count: int
    _: KW_ONLY
    dv_ranges: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndexMeta | None = None
    checksum: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class IndexManifestEntry:
    """An index file of ``bucket`` in ``partition`` (a BinaryRow with arity). On disk ``kind`` is always ADD."""

    kind: int
    partition: bytes
    bucket: int
    file: IndexFileMeta


def encode_index_manifest(entries: Sequence[IndexManifestEntry], compression: str = "zstandard") -> bytes:
    """Return the bytes of an index manifest with the complete list of live index files."""
    header = checksum_header([entry.file.checksum for entry in entries])
    return write_container(INDEX_MANIFEST_SCHEMA, [_to_record(entry) for entry in entries], compression, metadata=header)


def decode_index_manifest(data: bytes, source: str) -> list[IndexManifestEntry]:
    """Decode an index manifest, which ``source`` names in errors. Entries of unknown index types are kept.

    Raises CorruptTableError for damaged bytes and UnsupportedFeatureError for another ``_VERSION``.
    """
    container = read_container(data, source)
    entries = decode_records(container, INDEX_MANIFEST_VERSION, _from_record, "index manifest")
    check_names([entry.file.file_name for entry in entries], "_FILE_NAME", source)
    for entry in entries:
        _check_numbers(entry, source)
    checksums = checksums_of(container, len(entries))
    return [
        replace(entry, file=replace(entry.file, checksum=checksum)) for entry, checksum in zip(entries, checksums)
    ]


def _check_numbers(entry: IndexManifestEntry, source: str) -> None:
    """Raise CorruptTableError for numbers that no writer writes."""
    file = entry.file
    minimums: list[tuple[str, object, int]] = [
        ("_BUCKET", entry.bucket, -2),
        ("_FILE_SIZE", file.file_size, 0),
        ("_ROW_COUNT", file.row_count, 0),
    ]
    for item in file.dv_ranges or ():
        minimums += [("f1", item.offset, 0), ("f2", item.length, 0)]
        minimums += [] if item.cardinality is None else [("_CARDINALITY", item.cardinality, 0)]
    if file.global_index is not None:
        start, end = file.global_index.row_range_start, file.global_index.row_range_end
        minimums += [("_ROW_RANGE_START", start, 0), ("_ROW_RANGE_END", end, start if type(start) is int else 0)]
    for name, value, bound in minimums:
        if type(value) is not int or value < bound:
            raise CorruptTableError(
                f"{source}: the entry of index file {file.file_name} has {name} {value!r}, which is out of range: the "
                "index manifest is damaged. Restore it, or read an older snapshot."
            )


def _to_record(entry: IndexManifestEntry) -> dict[str, Any]:
    file = entry.file
    ranges = file.dv_ranges
    return {
        "_VERSION": INDEX_MANIFEST_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": file.index_type,
        "_FILE_NAME": file.file_name,
        "_FILE_SIZE": file.file_size,
        "_ROW_COUNT": file.row_count,
        "_DELETIONS_VECTORS_RANGES": None if ranges is None else [_range_to_record(item) for item in ranges],
        "_EXTERNAL_PATH": file.external_path,
        "_GLOBAL_INDEX": None if file.global_index is None else _global_to_record(file.global_index),
    }


def _from_record(record: Mapping[str, Any]) -> IndexManifestEntry:
    ranges = record.get("_DELETIONS_VECTORS_RANGES")
    global_index = record.get("_GLOBAL_INDEX")
    file = IndexFileMeta(
        index_type=record["_INDEX_TYPE"],
        file_name=record["_FILE_NAME"],
        file_size=record["_FILE_SIZE"],
        row_count=record["_ROW_COUNT"],
        dv_ranges=None
        if ranges is None
        else tuple(_range_from_record(item) for item in ranges if item is not None),
        external_path=record.get("_EXTERNAL_PATH"),
        global_index=None if global_index is None else _global_from_record(global_index),
    )
    return IndexManifestEntry(FileKind(record["_KIND"]), record["_PARTITION"], record["_BUCKET"], file)


def _range_to_record(item: DeletionVectorRange) -> dict[str, Any]:
    return {
        "f0": item.data_file_name,
        "f1": item.offset,
        "f2": item.length,
        "_CARDINALITY": item.cardinality,
    }


def _range_from_record(record: Mapping[str, Any]) -> DeletionVectorRange:
    return DeletionVectorRange(record["f0"], record["f1"], record["f2"], record.get("_CARDINALITY"))


def _global_to_record(meta: GlobalIndexMeta) -> dict[str, Any]:
    return {
        "_ROW_RANGE_START": meta.row_range_start,
        "_ROW_RANGE_END": meta.row_range_end,
        "_INDEX_FIELD_ID": meta.index_field_id,
        "_EXTRA_FIELD_IDS": meta.extra_field_ids,
        "_INDEX_META": meta.index_meta,
        "_SOURCE_META": meta.source_meta,
    }


def _global_from_record(record: Mapping[str, Any]) -> GlobalIndexMeta:
    extra = record.get("_EXTRA_FIELD_IDS")
    return GlobalIndexMeta(
        row_range_start=record["_ROW_RANGE_START"],
        row_range_end=record["_ROW_RANGE_END"],
        index_field_id=record["_INDEX_FIELD_ID"],
        extra_field_ids=None if extra is None else tuple(extra),
        index_meta=record.get("_INDEX_META"),
        source_meta=record.get("_SOURCE_META"),
    )
