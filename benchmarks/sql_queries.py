"""The queries of the SQL lanes as data: the text for `Catalog.sql`, and what a read by hand gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SqlQuery:
    """A query on the tables ``tables``, which the text names {0}, {1}, …

    ``where`` and ``columns`` are those of a read by hand of each table, which the same text then queries. The rows of a
    query with ``any_rows`` are not defined, only their number is.
    """

    text: str
    columns: Sequence[str] | None
    where: str | None = None
    tables: Sequence[str] = ("state",)
    any_rows: bool = False


_AGGREGATION = "SELECT status, count(*) AS n, sum(quantity) AS q, max(price) AS p FROM {0}"
_SELF_JOIN = "SELECT count(*) AS n, sum(a.quantity + b.quantity) AS q FROM {0} a JOIN {1} b ON a.id = b.id + 1"

PARTITIONED = "by-status"
"""A table with a tenth of the rows, partitioned by status."""

SQL_HERE: Mapping[str, SqlQuery] = {
    "sql-aggregate": SqlQuery(f"{_AGGREGATION} GROUP BY status", ["quantity", "price", "status"]),
    "sql-where": SqlQuery(
        f"{_AGGREGATION} WHERE quantity < 100 GROUP BY status", ["quantity", "price", "status"], "quantity < 100"
    ),
    "sql-count": SqlQuery("SELECT count(*) AS n FROM {0}", ["id"]),
    "sql-min-max": SqlQuery("SELECT min(id) AS a, max(id) AS b, max(event_time) AS c FROM {0}", ["id", "event_time"]),
    "sql-point": SqlQuery("SELECT * FROM {0} WHERE id = 4242", None, "id = 4242"),
    "sql-limit": SqlQuery("SELECT * FROM {0} LIMIT 5", None, any_rows=True),
    "sql-top": SqlQuery("SELECT id, price FROM {0} ORDER BY price DESC, id LIMIT 10", ["id", "price"]),
    "sql-self-join": SqlQuery(_SELF_JOIN, ["id", "quantity"], tables=("state", "state")),
}
"""Queries in this process. A self join reads its table twice."""

SQL_ON_SPARK: Mapping[str, SqlQuery] = {
    "sql-spark-aggregate": SqlQuery(f"{_AGGREGATION} GROUP BY status", ["quantity", "price", "status"]),
    "sql-spark-range": SqlQuery(
        f"{_AGGREGATION} WHERE id BETWEEN 1000 AND 90000 GROUP BY status",
        ["id", "quantity", "price", "status"],
        "id BETWEEN 1000 AND 90000",
    ),
    "sql-spark-point": SqlQuery("SELECT * FROM {0} WHERE id = 4242", None, "id = 4242"),
    "sql-spark-partition": SqlQuery(
        "SELECT count(*) AS n, sum(quantity) AS q FROM {0} WHERE status = 'paid'",
        ["quantity", "status"],
        "status = 'paid'",
        (PARTITIONED,),
    ),
    "sql-spark-join": SqlQuery(
        "SELECT count(*) AS n, sum(a.quantity + b.quantity) AS q FROM {0} a JOIN {1} b ON a.id = b.id",
        ["id", "quantity"],
        tables=("state", "small"),
    ),
    "sql-spark-count": SqlQuery("SELECT count(*) AS n FROM {0}", ["id"]),
    "sql-spark-limit": SqlQuery("SELECT * FROM {0} LIMIT 5", None, any_rows=True),
}
"""Queries on Spark."""
