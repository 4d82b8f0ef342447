"""Written files and their metadata, which is encoded for many files together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelsm.format.data_file.column_stats import StatsCollector, finish_all
from lakelsm.format.manifest.data_file_meta import DataFileMeta, FileSource
from lakelsm.format.row.binary_row import encode_rows, with_arity
from lakelsm.schema.table_schema import TableSchema


@dataclass(frozen=True, kw_only=True)
class WrittenFile:
    """The metadata of a complete file, before keys and statistics are encoded.

    ``ends`` has the trimmed primary key of its first and its last row.
    """

    name: str
    size: int
    rows: int
    deletes: int
    sequences: tuple[int, int]
    ends: pa.Table
    key_stats: StatsCollector
    value_stats: StatsCollector
    level: int
    source: FileSource
    created: int
    embedded_index: bytes | None
    extra_files: tuple[str, ...]
    footer_checksum: int


def file_metas(files: Sequence[WrittenFile], schema: TableSchema) -> list[DataFileMeta]:
    """Return the metadata of files of one layout.

    Keys and statistics are encoded as BinaryRows together. For files of few rows, encoding them one by one would cost
    more than all other metadata.
    """
    if not files:
        return []
    types = [field.type for field in schema.key_fields]
    ends = with_arity(encode_rows(pa.concat_tables([file.ends for file in files]).columns, types), len(types)).to_pylist()
    key_stats = finish_all([file.key_stats for file in files])
    value_stats = finish_all([file.value_stats for file in files])
    return [
        DataFileMeta(
            file_name=file.name,
            file_size=file.size,
            row_count=file.rows,
            min_key=ends[2 * at],
            max_key=ends[2 * at + 1],
            key_stats=key_stats[at][0],
            value_stats=value_stats[at][0],
            min_sequence_number=file.sequences[0],
            max_sequence_number=file.sequences[1],
            schema_id=schema.id,
            level=file.level,
            extra_files=file.extra_files,
            creation_time_millis=file.created,
            delete_row_count=file.deletes,
            embedded_index=file.embedded_index,
            file_source=file.source,
            value_stats_cols=value_stats[at][1],
            footer_checksum=file.footer_checksum,
        )
        for at, file in enumerate(files)
    ]
