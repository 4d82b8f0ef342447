"""The files of manifests as one Arrow table, for callers that show many of them (docs/format.md 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakelsm.format.manifest.data_file_meta import DataFileMeta
from lakelsm.types.python_arrays import array_of

TABLE_LONGS = (
    "_FILE_SIZE",
    "_ROW_COUNT",
    "_MIN_SEQUENCE_NUMBER",
    "_MAX_SEQUENCE_NUMBER",
    "_SCHEMA_ID",
    "_LEVEL",
)
TABLE_OPTIONAL_LONGS = ("_CREATION_TIME", "_DELETE_ROW_COUNT", "_FILE_SOURCE", "_FIRST_ROW_ID")
TABLE_TEXT_LISTS = ("_VALUE_STATS_COLS", "_WRITE_COLS")
#: The columns, named as the fields; bounds and null counts are those of ``_VALUE_STATS``.
FILE_TABLE = pa.schema(
    [
        ("_FILE_NAME", pa.large_string()),
        *((name, pa.int64()) for name in TABLE_LONGS),
        ("_MIN_KEY", pa.large_binary()),
        ("_MAX_KEY", pa.large_binary()),
        ("_MIN_VALUES", pa.large_binary()),
        ("_MAX_VALUES", pa.large_binary()),
        ("_NULL_COUNTS", pa.large_list(pa.int64())),
        *((name, pa.int64()) for name in TABLE_OPTIONAL_LONGS),
        ("_EXTERNAL_PATH", pa.large_string()),
        *((name, pa.large_list(pa.large_string())) for name in TABLE_TEXT_LISTS),
    ]
)


def file_table(files: Sequence[DataFileMeta]) -> pa.RecordBatch:
    """Return the table of files that are Python objects."""
    values = list(zip(*map(_values, files))) or [()] * len(FILE_TABLE)
    return pa.record_batch([array_of(column, field.type) for column, field in zip(values, FILE_TABLE)], schema=FILE_TABLE)


def _values(file: DataFileMeta) -> tuple[object, ...]:
    """Return the values of a file in the order of `FILE_TABLE`."""
    return (
        file.file_name,
        file.file_size,
        file.row_count,
        file.min_sequence_number,
        file.max_sequence_number,
        file.schema_id,
        file.level,
        file.min_key,
        file.max_key,
        file.value_stats.min_values,
        file.value_stats.max_values,
        file.value_stats.null_counts,
        file.creation_time_millis,
        file.delete_row_count,
        file.file_source,
        file.first_row_id,
        file.external_path,
        file.value_stats_cols,
        file.write_cols,
    )
