"""SHOW and DESCRIBE."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog


@pytest.fixture
def c(tmp_path: Path) -> Catalog:
    found = Catalog(str(tmp_path))
    found.sql(
        "CREATE TABLE db.t (id INT COMMENT 'it''s', p STRING, v ARRAY<TIMESTAMP>, r STRUCT<a: BINARY>) "
        "PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'p,id', 'bucket' = '2') COMMENT 'c'",
        engine="local",
    )
    found.create_table("db.other", "k INT", primary_key="k")
    return found


def rows(c: Catalog, text: str) -> list[tuple[object, ...]]:
    return list(zip(*c.sql(text, engine="local").to_arrow().to_pydict().values()))


def test_names(c: Catalog) -> None:
    assert rows(c, "SHOW DATABASES") == [("db",)]
    assert rows(c, "SHOW DATABASES LIKE 'x*'") == []
    assert rows(c, "SHOW TABLES IN db LIKE 'O*|none'") == [("db", "other")]
    assert rows(c, "SHOW COLUMNS IN db.t") == [("id",), ("p",), ("v",), ("r",)]
    assert rows(c, "SHOW BRANCHES db.t") == []
    assert rows(c, "SHOW TBLPROPERTIES db.t") == [("bucket", "2"), ("primary-key", "p,id")]
    assert rows(c, "SHOW TBLPROPERTIES db.t ('bucket')") == [("bucket", "2")]


def test_types_of_show_create_table_are_those_of_the_table(c: Catalog) -> None:
    columns = (
        "k INT, a TIMESTAMP(3), b TIMESTAMP(9) WITH LOCAL TIME ZONE, c BINARY(5), d VARBINARY(7), e CHAR(3), "
        "f VARCHAR(9), g ARRAY<INT NOT NULL>, h MAP<STRING NOT NULL, TIMESTAMP(6)>, i ROW<x INT NOT NULL, y BYTES>, "
        "j TIME(3), l DECIMAL(9, 2)"
    )
    c.create_table("db.types", columns, primary_key="k")
    ((text,),) = rows(c, "SHOW CREATE TABLE db.types")
    c.sql(str(text).replace("`types`", "`copy`"), engine="local")
    assert c.table("db.copy").schema.fields == c.table("db.types").schema.fields


def test_show_create_table_is_a_statement_that_creates_the_same_table(c: Catalog) -> None:
    ((text,),) = rows(c, "SHOW CREATE TABLE db.t")
    c.sql(str(text).replace("`t`", "`copy`"), engine="local")
    one, other = c.table("db.t").schema, c.table("db.copy").schema
    assert (one.fields, one.primary_keys, one.partition_keys, one.options, one.comment) == (
        other.fields, other.primary_keys, other.partition_keys, other.options, other.comment
    )  # fmt: skip


def test_describe(c: Catalog) -> None:
    plain = rows(c, "DESCRIBE db.t")
    assert plain[:4] == [
        ("id", "INT NOT NULL", "it's"),
        ("p", "STRING NOT NULL", None),
        ("v", "ARRAY<TIMESTAMP>", None),
        ("r", "STRUCT<`a`: BINARY>", None),
    ]
    extended = dict(row[:2] for row in rows(c, "DESCRIBE EXTENDED db.t"))
    assert (extended["Primary Key"], extended["Comment"], extended["Table Properties"]) == ("p,id", "c", "[bucket=2]")
    c.table("db.other").write([{"k": 1}])
    assert len(rows(c, "DESCRIBE HISTORY db.other LIMIT 5")) == 1
