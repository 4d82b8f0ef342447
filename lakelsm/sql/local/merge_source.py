"""The source of a merge: a frame, a table or a query, as rows of this process or as a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.local.arrow_input import ArrowInput, is_spark_frame
from lakelsm.local.scratch_runs import ScratchSpace
from lakelsm.options import TableOptions
from lakelsm.schema.identifiers import match
from lakelsm.schema.table_schema import TableSchema
from lakelsm.sql.local.query_result import QueryResult
from lakelsm.sql.pushdown import Need
from lakelsm.sql.query_source import FrameSource, QuerySource, fields_of
from lakelsm.types import DataField, output_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class _Readable(Protocol):
    """What a merge needs of a table that is its source."""

    @property
    def schema(self) -> TableSchema:
        """The schema."""

    @property
    def name(self) -> str:
        """The name of the table."""

    def to_reader(
        self, where: str | None = None, columns: Sequence[str] | None = None, *, fresh: bool = False
    ) -> pa.RecordBatchReader:
        """Return the rows as a stream."""

    def read(
        self, where: str | None = None, columns: Sequence[str] | None = None, *, fresh: bool = False
    ) -> DataFrame:
        """Return the rows as a DataFrame."""


def checked_source(source: Any, schema: TableSchema) -> object:
    """The source; rows of this process as an Arrow table. Columns of NULL have the type of the table's column."""
    if isinstance(source, QueryResult):
        return source
    if is_spark_frame(source):
        from lakelsm.spark.session import checked_frame

        return checked_frame(source, "source")
    try:
        if isinstance(source, list):
            source = pa.Table.from_pylist(source)
        elif isinstance(source, dict):
            source = pa.Table.from_pydict(source)
    except (pa.ArrowException, TypeError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"source: the rows are not a table: {' '.join(str(error).split())}.") from error
    rows = _spilled(source, schema) if is_stream(source) else FrameSource("source", source).rows
    for at, field in enumerate(rows.schema):
        if pa.types.is_null(field.type):
            known = match(field.name, schema.field_names)
            kind = pa.string() if known is None else output_arrow(schema.field(known).type)
            rows = rows.set_column(at, pa.field(field.name, kind), pa.nulls(len(rows), kind))
    fields_of(rows.schema)  # Raises InvalidInputError for types that Paimon does not have.
    return rows


def is_stream(source: object) -> bool:
    """Return whether rows can be read once only, or can differ the next time: a reader, or files."""
    import pyarrow.dataset as ds

    return isinstance(source, (pa.RecordBatchReader, ds.Dataset, ds.Scanner))


def _spilled(source: object, schema: TableSchema) -> pa.Table:
    """Return the rows of a stream, which are in a scratch file: a merge reads its source more than once."""
    given = ArrowInput.of(source, "source")
    limit = TableOptions.parse(schema.options).write_buffer_spill_max_disk_size
    try:
        with ScratchSpace(given.schema, limit) as space:
            run = space.write((0, pa.Table.from_batches([batch])) for batch in given.batches)
    except pa.ArrowException as error:
        raise InvalidInputError(f"source: its rows cannot be read: {' '.join(str(error).split())}.") from error
    # The table's buffers are the mapped file, which disappears with them.
    batches = [batch for table in run.tables(0) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, given.schema)


def source_names(source: Any) -> list[str]:
    """Return the columns of a checked source."""
    return list(source.columns) if is_spark_frame(source) else [each.name for each in opened_source(source).fields]


def opened_source(source: Any, *, fresh: bool = False) -> QuerySource:
    """Return the rows of a source, which are read again if the merge is computed again.

    ``fresh``: those of a table include the rows that other reads do not show yet.
    """
    if isinstance(source, QueryResult):
        return _ResultRows(source)
    return FrameSource("source", source) if isinstance(source, pa.Table) else _TableRows(source, fresh)


def source_frame(spark: SparkSession, source: Any, *, fresh: bool = False) -> DataFrame:
    """Return the rows of a source as a DataFrame; ``fresh`` is as in `opened_source`."""
    if is_spark_frame(source):
        frame: DataFrame = source
        return frame
    return opened_source(source, fresh=fresh).frame(spark, Need(None, None))


@dataclass(frozen=True)
class _TableRows:
    """The rows of a table at one snapshot."""

    table: _Readable
    fresh: bool

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""
        return self.table.schema.fields

    @property
    def applies_conditions(self) -> bool:
        """See `QuerySource.applies_conditions`."""
        return True

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        return self.table.to_reader(need.where, need.columns, fresh=self.fresh)

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return f"table {self.table.name}"

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        return self.table.read(need.where, need.columns, fresh=self.fresh)


@dataclass(frozen=True)
class _ResultRows:
    """The rows of a query in this process."""

    rows: QueryResult

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""
        return fields_of(self.rows.schema)

    @property
    def applies_conditions(self) -> bool:
        """See `QuerySource.applies_conditions`."""
        return False

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        found = self.rows.to_reader()
        if need.columns is None:
            return found
        wanted = list(need.columns)
        schema = pa.schema([found.schema.field(name) for name in wanted])
        return pa.RecordBatchReader.from_batches(schema, (batch.select(wanted) for batch in found))

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return "rows of a query"

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        from lakelsm.frames.system_frames import shown_frame

        return shown_frame(spark, self.rows.to_arrow())
