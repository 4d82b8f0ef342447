"""Files with nanoseconds that a scan of Spark's shows wrongly, or not at all.

Spark cuts INT96 times (docs/format.md 6.3) to microseconds towards zero where the nanoseconds of the day are negative, as
Java Paimon writes them before 1970: a row would change its time with the next compaction. lakelsm's own files have none,
and say so. 64-bit nanoseconds, which pypaimon writes, are numbers to Spark. Only tables that have such columns pay: their
files' footers are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq

from lakelsm.format.data_file.file_check import PARQUET_ERRORS, unreadable
from lakelsm.format.data_file.int96_timestamps import FLOORED_MARK, leaves_of, stored_type
from lakelsm.merge.merge_unit import RunFile
from lakelsm.schema.column_mapping import column_mapping
from lakelsm.schema.table_schema import TableSchema
from lakelsm.storage import FileIO
from lakelsm.types import to_arrow

_THREADS = 16


def nanosecond_files(
    file_io: FileIO, schema: TableSchema, schemas: Mapping[int, TableSchema], files: Sequence[RunFile]
) -> frozenset[str]:
    """The paths among ``files`` whose columns of ``schema`` with TIMESTAMP(7..9) are left to tasks."""
    wanted = {key: _columns_with_nanoseconds(stored, schema) for key, stored in schemas.items()}
    looked_at = [file for file in files if wanted[file.schema_id]]
    if not looked_at:
        return frozenset()
    filesystem = file_io.filesystem()

    def is_left(file: RunFile) -> bool:
        try:
            footer = pq.read_metadata(file.path, filesystem=filesystem)
        except PARQUET_ERRORS as error:
            raise unreadable(file.path, error) from error
        return _is_left(footer, wanted[file.schema_id])

    with ThreadPoolExecutor(_THREADS) as pool:
        return frozenset(file.path for file, left in zip(looked_at, pool.map(is_left, looked_at)) if left)


def _columns_with_nanoseconds(stored: TableSchema, schema: TableSchema) -> frozenset[str]:
    """Names in a file of the columns that may have nanoseconds there, nested too."""
    sources = (source for _, source in column_mapping(stored, schema) if source is not None)
    kinds = {source.name: to_arrow(source.type) for source in sources}
    return frozenset(name for name, kind in kinds.items() if stored_type(kind) != kind)


def _is_left(footer: pq.FileMetaData, names: frozenset[str]) -> bool:
    leaves = leaves_of(footer.schema, names)
    if any("nanoseconds" in str(leaf.logical_type) for leaf in leaves):
        return True
    key, value = FLOORED_MARK
    is_floored = (footer.metadata or {}).get(key) == value
    return not is_floored and any(leaf.physical_type == "INT96" for leaf in leaves)
