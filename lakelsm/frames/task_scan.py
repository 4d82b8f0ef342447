"""Files that Spark's own scan cannot read rightly: tasks read them, column by column name as Arrow has them.

Spark's listing leaves out files whose names begin with ``_`` or ``.``, even where they are named one by one: a scan of
them has no rows. It shows the names of others percent-encoded. And its Parquet reader finds columns without regard to
case, among them those that it or Paimon adds to a file. Tables may have such names (``data-file.prefix``, columns).

Nanoseconds are the other case. Spark cuts INT96 times (docs/format.md 6.3) to microseconds towards zero where the
nanoseconds of the day are negative, as Java Paimon writes them before 1970: a row would change its time with the next
compaction. lakelsm's own files have none, and record this. pypaimon's 64-bit nanoseconds are numbers to Spark.
Only tables that have such columns pay: their files' footers are looked at.
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
from lakelsm.format.data_file.int96_timestamps import FLOORED_INT96, leaves_of, stored_type
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

#: File names that Spark lists, and shows unchanged in ``_metadata.file_name``.
_PLAIN_NAME = re.compile(r"[-a-zA-Z0-9!$&'()*+,;=:@~][-\w.!$&'()*+,;=:@~]*", re.ASCII)

#: Spark's Parquet reader fills a column of this name with the row index in its file. `_metadata.row_index` is the
#: same, but makes Spark build a struct for every row. Files with a column of this name are left to tasks.
ROW_INDEX = "_tmp_metadata_row_index"

#: Columns of a file besides the table's, or that Spark's reader adds: `_metadata`, and the row index in its file.
_TAKEN = frozenset(map(folded, (SEQUENCE_NUMBER, VALUE_KIND, "_metadata", ROW_INDEX)))

_THREADS = 16


def parted_by_reader(
    files: Sequence[RunFile], schemas: Mapping[int, TableSchema], left: Collection[str] = ()
) -> tuple[list[RunFile], list[RunFile]]:
    """The files of which a scan of Spark reads all rows correctly, and those that are left to tasks.

    ``left`` are paths of files that are left to tasks for what they hold.
    """
    apart = {key: _names_are_apart(schema.fields) for key, schema in schemas.items()}
    is_scanned = [
        apart[file.schema_id] and file.path not in left and bool(_PLAIN_NAME.fullmatch(file.name)) for file in files
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
    """Return the rows of the files, merged with nothing: the table's columns, the sequence number and kind, then
    `FILE_NAME` and `POSITION`; nothing runs before an action. ``snapshot`` is the one that they are of, if it may go.
    ``exact``: the table's `exact_fields` come after the kind.
    """
    reader = RunReader(
        store.file_io, store.schema, schemas=schemas, columns=store.schema.field_names, memory_bytes=TASK_MEMORY
    )
    copies = exact_fields(store.schema.fields) if exact else {}
    stored = (*store.schema.fields, *SYSTEM_FIELDS, *copies.values())
    # Nullable, as in a scan of Spark's: a retraction may have its key alone.
    columns = T.StructType([T.StructField(column.name, to_spark(column.type)) for column in stored])
    struct = columns.add(FILE_NAME, T.StringType()).add(POSITION, T.LongType())
    packed = pack_for_tasks(store.options, files, lambda file: [file])
    sources = {copy.name: name for name, copy in copies.items()}
    task = SnapshotGuard(store, (snapshot,), StoredRows(reader, to_spark_arrow(stored), sources))
    return read_units(spark, packed, task, struct)


def _names_are_apart(fields: Sequence[DataField]) -> bool:
    names = [folded(field.name) for field in fields]
    reserved = any(name in _TAKEN or name.startswith(folded(KEY_FIELD_PREFIX)) for name in names)
    return not reserved and _members_are_apart(fields)


def _members_are_apart(fields: Sequence[DataField]) -> bool:
    nested = (members for field in fields for members in nested_row_fields(field.type))
    return alike(field.name for field in fields) is None and all(map(_members_are_apart, nested))


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
        except StorageError:  # A fault of the store, not of the file.
            raise
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
    key, value = FLOORED_INT96
    is_floored = (footer.metadata or {}).get(key) == value
    return not is_floored and any(leaf.physical_type == "INT96" for leaf in leaves)
