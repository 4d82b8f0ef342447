"""The rows that a user passes, as record batches of bounded size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from numbers import Number
from typing import Any

import pyarrow as pa

from lakelsm.arguments import wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.local.inferred_values import check_one_kind

#: Maximum rows and bytes of a batch. A single row may be larger.
BATCH_ROWS = 1 << 16
_BATCH_BYTES = 16 << 20

_ACCEPTED = (
    "rows in memory (%spyarrow Table, RecordBatch, RecordBatchReader or dataset, pandas or Polars DataFrame, anything "
    "with the Arrow C stream interface) or a Spark DataFrame"
)


@dataclass(frozen=True)
class ArrowInput:
    """Rows in their order. ``batches`` can be read once.

    The columns ``fitted`` have the table's own types (`to_arrow`), and their values are known to fit.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    fitted: frozenset[str] = frozenset()

    @staticmethod
    def of(
        frame: object, argument: str = "frame", *, more_forms: str = "", fitted: frozenset[str] = frozenset()
    ) -> ArrowInput:
        """Return the rows of an argument. Raises InvalidInputError, with a remedy, if it has none.

        ``more_forms`` are other accepted forms, for the error.
        """
        reader = _reader(frame, argument, more_forms)
        return ArrowInput(reader.schema, _bounded(reader), fitted)


def is_spark_frame(frame: object) -> bool:
    """Return whether the rows are a Spark DataFrame, by the name of its class, because PySpark may not be loaded."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.") for kind in type(frame).__mro__
    )


def _reader(frame: Any, argument: str, more_forms: str) -> pa.RecordBatchReader:
    _refuse_objects(frame)
    pandas, datasets = sys.modules.get("pandas"), sys.modules.get("pyarrow.dataset")
    if isinstance(frame, pa.RecordBatchReader):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(frame.schema, [frame])
    if isinstance(frame, pa.Table):
        return frame.to_reader()
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return _pandas_reader(frame)
    if datasets is not None and isinstance(frame, (datasets.Dataset, datasets.Scanner)):
        return (frame.scanner() if isinstance(frame, datasets.Dataset) else frame).to_reader()
    if not isinstance(frame, type) and callable(getattr(frame, "__arrow_c_stream__", None)):
        try:
            return pa.RecordBatchReader.from_stream(frame)
        except pa.ArrowException as error:
            remedy = f"Make it a table of columns first ({error})."
            raise wrong_argument(argument, frame, "rows with columns", remedy) from error
    raise wrong_argument(argument, frame, _ACCEPTED % more_forms, f"Write {_remedy(frame, argument)}.")


def _remedy(frame: object, argument: str) -> str:
    package = type(frame).__module__.split(".")[0]
    if package == "pandas":
        return f"{argument}.to_frame()"
    if package == "polars":
        return f"{argument}.collect()" if type(frame).__name__ == "LazyFrame" else f"{argument}.to_frame()"
    if isinstance(frame, Iterator):
        return f"list({argument})"
    if argument == "keys" and isinstance(frame, (str, bytes, Number, date)):
        return f"[{argument}]"
    if isinstance(frame, str):
        return f"spark.table({argument}), or pyarrow.dataset.dataset({argument})"
    if isinstance(frame, dict):
        return f"pyarrow.table({argument})"
    if package == "pyspark":
        return f"{argument}.to_spark()"
    return "pyarrow.Table.from_pylist(rows), or spark.createDataFrame(rows, schema)"


def _refuse_objects(frame: Any) -> None:
    """Raise InvalidInputError for a Polars column of Python objects, which Polars exports as memory addresses."""
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(frame, polars.DataFrame):
        for name, kind in frame.schema.items():
            if kind == polars.Object:
                raise InvalidInputError(f"column '{name}': Polars type Object has no Paimon type. Cast it first.")


def _pandas_reader(frame: Any) -> pa.RecordBatchReader:
    """Return the rows of a pandas DataFrame without its index, converted in pieces; pandas' missing values are NULL."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if frame.columns.has_duplicates:
        return _columns_twice(frame)
    schema = pa.schema([_pandas_field(frame, name) for name in frame.columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(frame), BATCH_ROWS):
            piece = frame.iloc[start : start + BATCH_ROWS]
            try:
                yield pa.RecordBatch.from_pandas(piece, schema, preserve_index=False, nthreads=1)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise InvalidInputError(f"frame: it cannot be converted to Arrow: {_reason(error)}.") from error

    return pa.RecordBatchReader.from_batches(schema, batches())


def _columns_twice(frame: Any) -> pa.RecordBatchReader:
    """Return a reader of the column names, some of them equal, without rows: Arrow cannot convert such a frame."""
    return pa.RecordBatchReader.from_batches(pa.schema([(name, pa.null()) for name in frame.columns]), [])


def _pandas_field(frame: Any, name: str) -> pa.Field:
    try:
        if frame[name].dtype == object:
            check_one_kind(frame[name])
        return pa.Schema.from_pandas(frame[[name]], preserve_index=False).field(0)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"column '{name}' of the DataFrame has no Arrow type ({_reason(error)}). Give its values one type."
        ) from error


def _reason(error: Exception) -> str:
    return ", ".join(str(part) for part in error.args)


def _bounded(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader, split if they are large."""
    with reader:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except pa.ArrowException as error:
                raise InvalidInputError(f"frame: its rows cannot be read to the end: {error}") from error
            max_rows = _max_rows(batch)
            for start in range(0, len(batch), max_rows):
                yield from _cut(batch.slice(start, max_rows))
            del batch


def _max_rows(batch: pa.RecordBatch) -> int:
    """Return how many rows of a batch are taken at a time."""
    if _size(batch) is not None:
        return BATCH_ROWS
    return max(1, min(BATCH_ROWS, int(len(batch) * _BATCH_BYTES / max(batch.get_total_buffer_size(), 1))))


def _size(batch: pa.RecordBatch) -> int | None:
    """Return the bytes of the rows; None if Arrow does not know them, as older versions for views."""
    try:
        return int(batch.nbytes)
    except pa.ArrowTypeError:
        return None


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in parts of at most `_BATCH_BYTES`, halved until they fit, because row sizes may differ."""
    size = _size(batch)
    if len(batch) <= 1 or size is None or size <= _BATCH_BYTES:
        yield batch
        return
    half = len(batch) // 2
    yield from _cut(batch.slice(0, half))
    yield from _cut(batch.slice(half))
