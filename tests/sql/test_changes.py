"""INSERT, UPDATE and DELETE in this process: columns by position and name, values of PARTITION, qualified names."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from tests.engines import TableEngine


@pytest.fixture
def c(tmp_path: Path) -> Catalog:
    found = Catalog(str(tmp_path))
    options = {"bucket": "1"}
    found.create_table("default.t", "k INT, p INT, v STRING", primary_key=["p", "k"], partition_by=["p"], options=options)
    return found


def run(c: Catalog, text: str) -> list[tuple[object, ...]]:
    c.sql(text, engine="local")
    return sorted(zip(*c.table("default.t").to_arrow().to_pydict().values()))


def test_columns_of_an_insert(c: Catalog) -> None:
    assert run(c, "INSERT INTO t SELECT 1, 2, 'a'") == [(1, 2, "a")]
    assert run(c, "INSERT INTO t (V, k, p) SELECT 'b', 2, 2") == [(1, 2, "a"), (2, 2, "b")]
    assert run(c, "INSERT INTO t BY NAME SELECT 2 AS p, 3 AS K")[2] == (3, 2, None)
    assert run(c, "INSERT INTO t PARTITION (p) SELECT 4, 'd', 2")[3] == (4, 2, "d")
    assert run(c, "INSERT OVERWRITE t PARTITION (p = 2) VALUES (5, 'e')") == [(5, 2, "e")]
    assert run(c, "INSERT INTO t PARTITION (p = -3) SELECT 6, NULL") == [(5, 2, "e"), (6, -3, None)]


def test_names_in_conditions_may_be_qualified(c: Catalog) -> None:
    run(c, "INSERT INTO t VALUES (1, 1, 'a.t'), (2, 1, 'b')")
    assert run(c, "UPDATE default.t SET t.v = t.v || 't.x' WHERE t.k = 1") == [(1, 1, "a.tt.x"), (2, 1, "b")]
    assert run(c, "DELETE FROM t AS `x` WHERE `x`.v = 'b'") == [(1, 1, "a.tt.x")]
    assert run(c, "DELETE FROM t") == []


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("INSERT INTO t SELECT 1", InvalidInputError, "has 1 column, and INSERT needs 3: k, p, v"),
        ("INSERT INTO t (k, K) SELECT 1, 2", InvalidInputError, "'K' of INSERT is given twice"),
        ("INSERT INTO t PARTITION (v = 1) SELECT 1, 2", InvalidInputError, "Partition columns: p"),
        ("INSERT INTO t PARTITION (p = 1 + 1) SELECT 1, 'x'", UnsupportedFeatureError, "'1 . 1' is not a literal"),
        ("INSERT INTO t SELECT 'x', 1, 'y'", InvalidInputError, "(?i)column 'k'"),
        ("DELETE FROM t WHERE k IN (SELECT 1)", UnsupportedFeatureError, "a query within"),
        ("UPDATE t SET p = 2", LakelsmError, "'p'"),
        ("TRUNCATE TABLE t PARTITION (v = 1)", InvalidInputError, "Partition columns: p"),
    ],
)
def test_wrong_changes_leave_the_table_as_it_is(c: Catalog, text: str, error: type[LakelsmError], problem: str) -> None:
    c.sql("INSERT INTO t VALUES (1, 1, 'a')", engine="local")
    with pytest.raises(error, match=problem):
        c.sql(text, engine="local")
    assert (c.table("default.t").count().rows, len(c.table("default.t").inspect.snapshots())) == (1, 1)


def test_an_overwrite_of_some_columns_sets_the_others_to_null(c: Catalog) -> None:
    run(c, "INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')")
    assert run(c, "INSERT OVERWRITE t PARTITION (p = '1') (k) VALUES (4)") == [(3, 2, "c"), (4, 1, None)]
    assert run(c, "INSERT OVERWRITE t (p, k) VALUES (2, 5)") == [(4, 1, None), (5, 2, None)]


def test_a_name_after_a_dot_is_no_qualifier(c: Catalog) -> None:
    c.sql("CREATE TABLE s (k INT, s STRUCT<s: STRUCT<v: INT>>) TBLPROPERTIES ('primary-key' = 'k')", engine="local")
    with pytest.raises(LakelsmError, match=r"x\.s\.v"):
        c.sql("DELETE FROM s WHERE x.s.v = 1", engine="local")


def test_values_for_columns_of_texts_become_texts(tmp_path: Path, engine: TableEngine) -> None:
    c = Catalog(str(tmp_path), engine.spark)
    run = partial(c.sql, engine=engine.name)
    run("CREATE TABLE db.t (k INT, s STRING, v VARCHAR(3)) TBLPROPERTIES ('primary-key' = 'k')")
    run("INSERT INTO db.t VALUES (1, 2, 3), (2, NULL, 456L)")
    run("INSERT INTO db.t BY NAME SELECT 3 AS K, DATE '2024-01-01' AS S -- the rest is NULL")
    run("INSERT INTO db.t (v, k) WITH a AS (SELECT TRUE AS x) SELECT 1.5, 4 FROM a WHERE x")
    assert c.table("db.t").to_arrow().sort_by("k").to_pylist() == [
        {"k": 1, "s": "2", "v": "3"},
        {"k": 2, "s": None, "v": "456"},
        {"k": 3, "s": "2024-01-01", "v": None},
        {"k": 4, "s": None, "v": "1.5"},
    ]
    for text in ("INSERT INTO db.t (k, v) SELECT 5, 12345", "INSERT INTO db.t (k, s) SELECT 5, array('a')"):
        with pytest.raises(InvalidInputError, match=r"'[sv]'"):
            run(text)


def test_conditions_of_changes_name_columns_with_the_database(tmp_path: Path) -> None:
    c = Catalog(str(tmp_path))
    c.create_table("db.t", "k INT, n INT", primary_key="k").write([{"k": 1, "n": 1}, {"k": 2, "n": 2}])
    c.sql("UPDATE db.t SET n = db.t.n + t.n WHERE `db`.T.k = 2", "local")
    c.sql("DELETE FROM db.t WHERE db.t.k = 1", "local")
    assert c.table("db.t").to_arrow().to_pylist() == [{"k": 2, "n": 4}]
