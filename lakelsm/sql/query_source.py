"""The relations that a query reads, as a protocol; frames that the caller passes; and streams for DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from lakelsm.errors import InvalidInputError, error_context
from lakelsm.expressions.duckdb_types import expression_type
from lakelsm.local.arrow_input import ArrowInput, is_spark_frame
from lakelsm.predicate.expression import NULL_TYPE
from lakelsm.sql.pushdown import Need
from lakelsm.types import DataField, DataType, from_arrow, output_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The column of rows of which only the number is needed.
_ONLY_ROWS = pa.schema([pa.field("rows", pa.bool_())])
#: The number of these rows in a batch.
_BATCH_ROWS = 1 << 20


class QuerySource(Protocol):
    """A relation that a query names."""

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""

    @property
    def applies_conditions(self) -> bool:
        """Whether `reader` returns only rows for which the needed condition is TRUE."""

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """Return the needed columns, in their order in ``fields``, read in this process; each call reads again."""

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """Return the needed columns as a Spark DataFrame."""

    def plan(self, need: Need) -> str:
        """Return a line of text on the files that the read of the needed rows opens."""


@runtime_checkable
class CountedSource(Protocol):
    """A relation that need not be read for the number of its rows."""

    def count(self, where: str | None) -> int:
        """Return the number of rows that match."""


@dataclass(frozen=True)
class FrameSource:
    """Rows that the caller passes by name: an Arrow, pandas or Polars frame, or a Spark DataFrame."""

    name: str
    given: Any

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns, of the types that Paimon has for them."""
        return fields_of(self.rows.schema)

    @property
    def applies_conditions(self) -> bool:
        """See `QuerySource.applies_conditions`."""
        return False

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        rows = self.rows
        return (rows if need.columns is None else rows.select(need.columns)).to_reader()

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        if is_spark_frame(self.given):
            frame: DataFrame = self.given
            return frame
        from lakelsm.frames.sql_frame import frame_of_rows

        return frame_of_rows(spark, self.rows)

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return f"frame {self.name}"

    @cached_property
    def rows(self) -> pa.Table:
        """The rows as an Arrow table, converted once. Raises InvalidInputError for a Spark DataFrame and for a stream."""
        given = self.given
        if is_spark_frame(given):
            raise InvalidInputError(
                f"{self.name}: this process does not read a Spark DataFrame. Pass engine='spark', or its toArrow()."
            )
        is_pandas = type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "columns")
        has_stream = hasattr(given, "__arrow_c_stream__") and not isinstance(given, (pa.RecordBatchReader, type))
        if not (is_pandas or has_stream):
            raise InvalidInputError(
                f"{self.name}: expected a Spark DataFrame, a pyarrow Table, or a pandas or Polars DataFrame, "
                f"got {type(given).__name__!r}. A stream can be read once, and a query may read it more often."
            )
        found = ArrowInput.of(given, self.name)
        twice = [name for name, count in Counter(found.schema.names).items() if count > 1]
        if twice:
            raise InvalidInputError(f"{self.name}: more than one column has the name {twice[0]!r}. Rename one of them.")
        if not found.schema.names:
            raise InvalidInputError(f"{self.name}: the frame has no columns.")
        rows = given if isinstance(given, pa.Table) else pa.Table.from_batches(found.batches, found.schema)
        return pa.table([self._known(rows, at) for at in range(rows.num_columns)], names=rows.schema.names)

    def _known(self, rows: pa.Table, at: int) -> pa.ChunkedArray:
        """Return a column with the Arrow type of its Paimon type, so that both engines have the same values."""
        field, column = rows.schema.field(at), rows.column(at)
        with error_context(f"{self.name}: column {field.name!r}"):
            kind = _type_of(field.type)
        target = pa.null() if kind == NULL_TYPE else output_arrow(kind)
        try:
            return column if column.type == target else column.cast(target)
        except pa.ArrowException as error:
            raise InvalidInputError(
                f"{self.name}: column {field.name!r} of type {field.type} does not fit {kind.sql()}. Cast it."
            ) from error


def hidden_columns(sources: Mapping[int, QuerySource]) -> dict[int, Sequence[str]]:
    """Return the columns that ``*`` does not stand for, by the start of their reference. Few sources have any."""
    found = {start: getattr(source, "hidden", ()) for start, source in sources.items()}
    return {start: names for start, names in found.items() if names}


def fields_of(schema: pa.Schema) -> list[DataField]:
    """Return the columns of an Arrow schema, with the types that Paimon has for them."""
    return [DataField(at, each.name, _type_of(each.type)) for at, each in enumerate(schema)]


def _type_of(kind: pa.DataType) -> DataType:
    return NULL_TYPE if pa.types.is_null(kind) else from_arrow(kind)


def stream_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type that an expression's values have outside of lakelsm."""
    return pa.null() if kind == NULL_TYPE else output_arrow(expression_type(kind))


def numbered_schema(source: QuerySource, need: Need) -> pa.Schema:
    """Return the needed columns, with the types of expressions and with their numbers in ``fields`` for names.

    DuckDB reads streams with columns only, so that rows without columns have one of NULLs.
    """
    fields = [(str(number), stream_type(field.type)) for number, field in _wanted(source, need)]
    return pa.schema(fields) if fields else _ONLY_ROWS


def numbered_stream(source: QuerySource, need: Need) -> pa.RecordBatchReader:
    """Return the needed rows with the columns of `numbered_schema`."""
    wanted = _wanted(source, need)
    if not wanted:
        return pa.RecordBatchReader.from_batches(_ONLY_ROWS, _only_rows(source, need))
    reader = source.reader(Need([field.name for _, field in wanted], need.where))
    schema = numbered_schema(source, need)

    def converted() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            columns = [
                each if each.type == kind else each.cast(kind) for each, kind in zip(batch.columns, schema.types)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, converted())


def _only_rows(source: QuerySource, need: Need) -> Iterator[pa.RecordBatch]:
    """Yield as many rows as the source has. A source that does not know their number is read by its first column."""
    if isinstance(source, CountedSource):
        count = source.count(need.where)
        counts = (min(_BATCH_ROWS, count - start) for start in range(0, count, _BATCH_ROWS))
    else:
        counts = (batch.num_rows for batch in source.reader(Need([source.fields[0].name], need.where)))
    for rows in counts:
        yield pa.RecordBatch.from_arrays([pa.nulls(rows, pa.bool_())], schema=_ONLY_ROWS)


def _wanted(source: QuerySource, need: Need) -> list[tuple[int, DataField]]:
    return [each for each in enumerate(source.fields) if need.columns is None or each[1].name in need.columns]
