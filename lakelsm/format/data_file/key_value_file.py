"""Key-value Parquet files: rows of a primary-key table with their sequence number and kind (docs/format.md 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import methodcaller
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from lakelsm.cancellation import raise_if_cancelled
from lakelsm.errors import CorruptTableError, InvalidInputError, StorageError, UnsupportedFeatureError
from lakelsm.format.data_file.column_evolution import cast_column, evolve_array
from lakelsm.format.data_file.column_stats import StatsCollector, StatsMode, column_modes
from lakelsm.format.data_file.decode_steps import DecodeSteps, decoded_bytes
from lakelsm.format.data_file.file_check import PARQUET_ERRORS, RANGED_ROOTS, FileCheck, unreadable
from lakelsm.format.data_file.int96_timestamps import have_int96
from lakelsm.format.data_file.parquet_footer import metadata_with_int96_as_bytes, read_footer
from lakelsm.format.index.file_index.index_builder import FileIndexBuilder
from lakelsm.options import TableOptions
from lakelsm.options.file_index_options import ColumnIndex
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, SYSTEM_FIELDS, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import INTEGER_ROOTS, AtomicType, DataField, DataType, arrow_field, same_layout

#: Default size of a row group's rows in memory, in bytes; `file.block-size` changes it.
ROW_GROUP_BYTES = 64 << 20

#: Minimum size of row groups. A small target file size makes them smaller, because files end with a row group.
_MIN_GROUP_BYTES = 64 << 10

#: The row limit of a file without a limit.
_ANY_ROWS = 2**63 - 1


def row_schema(fields: Sequence[DataField]) -> pa.Schema:
    """Return the Arrow schema of key-value rows in memory: system columns, then ``fields``, without ``_KEY_`` copies."""
    return pa.schema([arrow_field(field) for field in (*SYSTEM_FIELDS, *fields)])


def file_schema(schema: TableSchema, thin: bool) -> pa.Schema:
    """Return the Arrow schema of a written file: the ``_KEY_`` columns (unless ``thin``), then `row_schema`."""
    keys = [] if thin else [arrow_field(field) for field in schema.key_fields]
    return pa.schema([*keys, *row_schema(schema.fields)])


#: The minimum and the maximum of a column in a row group.
ValueRange: TypeAlias = tuple[Any, Any]


class GroupBounds(NamedTuple):
    """Minimum, maximum and number of NULLs of a column in a row group; None if not recorded."""

    low: Any
    high: Any
    nulls: int | None


class KeyValueReader:
    """Reads one data file as tables of `row_schema(fields)`, whatever schema the file was written with.

    Without ``system`` the two system columns are omitted.

    ``mapping`` pairs each wanted column with the file's column of the same field id (None: the file has none, and the
    column is NULL). Columns are found by name in the file, read in batches, and cast to the wanted types. The reader of
    a column buffers ``read_ahead`` bytes; row groups are never decoded whole.
    Page checksums are verified if the file has them, and ``check`` refuses a file that is not the expected one.
    Raises CorruptTableError, naming the file, if it is missing or cannot be decoded.
    """

    def __init__(
        self,
        filesystem: arrow_fs.FileSystem,
        path: str,
        mapping: Sequence[tuple[DataField, DataField | None]],
        *,
        read_ahead: int = 1 << 18,
        check: FileCheck | None = None,
        system: bool = True,
    ) -> None:
        self._path = path
        self._mapping = mapping
        self._system = (SEQUENCE_NUMBER, VALUE_KIND) if system else ()
        fields = [field for field, _ in mapping]
        self._schema = row_schema(fields) if system else pa.schema([arrow_field(field) for field in fields])
        self._columns: list[_Column] | None = None

        def opened(source: pa.NativeFile, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
            return pq.ParquetFile(
                source, metadata=metadata, buffer_size=read_ahead, pre_buffer=False, page_checksum_verification=True
            )

        try:
            source = filesystem.open_input_file(path)
            if check is not None:
                check.check_content(path, source)
            self._file = opened(source)
            if check is not None:
                check.check_footer(path, self._file.metadata)
            if have_int96(self._file.schema, self._names()):
                self._file = opened(source, metadata_with_int96_as_bytes(read_footer(source)))
        except StorageError:  # A failure of the store, not of the file.
            raise
        except PARQUET_ERRORS as error:
            raise unreadable(path, error) from error

    def batches(
        self,
        allowance: Callable[[], int],
        leading: str | None = None,
        may_hold: Callable[[ValueRange], bool] | None = None,
        groups: Callable[[int], bool] | None = None,
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield (row index of the first row, rows) in order.

        ``allowance`` is called before each batch and returns its maximum of decoded bytes. A row group is skipped if
        ``may_hold`` is false for its range of the wanted column ``leading``, or ``groups`` is false for its number.
        """
        start = 0
        try:
            for group in range(self._file.metadata.num_row_groups):
                known = None if leading is None or may_hold is None else self._range_of_all(group, leading)
                is_wanted = groups is None or groups(group)
                if is_wanted and (known is None or may_hold is None or may_hold(known)):
                    yield from self._gathered(group, start, allowance)
                start += self._file.metadata.row_group(group).num_rows
        except (InvalidInputError, StorageError):
            raise
        except UnsupportedFeatureError as error:
            reason = str(error).removesuffix(".")
            raise UnsupportedFeatureError(f"Data file {self._path} cannot be read: {reason}.") from error
        except PARQUET_ERRORS as error:
            raise unreadable(self._path, error) from error

    def group_rows(self) -> list[int]:
        """Return the number of rows of each row group."""
        return [self._file.metadata.row_group(group).num_rows for group in range(self._file.metadata.num_row_groups)]

    def row_group_bounds(self, name: str) -> list[GroupBounds]:
        """Return the statistics of a wanted column in each row group, in the column's type."""
        field, source = next(pair for pair in self._mapping if pair[0].name == name)
        found: list[GroupBounds] = []
        for group, rows in enumerate(self.group_rows()):
            if source is None:
                found.append(GroupBounds(None, None, rows))
                continue
            same = same_layout(source.type, field.type) or {source.type.root, field.type.root} <= INTEGER_ROOTS
            statistics = self._statistics_of(group, name) if same else None
            low, high = (self._range_of(group, name) if same else None) or (None, None)
            nulls = statistics.null_count if statistics is not None and statistics.has_null_count else None
            found.append(GroupBounds(low, high, nulls))
        return found

    def _gathered(self, group: int, start: int, allowance: Callable[[], int]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the batches of a row group, each made of several steps. ``start`` is the row index of the first row."""
        steps = DecodeSteps(self._file.metadata.row_group(group), allowance())
        pending: list[pa.Table] = []
        missing = self._file.metadata.row_group(group).num_rows
        for batch in self._steps(group, steps):
            pending.append(self._conform(batch))
            steps.decoded(len(batch), decoded_bytes(pending[-1]))
            missing -= len(batch)
            del batch  # The reader keeps no rows in memory while the caller works or the next step is read.
            if steps.full:
                joined = pa.concat_tables(pending)
                pending.clear()
                begin, start = start, start + len(joined)
                yield begin, joined
                del joined
                steps.begin(allowance())
        if missing:  # A damaged page header can end a column early. Arrow takes this for the end of the data.
            raise unreadable(self._path, ValueError(f"row group {group} ends {missing} rows early"))
        if pending:
            yield start, pa.concat_tables(pending)

    def _steps(self, group: int, steps: DecodeSteps) -> Iterator[pa.RecordBatch]:
        for batch in self._file.iter_batches(steps.rows, [group], self._names(), use_threads=False):
            raise_if_cancelled()
            yield batch
            del batch
            self._file.reader.set_batch_size(steps.rows)

    def _names(self) -> list[str]:
        present = set(self._file.schema_arrow.names)
        names = list(self._system)
        names += [source.name for _, source in self._mapping if source is not None and source.name in present]
        return list(dict.fromkeys(names))

    def _range_of(self, group: int, leading: str) -> ValueRange | None:
        """Return the minimum and the maximum of a column in a row group; None if its statistics lack them."""
        statistics = self._statistics_of(group, leading)
        if statistics is not None and statistics.has_min_max:
            with suppress(OverflowError):  # Python has only the years 1 to 9999.
                return statistics.min, statistics.max
        return None

    def _range_of_all(self, group: int, leading: str) -> ValueRange | None:
        """Return a range that contains every row of a group; None if a row may be NULL, which statistics omit."""
        if any(field.name == leading and field.type.nullable for field, _ in self._mapping):
            statistics = self._statistics_of(group, leading)
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                return None
        return self._range_of(group, leading)

    def _statistics_of(self, group: int, name: str) -> pq.Statistics | None:
        """Return the statistics of a wanted column, if its values in Parquet have the order of keys."""
        source = next((source for field, source in self._mapping if field.name == name), None)
        if source is None or not isinstance(source.type, AtomicType) or source.type.root not in RANGED_ROOTS:
            return None
        columns = self._file.metadata.row_group(group)
        for at in range(columns.num_columns):
            column = columns.column(at)
            # A member `b` of a column `a` has the same path as a column `a.b`, but another name.
            if self._file.schema.column(at).name == source.name and column.path_in_schema == source.name:
                return column.statistics
        return None

    def _conform(self, batch: pa.RecordBatch) -> pa.Table:
        if self._columns is None:
            self._columns = self._columns_of(batch.schema)
        return pa.Table.from_arrays([column(batch) for column in self._columns], schema=self._schema)

    def _columns_of(self, stored: pa.Schema) -> list[_Column]:
        """Return the function that makes each wanted column from a batch of the file; computed once a file."""
        for name in self._system:
            if name not in stored.names:
                raise CorruptTableError(f"Data file {self._path} has no column {name}: it is not a key-value file.")
        columns = [_stored(stored, name, self._schema.field(name).type) for name in self._system]
        for (field, source), target in zip(self._mapping, list(self._schema)[len(self._system) :]):
            if source is None or stored.get_field_index(source.name) < 0:
                columns.append(partial(_missing, kind=target.type))
            elif same_layout(source.type, field.type):
                columns.append(_stored(stored, source.name, target.type))
            else:
                columns.append(partial(_evolved, name=source.name, source=source.type, target=field.type))
        return columns


#: Makes one wanted column from a batch of the file.
_Column: TypeAlias = Callable[[pa.RecordBatch], pa.Array]


def _stored(stored: pa.Schema, name: str, kind: pa.DataType) -> _Column:
    """Return a function that takes the column, unchanged if its Arrow type is the wanted one."""
    at = stored.get_field_index(name)
    return methodcaller("column", at) if stored.types[at].equals(kind) else partial(_cast, at=at, kind=kind)


def _cast(batch: pa.RecordBatch, at: int, kind: pa.DataType) -> pa.Array:
    return cast_column(batch.column(at), kind)


def _missing(batch: pa.RecordBatch, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(batch), kind)


def _evolved(batch: pa.RecordBatch, name: str, source: DataType, target: DataType) -> pa.Array:
    return evolve_array(batch.column(name), source, target)


def conform(rows: pa.Table, schema: pa.Schema, sources: Mapping[str, str] | None = None) -> pa.Table:
    """Return the columns of ``schema``, taken from ``rows`` by name, or by ``sources``, and cast to its types."""
    names = sources or {}
    columns = [cast_column(rows.column(names.get(field.name, field.name)), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """The settings for writing the data files of a table, derived from its schema and options.

    ``target_file_size`` and ``row_group_bytes`` (in memory) are in bytes. A file is closed after the row group that
    exceeds the target size, and at ``target_file_rows`` rows. ``stats_modes`` has one mode for each column.
    ``dictionary`` allows dictionary encoding. ``durable`` files survive a power loss once a snapshot names them.
    ``file_indexes`` are the indexes of each file; they are in its manifest entry up to ``index_in_manifest`` bytes.
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
    durable: bool = True
    target_file_rows: int = _ANY_ROWS
    dictionary: bool = True
    file_indexes: tuple[ColumnIndex, ...] = ()
    index_in_manifest: int = 0

    @staticmethod
    def of(schema: TableSchema, options: TableOptions, max_group_bytes: int | None = None) -> FileLayout:
        """Return the layout of level-0 files by a table's options, with row groups of at most ``max_group_bytes``."""
        group_bytes = options.file_block_size or ROW_GROUP_BYTES
        if max_group_bytes is not None:
            group_bytes = min(group_bytes, max_group_bytes)
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
            row_group_bytes=min(group_bytes, max(options.target_file_size, _MIN_GROUP_BYTES)),
            prefix=options.data_file_prefix,
            stats_modes=modes,
            stats_dense=options.metadata_stats_dense_store,
            durable=options.lakelsm_durable_files,
            target_file_rows=options.target_file_row_num,
            dictionary=options.parquet_enable_dictionary,
            file_indexes=tuple(index for index in options.file_indexes if not index.is_nested),
            index_in_manifest=options.file_index_in_manifest_threshold,
        )

    def for_compaction(self) -> FileLayout:
        """Return the layout of a compaction's files: only the size ends a file, as in Paimon."""
        return replace(self, target_file_rows=_ANY_ROWS)

    def for_changelog(self, options: TableOptions) -> FileLayout:
        """Return the layout of the table's changelog files: by default that of a compaction.

        Changelog files have no indexes, as in Paimon.
        """
        compression = options.changelog_file_compression or self.compression
        modes = self.stats_modes
        if options.changelog_file_stats_mode is not None:
            modes = column_modes(self.schema.field_names, options.changelog_file_stats_mode)
        return replace(
            self.for_compaction(),
            prefix=options.changelog_file_prefix,
            compression="none" if compression == "uncompressed" else compression,
            compression_level=options.file_compression_zstd_level if compression == "zstd" else None,
            stats_modes=modes,
            file_indexes=(),
        )

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns of the files. Cached, because a task may write thousands of files."""
        return file_schema(self.schema, self.thin)

    def new_index(self) -> FileIndexBuilder | None:
        """Return a builder for the indexes of one file; None if files have no indexes."""
        if not self.file_indexes:
            return None
        return FileIndexBuilder([(index, self.schema.field(index.column).type) for index in self.file_indexes])

    def new_value_stats(self) -> StatsCollector:
        """Return a collector of the value columns' statistics for one file."""
        return StatsCollector(self.schema.fields, self.stats_modes, self.stats_dense)

    def new_key_stats(self) -> StatsCollector:
        """Return a collector of the key's statistics for one file."""
        return StatsCollector.for_keys([self.schema.field(name) for name in self.schema.trimmed_primary_keys])


def key_types(schema: TableSchema) -> list[DataType]:
    """Return the types of the trimmed primary key, in its order."""
    return [field.type for field in schema.key_fields]
