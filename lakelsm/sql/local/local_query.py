"""Queries in this process, on DuckDB (extra ``lakelsm[sql]``).

DuckDB reads tables as Arrow streams with the columns and conditions that the query needs, and spills to a directory of
its own if its memory does not suffice. It can read a stream again, so each scan opens a new one of the same snapshot.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelsm.expressions.duckdb_library import check_interrupted, database_settings, imported_duckdb, raised
from lakelsm.expressions.local_dialect import QueryTree
from lakelsm.runner.process_limits import usable_cores
from lakelsm.sql.local.query_binder import bind_query
from lakelsm.sql.local.query_result import QueryResult
from lakelsm.sql.local.relation_binder import BoundQuery
from lakelsm.sql.pushdown import Need, needs
from lakelsm.sql.query_source import QuerySource, hidden_columns, numbered_schema, numbered_stream, stream_type
from lakelsm.sql.syntax.query_text import QueryText

_BATCH_ROWS = 1 << 16


def local_query(query: QueryText, sources: Mapping[int, QuerySource]) -> QueryResult:
    """Bind a query to its sources, by the starts of their references. It runs when its rows are taken.

    Raises InvalidInputError for names and types that are wrong, UnsupportedFeatureError for what this process does not
    evaluate.
    """
    local = _LocalQuery.of(query, sources)
    return QueryResult(local.run, local.schema)


def local_plan(query: QueryText, sources: Mapping[int, QuerySource]) -> tuple[Mapping[int, Need], str]:
    """Return what the query needs of each source, and DuckDB's plan. Raises as `local_query`."""
    local = _LocalQuery.of(query, sources)
    return local.wanted, local.plan()


@dataclass(frozen=True)
class _LocalQuery:
    """A bound query; ``names`` are those of its sources in DuckDB, ``wanted`` what it needs of them."""

    bound: BoundQuery
    sources: Mapping[int, QuerySource]
    names: Mapping[int, str]
    wanted: Mapping[int, Need]

    @staticmethod
    def of(query: QueryText, sources: Mapping[int, QuerySource]) -> _LocalQuery:
        """Bind a query."""
        fields = {start: source.fields for start, source in sources.items()}
        applied = [start for start, source in sources.items() if source.applies_conditions]
        names, wanted = query.new_names(sources), needs(query, fields, None, applied)
        ranges = itertools.chain.from_iterable(wanted[start].ranges for start in applied)
        shown = {names[each.start]: each.name[-1] for each in query.references if each.start in names}
        tree = QueryTree(query.replaced(names, ranges, hidden_columns(sources)), tables=shown)
        bound = bind_query(tree, {names[start]: columns for start, columns in fields.items()})
        return _LocalQuery(bound, sources, names, wanted)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return pa.schema([(column.name, stream_type(column.type)) for column in self.bound.columns])

    def plan(self) -> str:
        """Return DuckDB's plan of the query."""
        with _Run(self) as run, run.raised():
            return str(run.relation(f"EXPLAIN {self.bound.sql}").fetchall()[0][1])

    def run(self, limit: int | None = None) -> pa.RecordBatchReader:
        """Return the rows, at most ``limit`` of them, as a stream."""
        run, schema = _Run(self), self.schema
        text = self.bound.sql if limit is None else f"SELECT * FROM ({self.bound.sql}) LIMIT {limit}"
        try:
            with run.raised():
                reader = run.relation(text).to_arrow_reader(_BATCH_ROWS)
        except BaseException:
            run.close()
            raise

        def batches() -> Iterator[pa.RecordBatch]:
            with run, run.raised():
                for batch in reader:
                    columns = [_as_type(each, kind) for each, kind in zip(batch.columns, schema.types)]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())


class _Stream:
    """A table for one run of DuckDB, which opens a new stream for each scan. ``error`` is what a stream raised."""

    def __init__(self, source: QuerySource, need: Need) -> None:
        self._source = source
        self._need = need
        self.error: Exception | None = None

    def __arrow_c_schema__(self) -> object:
        return numbered_schema(self._source, self._need).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        schema = numbered_schema(self._source, self._need)
        return pa.RecordBatchReader.from_batches(schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from numbered_stream(self._source, self._need)
        except Exception as error:
            self.error = error
            raise


class _Run:
    """One run of a query: a connection to DuckDB, the streams of its tables, and a directory that it spills to.

    A stream of which no batch is read deletes the directory too.
    """

    def __init__(self, query: _LocalQuery) -> None:
        self._duckdb = imported_duckdb("SQL in this process", "pass engine='spark'")
        scratch = tempfile.mkdtemp(prefix="lakelsm-sql-")
        self._delete = weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        self._streams = [_Stream(source, query.wanted[start]) for start, source in query.sources.items()]
        settings = {**database_settings(usable_cores()), "temp_directory": scratch, "preserve_insertion_order": "false"}
        self._connection = self._duckdb.connect(":memory:", config=settings)
        self._connection.execute("SET TimeZone = 'UTC'")
        # DuckDB prints the bar of a long query on standard output, among the rows of `lakelsm sql`.
        self._connection.execute("SET enable_progress_bar = false")
        for start, stream in zip(query.sources, self._streams):
            self._connection.register(query.names[start], stream)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, and delete the directory."""
        self._connection.close()
        self._delete()

    def relation(self, text: str) -> Any:
        """Return DuckDB's relation of a statement. To be used within `raised`, as are its rows."""
        return self._connection.sql(text)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise the error of a table's read, or one for a wrong value of the query, in place of those of DuckDB."""
        try:
            yield
        except (self._duckdb.Error, OSError, pa.ArrowException, RuntimeError) as error:
            check_interrupted(error)
            raise self._reason(error) from error

    def _reason(self, error: Exception) -> Exception:
        found = next((stream.error for stream in self._streams if stream.error is not None), None)
        return raised(error, "SQL") if found is None else found


def _as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    return values if values.type == kind else values.cast(kind)
