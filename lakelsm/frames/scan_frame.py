"""A read plan as a DataFrame of native scans, which Catalyst still optimises.

Spark's own Parquet reader scans all files, so that projections and predicates that are added later reach it. Files of
sections are scanned in the same way, less their hidden rows (see hidden_row_task), and so are files with deletion
vectors. One small table of bitmaps, at most one bit for each row of these files, is broadcast; tasks compute it when the
query runs, or it is cached from an earlier one (see hidden_rows). A row is left out if the bitmap of its chunk contains
it. The join is an anti join on one 64-bit number, the cheapest that Spark has: the file's size and the chunk number if
all sizes differ, else the hash of the file's name xor the chunk number. Engines that combine rows read sections whole in
the tasks that merge them (see merged_rows); these decode all columns in any case. Only if few columns are requested,
scans of the larger files return the rows whose key no other row has.

Spark's reader verifies page checksums, but does not know manifest entries, and fills a column that a footer lacks with
NULL. Therefore the driver first compares the footers of files that no task of lakelsm opens with their entries, in
threads. On local storage this costs about as much as Spark's own look-up of the files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from lakelsm.format.data_file.file_check import FileCheck
from lakelsm.format.snapshot import Snapshot
from lakelsm.frames.hidden_rows import hidden_rows
from lakelsm.frames.task_scan import ROW_INDEX, nanosecond_files, split_by_reader, task_scan
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.merge_units import pack_for_tasks
from lakelsm.plan.read_plan import ReadPlan
from lakelsm.read.hidden_row_task import CHUNK_BITS
from lakelsm.read.merged_rows import EVERY_FILE, MergedRows, is_read_by_task
from lakelsm.read.snapshot_guard import SnapshotGuard
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.schema.system_columns import (
    CHUNK,
    FILE_NAME,
    HIDDEN,
    HIDDEN_CHUNK,
    HIDDEN_FILE,
    HIDDEN_SIZE,
    HIDDEN_WORDS,
    POSITION,
    ROW,
    SYSTEM_FIELDS,
)
from lakelsm.schema.table_schema import TableSchema, column_mapping
from lakelsm.schema.type_widening import check_readable
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import evolved, filtered, quoted, quoted_all, union_all
from lakelsm.spark.functions import of_session
from lakelsm.spark.native_files import NativeFiles, native_files
from lakelsm.spark.spark_types import exact_fields, to_spark, to_spark_arrow, to_struct
from lakelsm.spark.task_errors import translated_errors
from lakelsm.spark.tasks import read_units
from lakelsm.storage import FileIO
from lakelsm.types import DataField

#: Types of system columns of data files in a scan.
_SYSTEM_TYPES = {field.name: to_spark(field.type) for field in SYSTEM_FIELDS} | {ROW_INDEX: T.LongType()}

_THREADS = 16

#: Bits of the chunk number if one 64-bit number also has to hold the file's size.
_CHUNK_NUMBER_BITS = 16
_MAX_CHUNKS = 1 << _CHUNK_NUMBER_BITS


@of_session
def read_frame(
    spark: SparkSession, store: TableStore, plan: ReadPlan, where: str | None, columns: Sequence[str] | None
) -> DataFrame:
    """Return the rows of the plan that match, with the columns named ``columns``, in any case (None: all)."""
    with store.while_read(plan.snapshot), translated_errors(store.paths.root):
        frame = scan_frame(spark, store, plan, columns)
    if where is not None:
        frame = filtered(frame, where)
    if columns is not None:
        frame = frame.select(*(quoted(store.schema.column_name(name)).alias(name) for name in columns))
    return frame


def scan_frame(
    spark: SparkSession, store: TableStore, plan: ReadPlan, columns: Sequence[str] | None = None, *, exact: bool = False
) -> DataFrame:
    """Return the rows of the plan with the table's columns. Nothing runs before an action.

    ``columns`` are those that will be requested (None: any). ``exact``: the table's `exact_fields` follow, if it has
    any, and tasks read all files.
    """
    exact = exact and bool(exact_fields(store.schema.fields))
    files = [*plan.raw_files, *plan.merged_files]
    schemas = store.schemas_of((file.schema_id for file in files), plan.snapshot)
    raw = [file for file in plan.raw_files if file.vector is None]
    parts = file_scans(spark, store, schemas, raw, snapshot=plan.snapshot, exact=exact)
    masked = [file for file in plan.raw_files if file.vector is not None]
    scanned = list(plan.merged_files)
    if plan.units and not MergeSpec.of(store.schema, store.options).keeps_rows:
        small = store.options.source_split_open_file_cost if _few_are_requested(columns, store.schema) else EVERY_FILE
        scanned = [file for file in scanned if not is_read_by_task(file, small)]
        parts.append(_merged(spark, store, schemas, plan, small, exact))
    if masked or scanned:
        vectors = [file for file in (*masked, *scanned) if file.vector is not None]
        hidden = hidden_rows(spark, store, schemas, plan.units if scanned else (), vectors, plan.snapshot)
        check_files(store.file_io, schemas, [*masked, *scanned] if hidden.is_cached else masked)
        by_size = _sizes_identify_chunks([*masked, *plan.merged_files])
        parts += file_scans(
            spark,
            store,
            schemas,
            [*masked, *scanned],
            hidden.chunks,
            by_size=by_size,
            snapshot=plan.snapshot,
            exact=exact,
        )
    if not parts:
        return spark.createDataFrame([], to_struct(_result_fields(store.schema, exact)))
    return union_all(parts)


@of_session
def located_frame(spark: SparkSession, store: TableStore, plan: ReadPlan) -> DataFrame:
    """Return the rows of a plan without merges: the table's columns, the row index as `ROW_INDEX`, and `FILE_NAME`."""
    with store.while_read(plan.snapshot), translated_errors(store.paths.root):
        schemas = store.schemas_of((file.schema_id for file in plan.raw_files), plan.snapshot)
        plain = [file for file in plan.raw_files if file.vector is None]
        masked = [file for file in plan.raw_files if file.vector is not None]
        parts = file_scans(spark, store, schemas, plain, system=(ROW_INDEX,), snapshot=plan.snapshot)
        if masked:
            hidden = hidden_rows(spark, store, schemas, (), masked, plan.snapshot)
            check_files(store.file_io, schemas, masked)
            parts += file_scans(
                spark, store, schemas, masked, hidden.chunks, system=(ROW_INDEX,), snapshot=plan.snapshot
            )
    if not parts:
        struct = to_struct(store.schema.fields).add(ROW_INDEX, T.LongType()).add(FILE_NAME, T.StringType())
        return spark.createDataFrame([], struct)
    return union_all(parts)


