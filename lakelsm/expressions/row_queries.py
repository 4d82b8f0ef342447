"""Queries of DuckDB on rows in Arrow that give one value for each row.

One database in memory serves all threads: it has no threads of its own, a limit of memory, and no access to files. Each
thread has a cursor for each of its last queries, in which the query is prepared. A cursor sees its own rows only.
"""

from __future__ import annotations

import ctypes
import os
from collections import OrderedDict
from threading import Lock, local
from typing import Any

import pyarrow as pa

from lakelsm.expressions.duckdb_library import check_interrupted, database_settings, imported_duckdb, raised

#: Prepared queries that a thread keeps.
_MAX_PREPARED = 16
_BATCH_ROWS = 1 << 20


class _Rows:
    """The rows that a prepared query scans, as a stream in Arrow."""

    def __init__(self) -> None:
        self.rows: pa.Table | None = None

    def __arrow_c_schema__(self) -> object:
        assert self.rows is not None
        return self.rows.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        assert self.rows is not None
        return self.rows.to_reader().__arrow_c_stream__(requested_schema)


class _PreparedQuery:
    """A query on rows of one schema, prepared in a cursor."""

    def __init__(self, cursor: Any, sql: str, rows: pa.Table) -> None:
        self._cursor, self._given = cursor, _Rows()
        self._given.rows = rows
        cursor.execute("SET TimeZone = 'UTC'")
        cursor.register("given", self._given)
        cursor.execute(f"PREPARE query AS SELECT {sql} AS value FROM given")

    def run(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return the value of each row."""
        self._given.rows = rows
        try:
            return self._cursor.sql("EXECUTE query").to_arrow_reader(_BATCH_ROWS).read_all().column(0)
        finally:
            self._given.rows = None

    def close(self) -> None:
        """Free the query."""
        self._cursor.close()


class _Prepared(local):
    """The last prepared queries of this thread, by their text and the schema of their rows."""

    def __init__(self) -> None:
        self.queries: OrderedDict[tuple[str, str], _PreparedQuery] = OrderedDict()


class _Database:
    """The database of this process, which the first query opens."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._database: Any = None
        self.prepared = _Prepared()

    def cursor(self, duckdb: Any) -> Any:
        """Return a new cursor."""
        with self._lock:
            if self._database is None:
                self._database = duckdb.connect(":memory:", config=_settings())
            return self._database.cursor()


def _settings() -> dict[str, str]:
    return {
        **database_settings(threads=1),
        "enable_external_access": "false",
        # It would evaluate the left side of IN for all rows, also for those that a branch of CASE leaves out.
        "disabled_optimizers": "in_clause",
    }


_database = _Database()


def _forget() -> None:
    """Open another database in a process that `os.fork` made: threads of the old one do not exist there.

    The old one is never freed, not even when the process ends: freeing it needs these threads.
    """
    global _database
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_database))
    _database = _Database()


os.register_at_fork(after_in_child=_forget)


def values_of(sql: str, rows: pa.Table, what: str) -> pa.ChunkedArray:
    """Return the value of an expression in DuckDB's SQL for each row, in the order of the rows.

    ``what`` begins the message of an error: a wrong value is an InvalidInputError.
    """
    duckdb = imported_duckdb(what, "use Spark: Table.read or engine='spark'")
    prepared, key = _database.prepared.queries, (sql, str(rows.schema))
    query = prepared.get(key)
    try:
        if query is None:
            query = prepared[key] = _PreparedQuery(_database.cursor(duckdb), sql, rows)
            if len(prepared) > _MAX_PREPARED:
                prepared.popitem(last=False)[1].close()
        prepared.move_to_end(key)
        found = query.run(rows)
    except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
        failed = prepared.pop(key, None)
        if failed is not None:
            failed.close()
        check_interrupted(error)
        raise raised(error, what) from error
    assert len(found) == len(rows), "DuckDB lost rows of a projection"
    return found


__all__ = ["values_of"]
