"""The relations that a query reads, as a protocol; frames that the caller passes; and streams for DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.predicate.expression import NULL_TYPE, reduced
from lakelsm.sql.pushdown import Need
from lakelsm.types import DataField, DataType, from_arrow, output_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class QuerySource(Protocol):
    """A relation that a query names."""

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """Return the needed columns, in their order in ``fields``, read in this process; each call reads again."""

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """Return the needed columns as a Spark DataFrame."""

    def plan(self, need: Need) -> str:
        """Return a line of text on the files that the read of the needed rows opens."""


@dataclass(frozen=True)
class FrameSource:
    """Rows that the caller passes by name: an Arrow, pandas or Polars frame, or a Spark DataFrame."""

    name: str
    given: Any

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns, of the types that Paimon has for them."""
        return fields_of(self.arrow().schema)

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        rows = self.arrow()
        return (rows if need.columns is None else rows.select(need.columns)).to_reader()

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        if hasattr(self.given, "sparkSession"):
            frame: DataFrame = self.given
            return frame
        from lakelsm.frames.system_frames import shown_frame

        return shown_frame(spark, self.arrow())

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return f"frame {self.name}"

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        given = self.given
        if isinstance(given, pa.Table):
            return given
        if isinstance(given, pa.RecordBatch):
            return pa.Table.from_batches([given])
        if type(given).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(given, preserve_index=False)
        if hasattr(given, "__arrow_c_stream__") and not isinstance(given, pa.RecordBatchReader):
            return pa.table(given)
        raise InvalidInputError(
            f"{self.name}: expected a Spark DataFrame, a pyarrow Table, or a pandas or Polars DataFrame, "
            f"got {type(given).__name__!r}. A stream can be read once, and a query may read it more often."
        )


def fields_of(schema: pa.Schema) -> list[DataField]:
    """Return the columns of an Arrow schema, with the types that Paimon has for them."""
    return [DataField(at, each.name, from_arrow(each.type)) for at, each in enumerate(schema)]


def stream_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type that an expression's values have outside of lakelsm."""
    return pa.null() if kind == NULL_TYPE else output_arrow(reduced(kind))


def numbered_stream(source: QuerySource, need: Need) -> pa.RecordBatchReader:
    """Return the needed columns, with the types of expressions and with their numbers in ``fields`` for names."""
    wanted = [each for each in enumerate(source.fields) if need.columns is None or each[1].name in need.columns]
    reader = source.reader(Need([field.name for _, field in wanted], need.where))
    kinds = [stream_type(field.type) for _, field in wanted]
    schema = pa.schema([(str(number), kind) for (number, _), kind in zip(wanted, kinds)])

    def converted() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            columns = [each if each.type == kind else each.cast(kind) for each, kind in zip(batch.columns, kinds)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, converted())
