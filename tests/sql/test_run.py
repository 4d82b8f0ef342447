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
def test_queries_give_the_same_rows_in_this_process_as_on_spark(tmp_path: Path, quick_engine: TableEngine) -> None:
    here = catalog(str(tmp_path))
    there = Catalog(str(tmp_path), quick_engine.spark)
    different = {
        name: (found, expected)
        for name, text in QUERIES.items()
        if (found := rows(here.sql(text, engine="local"))) != (expected := rows(there.sql(text)))
    }
    assert different == {}


def run(catalog: Catalog, engine: TableEngine, text: str, **frames: Any) -> Any:
    return catalog.sql(text, engine=engine.name, **frames)


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