def _result_fields(schema: TableSchema, exact: bool) -> tuple[DataField, ...]:
    """Return the columns of a scan's result."""
    return (*schema.fields, *(exact_fields(schema.fields).values() if exact else ()))


def _few_are_requested(columns: Sequence[str] | None, schema: TableSchema) -> bool:
    """Return whether a scan is cheaper: a merge reads all columns, and most of them are not requested."""
    return columns is not None and 2 * len(columns) < len(schema.fields)


def file_scans(
    spark: SparkSession,
    store: TableStore,
    schemas: dict[int, TableSchema],
    files: Sequence[RunFile],
    hidden: DataFrame | None = None,
    system: Sequence[str] = (),
    *,
    by_size: bool = False,
    snapshot: Snapshot | None = None,
    exact: bool = False,
) -> list[DataFrame]:
    """Return a scan for the files of each schema, with the table's columns.

    ``hidden`` lists rows to leave out; the tasks that compute it check the files. ``by_size``: no two files of it have
    the same size. The ``system`` columns of the files follow, also `ROW_INDEX`, and with them the file's name as
    `FILE_NAME`. Tasks read the files that Spark's scan cannot read. ``snapshot`` contains the files and may expire
    during the read. ``exact`` is as in `scan_frame`. Raises CorruptTableError for a file that is missing or differs from
    its manifest entry.
    """
    native = None if exact else native_files(spark, store)
    scanned, others = _split(store, schemas, files, native)
    if hidden is None:
        check_files(store.file_io, schemas, scanned)
    by_size = by_size and not others
    if hidden is not None:
        chunk = _chunk_key(HIDDEN_SIZE if by_size else HIDDEN_FILE, HIDDEN_CHUNK, by_size)
        hidden = F.broadcast(hidden.select(F.expr(chunk).alias(HIDDEN), F.col(HIDDEN_WORDS)))
    locator = _METADATA_LOCATOR if ROW_INDEX in system else _SIZE_LOCATOR if by_size else _SCAN_LOCATOR
    scans: list[DataFrame] = []
    if native is not None:
        stored_system = [name for name in system if name != ROW_INDEX]
        read = [*stored_system, *([ROW_INDEX] if hidden is not None and ROW_INDEX not in system else [])]
        for key, group in _by_schema(scanned):
            stored, columns = _stored(schemas[key], store.schema, read)
            frame = native.scan(spark, stored, [file.path for file in group])
            scans.append(_without_hidden(frame, columns, locator, hidden, system))
    if others:
        columns = quoted_all(field.name for field in _result_fields(store.schema, exact))
        frame = task_scan(spark, store, schemas, others, snapshot, exact=exact)
        scans.append(_without_hidden(frame, columns, _TASK_LOCATOR, hidden, system))
    return scans


