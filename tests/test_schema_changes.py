"""Schema changes check their own arguments when they are made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.schema_changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
)
from lakelsm.types import parse_type

INT = parse_type("INT")
HALF = "\ud800"

CHANGES: list[tuple[Callable[[], object], str]] = [
    (lambda: AddColumn("x", 5), "type: expected a type as text, such as 'BIGINT'"),  # type: ignore[arg-type]
    (lambda: AddColumn("x", ""), "type: expected a type as text"),
    (lambda: AddColumn("x", "INTT"), r"column 'x': cannot read type text 'INTT' at position 0.*did you mean INT\?"),
    (lambda: UpdateColumnType(("r", "m"), "DECIMAL(99, 2)"), "column 'r.m': precision 99 of type DECIMAL"),
    (lambda: UpdateColumnType("x", "INT, y INT"), "column 'x': cannot read type text 'INT, y INT' at position 3"),
    (lambda: AddColumn(None, INT), "name: expected the name of a column"),  # type: ignore[arg-type]
    (lambda: AddColumn((), INT), "name: .*got \\(\\)"),
    (lambda: AddColumn(("r", 5), INT), "name: .*5"),  # type: ignore[arg-type]
    (lambda: AddColumn("x", INT, comment=5), "comment: .*5"),  # type: ignore[arg-type]
    (lambda: AddColumn("x", INT, after=5), "after: .*5"),  # type: ignore[arg-type]
    (lambda: AddColumn("x", INT, first="y"), "first: expected True or False"),  # type: ignore[arg-type]
    (lambda: AddColumn("x", INT, after="k", first=True), "first: after = 'k' is also given"),
    (lambda: DropColumn("\0"), "without the NUL"),
    (lambda: RenameColumn("k", 5), "new_name: .*5"),  # type: ignore[arg-type]
    (lambda: UpdateColumnType("k", None), "type: .*None"),  # type: ignore[arg-type]
    (lambda: UpdateColumnNullability("k", 1), "nullable: .*1"),  # type: ignore[arg-type]
    (lambda: UpdateColumnComment("k", HALF), "comment: "),
    (lambda: MoveColumn(("r", "x")), "name: "),  # type: ignore[arg-type]
    (lambda: UpdateComment(5), "comment: .*5"),  # type: ignore[arg-type]
    (lambda: SetOption("bucket", None), "option 'bucket': .*None"),  # type: ignore[arg-type]
    (lambda: SetOption(5, "x"), "key: .*5"),  # type: ignore[arg-type]
    (lambda: RemoveOption(None), "key: .*None"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "message"), CHANGES)
def test_a_wrong_schema_change_is_refused_when_it_is_made(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    "text", ["DECIMAL(10, 2)", "ROW<a INT>", "ARRAY<ROW<a INT, b MAP<STRING, BIGINT>>>", "BIGINT NOT NULL"]
)
def test_a_type_as_ddl_text_is_parsed(text: str) -> None:
    assert AddColumn("x", text) == AddColumn("x", parse_type(text))
    assert AddColumn("x", text).data_type == UpdateColumnType(("r", "x"), text).data_type == parse_type(text)
    assert hash(UpdateColumnType("x", text)) == hash(UpdateColumnType("x", parse_type(text)))


def test_further_arguments_of_an_added_column_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        AddColumn("x", INT, "a comment")  # type: ignore[misc]
