"""Conversion between manifest entries and the records that fastavro writes and reads (docs/format.md 5.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelsm.format.manifest.avro_schemas import MANIFEST_VERSION
from lakelsm.format.manifest.data_file_meta import DataFileMeta, SimpleStats
from lakelsm.format.manifest.entry import FileKind, ManifestEntry


def stats_to_record(stats: SimpleStats) -> dict[str, Any]:
    """Return the Avro record of ``stats``."""
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": stats.null_counts,
    }


def stats_from_record(record: Mapping[str, Any]) -> SimpleStats:
    """Return the statistics of an Avro record; missing null counts become None."""
    counts = record.get("_NULL_COUNTS")
    return SimpleStats(
        record["_MIN_VALUES"], record["_MAX_VALUES"], None if counts is None else tuple(counts)
    )


def entry_to_record(entry: ManifestEntry) -> dict[str, Any]:
    """Return the Avro record of an entry."""
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


def entry_from_record(record: Mapping[str, Any]) -> ManifestEntry:
    """Return the entry of an Avro record. Raises KeyError or ValueError for a missing or invalid field."""
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
