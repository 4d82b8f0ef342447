"""Writes sorted rows to key-value files of about the target size, and returns their metadata (docs/format.md 6)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from lakelsm.cancellation import raise_if_cancelled
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import LakelsmError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.data_file.int96_timestamps import FLOORED_TIMES, INT96, stored_field
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.data_file.parquet_footer import Int96Sink, read_footer
from lakelsm.format.data_file.required_parts import filled_parts
from lakelsm.format.data_file.written_file import WrittenFile, file_metas
from lakelsm.format.file_names import FileNames, file_index_name
from lakelsm.format.index.file_index.file_index_container import sealed
from lakelsm.format.manifest.data_file_meta import DataFileMeta, FileSource
from lakelsm.format.row_kinds import is_retract
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.storage.refusals import refused_write
from lakelsm.types import to_arrow

#: Minimum rows of a row group, however wide they are.
_MIN_GROUP_ROWS = 256

#: Maximum bytes of a dictionary page; a column with a larger one is written without a dictionary. Arrow's default is
#: 1 MB: a column of many distinct values then spends half of its writing time on a dictionary that is discarded.
DICTIONARY_BYTES = 1 << 17


#: Bytes that are buffered before a call to the file system: Arrow writes every page and its header separately.
_BUFFER_BYTES = 1 << 16


class RollingWriter:
    """Writes sorted rows of one bucket to files of about the target size, or of the target rows.

    Rows are tables of `row_schema(schema.fields)` in key order; a key occurs once in data files. ``names`` are unique to
    this writer, or shared with the writer of the same rows' changelog. ``make_directory`` makes the directory of the
    first file (None: with all its parents). ``make_durable`` is called with the directory and the names of all files
    when they are complete (None: a power loss may delete them).
    """

    def __init__(
        self,
        filesystem: arrow_fs.FileSystem,
        directory: str,
        names: FileNames,
        layout: FileLayout,
        *,
        level: int,
        file_source: FileSource,
        make_directory: Callable[[str], None] | None = None,
        make_durable: Callable[[str, Sequence[str]], None] | None = None,
        environment: Environment = SYSTEM,
    ) -> None:
        self._environment = environment
        self._make_directory = make_directory or partial(filesystem.create_dir, recursive=True)
        self._make_durable = make_durable
        self._filesystem = filesystem
        self._directory = directory
        self._names = names
        self._layout = layout
        self._level = level
        self._file_source = file_source
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._rows_left = layout.target_file_rows
        self._open: _UnfinishedFile | None = None
        self._closed: list[WrittenFile] = []
        self._created_names: list[str] = []

    def write(self, rows: pa.Table) -> None:
        """Append rows. Their keys are greater than all keys written before."""
        if not len(rows):
            return
        size = rows.nbytes
        step = max(_MIN_GROUP_ROWS, int(len(rows) * self._layout.row_group_bytes / max(size, 1)))
        start = 0
        while start < len(rows):
            part = rows.slice(start, min(step, self._rows_left))
            start += len(part)
            self._pending.append(part)
            self._pending_bytes += size if len(part) == len(rows) else part.nbytes
            self._rows_left -= len(part)
            if self._pending_bytes >= self._layout.row_group_bytes or not self._rows_left:
                self.write_pending()

    @property
    def pending_bytes(self) -> int:
        """Memory in bytes of the rows that wait for a full row group."""
        return self._pending_bytes

    def close(self) -> list[DataFileMeta]:
        """Finish the last file and return the metadata of all files in key order."""
        return file_metas(self.finish(), self._layout.schema)

    def finish(self) -> list[WrittenFile]:
        """Finish the last file, for a caller that makes the metadata of many writers' files together."""
        self.write_pending()
        self._roll()
        if self._make_durable is not None and self._closed:
            with _refused(self._directory):
                names = [name for file in self._closed for name in (file.name, *file.extra_files)]
                self._make_durable(self._directory, names)
        return self._closed

    def abort(self) -> None:
        """Close and delete all written files, closed ones included. Raises nothing: another failure is being handled."""
        if self._open is not None:
            self._open.discard()
            self._open = None
        for name in self._created_names:
            path = f"{self._directory}/{name}"
            with suppress(OSError, pa.ArrowException):
                if self._filesystem.get_file_info(path).type != arrow_fs.FileType.NotFound:
                    self._filesystem.delete_file(path)

    def write_pending(self) -> None:
        """End the row group now."""
        if not self._pending:
            return
        raise_if_cancelled()
        rows = pa.concat_tables(self._pending)
        self._pending, self._pending_bytes = [], 0
        if self._open is None:
            name = self._names.next(self._layout.prefix)
            self._created_names += [name, file_index_name(name)]
            path = f"{self._directory}/{name}"
            with _refused(path):
                self._make_directory(self._directory)
                self._open = _UnfinishedFile(self._filesystem, path, name=name, layout=self._layout)
        with _refused(f"{self._directory}/{self._open.name}"):
            size = self._open.append(rows)
        if size >= self._layout.target_file_size or not self._rows_left:
            self._roll()

    def _roll(self) -> None:
        if self._open is not None:
            with _refused(f"{self._directory}/{self._open.name}"):
                created = self._environment.local_wall_clock(self._environment.clock())
                self._closed.append(self._open.finish(self._level, self._file_source, created))
            self._open = None
            self._rows_left = self._layout.target_file_rows


