"""Key-value Parquet files: rows of a primary-key table with their sequence number and kind (format.md 8)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from lakelsm.errors import CorruptTableError
from lakelsm.format.binary_row import encode_row
from lakelsm.format.column_evolution import cast_column, evolve_array
from lakelsm.format.column_stats import StatsCollector, StatsMode, column_modes
from lakelsm.format.data_file_meta import DataFileMeta
from lakelsm.format.int96_timestamps import exact_timestamps, has_nanoseconds, int96_columns
from lakelsm.format.parquet_encoding import encoding_options
from lakelsm.format.paths import FileNames
from lakelsm.options import TableOptions
from lakelsm.schema import KEY_FIELD_PREFIX, TableSchema
from lakelsm.types import INTEGER_ROOTS, AtomicType, DataField, DataType, arrow_field

#: System columns, their Parquet field ids, and the prefix of key columns. Persisted: do not change
SEQUENCE_FIELD = pa.field("_SEQUENCE_NUMBER", pa.int64(), False, {b"PARQUET:field_id": b"2147483646"})
KIND_FIELD = pa.field("_VALUE_KIND", pa.int8(), False, {b"PARQUET:field_id": b"2147483645"})

#: Types whose Parquet statistics compare as keys do.
_RANGED_ROOTS = (*INTEGER_ROOTS, "VARCHAR", "DATE")

#: Bytes in memory of the rows of one row group, unless a caller says otherwise.
ROW_GROUP_BYTES = 64 << 20

#: A small target file size makes row groups smaller, as files end with a row group; but not smaller than this.
_LEAST_GROUP_BYTES = 64 << 10
_LEAST_GROUP_ROWS = 256


def row_schema(fields: Sequence[DataField]) -> pa.Schema:
    """The Arrow schema of key-value rows in memory: the two system columns, then ``fields``; no ``_KEY_`` copies."""
    return pa.schema([SEQUENCE_FIELD, KIND_FIELD, *(arrow_field(field) for field in fields)])


def file_schema(schema: TableSchema, thin: bool) -> pa.Schema:
    """The Arrow schema of a file as it is written: the ``_KEY_`` columns (unless ``thin``), then `row_schema`."""
    keys = [] if thin else [arrow_field(field) for field in schema.key_fields]
    return pa.schema([*keys, *row_schema(schema.fields)])


class KeyValueReader:
    """Reads one data file as tables of `row_schema(fields)`, whatever schema the file was written with.

    ``mapping`` pairs each wanted column with the file's column of the same field id (None: the file has none, the
    column is NULL). Columns are found by name in the file, read by batches, and cast to the wanted types. A column's
    reader buffers ``read_ahead`` bytes; row groups are never read whole.
    Raises CorruptTableError, naming the file, when it is missing or cannot be decoded.
    """

    def __init__(
        self,
        filesystem: arrow_fs.FileSystem,
        path: str,
        mapping: Sequence[tuple[DataField, DataField | None]],
        read_ahead: int = 1 << 18,
    ) -> None:
        self._path = path
        self._mapping = mapping
        self._schema = row_schema([field for field, _ in mapping])

        def opened(unit: str | None) -> pq.ParquetFile:
            source = filesystem.open_input_file(path)
            return pq.ParquetFile(source, buffer_size=read_ahead, pre_buffer=False, coerce_int96_timestamp_unit=unit)

        try:
            self._file = opened(None)
            self._int96 = int96_columns(self._file, self._names())
            self._micros = opened("us") if self._int96 else None
        except (OSError, pa.ArrowException) as error:
            raise CorruptTableError(f"Data file {path} cannot be opened: {error}") from error

    @property
    def bytes_per_row(self) -> float:
        """Bytes in memory of a row of the wanted columns, estimated from the footer's uncompressed sizes."""
        wanted = set(self._names())
        meta = self._file.metadata
        total = sum(
            column.total_uncompressed_size
            for group in map(meta.row_group, range(meta.num_row_groups))
            for column in map(group.column, range(group.num_columns))
            if column.path_in_schema.split(".")[0] in wanted
        )
        # Dictionary encoding hides the width of values: a slot of 8 bytes a column is the least.
        return float(total / max(meta.num_rows, 1)) + 8 * len(wanted)

    def batches(
        self, batch_rows: int, leading: str | None = None, low: object = None, high: object = None
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield (position of the first row, rows) in order, at most ``batch_rows`` at a time.

        Row groups are left out in which the wanted column ``leading`` is surely below ``low`` or above ``high``.
        """
        names = self._names()
        start = 0
        try:
            for group in range(self._file.metadata.num_row_groups):
                rows = self._file.metadata.row_group(group).num_rows
                if leading is None or self._overlaps(group, leading, low, high):
                    at = start
                    for batch in self._batches(batch_rows, group, names):
                        yield at, self._conform(batch)
                        at += len(batch)
                        del batch  # Not held while the next one is read.
                start += rows
        except (OSError, pa.ArrowException) as error:
            raise CorruptTableError(f"Data file {self._path} cannot be read: {error}") from error

    def _batches(self, batch_rows: int, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        batches = self._file.iter_batches(batch_rows, [group], names, use_threads=False)
        if self._micros is None:
            yield from batches
            return
        targets = {source.name: self._schema.field(field.name).type for field, source in self._mapping if source}
        coarse = self._micros.iter_batches(batch_rows, [group], self._int96, use_threads=False)
        for batch, micros in zip(batches, coarse):
            yield exact_timestamps(batch, micros, targets)

    def _names(self) -> list[str]:
        present = set(self._file.schema_arrow.names)
        names = [SEQUENCE_FIELD.name, KIND_FIELD.name]
        names += [source.name for _, source in self._mapping if source is not None and source.name in present]
        return list(dict.fromkeys(names))

    def _overlaps(self, group: int, leading: str, low: object, high: object) -> bool:
        """Whether a row group can hold rows in a range of one column (both bounds inclusive, None: open)."""
        if low is None and high is None:
            return True
        source = next((source for field, source in self._mapping if field.name == leading), None)
        if source is None or not isinstance(source.type, AtomicType) or source.type.root not in _RANGED_ROOTS:
            return True
        columns = self._file.metadata.row_group(group)
        for at in range(columns.num_columns):
            column = columns.column(at)
            if column.path_in_schema == source.name and column.statistics is not None and column.statistics.has_min_max:
                below = high is not None and column.statistics.min > high
                above = low is not None and column.statistics.max < low
                return not (below or above)
        return True

    def _conform(self, batch: pa.RecordBatch) -> pa.Table:
        for field in (SEQUENCE_FIELD, KIND_FIELD):
            if field.name not in batch.schema.names:
                raise CorruptTableError(f"Data file {self._path} is no key-value file: it has no column {field.name}.")
        columns = [batch.column(SEQUENCE_FIELD.name), batch.column(KIND_FIELD.name).cast(pa.int8())]
        for (field, source), target in zip(self._mapping, list(self._schema)[2:]):
            index = -1 if source is None else batch.schema.get_field_index(source.name)
            if source is None or index < 0:
                columns.append(pa.nulls(len(batch), target.type))
            else:
                columns.append(evolve_array(batch.column(index), source.type, field.type))
        return pa.Table.from_arrays(columns, schema=self._schema)


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of ``schema``, taken from ``rows`` by name and cast to its types."""
    columns = [cast_column(rows.column(field.name), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class FileLayout:
    """How data files of a table are written: everything of it that comes from schema and options.

    ``target_file_size`` and ``row_group_bytes`` (in memory) are bytes; a file is closed at the first row group past the
    target. ``stats_modes`` has one mode a column.
    """

    schema: TableSchema
    thin: bool
    compression: str
    compression_level: int | None
    target_file_size: int
    row_group_bytes: int
    prefix: str
    stats_modes: tuple[StatsMode, ...]
    stats_dense: bool

    @staticmethod
    def of(schema: TableSchema, options: TableOptions, row_group_bytes: int = ROW_GROUP_BYTES) -> FileLayout:
        """The layout that a table's options ask for."""
        compression = options.file_compression
        modes = column_modes(
            schema.field_names,
            options.metadata_stats_mode,
            options.field_options,
            options.metadata_stats_keep_first_n_columns,
            schema.trimmed_primary_keys if options.data_file_thin_mode else (),
        )
        return FileLayout(
            schema=schema,
            thin=options.data_file_thin_mode,
            compression=compression,
            compression_level=options.file_compression_zstd_level if compression == "zstd" else None,
            target_file_size=options.target_file_size,
            row_group_bytes=min(row_group_bytes, max(options.target_file_size, _LEAST_GROUP_BYTES)),
            prefix=options.data_file_prefix,
            stats_modes=modes,
            stats_dense=options.metadata_stats_dense_store,
        )

    def for_changelog(self, options: TableOptions) -> FileLayout:
        """The layout of the table's changelog files: as its data files, unless an option says otherwise."""
        compression = options.changelog_file_compression or self.compression
        modes = self.stats_modes
        if options.changelog_file_stats_mode is not None:
            modes = column_modes(self.schema.field_names, options.changelog_file_stats_mode)
        return replace(
            self,
            prefix=options.changelog_file_prefix,
            compression="none" if compression == "uncompressed" else compression,
            compression_level=options.file_compression_zstd_level if compression == "zstd" else None,
            stats_modes=modes,
        )

    def new_value_stats(self) -> StatsCollector:
        """A collector of the value columns' statistics for one file."""
        return StatsCollector(self.schema.fields, self.stats_modes, self.stats_dense)

    def new_key_stats(self) -> StatsCollector:
        """A collector of the key's statistics for one file."""
        return StatsCollector.for_keys([self.schema.field(name) for name in self.schema.trimmed_primary_keys])


class RollingWriter:
    """Writes sorted rows of one bucket to files of about the target size and returns their metadata.

    Rows come as tables of `row_schema(schema.fields)` in key order, each key once in data files. ``names`` are unique to
    the writer, or shared with the writer of the same rows' changelog.
    """

    def __init__(
        self,
        filesystem: arrow_fs.FileSystem,
        directory: str,
        names: FileNames,
        layout: FileLayout,
        level: int,
        file_source: int,
    ) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self._names = names
        self._layout = layout
        self._level = level
        self._file_source = file_source
        self._arrow_schema = file_schema(layout.schema, layout.thin)
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._open: _OpenFile | None = None
        self._closed: list[DataFileMeta] = []

    def write(self, rows: pa.Table) -> None:
        """Append rows; their keys are above all that was written before."""
        if not len(rows):
            return
        step = max(_LEAST_GROUP_ROWS, int(len(rows) * self._layout.row_group_bytes / max(rows.nbytes, 1)))
        for start in range(0, len(rows), step):
            part = rows.slice(start, step)
            self._pending.append(part)
            self._pending_bytes += part.nbytes
            if self._pending_bytes >= self._layout.row_group_bytes:
                self._flush()

    def close(self) -> list[DataFileMeta]:
        """Finish the last file and return the metadata of all files in key order."""
        self._flush()
        self._roll()
        return self._closed

    def abort(self) -> None:
        """Close and delete everything that was written."""
        if self._open is not None:
            self._open.discard()
            self._delete(self._open.name)
        for meta in self._closed:
            self._delete(meta.file_name)

    def _delete(self, name: str) -> None:
        path = f"{self._directory}/{name}"
        if self._filesystem.get_file_info(path).type != arrow_fs.FileType.NotFound:
            self._filesystem.delete_file(path)

    def _flush(self) -> None:
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending)
        self._pending, self._pending_bytes = [], 0
        if self._open is None:
            self._filesystem.create_dir(self._directory, recursive=True)
            name = self._names.next(self._layout.prefix)
            self._open = _OpenFile(self._filesystem, f"{self._directory}/{name}", name, self._layout, self._arrow_schema)
        if self._open.append(rows) >= self._layout.target_file_size:
            self._roll()

    def _roll(self) -> None:
        if self._open is not None:
            self._closed.append(self._open.finish(self._level, self._file_source))
            self._open = None


class _OpenFile:
    """One Parquet file being written, with the running figures of its metadata."""

    def __init__(
        self, filesystem: arrow_fs.FileSystem, path: str, name: str, layout: FileLayout, arrow_schema: pa.Schema
    ) -> None:
        self.name = name
        self._path = path
        self._filesystem = filesystem
        self._layout = layout
        self._arrow_schema = arrow_schema
        self._sink = filesystem.open_output_stream(path)
        int96 = any(has_nanoseconds(field.type) for field in arrow_schema)
        keys = layout.schema.trimmed_primary_keys
        ascending = [SEQUENCE_FIELD.name, *keys, *([] if layout.thin else [KEY_FIELD_PREFIX + key for key in keys])]
        self._writer = pq.ParquetWriter(
            self._sink,
            arrow_schema,
            compression=layout.compression,
            compression_level=layout.compression_level,
            store_decimal_as_integer=True,
            store_schema=False,
            use_deprecated_int96_timestamps=int96,
            **encoding_options(arrow_schema, ascending, int96),
        )
        self._value_stats = layout.new_value_stats()
        self._key_stats = layout.new_key_stats()
        self._rows = self._deletes = 0
        self._sequences: tuple[int, int] | None = None
        self._first: pa.Table | None = None
        self._last: pa.Table | None = None

    def append(self, rows: pa.Table) -> int:
        """Write one row group; return the bytes of the file so far."""
        schema = self._layout.schema
        keys = rows.select(schema.trimmed_primary_keys)
        values = rows.select(schema.field_names)
        columns = [] if self._layout.thin else list(keys.columns)
        columns += [rows.column(SEQUENCE_FIELD.name), rows.column(KIND_FIELD.name), *values.columns]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._arrow_schema), row_group_size=len(rows))
        self._value_stats.update(values)
        self._key_stats.update(keys)
        bounds = pc.min_max(rows.column(SEQUENCE_FIELD.name)).as_py()
        low, high = self._sequences or (bounds["min"], bounds["max"])
        self._sequences = (min(low, bounds["min"]), max(high, bounds["max"]))
        self._deletes += pc.sum(pc.bit_wise_and(rows.column(KIND_FIELD.name), pa.scalar(1, pa.int8()))).as_py()
        self._rows += len(rows)
        self._first = self._first or keys.slice(0, 1)
        self._last = keys.slice(len(keys) - 1)
        return int(self._sink.tell())

    def finish(self, level: int, file_source: int) -> DataFileMeta:
        """Close the file and return its metadata."""
        self._writer.close()
        self._sink.close()
        assert self._first is not None and self._last is not None and self._sequences is not None
        types = [field.type for field in self._layout.schema.key_fields]
        value_stats, value_stats_cols = self._value_stats.finish()
        return DataFileMeta(
            file_name=self.name,
            file_size=self._filesystem.get_file_info(self._path).size,
            row_count=self._rows,
            min_key=_key_row(self._first, types),
            max_key=_key_row(self._last, types),
            key_stats=self._key_stats.finish()[0],
            value_stats=value_stats,
            min_sequence_number=self._sequences[0],
            max_sequence_number=self._sequences[1],
            schema_id=self._layout.schema.id,
            level=level,
            creation_time_millis=_local_wall_clock_millis(),
            delete_row_count=self._deletes,
            file_source=file_source,
            value_stats_cols=value_stats_cols,
        )

    def discard(self) -> None:
        """Close the handles of a file that will be deleted."""
        self._writer.close()
        self._sink.close()


def _key_row(row: pa.Table, types: Sequence[DataType]) -> bytes:
    return encode_row([column[0] for column in row.columns], types)


def _local_wall_clock_millis() -> int:
    """Now as `_CREATION_TIME` has it: the local wall clock read as if it were UTC (format.md 6.2)."""
    now = time.time()
    return int(now * 1000) + time.localtime(now).tm_gmtoff * 1000


def key_types(schema: TableSchema) -> list[DataType]:
    """The types of the trimmed primary key, in its order."""
    return [field.type for field in schema.key_fields]
