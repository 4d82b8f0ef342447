"""Files that Spark's own scan reads wrongly: tasks read them instead, with exact column names.

Spark's listing leaves out files whose names begin with ``_`` or ``.``, even if they are named one by one: a scan of them
has no rows. It shows other names percent-encoded. And its Parquet reader ignores the case of column names, also of those
that Spark or Paimon adds to a file. Tables may have such names (``data-file.prefix``, columns).

Nanoseconds are the other case. Spark cuts INT96 times (docs/format.md 6.3) to microseconds towards zero if the
nanoseconds of the day are negative, as Java Paimon writes them before 1970: the next compaction would change the time.
lakelsm's own files have no such times, and record this. pypaimon's 64-bit nanoseconds are numbers for Spark. Only tables
with such columns have this cost: the footers of their files are read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import compress

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelsm.errors import StorageError
from lakelsm.format.data_file.file_check import PARQUET_ERRORS, unreadable
from lakelsm.format.data_file.int96_timestamps import FLOORED_TIMES, leaves_of, stored_type
from lakelsm.format.snapshot import Snapshot
from lakelsm.merge.merge_unit import RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.merge_units import pack_for_tasks
from lakelsm.read.snapshot_guard import SnapshotGuard
from lakelsm.read.stored_rows import TASK_MEMORY, StoredRows
from lakelsm.schema.identifiers import alike, folded
from lakelsm.schema.system_columns import (
    FILE_NAME,
    KEY_FIELD_PREFIX,
    POSITION,
    SEQUENCE_NUMBER,
    SYSTEM_FIELDS,
    VALUE_KIND,
)
from lakelsm.schema.table_schema import TableSchema, column_mapping
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.spark_types import exact_fields, to_spark, to_spark_arrow
from lakelsm.spark.tasks import read_units
from lakelsm.storage import FileIO
from lakelsm.types import DataField, nested_row_fields, to_arrow

#: File names that Spark's listing includes and ``_metadata.file_name`` shows unchanged.
_PLAIN_NAME = re.compile(r"[-a-zA-Z0-9!$&'()*+,;=:@~][-\w.!$&'()*+,;=:@~]*", re.ASCII)

#: Spark's Parquet reader fills a column of this name with the row index in its file. `_metadata.row_index` is the same,
#: but Spark builds a struct for every row. Tasks read files that have a column of this name.
ROW_INDEX = "_tmp_metadata_row_index"

#: Columns that files have besides the table's, or that Spark's reader adds: `_metadata` and the row index.
_RESERVED_NAMES = frozenset(map(folded, (SEQUENCE_NUMBER, VALUE_KIND, "_metadata", ROW_INDEX)))

_THREADS = 16


def split_by_reader(
    files: Sequence[RunFile], schemas: Mapping[int, TableSchema], for_tasks: Collection[str] = ()
) -> tuple[list[RunFile], list[RunFile]]:
    """Return the files that a scan of Spark reads correctly, and those that tasks must read.

    Tasks also read the files with a path in ``for_tasks``, because of their content.
    """
    are_distinct = {key: _names_are_distinct(schema.fields) for key, schema in schemas.items()}
    is_scanned = [
        are_distinct[file.schema_id] and file.path not in for_tasks and bool(_PLAIN_NAME.fullmatch(file.name))
        for file in files
    ]
    return list(compress(files, is_scanned)), [file for file, scanned in zip(files, is_scanned) if not scanned]


def task_scan(
    spark: SparkSession,
    store: TableStore,
    schemas: Mapping[int, TableSchema],
    files: Sequence[RunFile],
    snapshot: Snapshot | None = None,
    *,
    exact: bool = False,
) -> DataFrame:
    """Return the rows of the files, unmerged: the table's columns, the sequence number and kind, then `FILE_NAME` and
    `POSITION`. Nothing runs before an action. ``snapshot`` contains the files and may expire. ``exact``: the table's
    `exact_fields` follow the kind.
    """
    reader = RunReader(
        store.file_io, store.schema, schemas=schemas, columns=store.schema.field_names, memory_bytes=TASK_MEMORY
    )
    copies = exact_fields(store.schema.fields) if exact else {}
    stored = (*store.schema.fields, *SYSTEM_FIELDS, *copies.values())
    # Nullable, as in Spark's own scan: a retraction may have nothing but its key.
    columns = T.StructType([T.StructField(column.name, to_spark(column.type)) for column in stored])
    struct = columns.add(FILE_NAME, T.StringType()).add(POSITION, T.LongType())
    packed = pack_for_tasks(store.options, files, lambda file: [file])
    sources = {copy.name: name for name, copy in copies.items()}
    task = SnapshotGuard(store, (snapshot,), StoredRows(reader, to_spark_arrow(stored), sources))
    return read_units(spark, packed, task, struct)


def _names_are_distinct(fields: Sequence[DataField]) -> bool:
    names = [folded(field.name) for field in fields]
    reserved = any(name in _RESERVED_NAMES or name.startswith(folded(KEY_FIELD_PREFIX)) for name in names)
    return not reserved and _members_are_distinct(fields)


def _members_are_distinct(fields: Sequence[DataField]) -> bool:
    nested = (members for field in fields for members in nested_row_fields(field.type))
    return alike(field.name for field in fields) is None and all(map(_members_are_distinct, nested))


def nanosecond_files(
    file_io: FileIO, schema: TableSchema, schemas: Mapping[int, TableSchema], files: Sequence[RunFile]
) -> frozenset[str]:
    """Return the paths of files with TIMESTAMP(7..9) columns of ``schema`` that tasks must read."""
    wanted = {key: _columns_with_nanoseconds(stored, schema) for key, stored in schemas.items()}
    examined = [file for file in files if wanted[file.schema_id]]
    if not examined:
        return frozenset()
    filesystem = file_io.filesystem()

    def must_use_task(file: RunFile) -> bool:
        try:
            footer = pq.read_metadata(file.path, filesystem=filesystem)
        except StorageError:  # A fault of the store, not of the file.
            raise
        except PARQUET_ERRORS as error:
            raise unreadable(file.path, error) from error
        return _must_use_task(footer, wanted[file.schema_id])

    with ThreadPoolExecutor(_THREADS) as pool:
        return frozenset(file.path for file in compress(examined, pool.map(must_use_task, examined)))


def _columns_with_nanoseconds(stored: TableSchema, schema: TableSchema) -> frozenset[str]:
    """Return the names, in a file, of the columns that may have nanoseconds, at any depth."""
    sources = (source for _, source in column_mapping(stored, schema) if source is not None)
    kinds = {source.name: to_arrow(source.type) for source in sources}
    return frozenset(name for name, kind in kinds.items() if stored_type(kind) != kind)


def _must_use_task(footer: pq.FileMetaData, names: frozenset[str]) -> bool:
    leaves = leaves_of(footer.schema, names)
    if any("nanoseconds" in str(leaf.logical_type) for leaf in leaves):
        return True
    key, value = FLOORED_TIMES
    is_floored = (footer.metadata or {}).get(key) == value
    return not is_floored and any(leaf.physical_type == "INT96" for leaf in leaves)
