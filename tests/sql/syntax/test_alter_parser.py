"""ALTER TABLE as values."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.schema_changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
)
from lakelsm.sql.syntax.parser import parse_statement
from lakelsm.sql.syntax.statements import (
    AlterTable,
    CreateTag,
    DeleteTag,
    DropPartition,
    RenameTable,
    RenameTag,
    Statement,
)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("SET TBLPROPERTIES ('a' = '1', 'comment' = 'c')", (SetOption("a", "1"), UpdateComment("c"))),
        ("UNSET TBLPROPERTIES ('a', 'comment')", (RemoveOption("a"), UpdateComment(None))),
        (
            "ADD COLUMNS (a INT FIRST, b.element.c STRING COMMENT 'x', d INT AFTER e)",
            (
                AddColumn("a", "INT", first=True),
                AddColumn(("b", "element", "c"), "STRING", comment="x"),
                AddColumn("d", "INT", after="e"),
            ),
        ),
        ("DROP COLUMNS (a, b.c)", (DropColumn("a"), DropColumn(("b", "c")))),
        ("RENAME COLUMN a.b TO c", (RenameColumn(("a", "b"), "c"),)),
        ("ALTER COLUMN a TYPE BIGINT", (UpdateColumnType("a", "BIGINT"),)),
        ("ALTER COLUMN a COMMENT 'x'", (UpdateColumnComment("a", "x"),)),
        ("ALTER COLUMN a SET NOT NULL", (UpdateColumnNullability("a", False),)),
        ("ALTER COLUMN a DROP NOT NULL", (UpdateColumnNullability("a", True),)),
        ("ALTER COLUMN a FIRST", (MoveColumn("a", first=True),)),
        ("ALTER COLUMN a AFTER b", (MoveColumn("a", after="b"),)),
    ],
)
def test_changes_of_columns_and_properties(text: str, changes: tuple[SchemaChange, ...]) -> None:
    assert parse_statement(f"ALTER TABLE db.t {text}") == AlterTable(("db", "t"), changes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RENAME TO u", RenameTable(("t",), ("u",))),
        (
            "DROP PARTITION (a = 1, b = 'x'), PARTITION (a = 2)",
            DropPartition(("t",), ({"a": "1", "b": "'x'"}, {"a": "2"})),
        ),
        ("DROP IF EXISTS PARTITION (a = 1)", DropPartition(("t",), ({"a": "1"},), True)),
        ("CREATE TAG `T-1`", CreateTag(("t",), "T-1")),
        (
            "CREATE TAG IF NOT EXISTS x AS OF VERSION 3 RETAIN 12 HOURS",
            CreateTag(("t",), "x", snapshot=3, retain="12 hours", if_not_exists=True),
        ),
        ("CREATE OR REPLACE TAG x RETAIN 1 DAYS", CreateTag(("t",), "x", retain="1 days", replace=True)),
        ("REPLACE TAG x AS OF VERSION 2", CreateTag(("t",), "x", snapshot=2, create=False, replace=True)),
        ("DELETE TAG IF EXISTS `a,b`", DeleteTag(("t",), "a,b", True)),
        ("RENAME TAG a TO b", RenameTag(("t",), "a", "b")),
    ],
)
def test_tables_partitions_and_tags(text: str, expected: Statement) -> None:
    assert parse_statement(f"ALTER TABLE t {text}") == expected


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("TABLE t FROB", InvalidInputError, "expected ADD, DROP, RENAME"),
        ("TABLE t ADD COLUMN a INT NOT NULL", UnsupportedFeatureError, "Remove NOT NULL"),
        ("TABLE t ALTER COLUMN a SET DEFAULT 1", UnsupportedFeatureError, "DEFAULT"),
        ("TABLE t ALTER COLUMN a.b FIRST", UnsupportedFeatureError, "only columns of the table"),
        ("TABLE t ADD PARTITION (a = 1)", UnsupportedFeatureError, "ADD PARTITION"),
        ("TABLE t CREATE TAG x RETAIN 3 WEEKS", InvalidInputError, "expected DAYS, HOURS or MINUTES"),
        ("DATABASE d SET LOCATION 'x'", UnsupportedFeatureError, "ALTER DATABASE"),
    ],
)
def test_what_is_not_built_is_refused_by_name(text: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        parse_statement(f"ALTER {text}")
