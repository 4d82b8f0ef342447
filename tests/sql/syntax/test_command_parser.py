"""SHOW, DESCRIBE, ANALYZE, CALL, and Delta's commands as values."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.sql.syntax.parser import parse_statement
from lakelsm.sql.syntax.statements import Analyze, Call, Describe, DescribeHistory, Show, Statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW DATABASES LIKE 'a*'", Show("databases", like="a*")),
        ("SHOW SCHEMAS", Show("databases")),
        ("SHOW TABLES IN d 'x|y'", Show("tables", ("d",), like="x|y")),
        ("SHOW PARTITIONS t PARTITION (a = 1)", Show("partitions", ("t",), partition={"a": "1"})),
        ("SHOW TBLPROPERTIES t ('write-only')", Show("tblproperties", ("t",), key="write-only")),
        ("SHOW COLUMNS IN t FROM d", Show("columns", ("d", "t"))),
        ("SHOW CREATE TABLE d.t", Show("create table", ("d", "t"))),
        ("SHOW TAGS t", Show("tags", ("t",))),
        ("SHOW BRANCHES IN t", Show("branches", ("t",))),
        ("DESC t", Describe(("t",))),
        ("DESCRIBE TABLE EXTENDED d.t", Describe(("d", "t"), True)),
        ("DESCRIBE HISTORY t LIMIT 3", DescribeHistory(("t",), 3)),
        ("ANALYZE TABLE t COMPUTE STATISTICS", Analyze(("t",), ())),
        ("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a, b", Analyze(("t",), ("a", "b"))),
        ("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS", Analyze(("t",), None)),
        ("CALL sys.compact('t', -1)", Call("compact", ("t", -1))),
        (
            "CALL paimon.sys.x(`Table` => 't', a => -1.5, b => TRUE, c => NULL)",
            Call(
                "x",
                (),
                {"table": "t", "a": -1.5, "b": True, "c": None},
            ),
        ),
        (
            "OPTIMIZE t WHERE dt = '1' FULL",
            Call("compact", (), {"table": "t", "where": "dt = '1'", "compact_strategy": "full"}),
        ),
        (
            "VACUUM d.t RETAIN 48 HOURS DRY RUN",
            Call("remove_orphan_files", (), {"table": "d.t", "older_than": "48 h", "dry_run": True}),
        ),
        ("RESTORE TABLE t TO VERSION AS OF 3", Call("rollback", (), {"table": "t", "version": 3})),
    ],
)
def test_commands_are_values(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("CALL compact('t')", InvalidInputError, r"Procedures are called as sys\.name"),
        ("CALL sys.x(a => 1, 2)", InvalidInputError, "after the first argument with a name"),
        ("CALL sys.x(a => 1, A => 2)", InvalidInputError, "argument a is given twice"),
        ("CALL sys.x(map('k', 1))", InvalidInputError, "a number, TRUE, FALSE or NULL, found 'map'"),
        ("CALL sys.x('t',)", InvalidInputError, r"expected an argument, found '\)'"),
        ("CALL sys.x(1", InvalidInputError, r"expected \)"),
        ("CALL sys.x(y)", InvalidInputError, "expected a value"),
        ("OPTIMIZE t ZORDER BY (a)", UnsupportedFeatureError, "ZORDER"),
        ("SHOW VIEWS", UnsupportedFeatureError, "SHOW VIEWS"),
        ("SHOW NOTHING", InvalidInputError, "expected TABLES, DATABASES"),
        ("ANALYZE TABLE t PARTITION (a = 1) COMPUTE STATISTICS", UnsupportedFeatureError, "PARTITION"),
        ("DESCRIBE DATABASE d", UnsupportedFeatureError, "DESCRIBE DATABASE"),
    ],
)
def test_wrong_commands_are_refused(text: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        parse_statement(text)
