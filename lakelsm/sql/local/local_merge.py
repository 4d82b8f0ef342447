"""The sources of a merge, and its query in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.tokens import TokenKind, has_query, tokenize
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.local.arrow_merge import merged
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.plan.merge_plan import SOURCE, TARGET, MergePlan, MergeRequest
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.schema.identifiers import match
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.sql.local.local_query import local_query
from lakelsm.sql.local.query_result import QueryResult
from lakelsm.sql.pushdown import Need
from lakelsm.sql.query_source import FrameSource, QuerySource, fields_of
from lakelsm.sql.syntax.query_text import QueryText
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

    def to_reader(self, where: str | None = None, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """Return the rows as a stream."""

    def read(self, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
        """Return the rows as a DataFrame."""


def checked_source(source: Any, schema: TableSchema) -> object:
    """The source; rows of this process as an Arrow table. Columns of NULL have the type of the table's column."""
    if isinstance(source, QueryResult) or is_spark_frame(source):
        return source
    try:
        if isinstance(source, list):
            source = pa.Table.from_pylist(source)
        elif isinstance(source, dict):
            source = pa.Table.from_pydict(source)
    except (pa.ArrowException, TypeError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"source: the rows are not a table: {' '.join(str(error).split())}.") from error
    rows = FrameSource("source", source).rows
    for at, field in enumerate(rows.schema):
        if pa.types.is_null(field.type):
            known = match(field.name, schema.field_names)
            kind = pa.string() if known is None else output_arrow(schema.field(known).type)
            rows = rows.set_column(at, pa.field(field.name, kind), pa.nulls(len(rows), kind))
    fields_of(rows.schema)  # Raises InvalidInputError for types that Paimon does not have.
    return rows


def check_expressions(request: MergeRequest) -> None:
    """Raise an error unless each condition and value of a merge is one expression, without queries."""
    for text in _texts(request):
        _check_expression(text)


def _texts(request: MergeRequest) -> list[str]:
    found = [request.on]
    for each in request.clauses:
        found += [text for text in (each.condition, *(each.values or {}).values()) if text is not None]
    return found


def _check_expression(text: str) -> None:
    """Raise an error unless a text is within its parentheses, without queries: it becomes a part of a query."""
    depth, tokens = 0, tokenize(text)
    if has_query(tokens):
        raise UnsupportedFeatureError(f"merge: a query within {text[:100]!r} is not supported.")
    for token in tokens:
        if token.kind is TokenKind.HINT:
            raise UnsupportedFeatureError(f"merge: a hint within {text[:100]!r} is not supported.")
        if token.text.strip("`").upper().startswith(KEY_FIELD_PREFIX):
            raise InvalidInputError(f"merge: column {token.text[:100]!r} does not exist.")
        depth += token.is_word("(") - token.is_word(")")
        if depth < 0 or token.is_word(";"):
            raise InvalidInputError(f"merge: {text[:100]!r} is not one expression.")
    if depth:
        raise InvalidInputError(f"merge: {text[:100]!r} is not one expression.")


def opened_source(source: Any) -> QuerySource:
    """Return the rows of a source, which are read again if the merge is computed again."""
    if isinstance(source, QueryResult):
        return _ResultRows(source)
    return FrameSource("source", source) if isinstance(source, pa.Table) else _TableRows(source)


def source_frame(spark: SparkSession, source: Any) -> DataFrame:
    """Return the rows of a source as a DataFrame."""
    if is_spark_frame(source):
        frame: DataFrame = source
        return frame
    return opened_source(source).frame(spark, Need(None, None))


@dataclass(frozen=True)
class _TableRows:
    """The rows of a table at one snapshot."""

    table: _Readable

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""
        return self.table.schema.fields

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        return self.table.to_reader(need.where, need.columns)

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return f"table {self.table.name}"

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """See `QuerySource.frame`."""
        return self.table.read(need.where, need.columns)


@dataclass(frozen=True)
class _ResultRows:
    """The rows of a query in this process."""

    rows: QueryResult

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""
        return fields_of(self.rows.schema)

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


@dataclass(frozen=True)
class _TargetRows:
    """The rows of the target at a snapshot (None: an empty table), with those that other reads may not show yet."""

    store: TableStore
    snapshot: Snapshot | None

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""
        return self.store.schema.fields

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        scan = ArrowScan.of(self.store, self.snapshot, need.columns, None, fresh=True)
        return scan.reader(LocalRunner())

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return f"table {self.store.name}"

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """Raise NotImplementedError: on Spark the scan of the target is a DataFrame already."""
        raise NotImplementedError


def local_rows(
    store: TableStore, plan: MergePlan, source: QuerySource, snapshot: Snapshot | None
) -> Iterator[pa.RecordBatch]:
    """Return the prepared rows of a merge with a snapshot of the table (None: an empty table)."""
    return merged(store, plan, _found(plan.text, _TargetRows(store, snapshot), source).to_reader())


def _found(text: str, target: QuerySource, source: QuerySource) -> QueryResult:
    query = QueryText.of(text)
    sources = {TARGET: target, SOURCE: source}
    return local_query(query, {each.start: sources[each.name[-1]] for each in query.references})
