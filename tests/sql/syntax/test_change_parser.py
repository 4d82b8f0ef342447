"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE as values."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.sql.syntax.parser import parse_statement
from lakelsm.sql.syntax.statements import Delete, Insert, Merge, MergeClause, Query, Statement, Truncate, Update

ONE = Query("SELECT 1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO db.t SELECT 1", Insert(("db", "t"), ONE)),
        ("INSERT INTO TABLE t (a, `b c`) SELECT 1", Insert(("t",), ONE, columns=("a", "b c"))),
        ("INSERT INTO t BY NAME SELECT 1", Insert(("t",), ONE, by_name=True)),
        ("INSERT INTO t (SELECT 1)", Insert(("t",), Query("(SELECT 1)"))),
        (
            "INSERT OVERWRITE t PARTITION (a = 'x', b) SELECT 1",
            Insert(("t",), ONE, partition={"a": "'x'", "b": None}, overwrite=True),
        ),
        ("DELETE FROM t", Delete(("t",), None)),
        ("DELETE FROM db.t AS x WHERE x.a > 1 AND b", Delete(("db", "t"), "x.a > 1 AND b", "x")),
        ("UPDATE t SET a = f(1, 2), t.b = 'x'", Update(("t",), {"a": "f(1, 2)", "b": "'x'"}, None)),
        (
            "UPDATE t x SET x.a = CASE WHEN b THEN 1 END WHERE c IN (1, 2)",
            Update(("t",), {"a": "CASE WHEN b THEN 1 END"}, "c IN (1, 2)", "x"),
        ),
        ("TRUNCATE TABLE t", Truncate(("t",))),
        ("TRUNCATE TABLE t PARTITION (dt = '2024-01-01')", Truncate(("t",), {"dt": "'2024-01-01'"})),
    ],
)
def test_changes_are_values(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


def test_a_merge_has_its_clauses_in_order() -> None:
    text = """MERGE WITH SCHEMA EVOLUTION INTO db.t a USING (SELECT * FROM s WHERE x IN (1)) AS b ON a.id = b.id
        WHEN MATCHED AND CASE WHEN matched THEN TRUE END THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED BY TARGET AND b.v > 1 THEN INSERT (id, v) VALUES (b.id, f(b.v, 1))
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a.v = 0, w = DEFAULT"""
    clauses = (
        MergeClause("matched", "CASE WHEN matched THEN TRUE END", "delete"),
        MergeClause("matched", None, "update"),
        MergeClause("not matched", "b.v > 1", "insert", {"id": "b.id", "v": "f(b.v, 1)"}),
        MergeClause("not matched", None, "insert"),
        MergeClause("not matched by source", None, "update", {"v": "0", "w": "DEFAULT"}),
    )
    source = "(SELECT * FROM s WHERE x IN (1))"
    names = {"alias": "a", "source_alias": "b"}
    expected = Merge(("db", "t"), source, "a.id = b.id", clauses, **names, with_schema_evolution=True)
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("INSERT t SELECT 1", InvalidInputError, "expected INTO or OVERWRITE"),
        ("INSERT INTO t", InvalidInputError, "expected SELECT, VALUES or another query"),
        ("INSERT INTO t PARTITION (a = 1, a = 2) SELECT 1", InvalidInputError, "'a', which is given twice"),
        ("INSERT INTO t REPLACE WHERE a SELECT 1", UnsupportedFeatureError, "REPLACE"),
        ("UPDATE t SET a = 1, a = 2", InvalidInputError, "'a', which is set twice"),
        ("UPDATE t SET a.b = 1", UnsupportedFeatureError, "nested field"),
        ("UPDATE t SET a =", InvalidInputError, "expected an expression"),
        ("MERGE INTO t USING s ON a", InvalidInputError, "expected WHEN MATCHED or WHEN NOT MATCHED"),
        ("MERGE INTO t USING s ON a WHEN MATCHED THEN INSERT *", InvalidInputError, "expected UPDATE or DELETE"),
        (
            "MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a, b, a) VALUES (1, 2, 3)",
            InvalidInputError,
            "'a', which is listed twice",
        ),
        (
            "MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
            InvalidInputError,
            "as many values as the 2 columns of INSERT, not 1",
        ),
        ("TRUNCATE TABLE t PARTITION (a)", InvalidInputError, "a value for each column of PARTITION"),
    ],
)
def test_wrong_changes_are_refused(text: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        parse_statement(text)