def _split(
    store: TableStore, schemas: dict[int, TableSchema], files: Sequence[RunFile], native: NativeFiles | None
) -> tuple[list[RunFile], list[RunFile]]:
    """Return the files that Spark's scan reads, and those that tasks must read: all of them without ``native``."""
    if native is None:
        return [], list(files)
    return split_by_reader(files, schemas, nanosecond_files(store.file_io, store.schema, schemas, files))


def _sizes_identify_chunks(files: Sequence[RunFile]) -> bool:
    """Return whether the file size and chunk number, in one 64-bit number, identify the chunk of any row."""
    chunks = max((file.row_count for file in files), default=0) >> CHUNK_BITS
    largest = max((file.file_size for file in files), default=0)
    return len({file.file_size for file in files}) == len(files) and chunks < _MAX_CHUNKS and largest < 1 << 47


def _chunk_key(file: str, chunk: str, by_size: bool) -> str:
    """Return SQL for the number of a chunk of a file, from the file's size or else its name."""
    return f"SHIFTLEFT({file}, {_CHUNK_NUMBER_BITS}) + {chunk}" if by_size else f"xxhash64({file}) ^ {chunk}"


def _by_schema(files: Sequence[RunFile]) -> list[tuple[int, list[RunFile]]]:
    groups: dict[int, list[RunFile]] = {}
    for file in files:
        groups.setdefault(file.schema_id, []).append(file)
    return sorted(groups.items())


def _merged(
    spark: SparkSession,
    store: TableStore,
    schemas: dict[int, TableSchema],
    plan: ReadPlan,
    small_file: int,
    exact: bool,
) -> DataFrame:
    """Return the merged rows of keys with several rows, and all rows of small files."""
    fields = _result_fields(store.schema, exact)
    reader = RunReader(
        store.file_io, store.schema, schemas=schemas, columns=store.schema.field_names, memory_bytes=TASK_MEMORY
    )
    spec = MergeSpec.of(store.schema, store.options)
    sources = {copy.name: name for name, copy in exact_fields(store.schema.fields).items()}
    task = MergedRows(reader, spec, to_spark_arrow(fields), small_file, sources=sources)
    packed = pack_for_tasks(store.options, plan.units, lambda unit: unit.files)
    return read_units(spark, packed, SnapshotGuard(store, (plan.snapshot,), task), to_struct(fields))


