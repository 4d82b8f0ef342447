"""Each kind of statement on both engines; queries give the same rows in this process as on Spark."""

from __future__ import annotations

import math
import warnings
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.errors import (
    InvalidInputError,
    LakelsmError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tests.engines import ON_SPARK, TableEngine
from tests.sql.queries import QUERIES, catalog


def rows(found: Any) -> list[tuple[object, ...]]:
    """Return the rows of a result of either engine; NaN is text, and -0.0 is 0.0."""
    table: pa.Table = found.toArrow() if hasattr(found, "toArrow") else found.to_arrow()
    return list(zip(*([_plain(value) for value in column.to_pylist()] for column in table.columns)))


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


@ON_SPARK
def test_queries_give_the_same_rows_in_this_process_as_on_spark(tmp_path: Path, engine: TableEngine) -> None:
    here = catalog(str(tmp_path))
    there = Catalog(str(tmp_path), engine.spark)
    different = {
        name: (found, expected)
        for name, text in QUERIES.items()
        if (found := rows(here.sql(text, engine="local"))) != (expected := rows(there.sql(text)))
    }
    assert different == {}


def run(catalog: Catalog, engine: TableEngine, text: str, **frames: Any) -> Any:
    return catalog.sql(text, engine=engine.name, **frames)


def test_tables_are_created_changed_and_dropped(tmp_path: Path, engine: TableEngine) -> None:
    c = Catalog(str(tmp_path), engine.spark)
    run(c, engine, "CREATE DATABASE IF NOT EXISTS nyc")
    run(
        c,
        engine,
        "CREATE TABLE nyc.f (id INT, v STRING COMMENT 'it''s', dt STRING, n BIGINT) PARTITIONED BY (dt) "
        "TBLPROPERTIES ('primary-key' = 'dt,id', 'bucket' = '1')",
    )
    result = run(c, engine, "INSERT INTO nyc.f VALUES (1, 'a', 'x', 1), (2, NULL, 'y', 2L), (3, 'c', 'y', NULL)")
    assert (result.snapshot_id, result.rows) == (1, 3)
    run(c, engine, "INSERT INTO nyc.f (n, id, dt) SELECT n + 10, id + 10, dt FROM nyc.f WHERE id = 1")
    run(c, engine, "INSERT INTO nyc.f PARTITION (dt = 'z') SELECT 5, 'e', 5")
    run(c, engine, "INSERT INTO nyc.f BY NAME SELECT 'w' AS dt, 9 AS id, 1 AS n, 'n' AS v")
    assert run(c, engine, "UPDATE nyc.f SET n = n * 2, v = 'u' WHERE f.id = 2").matched_rows == 1
    assert run(c, engine, "DELETE FROM nyc.f x WHERE x.id = 3").matched_rows == 1
    everything = "SELECT id, v, dt, n FROM nyc.f ORDER BY id"
    assert rows(run(c, engine, everything)) == [
        (1, "a", "x", 1), (2, "u", "y", 4), (5, "e", "z", 5), (9, "n", "w", 1), (11, None, "x", 11)
    ]  # fmt: skip
    run(c, engine, "INSERT OVERWRITE nyc.f PARTITION (dt = 'x') SELECT 7, 'o', 7")
    run(c, engine, "ALTER TABLE nyc.f DROP PARTITION (dt = 'z')")
    run(c, engine, "TRUNCATE TABLE nyc.f PARTITION (dt = 'w')")
    assert rows(run(c, engine, everything)) == [(2, "u", "y", 4), (7, "o", "x", 7)]
    run(c, engine, "ALTER TABLE nyc.f ADD COLUMN z INT")
    run(c, engine, "ALTER TABLE nyc.f SET TBLPROPERTIES ('write-only' = 'true', 'comment' = 'c')")
    assert list(c.table("nyc.f").schema.field_names) == ["id", "v", "dt", "n", "z"]
    run(c, engine, "CREATE TABLE nyc.g TBLPROPERTIES ('primary-key' = 'id') AS SELECT id, n FROM nyc.f")
    run(c, engine, "CREATE TABLE nyc.h LIKE nyc.f")
    assert rows(run(c, engine, "SELECT count(*), (SELECT count(*) FROM nyc.h) FROM nyc.g")) == [(2, 0)]
    run(c, engine, "ALTER TABLE nyc.g RENAME TO g2")
    run(c, engine, "TRUNCATE TABLE nyc.g2")
    assert rows(run(c, engine, "SELECT count(*) FROM nyc.g2")) == [(0,)]
    run(c, engine, "DROP TABLE nyc.g2")
    run(c, engine, "DROP TABLE IF EXISTS nyc.g2")
    assert rows(run(c, engine, "SHOW TABLES IN nyc")) == [("nyc", "f"), ("nyc", "h")]
    run(c, engine, "DROP DATABASE nyc CASCADE")
    assert c.list_databases() == []


def test_tags_and_procedures(tmp_path: Path, engine: TableEngine) -> None:
    c = catalog(str(tmp_path))
    run(c, engine, "ALTER TABLE db.flights CREATE TAG `t-1` AS OF VERSION 1 RETAIN 7 DAYS")
    run(c, engine, "ALTER TABLE db.flights CREATE TAG IF NOT EXISTS `t-1`")
    run(c, engine, "ALTER TABLE db.flights RENAME TAG `t-1` TO t2")
    assert rows(run(c, engine, "SHOW TAGS db.flights")) == [("t2",)]
    assert rows(run(c, engine, "SELECT count(*), max(carrier) FROM db.flights VERSION AS OF 't2'")) == [(3, "XX")]
    assert run(c, engine, "CALL sys.compact(table => 'db.flights')").changed
    assert run(c, engine, "CALL sys.expire_snapshots('db.flights', 1, 1)").snapshots
    run(c, engine, "ALTER TABLE db.flights DELETE TAG t2")
    run(c, engine, "ALTER TABLE db.flights DELETE TAG IF EXISTS t2")
    assert rows(run(c, engine, "SHOW TAGS db.flights")) == []


def test_a_query_has_the_columns_that_alter_table_made(tmp_path: Path, engine: TableEngine) -> None:
    c = catalog(str(tmp_path))
    run(c, engine, "ALTER TABLE db.carriers ADD COLUMN stars INT")
    run(c, engine, "ALTER TABLE db.carriers RENAME COLUMN name TO title")
    found = run(c, engine, "SELECT code, title, stars FROM db.carriers WHERE title LIKE 'A%'")
    assert rows(found) == [("AA", "American", None)]
    assert rows(run(c, engine, "SELECT name FROM db.carriers VERSION AS OF 1 WHERE code = 'AA'")) == [("American",)]


def test_literals_of_partition_are_cast_to_the_type_of_the_column(tmp_path: Path, engine: TableEngine) -> None:
    c = catalog(str(tmp_path))
    run(
        c,
        engine,
        "CREATE TABLE db.p (id INT, v STRING, i INT, d DATE, b BOOLEAN, s STRING) PARTITIONED BY (i, d, b, s) "
        "TBLPROPERTIES ('primary-key' = 'id,i,d,b,s')",
    )
    run(c, engine, "INSERT INTO db.p PARTITION (i = '1', d = '2024-01-01', b = 'TRUE', s = 7) VALUES (1, 'a'), (2, 'b')")
    run(c, engine, "INSERT OVERWRITE db.p PARTITION (i = 1, d = DATE '2024-01-01', b = true, s = '7') (id) VALUES (3)")
    everything = "SELECT id, v, i, d, b, s FROM db.p"
    assert rows(run(c, engine, everything)) == [(3, None, 1, date(2024, 1, 1), True, "7")]
    with pytest.raises(InvalidInputError, match="PARTITION \\(i\\): 'x' is not INT"):
        run(c, engine, "ALTER TABLE db.p DROP PARTITION (i = 'x')")
    with pytest.raises(InvalidInputError, match="names a column twice"):
        run(c, engine, "INSERT INTO db.p PARTITION (i = 1, I = 2) VALUES (1)")
    run(c, engine, "ALTER TABLE db.p DROP PARTITION (b = 'true', s = 7)")
    assert rows(run(c, engine, everything)) == []


def test_frames_are_tables_by_name(tmp_path: Path, engine: TableEngine) -> None:
    c = catalog(str(tmp_path))
    codes = pa.table({"code": ["AA", "DL"], "rank": [1, 2]})
    text = "SELECT id, rank FROM db.flights JOIN codes ON carrier = code ORDER BY id"
    expected = [(1, 1), (3, 1), (5, 2)]
    for frame in (codes, codes.to_pandas()):
        assert rows(run(c, engine, text, codes=frame)) == expected
    times = pa.table({"t": pa.array([datetime(2024, 1, 1)], pa.timestamp("ns")), "n": pa.nulls(1)})
    assert rows(run(c, engine, "SELECT t, n FROM times", times=times)) == [(datetime(2024, 1, 1), None)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(c, engine, "INSERT INTO db.carriers SELECT code, 'new' FROM codes", codes=codes)
    assert rows(run(c, engine, "SELECT name FROM db.carriers WHERE code = 'DL'")) == [("new",)]


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("SELECT * FROM db.none", TableNotFoundError, "Table db.none does not exist"),
        ("SELECT nope FROM db.flights", InvalidInputError, "column 'nope' does not exist"),
        ("SELECT soundex(carrier) FROM db.flights", UnsupportedFeatureError, "engine='spark'"),
        ("SELECT 1 / (id - 1) FROM db.flights", InvalidInputError, "division by zero"),
        ("EXPLAIN FORMATTED SELECT 1", UnsupportedFeatureError, "EXPLAIN FORMATTED is supported on Spark only"),
        ("CREATE TABLE db.x (a INT)", UnsupportedFeatureError, "no primary key"),
        ("INSERT INTO db.carriers SELECT 'x'", InvalidInputError, "1 column, and INSERT needs 2: code, name"),
        ("INSERT INTO db.carriers (code, nope) SELECT 1, 2", InvalidInputError, "column 'nope' does not exist"),
        ("INSERT INTO db.carriers PARTITION (code = 'x') SELECT 'y'", InvalidInputError, "not a partition column"),
        ("ALTER TABLE db.flights DROP PARTITION (id = 1)", InvalidInputError, "not a partition column"),
        ("SHOW PARTITIONS db.flights", InvalidInputError, "has no partitions"),
        ("SELECT * FROM a.b.c", InvalidInputError, "write the name as database.table"),
        ("SELECT * FROM db.flights /*+ OPTIONS('scan.mode' = 'latest') */", UnsupportedFeatureError, "'scan.mode'"),
        ("SELECT * FROM db.`flights$nothing`", LakelsmError, "nothing"),
        ("SELECT * FROM db.`flights$`", InvalidInputError, "system table"),
        ("SELECT id FROM db.flights TIMESTAMP AS OF 99999999999999999", InvalidInputError, "after the year 9999"),
        ("SELECT id FROM db.flights /*+ OPTIONS('scan.snapshot-id' = 'x') */", InvalidInputError, "not a snapshot id"),
        ("SELECT * FROM paimon_incremental_query('db.flights', 'x', 'y')", SnapshotNotFoundError, "tag"),
        ("WITH x AS (SELECT 1), X AS (SELECT 2) SELECT * FROM x", InvalidInputError, "'X' twice"),
        ("SELECT 1e999", InvalidInputError, "does not fit DOUBLE"),
        ("SELECT id + FROM db.flights", InvalidInputError, "cannot be parsed at"),
        ("SELECT a FROM (SELECT 1 AS a, 2 AS a)", InvalidInputError, "ambiguous: a, a"),
        ("SELECT id FROM db.flights WHERE id IN (SELECT 1, 2)", InvalidInputError, "2 columns instead of 1"),
    ],
)
def test_what_cannot_be_run_is_one_typed_error(
    tmp_path: Path, text: str, error: type[LakelsmError], problem: str
) -> None:
    c = catalog(str(tmp_path))
    with pytest.raises(error, match=problem):
        found = c.sql(text, engine="local")
        found.to_arrow()
