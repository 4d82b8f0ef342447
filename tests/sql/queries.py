"""Two small tables, and queries on them by a name; each gives the same rows in this process and on Spark."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from lakelsm import Catalog, Table

FLIGHTS = "id INT, carrier STRING, day DATE, seats BIGINT, price DECIMAL(10, 2), delay DOUBLE, at TIMESTAMP(6)"
ROWS = [
    (1, "AA", date(2024, 1, 1), 100, Decimal("10.50"), 1.5, datetime(2024, 1, 1, 10, 30)),
    (2, "UA", date(2024, 1, 2), 200, Decimal("20.25"), None, datetime(2024, 1, 2, 23, 59, 59, 999999)),
    (3, "AA", date(2024, 2, 29), None, None, -0.0, None),
    (4, None, None, 50, Decimal("-3.00"), float("nan"), datetime(1969, 12, 31)),
    (5, "DL", date(2023, 12, 31), 100, Decimal("0.01"), 7.25, datetime(2024, 3, 10, 2, 30)),
]
CARRIERS = [("AA", "American"), ("UA", "United"), ("ZZ", None)]

#: Queries with an order, or with one row. Tables are db.flights and db.carriers.
QUERIES = {
    "star": "SELECT * FROM db.flights ORDER BY id",
    "where": "SELECT id, carrier FROM db.flights WHERE seats >= 100 AND carrier <> 'DL' ORDER BY id DESC",
    "limit and offset": "SELECT id FROM db.flights ORDER BY delay DESC, id LIMIT 2 OFFSET 1",
    "nulls": "SELECT id FROM db.flights ORDER BY carrier DESC NULLS FIRST, seats ASC NULLS LAST, id",
    "groups": "SELECT carrier, count(*) n, sum(seats) s, avg(seats) a, min(day), max(price) FROM db.flights "
    "GROUP BY carrier ORDER BY carrier",
    "group by expression": "SELECT year(day) * 100 + month(day) AS ym, count(id) FROM db.flights GROUP BY 1 ORDER BY ym",
    "having": "SELECT carrier FROM db.flights GROUP BY carrier HAVING sum(seats) > 100 OR count(*) > 1 ORDER BY 1",
    "group of alias": "SELECT upper(carrier) u, count(*) c FROM db.flights GROUP BY u HAVING c > 1",
    "no groups": "SELECT count(*), sum(price), max(delay), count(DISTINCT carrier) FROM db.flights WHERE id < 0",
    "filter": "SELECT sum(seats) FILTER (WHERE carrier = 'AA'), count_if(price > 0) FROM db.flights",
    "distinct": "SELECT DISTINCT carrier FROM db.flights ORDER BY carrier",
    "inner join": "SELECT f.id, c.name FROM db.flights f JOIN db.carriers c ON f.carrier = c.code ORDER BY f.id",
    "using": "SELECT code, id, name FROM db.carriers JOIN (SELECT carrier AS code, id FROM db.flights) USING (code) "
    "ORDER BY id",
    "left join": "SELECT f.id, c.name FROM db.flights f LEFT JOIN db.carriers c ON f.carrier = c.code ORDER BY f.id",
    "using, with both columns": "SELECT code, a.code AS x, b.code AS y, n FROM db.carriers a "
    "FULL JOIN (SELECT 'UA' AS code, 1 AS n UNION ALL SELECT 'KK', 2) b USING (code) ORDER BY code",
    "full join": "SELECT id, code FROM db.flights FULL JOIN db.carriers ON carrier = code ORDER BY id, code",
    "semi and anti": "SELECT id FROM db.flights LEFT SEMI JOIN db.carriers ON carrier = code "
    "UNION ALL SELECT -id FROM db.flights LEFT ANTI JOIN db.carriers ON carrier = code ORDER BY id",
    "cross join": "SELECT count(*) FROM db.flights, db.carriers",
    "in": "SELECT id FROM db.flights WHERE carrier IN (SELECT code FROM db.carriers WHERE name IS NOT NULL) ORDER BY id",
    "in, other type": "SELECT id FROM db.flights WHERE seats IN (SELECT id * 100 FROM db.flights) ORDER BY id",
    "renamed columns": "SELECT carrier FROM db.flights AS f(carrier, id, a, b, c, d, e) "
    "WHERE carrier = 1 AND f.id = 'AA'",
    "pipes": "FROM db.flights |> SELECT id + 1 AS id |> WHERE id = 2",
    "order by a constant": "SELECT id, 'x' AS x FROM db.flights ORDER BY x, id LIMIT 2",
    "exists": "SELECT code FROM db.carriers c WHERE NOT EXISTS (SELECT 1 FROM db.flights f WHERE f.carrier = c.code)",
    "scalar query": "SELECT id FROM db.flights WHERE seats > (SELECT avg(seats) FROM db.flights) ORDER BY id",
    "common tables": "WITH a AS (SELECT carrier, seats FROM db.flights), b(c, n) AS (SELECT carrier, sum(seats) FROM a "
    "GROUP BY carrier) SELECT x.c, y.n FROM b x JOIN b y ON x.c = y.c ORDER BY 1",
    "set operations": "SELECT carrier FROM db.flights INTERSECT SELECT code FROM db.carriers ORDER BY 1",
    "except": "SELECT code FROM db.carriers EXCEPT SELECT carrier FROM db.flights",
    "values": "SELECT * FROM VALUES (1, 'x'), (2, NULL) AS v(i, j) ORDER BY i",
    "window": "SELECT id, row_number() OVER (PARTITION BY carrier ORDER BY id DESC) r, sum(seats) OVER (ORDER BY id ROWS "
    "BETWEEN 1 PRECEDING AND CURRENT ROW) s, lag(id, 1, 0) OVER (ORDER BY id) l, rank() OVER (ORDER BY seats) k "
    "FROM db.flights ORDER BY id",
    "window of checked expressions": "SELECT id, max(id) OVER (PARTITION BY upper(carrier) ORDER BY 1 / id) "
    "FROM db.flights ORDER BY id",
    "window of groups": "SELECT carrier, sum(sum(seats)) OVER () FROM db.flights GROUP BY carrier ORDER BY carrier",
    "case": "SELECT id, CASE carrier WHEN 'AA' THEN 1 WHEN 'UA' THEN 2 END, if(delay > 1, 'late', 'ok') FROM db.flights "
    "ORDER BY id",
    "lateral alias": "SELECT id + 1 AS n, n * 2 AS m FROM db.flights ORDER BY n",
    "texts": "SELECT 'it''s', \"say\", r'\\n', 'a\\tb', 'x' 'y' FROM db.flights WHERE id = 1",
    "numbers": "SELECT 1, 1L, 1.5, 1e3, 2BD, -7 DIV 2, 7 % 3, 10 / 4, price * 2 FROM db.flights WHERE id = 1",
    "dates": "SELECT date_add(day, 1), day - 1, last_day(day), dayofweek(day), datediff(day, DATE '2024-01-01'), "
    "day < TIMESTAMP_NTZ '2024-01-01 12:00:00', extract(month FROM at), CAST(at AS DATE) FROM db.flights ORDER BY id",
    "columns with a database": "SELECT db.flights.id, db.carriers.name FROM db.flights JOIN db.carriers "
    "ON db.flights.carrier = db.carriers.code WHERE db.flights.seats > 1 ORDER BY ALL",
    "rollup": "SELECT carrier, year(day) AS y, count(*), sum(seats), grouping(carrier), grouping_id() FROM db.flights "
    "GROUP BY ROLLUP (carrier, y) ORDER BY 1, 2, 3, 4, 5, 6",
    "cube": "SELECT carrier, count(*) FROM db.flights WHERE id > 2 GROUP BY CUBE (carrier, seats) HAVING count(*) > 1 "
    "ORDER BY ALL",
    "grouping sets": "SELECT coalesce(carrier, 'all') AS c, avg(price) FROM db.flights "
    "GROUP BY GROUPING SETS ((carrier), ()) ORDER BY 2 DESC, 1",
    "grouping sets of no rows": "SELECT carrier, count(*) FROM db.flights WHERE id < 0 GROUP BY carrier WITH ROLLUP",
    "group by all": "SELECT carrier, seats > 100 AS big, max(id) FROM db.flights GROUP BY ALL ORDER BY ALL DESC",
    "lateral view": "SELECT id, v.e FROM db.flights LATERAL VIEW OUTER explode(split(carrier, 'A')) v AS e "
    "WHERE id < 5 ORDER BY id, e",
    "lateral views": "SELECT id, p, k, x FROM db.flights LATERAL VIEW posexplode(array(carrier, 'z')) AS p, e "
    "LATERAL VIEW explode(map('k', seats)) m AS k, x WHERE p = 1 OR e = 'AA' ORDER BY id, p",
    "explode": "SELECT explode(array(id, seats)) AS e, id + 1 AS n FROM db.flights WHERE id <= 2 ORDER BY e, n",
    "collections": "SELECT array(id, 7), named_struct('a', carrier, 'b', price), map('k', id)['k'], size(array(1, 2)), "
    "element_at(array(carrier, 'x'), -1), struct(id, 'x') FROM db.flights ORDER BY id",
    "collected": "SELECT carrier, sort_array(collect_list(id)), size(collect_set(seats)) FROM db.flights "
    "GROUP BY carrier ORDER BY carrier",
    "decimals": "SELECT id, price / 3, price / seats, avg(price) OVER (ORDER BY id), price % 7, price DIV 2 "
    "FROM db.flights ORDER BY id",
    "time travel": "SELECT count(*) FROM db.flights VERSION AS OF 1",
    "system table": "SELECT snapshot_id, commit_kind FROM db.`flights$snapshots` ORDER BY 1",
    "changes": "SELECT id FROM paimon_incremental_query('db.flights', 1, 2) ORDER BY id",
}


def catalog(warehouse: str) -> Catalog:
    """Return a catalog with both tables; the flights have two snapshots, and rows of both are merged."""
    found = Catalog(warehouse)
    flights = found.create_table("db.flights", FLIGHTS, primary_key="id", options={"write-only": "true"})
    older = [(key, "XX", None, None, None, None, None) for key in (1, 2, 3)]
    write(flights, older)
    write(flights, ROWS)
    write(found.create_table("db.carriers", "code STRING, name STRING", primary_key="code"), CARRIERS)
    return found


def write(table: Table, rows: list[tuple[object, ...]]) -> None:
    """Write rows of all columns."""
    names = table.schema.field_names
    table.write([dict(zip(names, row)) for row in rows])