def _stored(
    file_schema: TableSchema, schema: TableSchema, system: Sequence[str]
) -> tuple[T.StructType, list[Column]]:
    """Return the columns that a scan reads from files of one schema, ``system`` columns last, and the table's columns."""
    mapping = column_mapping(file_schema, schema)
    stored = [T.StructField(source.name, to_spark(source.type)) for _, source in mapping if source is not None]
    columns: list[Column] = []
    for field, source in mapping:
        if source is None:
            columns.append(F.lit(None).cast(to_spark(field.type)).alias(field.name))
        else:
            check_readable(field, source)
            column = evolved(quoted(source.name), source.type, field.type)
            columns.append(_without_statistics(column, to_spark(field.type)).alias(field.name))
    return T.StructType([*stored, *(T.StructField(name, _SYSTEM_TYPES[name]) for name in system)]), columns


def _without_statistics(column: Column, kind: T.DataType) -> Column:
    """Return the same values in a form that Spark's Parquet reader cannot compare with statistics or dictionaries.

    For Spark NaN is the largest number and -0.0 equals 0.0. Parquet's statistics leave out NaN, and its dictionaries
    have two zeros, so that conditions on floats would lose rows.
    """
    return F.nanvl(column, F.lit(math.nan).cast(kind)) if kind in (T.FloatType(), T.DoubleType()) else column


@dataclass(frozen=True)
class _RowLocator:
    """The location of a row as Spark SQL: its file's name, or size if sizes are unique, and its row index there."""

    file: str
    row: str
    by_size: bool = False


_SCAN_LOCATOR = _RowLocator("_metadata.file_name", ROW_INDEX)
#: Spark refuses to read a column named `ROW_INDEX` beside `_metadata`, unless it prunes the index in `_metadata`. It does
#: not prune it if a query compares the file's name, as in a join.
_METADATA_LOCATOR = _RowLocator("_metadata.file_name", "_metadata.row_index")
_SIZE_LOCATOR = _RowLocator("_metadata.file_size", ROW_INDEX, by_size=True)
_TASK_LOCATOR = _RowLocator(FILE_NAME, POSITION)


def _without_hidden(
    frame: DataFrame, columns: Sequence[Column], locator: _RowLocator, hidden: DataFrame | None, system: Sequence[str]
) -> DataFrame:
    """Return the ``columns`` and ``system`` columns of a frame, without its ``hidden`` rows."""
    if system:
        own = (F.col(locator.row).alias(name) if name == ROW_INDEX else quoted(name) for name in system)
        columns = [*columns, *own, F.expr(locator.file).alias(FILE_NAME)]
    if hidden is None:
        return frame.select(*columns)
    chunk = _chunk_key(locator.file, f"SHIFTRIGHT({locator.row}, {CHUNK_BITS})", locator.by_size)
    located = frame.select(*columns, F.col(locator.row).alias(ROW), F.expr(chunk).alias(CHUNK))
    word = f"SHIFTRIGHT({ROW} & {(1 << CHUNK_BITS) - 1}, 6)"
    is_hidden = F.expr(f"getbit(get({HIDDEN_WORDS}, CAST({word} AS INT)), CAST({ROW} & 63 AS INT)) = 1")
    return located.join(hidden, (F.col(CHUNK) == F.col(HIDDEN)) & is_hidden, "left_anti").drop(ROW, CHUNK)


def check_files(file_io: FileIO, schemas: Mapping[int, TableSchema], files: Sequence[RunFile]) -> None:
    """Raise CorruptTableError for the first of ``files`` that is missing, damaged or differs from its entry."""
    filesystem = file_io.filesystem()
    paths: list[str] = []
    checks: list[FileCheck] = []
    for key, schema in schemas.items():
        expected = {file.path: file.expected for file in files if file.schema_id == key and file.expected is not None}
        paths += expected
        checks += FileCheck.of(list(expected.values()), schema)
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(lambda path, check: check.check_file(filesystem, path), paths, checks):
            pass