@contextmanager
def _refused(path: str) -> Iterator[None]:
    """Convert errors of the file system to a StorageError that names the file."""
    try:
        yield
    except LakelsmError:
        raise
    except OSError as error:
        raise refused_write(path, error) from error


class _UnfinishedFile:
    """A Parquet file that is being written, and its metadata so far."""

    def __init__(self, filesystem: arrow_fs.FileSystem, path: str, *, name: str, layout: FileLayout) -> None:
        self.name = name
        self._path = path
        self._filesystem = filesystem
        self._layout = layout
        self._arrow_schema = pa.schema(map(stored_field, layout.arrow_schema))
        self._sink = filesystem.open_output_stream(path, buffer_size=_BUFFER_BYTES)
        self._int96 = Int96Sink(self._sink) if self._arrow_schema != layout.arrow_schema else None
        keys = layout.schema.trimmed_primary_keys
        ascending = [SEQUENCE_NUMBER, *keys, *([] if layout.thin else [KEY_FIELD_PREFIX + key for key in keys])]
        self._writer = pq.ParquetWriter(
            self._int96 or self._sink,
            self._arrow_schema,
            compression=layout.compression,
            compression_level=layout.compression_level,
            store_decimal_as_integer=True,
            store_schema=False,
            write_page_checksum=True,
            **encoding_options(self._arrow_schema, ascending, layout.dictionary),
        )
        if self._int96 is not None:
            self._writer.add_key_value_metadata(dict([FLOORED_TIMES]))
        self._value_stats = layout.new_value_stats()
        self._key_stats = layout.new_key_stats()
        self._index = layout.new_index()
        self._rows = self._deletes = 0
        self._sequences: tuple[int, int] | None = None
        self._ends: pa.Table | None = None

    def append(self, rows: pa.Table) -> int:
        """Write one row group. Return the size of the file so far in bytes."""
        schema = self._layout.schema
        keys = rows.select(schema.trimmed_primary_keys)
        values = rows.select(schema.field_names)
        columns = [] if self._layout.thin else list(keys.columns)
        columns += [rows.column(SEQUENCE_NUMBER), rows.column(VALUE_KIND), *values.columns]
        columns = [
            filled_parts(cast_column(column, field.type), field) for column, field in zip(columns, self._arrow_schema)
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._arrow_schema), row_group_size=len(rows))
        self._value_stats.update(values)
        self._key_stats.update(keys)
        if self._index is not None:
            self._index.add(self._indexed(values))
        bounds = pc.min_max(rows.column(SEQUENCE_NUMBER)).as_py()
        low, high = self._sequences or (bounds["min"], bounds["max"])
        self._sequences = (min(low, bounds["min"]), max(high, bounds["max"]))
        self._deletes += int(is_retract(rows.column(VALUE_KIND)).sum())
        self._rows += len(rows)
        first = keys if self._ends is None else self._ends
        ends = pa.concat_tables([first.slice(0, 1), keys.slice(len(keys) - 1)])
        self._ends = ends.take(pa.array([0, 1]))  # A copy: a slice would keep all rows in memory.
        return int(self._sink.tell())

    def finish(self, level: int, file_source: FileSource, created: int) -> WrittenFile:
        """Close the file and return its metadata; ``created`` is a time of the local wall clock."""
        if self._int96 is not None:
            self._int96.begin_footer()
        self._writer.close()
        if self._int96 is not None:
            self._int96.finish()
        self._sink.close()
        assert self._ends is not None and self._sequences is not None
        embedded, extra = self._finish_index()
        with self._filesystem.open_input_file(self._path) as stored:
            size, footer = stored.size(), read_footer(stored)
        return WrittenFile(
            name=self.name,
            size=size,
            rows=self._rows,
            deletes=self._deletes,
            sequences=self._sequences,
            ends=self._ends,
            key_stats=self._key_stats,
            value_stats=self._value_stats,
            level=level,
            source=file_source,
            created=created,
            embedded_index=embedded,
            extra_files=extra,
            footer_checksum=zlib.crc32(footer),
        )

    def _indexed(self, values: pa.Table) -> pa.Table:
        """Return the columns that have an index, in the types that the indexes take."""
        names = dict.fromkeys(index.column for index in self._layout.file_indexes)
        types = {name: to_arrow(self._layout.schema.field(name).type) for name in names}
        return pa.table({name: cast_column(values.column(name), kind) for name, kind in types.items()})

    def _finish_index(self) -> tuple[bytes | None, tuple[str, ...]]:
        """Return the indexes for the manifest entry; if they are too large, write an index file and return its name."""
        if self._index is None:
            return None, ()
        data = self._index.encode()
        if len(data) <= self._layout.index_in_manifest:
            return data, ()
        with self._filesystem.open_output_stream(file_index_name(self._path)) as sink:
            sink.write(sealed(data, self.name))
        return None, (file_index_name(self.name),)

    def discard(self) -> None:
        """Close the handles of a file that will be deleted. On a full disk even this fails."""
        for handle in (self._writer, self._sink):
            with suppress(OSError, ValueError, pa.ArrowException):
                handle.close()


