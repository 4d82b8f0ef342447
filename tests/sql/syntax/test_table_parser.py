"""CREATE and DROP as values, with Spark's types."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.sql.syntax.parser import parse_statement
from lakelsm.sql.syntax.statements import Column, CreateDatabase, CreateTable, DropDatabase, DropTable, Query, Statement
from lakelsm.types import parse_type

KEY = {"primary-key": "id"}


def columns(ddl: str) -> dict[str, str]:
    found = parse_statement(f"CREATE TABLE t ({ddl})")
    assert isinstance(found, CreateTable)
    return {column.name: column.type.sql() for column in found.columns}


def test_types_are_spark_s() -> None:
    ddl = (
        "a TIMESTAMP NOT NULL, b TIMESTAMP_NTZ, c LONG, d STRUCT<timestamp: INT, y: ARRAY<TIMESTAMP>>, "
        "e MAP<STRING, DECIMAL(10, 2)>, `date` DATE, f BINARY, g VARCHAR(5), h BYTE"
    )
    assert columns(ddl) == {
        "a": "TIMESTAMP(6) WITH LOCAL TIME ZONE NOT NULL",
        "b": "TIMESTAMP(6)",
        "c": "BIGINT",
        "d": "ROW<`timestamp` INT, `y` ARRAY<TIMESTAMP(6) WITH LOCAL TIME ZONE>>",
        "e": "MAP<STRING, DECIMAL(10, 2)>",
        "date": "DATE",
        "f": "BYTES",
        "g": "VARCHAR(5)",
        "h": "TINYINT",
    }


INT = parse_type("INT")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "CREATE TABLE IF NOT EXISTS db.t (id INT COMMENT 'the key', v INT) USING paimon PARTITIONED BY (v) "
            "TBLPROPERTIES ('primary-key' = 'id', bucket = 2, 'write-only' = true) COMMENT 'c'",
            CreateTable(
                ("db", "t"),
                columns=(Column("id", INT, "the key"), Column("v", INT)),
                partition_by=("v",),
                properties={"primary-key": "id", "bucket": "2", "write-only": "true"},
                comment="c",
                if_not_exists=True,
            ),
        ),
        (
            "CREATE OR REPLACE TABLE t (id INT, PRIMARY KEY (id) NOT ENFORCED)",
            CreateTable(("t",), columns=(Column("id", INT),), properties=KEY, replace=True),
        ),
        (
            "CREATE TABLE t TBLPROPERTIES ('primary-key'='id') AS SELECT 1 AS id",
            CreateTable(("t",), properties=KEY, query=Query("SELECT 1 AS id")),
        ),
        ("CREATE TABLE t LIKE db.s", CreateTable(("t",), like=("db", "s"))),
        ("CREATE DATABASE IF NOT EXISTS d", CreateDatabase("d", True)),
        ("CREATE SCHEMA d", CreateDatabase("d")),
        ("DROP TABLE IF EXISTS d.t PURGE", DropTable(("d", "t"), True)),
        ("DROP DATABASE d CASCADE", DropDatabase("d", False, True)),
    ],
)
def test_create_and_drop_are_values(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("CREATE TABEL t", InvalidInputError, "expected TABLE or DATABASE, found 'TABEL'"),
        ("CREATE TABLE t", InvalidInputError, "expected columns in parentheses, LIKE or AS"),
        ("CREATE TABLE t (a NUMBR)", InvalidInputError, "column 'a': .*NUMBR"),
        ("CREATE TABLE t (a INT) AS SELECT 1", InvalidInputError, "takes its columns from the query"),
        ("CREATE TABLE t (a INT DEFAULT 1)", UnsupportedFeatureError, "column 'a': DEFAULT"),
        ("CREATE TABLE t (a INT) USING parquet", UnsupportedFeatureError, "USING parquet"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (days(a))", UnsupportedFeatureError, "transforms"),
        ("CREATE TABLE t (a INT) LOCATION '/x'", UnsupportedFeatureError, "LOCATION"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('k' = 1, 'k' = 2)", InvalidInputError, "'k' is given twice"),
        ("CREATE VIEW v AS SELECT 1", UnsupportedFeatureError, "CREATE VIEW"),
        ("REPLACE VIEW v AS SELECT 1", InvalidInputError, "expected TABLE"),
        ("DROP VIEW v", UnsupportedFeatureError, "DROP VIEW"),
    ],
)
def test_what_is_not_built_is_refused_by_name(text: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        parse_statement(text)
