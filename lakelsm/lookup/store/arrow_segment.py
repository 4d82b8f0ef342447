"""Segments: files of Arrow record batches with rows in the order in which they were written, found by row index.

A segment is a `StoreFile` with a stream of Arrow's IPC format, whose record batches are mapped. `SegmentRows` are the
rows of several segments in sequence: a row index there is the index in its segment plus the rows of earlier segments.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import RawIOBase
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.row.binary_row_slots import primitive_values
from lakelsm.lookup.cache import no_python_time
from lakelsm.lookup.store.key_index import EntryWriter
from lakelsm.lookup.store.store_file import Stamp, StoreFile, StoreFileWriter
from lakelsm.types import DataField, output_arrow, to_arrow

Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_ROWS = "rows"
#: Arrow's errors for columns of more than 2 GiB, or lists of more than 2^31 values.
TOO_LARGE = (pa.ArrowInvalid, pa.ArrowIndexError)
#: Maximum rows and bytes of a record batch, which is checked as a whole. A batch of one row may be larger.
CHUNK_ROWS = 1 << 18
CHUNK_BYTES = 16 << 20


class SegmentWriter:
    """Writes rows to a new file, and the index entries of each of their keys to another file (`hashes_path`).

    ``fields`` are the columns of the rows, ``keys`` those of each key. Memory: about three record batches. If the context
    ends without `finish`, the files are deleted. Raises StorageError if the file system refuses to write.
    """

    def __init__(self, path: Path, fields: Sequence[DataField], keys: Sequence[Sequence[DataField]]) -> None:
        self.rows = 0
        with ExitStack() as opened:
            self._file = opened.enter_context(StoreFileWriter(path))
            self._batches = RecordBatchWriter(self._file, fields)
            beside = [opened.enter_context(StoreFileWriter(hashes_path(path, number))) for number in range(len(keys))]
            self._entries = [EntryWriter(file, key) for file, key in zip(beside, keys)]
            self._opened = opened.pop_all()

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def write(self, rows: pa.Table) -> None:
        """Add rows. They have the columns, in any order, in stored types."""
        for entries in self._entries:
            entries.add(rows)
        self._batches.add(rows)
        self.rows += len(rows)

    def finish(self) -> Stamp:
        """Complete the files, for `Segment` and `key_index.write_index`; return the stamp of the segment."""
        for entries in self._entries:
            entries.finish()
        self._file.finish(self._batches.finish())
        return self._file.stamp


def hashes_path(path: Path, key: int) -> Path:
    """Return the path of the index entries of a segment's key. The file can be deleted once the index is written."""
    return path.with_name(f"{path.name}.{key}.hashes")


def _stored_schema(fields: Sequence[DataField]) -> pa.Schema:
    return pa.schema([pa.field(field.name, to_arrow(field.type)) for field in fields])


class RecordBatchWriter:
    """Writes rows as record batches of bounded size to a section of a file."""

    def __init__(
        self, file: StoreFileWriter, fields: Sequence[DataField], watch: Callable[[pa.RecordBatch], None] | None = None
    ) -> None:
        """``watch`` is called with each record batch when it is written."""
        self._file = file
        self._watch = watch
        self._schema = _stored_schema(fields)
        self._sink = _Sink(file)
        self._stream = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), self._schema)
        self._lengths: list[int] = []
        self._ends = [self._schema.serialize().size]
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0

    def add(self, rows: pa.Table) -> None:
        """Add rows. They are written when they fill a record batch."""
        rows = pa.Table.from_arrays([rows.column(name) for name in self._schema.names], schema=self._schema)
        while len(rows):
            part = rows.slice(0, CHUNK_ROWS - self._waiting_rows)
            rows = rows.slice(len(part))
            self._waiting.append(part)
            self._waiting_rows += len(part)
            self._waiting_bytes += part.nbytes
            if self._waiting_rows >= CHUNK_ROWS or self._waiting_bytes >= CHUNK_BYTES:
                self._flush()

    def finish(self) -> dict[str, Any]:
        """Write the remaining rows, and end the stream; return the facts that `Segment` needs."""
        self._flush()
        self._stream.close()
        self._sink.drain()
        return {"lengths": self._lengths, "ends": self._ends}

    def written(self) -> Iterator[pa.RecordBatch]:
        """Read back the record batches that were written."""
        for start, end in zip(self._ends, self._ends[1:]):
            yield pa.ipc.read_record_batch(pa.py_buffer(self._file.read_at(_ROWS, start, end - start)), self._schema)

    def _flush(self) -> None:
        if self._waiting:
            rows = pa.concat_tables(self._waiting)
            self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0
            self._write(rows)

    def _write(self, rows: pa.Table) -> None:
        if len(rows) > 1 and rows.nbytes > 2 * CHUNK_BYTES:
            half = len(rows) // 2
            self._write(rows.slice(0, half))
            self._write(rows.slice(half))
            return
        (batch,) = rows.combine_chunks().to_batches()
        if self._watch is not None:
            self._watch(batch)
        self._stream.write_batch(batch)
        self._sink.drain()
        self._lengths.append(len(batch))
        self._ends.append(self._sink.size)


