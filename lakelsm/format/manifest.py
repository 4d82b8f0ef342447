"""Manifests: encode and decode lists of entries (format.md 6.2). Its parts are importable from here too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro_container import (
    DECODE_ERRORS,
    checked_version,
    read_container,
    read_records,
    write_container,
)
from lakelsm.format.data_file_meta import EMPTY_ROW, EMPTY_STATS, DataFileMeta, SimpleStats
from lakelsm.format.manifest_entry import EntryIdentity, FileKind, ManifestEntry
from lakelsm.format.manifest_list import (
    ManifestFileMeta,
    decode_manifest_list,
    encode_manifest_list,
    stats_from_record,
    stats_to_record,
    summarize,
)
from lakelsm.format.manifest_schema import MANIFEST_SCHEMA, MANIFEST_VERSION

__all__ = [
    "EMPTY_ROW",
    "EMPTY_STATS",
    "DataFileMeta",
    "EntryIdentity",
    "FileKind",
    "ManifestEntry",
    "ManifestFileMeta",
    "SimpleStats",
    "decode_entries",
    "decode_manifest",
    "decode_manifest_list",
    "encode_entries",
    "encode_manifest",
    "encode_manifest_list",
    "summarize",
]


def encode_manifest(entries: Sequence[ManifestEntry], compression: str = "zstandard") -> bytes:
    """Encode ``entries``, in order, into the bytes of a manifest file."""
    return write_container(MANIFEST_SCHEMA, [_to_record(entry) for entry in entries], compression)


def decode_manifest(data: bytes, source: str) -> list[ManifestEntry]:
    """Decode a manifest file into its entries, in order; ``source`` names it in errors.

    Raises CorruptTableError on damaged bytes and UnsupportedFeatureError on another ``_VERSION``.
    """
    records = read_records(read_container(data, source))
    try:
        checked_version(records, MANIFEST_VERSION, source)
        return [_from_record(record) for record in records]
    except DECODE_ERRORS as error:
        raise CorruptTableError(f"{source} is no manifest: field {error} is missing or wrong.") from error


def encode_entries(entries: Sequence[ManifestEntry]) -> bytes:
    """Encode entries as a message between a Spark task and the driver. Not a stored form."""
    return encode_manifest(entries)


def decode_entries(data: bytes) -> list[ManifestEntry]:
    """Decode what encode_entries made."""
    return decode_manifest(data, "a task's result")


def _to_record(entry: ManifestEntry) -> dict[str, Any]:
    file = entry.file
    return {
        "_VERSION": MANIFEST_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": {
            "_FILE_NAME": file.file_name,
            "_FILE_SIZE": file.file_size,
            "_ROW_COUNT": file.row_count,
            "_MIN_KEY": file.min_key,
            "_MAX_KEY": file.max_key,
            "_KEY_STATS": stats_to_record(file.key_stats),
            "_VALUE_STATS": stats_to_record(file.value_stats),
            "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
            "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
            "_SCHEMA_ID": file.schema_id,
            "_LEVEL": file.level,
            "_EXTRA_FILES": file.extra_files,
            "_CREATION_TIME": file.creation_time_millis,
            "_DELETE_ROW_COUNT": file.delete_row_count,
            "_EMBEDDED_FILE_INDEX": file.embedded_index,
            "_FILE_SOURCE": file.file_source,
            "_VALUE_STATS_COLS": file.value_stats_cols,
            "_EXTERNAL_PATH": file.external_path,
            "_FIRST_ROW_ID": file.first_row_id,
            "_WRITE_COLS": file.write_cols,
            "_WRITE_COLS_SEQUENCES": file.write_cols_sequences,
        },
    }


def _from_record(record: Mapping[str, Any]) -> ManifestEntry:
    return ManifestEntry(
        kind=FileKind(record["_KIND"]),
        partition=record["_PARTITION"],
        bucket=record["_BUCKET"],
        total_buckets=record["_TOTAL_BUCKETS"],
        file=_file_from_record(record["_FILE"]),
    )


def _file_from_record(record: Mapping[str, Any]) -> DataFileMeta:
    optional = record.get
    return DataFileMeta(
        file_name=record["_FILE_NAME"],
        file_size=record["_FILE_SIZE"],
        row_count=record["_ROW_COUNT"],
        min_key=record["_MIN_KEY"],
        max_key=record["_MAX_KEY"],
        key_stats=stats_from_record(record["_KEY_STATS"]),
        value_stats=stats_from_record(record["_VALUE_STATS"]),
        min_sequence_number=record["_MIN_SEQUENCE_NUMBER"],
        max_sequence_number=record["_MAX_SEQUENCE_NUMBER"],
        schema_id=record["_SCHEMA_ID"],
        level=record["_LEVEL"],
        extra_files=tuple(optional("_EXTRA_FILES") or ()),
        creation_time_millis=optional("_CREATION_TIME"),
        delete_row_count=optional("_DELETE_ROW_COUNT"),
        embedded_index=optional("_EMBEDDED_FILE_INDEX"),
        file_source=optional("_FILE_SOURCE"),
        value_stats_cols=_names(optional("_VALUE_STATS_COLS")),
        external_path=optional("_EXTERNAL_PATH"),
        first_row_id=optional("_FIRST_ROW_ID"),
        write_cols=_names(optional("_WRITE_COLS")),
        write_cols_sequences=_longs(optional("_WRITE_COLS_SEQUENCES")),
    )


def _names(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _longs(values: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)
