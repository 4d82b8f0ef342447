"""Column names are compared as in Spark, and unusable new names are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.arguments import checked_file_name
from lakelsm.errors import InvalidInputError
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.identifiers import alike, check_new_name, folded, match, unknown_column
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema.validation import validate_existing_table, validate_table
from lakelsm.schema_changes import AddColumn, RenameColumn
from lakelsm.types import parse_columns, parse_type

_OPTIONS = {"bucket": "1"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("id", "ID", True),
        ("Straße", "sTRAßE", True),
        ("Straße", "strasse", False),
        ("\u212a", "k", True),  # the sign of Kelvin
        ("\u0131", "I", True),  # a dotless i
        ("é", "e", False),
    ],
)
def test_names_fold_like_javas_equals_ignore_case(one: str, other: str, same: bool) -> None:
    assert (folded(one) == folded(other)) is same


@given(st.text())
def test_folding_keeps_length_and_is_done_once(name: str) -> None:
    assert len(folded(name)) == len(name)
    assert folded(folded(name)) == folded(name)


def test_an_exact_name_is_preferred_and_an_ambiguous_one_is_not_found() -> None:
    assert match("a", ["A", "a"]) == "a"
    assert match("ab", ["AB", "c"]) == "AB"
    assert match("ab", ["AB", "Ab"]) is None
    assert alike(["a", "b", "B", "A"]) == ("b", "B")
    assert alike(["a", "b"]) is None
    assert unknown_column("ID", ["id"]) == "column 'ID' does not exist. Write 'id'."
    assert unknown_column("x", ["id", "v"]) == "column 'x' does not exist. Columns: id, v."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a\0b", "control character U\\+0000"),
        ("a\nb", "control character U\\+000A"),
        ("\x85", "control character U\\+0085"),
        ("a\ud800", "half of a surrogate pair U\\+D800"),
        ("é" * 128, "has 256 bytes in UTF-8, more than 255"),
        (" ", "is blank"),
        (7, "expected a text, got 7"),
    ],
)
def test_an_unusable_new_name_is_refused(name: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_new_name(name)


@pytest.mark.parametrize("name", ["a\nb", "\x7f", "a\x85b", "a\0"])
def test_a_directory_name_has_no_control_characters(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"without (control characters|the NUL character)"):
        checked_file_name("name", name, "a name")


@pytest.mark.parametrize("name", ["é" * 127, "a b", "_x", ".x", "a.b", "`", "漢", "\U0001f600", "a\u2028b"])
def test_other_names_are_accepted(name: str) -> None:
    check_new_name(name)


def _table(columns: str) -> TableSchema:
    return create_schema(columns, ["id"], [], _OPTIONS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("id INT, v INT, V INT", "column 'v' and column 'V' differ only in case, which Spark ignores"),
        ("id INT, r ARRAY<ROW<a INT, A INT>>", "member of 'r' 'a' and member of 'r' 'A' differ only in case"),
        ("id INT, _key_id INT", "'_key_id' is reserved in data files"),
        ("id INT, _Value_Kind INT", "'_Value_Kind' is reserved in data files"),
        ("id INT, _KEY_x INT", "starts with the reserved prefix '_KEY_'"),
        ("id INT, _LEVEL INT", "'_LEVEL' is reserved"),
    ],
)
def test_columns_that_spark_cannot_distinguish_are_refused_at_creation_and_on_opening(columns: str, message: str) -> None:
    schema = _table(columns)
    for validate in (validate_table, validate_existing_table):
        with pytest.raises(InvalidInputError, match=message):
            validate(schema)


@pytest.mark.parametrize("columns", ["id INT, `a\nb` INT", "id INT, r ROW<`a\0` INT>", f"id INT, `{'x' * 256}` INT"])
def test_a_table_with_an_unusable_name_can_be_opened_but_not_created(columns: str) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        _table(columns)
    column = parse_columns(columns)[1]
    schema = _table("id INT")
    validate_existing_table(
        TableSchema(
            id=0,
            fields=(*schema.fields, column),
            highest_field_id=1,
            partition_keys=(),
            primary_keys=("id",),
            options=_OPTIONS,
        )
    )


def test_schema_changes_have_the_same_rules_for_names() -> None:
    schema = _table("id INT, v INT")
    for change in (
        AddColumn("a\n", parse_type("INT")),
        AddColumn("r", parse_type("ROW<`x\ny` INT>")),
        AddColumn("V", parse_type("INT")),
        RenameColumn("v", "ID"),
        RenameColumn("v", "a\n"),
        RenameColumn("v", "_key_x"),
    ):
        with pytest.raises(InvalidInputError, match=r"control character|differ only in case|is reserved in data files"):
            apply_changes(schema, [change], 0)
    with pytest.raises(InvalidInputError, match=r"column 'V' does not exist\. Write 'v'"):
        apply_changes(schema, [RenameColumn("V", "w")], 0)


@pytest.mark.parametrize(
    ("key", "options", "message"),
    [
        (["ID"], {}, "primary key: column 'ID' does not exist. Write 'id'"),
        (["id"], {"sequence.field": "V"}, "option 'sequence.field': column 'V' does not exist. Write 'v'"),
        (["id"], {"fields.V.aggregate-function": "sum"}, "column 'V' does not exist. Write 'v'"),
    ],
)
def test_an_error_on_another_case_has_the_right_name(key: list[str], options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        validate_table(create_schema("id INT, v INT", key, [], _OPTIONS | options))
