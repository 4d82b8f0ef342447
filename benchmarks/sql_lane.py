"""Queries by `Catalog.sql` in this process: ``python -m benchmarks.sql_lane CONFIG.json OUT.json``.

Each is measured beside the same query by hand: `Table.to_reader` with the columns and the condition of the query, and
DuckDB on these streams. A count is also measured beside `Table.count`, which has the number from metadata.
"""

from __future__ import annotations

import sys
from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.config import BenchConfig
from benchmarks.engine import open_catalog, open_table
from benchmarks.lane import run_lane
from benchmarks.names import LOCAL, READER_BY_HAND, SQL_LOCAL
from benchmarks.sql_queries import SQL_HERE, SqlQuery
from benchmarks.timing import Contender, Measurement, measure

Rows = list[tuple[Any, ...]]


def answer_check(query: SqlQuery, rows: Any = lambda found: found) -> Any:
    """Return a check that the answers of all contenders are equal; it is shared by the contenders of one query."""
    answers: list[Any] = []

    def check(found: Any) -> None:
        given = rows(found)
        answers.append(len(given) if query.any_rows else sorted(given, key=str))
        assert answers[-1] == answers[0], f"wrong answer: {answers[-1]}, expected {answers[0]}"

    return check


def contenders(config: BenchConfig, operation: str) -> list[Contender]:
    """Return those of one operation of SQL_HERE."""
    query = SQL_HERE[operation]
    catalog = open_catalog(config.warehouse)
    text = query.text.format(*(f"bench.`{name}`" for name in query.tables))

    def by_sql() -> Rows:
        found: pa.Table = catalog.sql(text, engine="local").to_arrow()
        return list(zip(*(column.to_pylist() for column in found.columns)))

    def by_hand() -> Rows:
        connection = duckdb.connect(":memory:")
        for at, name in enumerate(query.tables):
            connection.register(f"rows{at}", open_table(config.table(name)).to_reader(query.where, query.columns))
        rows = connection.sql(query.text.format(*(f"rows{at}" for at in range(len(query.tables))))).to_arrow_table()
        connection.close()
        return list(zip(*(column.to_pylist() for column in rows.columns)))

    check = answer_check(query)
    found = [Contender(READER_BY_HAND, by_hand, check=check), Contender(SQL_LOCAL, by_sql, check=check)]
    if operation == "sql-count":
        found.append(
            Contender(LOCAL, lambda: [(int(open_table(config.table("state")).count(engine="local")),)], check=check)
        )
    return found


def run(config: BenchConfig) -> list[Measurement]:
    """Measure operations of SQL_HERE."""
    results: list[Measurement] = []
    for operation in config.operations:
        results += measure(operation, contenders(config, operation), config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(run, sys.argv[1:]))
