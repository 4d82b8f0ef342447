"""CREATE, ALTER and DROP executed: what exists already, tags, partitions, and literals of PARTITION."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.errors import (
    InvalidInputError,
    LakelsmError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelsm.sql.local.query_result import QueryResult
from lakelsm.sql.tables import literal_value


@pytest.fixture
def c(tmp_path: Path) -> Catalog:
    found = Catalog(str(tmp_path))
    found.sql("CREATE TABLE db.t (id INT) TBLPROPERTIES ('primary-key' = 'id', 'write-only' = 'true')", engine="local")
    found.sql("INSERT INTO db.t VALUES (1), (2)", engine="local")
    return found


def run(c: Catalog, text: str) -> object:
    return c.sql(text, engine="local")


def test_if_exists_and_if_not_exists(c: Catalog) -> None:
    text = "CREATE TABLE {}db.t TBLPROPERTIES ('primary-key' = 'id') AS SELECT 9 AS id"
    with pytest.raises(TableAlreadyExistsError):
        run(c, text.format(""))
    run(c, text.format("IF NOT EXISTS "))
    run(c, "CREATE TABLE IF NOT EXISTS db.t (id INT) TBLPROPERTIES ('primary-key' = 'id')")
    assert c.table("db.t").count().rows == 2
    run(c, "DROP TABLE IF EXISTS db.none")
    with pytest.raises(TableNotFoundError):
        run(c, "DROP TABLE db.none")
    run(c, "CREATE DATABASE IF NOT EXISTS db")
    run(c, "DROP DATABASE IF EXISTS none")
    with pytest.raises(InvalidInputError, match="not empty"):
        run(c, "DROP DATABASE db")


def test_a_table_like_another_has_its_schema_and_own_properties(c: Catalog) -> None:
    run(c, "CREATE TABLE u LIKE db.t TBLPROPERTIES ('write-only' = 'false')")
    schema = c.table("default.u").schema
    assert (list(schema.field_names), list(schema.primary_keys)) == (["id"], ["id"])
    assert schema.options == {"write-only": "false"}


def test_a_new_name_stays_in_the_database(c: Catalog) -> None:
    run(c, "ALTER TABLE db.t RENAME TO u")
    assert c.list_tables() == ["db.u"]


def test_tags(c: Catalog) -> None:
    tags = c.table("db.t").tags
    run(c, "ALTER TABLE db.t CREATE OR REPLACE TAG a")
    run(c, "INSERT INTO db.t VALUES (3)")
    run(c, "ALTER TABLE db.t CREATE OR REPLACE TAG a RETAIN 2 HOURS")
    run(c, "ALTER TABLE db.t CREATE TAG b AS OF VERSION 1")
    found = [(tag.name, tag.snapshot_id, tag.time_retained) for tag in tags.list()]
    assert found == [("b", 1, None), ("a", 2, timedelta(hours=2))]
    run(c, "ALTER TABLE db.t DELETE TAG `a,b`")
    assert tags.list() == []
    with pytest.raises(LakelsmError, match=r"^Table db\.t: tag 'a' does not exist"):
        run(c, "ALTER TABLE db.t REPLACE TAG a")


def test_partitions_are_dropped_by_their_values(c: Catalog) -> None:
    run(c, "CREATE TABLE p (id INT, d DATE) PARTITIONED BY (d) TBLPROPERTIES ('primary-key' = 'd,id', 'bucket' = '1')")
    run(c, "INSERT INTO p VALUES (1, DATE '2024-01-01'), (2, DATE '2024-01-02'), (3, DATE '2024-01-03')")
    run(c, "ALTER TABLE p DROP PARTITION (d = DATE '2024-01-01'), PARTITION (D = '2024-01-02')")
    assert c.table("default.p").to_arrow().column("id").to_pylist() == [3]
    with pytest.raises(InvalidInputError, match=r"does not exist\. Add IF EXISTS"):
        run(c, "ALTER TABLE p DROP PARTITION (d = '1999-01-01')")
    run(c, "ALTER TABLE p DROP IF EXISTS PARTITION (d = '1999-01-01')")


def test_null_in_partition_names_the_partition_of_null(c: Catalog) -> None:
    options = "'primary-key' = 'k,p', 'bucket' = '1', 'primary-key.nullable' = 'true'"
    run(c, f"CREATE TABLE n (k INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ({options})")
    rows = "INSERT INTO n VALUES (1, NULL), (2, 'x'), (3, 'true')"
    for text in (
        "TRUNCATE TABLE n PARTITION (p = NULL)",
        "ALTER TABLE n DROP PARTITION (p = NULL)",
        "CALL sys.drop_partition('n', 'p=__DEFAULT_PARTITION__')",
    ):
        run(c, rows)
        assert len(run(c, "SHOW PARTITIONS n PARTITION (p = NULL)").to_arrow()) == 1  # type: ignore[attr-defined]
        run(c, text)
        assert c.table("default.n").to_arrow().sort_by("k").column("k").to_pylist() == [2, 3]
    run(c, "INSERT OVERWRITE n PARTITION (p = TRUE) VALUES (4)")
    assert c.table("default.n").to_arrow().sort_by("k").column("k").to_pylist() == [2, 4]
    with pytest.raises(InvalidInputError, match="'P' of INSERT has a value in PARTITION"):
        run(c, "INSERT INTO n PARTITION (p = 'x') (k, P) VALUES (1, 'y')")


@pytest.mark.parametrize(
    ("text", "value"),
    [("'it''s'", "it's"), ("-7", -7), ("DATE '2024-01-01'", "2024-01-01"), ("true", True), ("NULL", None)],
)
def test_literals_of_a_partition(text: str, value: object) -> None:
    assert literal_value(text) == value


@pytest.mark.parametrize("text", ["1 + 1", "f(1)", "1.5", "- 'x'", "a"])
def test_other_values_of_a_partition_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="is not a literal"):
        literal_value(text)


def test_a_table_of_a_query_is_written_from_a_stream_and_dropped_if_the_query_fails(
    c: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QueryResult, "to_arrow", None)
    text = "CREATE TABLE db.u TBLPROPERTIES ('primary-key' = 'k') AS SELECT id + 1 AS k, {} AS v FROM db.t"
    with pytest.raises(InvalidInputError, match="division by zero"):
        run(c, text.format("1 / (id - 2)"))
    assert c.list_tables() == ["db.t"]
    run(c, text.format("'x'"))
    assert c.table("db.u").to_arrow().sort_by("k").to_pydict() == {"k": [2, 3], "v": ["x", "x"]}
