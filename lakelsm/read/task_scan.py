"""Files that Spark's own scan cannot read rightly: tasks read them, column by column name as Arrow has them.

Spark's listing leaves out files whose names begin with ``_`` or ``.``, even where they are named one by one: a scan of
them has no rows. It shows the names of others percent-encoded. And its Parquet reader finds columns without regard to
case, among them those that it or Paimon adds to a file. Tables may have such names (``data-file.prefix``, columns).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelsm.format.data_file.key_value_file import conform
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.merge_units import packed_for_tasks
from lakelsm.schema.identifiers import alike, folded
from lakelsm.schema.system_columns import (
    FILE_NAME,
    KEY_FIELD_PREFIX,
    POSITION,
    SEQUENCE_NUMBER,
    SYSTEM_FIELDS,
    VALUE_KIND,
)
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.spark_types import to_spark, to_spark_arrow
from lakelsm.spark.tasks import run_units
from lakelsm.types import DataField, rows_within

#: Memory of a task that reads or merges rows of a read, in bytes.
TASK_MEMORY = 256 << 20

#: File names that Spark lists, and shows in ``_metadata.file_name`` as they are.
_PLAIN_NAME = re.compile(r"[-a-zA-Z0-9!$&'()*+,;=:@~][-\w.!$&'()*+,;=:@~]*", re.ASCII)

#: What a file holds beside the table's columns, or Spark's reader adds: `_metadata`, and a row's place in its file.
_TAKEN = frozenset(map(folded, (SEQUENCE_NUMBER, VALUE_KIND, "_metadata", "_tmp_metadata_row_index")))


def parted_by_reader(
    files: Sequence[RunFile], schemas: Mapping[int, TableSchema], left: Collection[str] = ()
) -> tuple[list[RunFile], list[RunFile]]:
    """The files of which a scan of Spark's reads all rows as they are, and those that are left to tasks.

    ``left`` are paths of files that are left to tasks for what they hold.
    """
    apart = {key: _names_are_apart(schema.fields) for key, schema in schemas.items()}
    is_scanned = [
        apart[file.schema_id] and file.path not in left and bool(_PLAIN_NAME.fullmatch(file.name)) for file in files
    ]
    return list(compress(files, is_scanned)), [file for file, scanned in zip(files, is_scanned) if not scanned]


def task_scan(
    spark: SparkSession, store: TableStore, schemas: Mapping[int, TableSchema], files: Sequence[RunFile]
) -> DataFrame:
    """Return the rows of the files, merged with nothing: the table's columns, the sequence number and kind, then
    `FILE_NAME` and `POSITION`; nothing runs before an action.
    """
    reader = RunReader(
        store.file_io, store.schema, schemas=schemas, columns=store.schema.field_names, memory_bytes=TASK_MEMORY
    )
    stored = (*store.schema.fields, *SYSTEM_FIELDS)
    # Nullable, as in a scan of Spark's: a retraction may have its key alone.
    columns = T.StructType([T.StructField(column.name, to_spark(column.type)) for column in stored])
    struct = columns.add(FILE_NAME, T.StringType()).add(POSITION, T.LongType())
    packed = packed_for_tasks(store.options, files, lambda file: [file])
    return run_units(spark, packed, StoredRows(reader, to_spark_arrow(stored)), struct)


@dataclass(frozen=True)
class StoredRows:
    """The task that reads files one after the other; ``schema`` is that of the stored columns that it yields."""

    reader: RunReader
    schema: pa.Schema

    def __call__(self, files: Sequence[RunFile]) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the files, then `FILE_NAME` and `POSITION` of each."""
        for file in files:
            (run,) = self.reader.open_runs(MergeUnit(((file,),)), positions=True)
            for rows in run:
                stored = conform(rows, self.schema).append_column(FILE_NAME, pa.repeat(file.name, len(rows)))
                yield from stored.append_column(POSITION, rows.column(POSITION)).combine_chunks().to_batches()


def _names_are_apart(fields: Sequence[DataField]) -> bool:
    names = [folded(field.name) for field in fields]
    reserved = any(name in _TAKEN or name.startswith(folded(KEY_FIELD_PREFIX)) for name in names)
    return not reserved and _members_are_apart(fields)


def _members_are_apart(fields: Sequence[DataField]) -> bool:
    nested = (members for field in fields for members in rows_within(field.type))
    return alike(field.name for field in fields) is None and all(map(_members_are_apart, nested))