class _Sink(RawIOBase):
    """The file object to which Arrow writes a stream: a section of a file. `drain` appends what was written."""

    def __init__(self, file: StoreFileWriter) -> None:
        self._file = file
        self._parts: list[Any] = []
        self.size = 0

    def writable(self) -> bool:
        """Return True: the section can be written."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self.size

    def write(self, data: Any) -> int:
        """Keep bytes until `drain`."""
        self._parts.append(data)
        size = memoryview(data).nbytes
        self.size += size
        return size

    def drain(self) -> None:
        """Append all kept bytes to the section."""
        self._file.append(_ROWS, *self._parts)
        self._parts = []


class Segment:
    """The rows of a file. Several threads may read them, also in forked processes."""

    def __init__(self, file: StoreFile) -> None:
        """``file`` was written by a `RecordBatchWriter`; raises CorruptStoreError otherwise."""
        self.file = file
        self._section = file.section(_ROWS)
        if "lengths" not in file.facts:
            raise file.damaged("it has no rows")
        self.lengths: list[int] = file.facts["lengths"]
        self._ends: list[int] = file.facts["ends"]
        self.schema = pa.ipc.read_schema(pa.py_buffer(self._section.bytes(0, self._ends[0])))
        self.rows = sum(self.lengths)
        self._chunks: list[dict[str, pa.Array] | None] = [None] * len(self.lengths)

    @staticmethod
    def open(path: Path, whole: Stamp | None = None) -> Segment:
        """Open a file; see `StoreFile`. Raises CorruptStoreError for a missing or damaged file."""
        return Segment(StoreFile(path, whole=whole))

    def chunk(self, number: int) -> dict[str, pa.Array]:
        """Return the columns of a record batch. They are mapped: callers may pass on only copies of their values."""
        start, end = self._ends[number], self._ends[number + 1]
        self._section.check(start, end)
        chunk = self._chunks[number]
        if chunk is None:
            batch = pa.ipc.read_record_batch(pa.py_buffer(self._section.bytes(start, end)), self.schema)
            chunk = self._chunks[number] = dict(zip(self.schema.names, batch.columns, strict=True))
        return chunk

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class SegmentRows:
    """The rows of several segments with the same columns, in sequence, by row index."""

    def __init__(self, fields: Sequence[DataField], segments: Sequence[Segment]) -> None:
        """Raises CorruptStoreError for a segment whose columns are not ``fields``."""
        self.schema = _stored_schema(fields)
        self.segments = tuple(segments)
        for segment in self.segments:
            if segment.schema != self.schema:
                raise segment.file.damaged(f"it has the columns {segment.schema.names} instead of {self.schema.names}")
        shown = {field.name: output_arrow(field.type) for field in fields}
        self._shown = {name: kind for name, kind in shown.items() if kind != self.schema.field(name).type}
        self._chunks = [(segment, number) for segment in self.segments for number in range(len(segment.lengths))]
        lengths = [segment.lengths[number] for segment, number in self._chunks]
        self._starts = [0, *np.cumsum(np.array(lengths, dtype=np.int64)).tolist()]
        self._first_rows = np.array(self._starts[:-1], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def first_rows(self) -> list[int]:
        """The index of the first row of each segment."""
        return [0, *np.cumsum(np.array([segment.rows for segment in self.segments], dtype=np.int64)).tolist()][:-1]

    def check(self) -> None:
        """Compare the stamp of each file, before anything of it is read. Raises CorruptStoreError."""
        for segment in self.segments:
            segment.file.check()

    def take(self, rows: Longs, names: Sequence[str]) -> pa.Table:
        """Return columns of rows by row index, in the given order; indexes may be repeated. The values are copies."""
        self.check()
        try:
            return self.by_batch(rows).take(names)
        except TOO_LARGE:
            if len(rows) < 2:
                raise
            half = len(rows) // 2
            return pa.concat_tables([self.take(rows[:half], names), self.take(rows[half:], names)])

    def row(self, row: int, names: Sequence[str]) -> tuple[Any, ...]:
        """Return columns of one row as Python values for the user.

        Raises UnsupportedFeatureError for a time that Python cannot represent.
        """
        at = bisect_right(self._starts, row) - 1
        segment, number = self._chunks[at]
        segment.file.check()
        chunk = segment.chunk(number)
        row -= self._starts[at]
        try:
            if self._shown.keys().isdisjoint(names):
                return tuple([chunk[name][row].as_py() for name in names])
            return tuple([self._value(chunk[name], row, name) for name in names])
        except (ValueError, OverflowError) as error:
            raise no_python_time(error) from error

    def _value(self, column: pa.Array, row: int, name: str) -> Any:
        kind = self._shown.get(name)
        return (column[row] if kind is None else cast_column(column.slice(row, 1), kind)[0]).as_py()

    def by_batch(self, rows: Longs) -> RowsByBatch:
        """Group rows by their record batches. The caller compares the stamps of the files first (`check`)."""
        if len(self._chunks) == 1:
            return RowsByBatch(self.schema, self._arrays([0]), bounds=[0, len(rows)], local=rows, order=None)
        at = np.searchsorted(self._first_rows, rows, side="right") - 1
        order = np.argsort(at.astype(np.uint16) if len(self._chunks) <= 1 << 16 else at, kind="stable")
        counts = np.bincount(at, minlength=len(self._chunks))
        touched = np.flatnonzero(counts)
        local = (rows - self._first_rows[at])[order] if len(rows) else rows
        bounds = [0, *np.cumsum(counts[touched]).tolist()]
        return RowsByBatch(self.schema, self._arrays(touched.tolist()), bounds=bounds, local=local, order=order)

    def _arrays(self, chunks: Sequence[int]) -> list[dict[str, pa.Array]]:
        return [segment.chunk(number) for segment, number in (self._chunks[at] for at in chunks)]


class RowsByBatch:
    """Rows grouped by record batch: those from ``bounds[i]`` to ``bounds[i + 1]`` are in ``chunks[i]``, at ``local``.

    ``order[i]`` (None: i) is the position of row i among the requested rows.
    """

    def __init__(
        self,
        schema: pa.Schema,
        chunks: Sequence[dict[str, pa.Array]],
        *,
        bounds: Sequence[int],
        local: Longs,
        order: Longs | None,
    ) -> None:
        self._schema = schema
        self._chunks = chunks
        self._bounds = bounds
        self._local = local
        self._order = order

    def take(self, names: Sequence[str]) -> pa.Table:
        """Return columns of the rows, in the requested order."""
        if not names:
            return pa.table({"": pa.nulls(len(self._local))}).select([])
        back_order = None
        if self._order is not None:
            back = np.empty(len(self._order), dtype=np.int64)
            back[self._order] = np.arange(len(back))
            back_order = pa.array(back)
        columns = [self._column(name) if back_order is None else self._column(name).take(back_order) for name in names]
        return pa.Table.from_arrays(columns, schema=pa.schema([self._schema.field(name) for name in names]))

    def have_values(self, name: str, values: pa.Array) -> Mask:
        """Return which rows, in the requested order, have these values. Neither the rows nor the values have NULLs.

        Values are equal as keys are: 0.0 equals -0.0, and NaN equals NaN.
        """
        kind = values.type
        if not self._is_plain(kind):
            order = None if self._order is None else pa.array(self._order)
            same = pc.equal(self._column(name), values if order is None else values.take(order))
            return self._in_requested_order(same.to_numpy(zero_copy_only=False))
        stored = np.empty(len(self._local), dtype=primitive_values(values).dtype)
        for chunk, start, stop in self._pieces():
            np.take(primitive_values(chunk[name]), self._local[start:stop], out=stored[start:stop], mode="clip")
        stored, wanted = self._in_requested_order(stored), primitive_values(values)
        equal: Mask = stored == wanted
        return equal | (np.isnan(stored) & np.isnan(wanted)) if pa.types.is_floating(kind) else equal

    def _is_plain(self, kind: pa.DataType) -> bool:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))

    def _pieces(self) -> Iterator[tuple[dict[str, pa.Array], int, int]]:
        return zip(self._chunks, self._bounds[:-1], self._bounds[1:], strict=True)

    def _column(self, name: str) -> pa.Array:
        """Return a copy of a column, in the order of the record batches."""
        local = pa.array(self._local)
        parts = [chunk[name].take(local.slice(start, stop - start)) for chunk, start, stop in self._pieces()]
        return pa.concat_arrays(parts) if parts else pa.nulls(0, self._schema.field(name).type)

    def _in_requested_order(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self._order is None:
            return values
        requested = np.empty_like(values)
        requested[self._order] = values
        return requested
