"""Queries in this process, on DuckDB (extra ``lakelsm[sql]``).

DuckDB reads tables as Arrow streams with the columns and conditions that the query needs, and spills to a directory of
its own if its memory does not suffice. It can read a stream again, so each scan opens a new one of the same snapshot.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pyarrow as pa

from lakelsm.errors import LakelsmError
from lakelsm.expressions.duckdb_library import database_settings, imported_duckdb, raised
from lakelsm.expressions.local_dialect import QueryTree
from lakelsm.runner.process_limits import usable_cores
from lakelsm.sql.local.query_binder import bind_query
from lakelsm.sql.local.query_result import QueryResult
from lakelsm.sql.local.relation_binder import BoundQuery
from lakelsm.sql.pushdown import needs
from lakelsm.sql.query_source import QuerySource, numbered_stream, stream_type
from lakelsm.sql.syntax.query_text import QueryText

_BATCH_ROWS = 1 << 16


def local_query(query: QueryText, sources: Mapping[int, QuerySource]) -> QueryResult:
    """Bind a query to its sources, by the starts of their references. It runs when its rows are taken.

    Raises InvalidInputError for names and types that are wrong, UnsupportedFeatureError for what this process does not
    evaluate.
    """
    return QueryResult(partial(_run, *_bound(query, sources)))


def local_plan(query: QueryText, sources: Mapping[int, QuerySource]) -> str:
    """Return DuckDB's plan of a query. Raises as `local_query`."""
    bound, streams = _bound(query, sources)
    duckdb = imported_duckdb("SQL in this process", "pass engine='spark'")
    connection = duckdb.connect(":memory:")
    try:
        for name, stream in streams.items():
            connection.register(name, stream)
        return str(connection.execute(f"EXPLAIN {bound.sql}").fetchall()[0][1])
    except duckdb.Error as error:
        raise _raised(streams, error) from error
    finally:
        connection.close()


def _bound(query: QueryText, sources: Mapping[int, QuerySource]) -> tuple[BoundQuery, Mapping[str, _Stream]]:
    fields = {start: source.fields for start, source in sources.items()}
    wanted = needs(query, fields, None)
    names = {start: f"table{at}" for at, start in enumerate(sorted(sources))}
    tree = QueryTree(query.replaced(names))
    bound = bind_query(tree, {names[start]: columns for start, columns in fields.items()})
    streams = {
        names[start]: _Stream(partial(numbered_stream, source, wanted[start])) for start, source in sources.items()
    }
    return bound, streams


class _Stream:
    """A table for DuckDB, which opens a new stream for each scan. ``error`` is what a stream raised."""

    def __init__(self, open_reader: Callable[[], pa.RecordBatchReader]) -> None:
        self._open = open_reader
        self.error: Exception | None = None
        self._schema: pa.Schema | None = None

    def __arrow_c_schema__(self) -> object:
        if self._schema is None:
            self._schema = self._opened().schema
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = self._opened()
        batches = pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        return batches.__arrow_c_stream__(requested_schema)

    def _opened(self) -> pa.RecordBatchReader:
        try:
            return self._open()
        except Exception as error:
            self.error = error
            raise

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except Exception as error:
            self.error = error
            raise


class _Scratch:
    """The directory of a query that DuckDB spills to. A stream of which no batch is read deletes it too."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="lakelsm-sql-")
        self.delete = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _run(bound: BoundQuery, streams: Mapping[str, _Stream], limit: int | None = None) -> pa.RecordBatchReader:
    duckdb = imported_duckdb("SQL in this process", "pass engine='spark'")
    scratch = _Scratch()
    try:
        connection = duckdb.connect(":memory:", config=_settings(scratch.path))
        connection.execute("SET TimeZone = 'UTC'")
        # DuckDB prints the bar of a long query on standard output, among the rows of `lakelsm sql`.
        connection.execute("SET enable_progress_bar = false")
        text = bound.sql if limit is None else f"SELECT * FROM ({bound.sql}) LIMIT {limit}"
        with_errors = partial(_raised, streams)
        try:
            for name, stream in streams.items():
                connection.register(name, stream)
            reader = connection.sql(text).to_arrow_reader(_BATCH_ROWS)
        except duckdb.Error as error:
            raise with_errors(error) from error
    except BaseException:
        scratch.delete()
        raise
    kinds = [stream_type(column.type) for column in bound.columns]
    schema = pa.schema([pa.field(column.name, kind) for column, kind in zip(bound.columns, kinds)])

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader:
                columns = [_as_type(each, kind) for each, kind in zip(batch.columns, kinds)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            raise with_errors(error) from error
        finally:
            connection.close()
            scratch.delete()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    return values if values.type == kind else values.cast(kind)


def _settings(scratch: str) -> dict[str, str]:
    return {**database_settings(usable_cores()), "temp_directory": scratch, "preserve_insertion_order": "false"}


def _raised(streams: Mapping[str, _Stream], error: Exception) -> BaseException:
    """Return the error to raise: that of a table's read, or one for a wrong value of the query."""
    for stream in streams.values():
        if stream.error is not None:
            return stream.error
    return error if isinstance(error, LakelsmError) else raised(error, "SQL")