def encoding_options(schema: pa.Schema, ascending: Collection[str], dictionary: bool = True) -> dict[str, Any]:
    """Return pyarrow's writer options for files of ``schema``. Without ``dictionary``, no column has a dictionary.

    ``ascending`` names columns whose values ascend or nearly do (keys, sequence numbers). Those that Parquet stores as
    integers are written plainly, because a dictionary does not help. Deltas would be smaller and faster still, but
    Paimon reads them only from 1.0.1 on. Decimals of fixed length are also written plainly, as in Java: its filters
    search a dictionary for a literal without padding it to the length of the column, and skip the row group.
    INT96 columns have no statistics, because their bytes do not sort as times. Floats have none either: a NaN would be
    outside every range, although it is the maximum for Spark.
    """
    leaves = {field.name: list(_leaves(field.name, field.type)) for field in schema}
    plain = [name for name in ascending if _is_integer(schema.field(name).type)]
    others = [
        path
        for name, paths in leaves.items()
        if name not in plain
        for path, kind in paths
        if not pa.types.is_decimal(kind) or _is_integer(kind)
    ]
    counted = [
        path for paths in leaves.values() for path, kind in paths if kind != INT96 and not pa.types.is_floating(kind)
    ]
    return {
        "use_dictionary": others if others and dictionary else False,
        "dictionary_pagesize_limit": DICTIONARY_BYTES,
        "write_statistics": counted,
    }


def _is_integer(kind: pa.DataType) -> bool:
    """Return whether Parquet stores the values as INT32 or INT64."""
    if pa.types.is_timestamp(kind):
        return True
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= 18)
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_time32(kind))


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the paths and types of the Parquet columns of an Arrow column."""
    if pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for member in kind:
            yield from _leaves(f"{path}.{member.name}", member.type)
    else:
        yield path, kind
