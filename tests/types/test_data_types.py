"""Types as values: defaults, bounds, text, the form in schema files, and equal layouts."""

from __future__ import annotations

from typing import Any

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.types import MAX_LENGTH, ArrayType, AtomicType, DataField, RowType, check_nesting, parse_type
from lakelsm.types.data_types import ATOMIC_ROOTS, MAX_NESTING, field_to_json, nested_row_fields, same_layout


def test_a_type_may_have_many_levels() -> None:
    text = "ARRAY<" * 60 + "INT" + ">" * 60
    assert parse_type(text).sql() == text
    check_nesting("a", parse_type(text))


def test_levels_of_all_parts_are_counted() -> None:
    document: Any = "ARRAY<" * 60 + "INT" + ">" * 60
    for _ in range(10):
        document = {"type": "ARRAY", "element": document}
    with pytest.raises(InvalidInputError, match="the type of column 'a' has more than 64 levels of nested types"):
        check_nesting("a", parse_type(document))


@pytest.mark.parametrize(
    ("root", "text"),
    [
        ("CHAR", "CHAR(1)"),
        ("VARBINARY", "VARBINARY(1)"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("TIME", "TIME(0)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP_LTZ", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("BIGINT", "BIGINT"),
    ],
)
def test_missing_parameters_are_paimons_defaults(root: str, text: str) -> None:
    assert str(AtomicType(root)) == text
    assert str(AtomicType(root).with_nullable(False)) == f"{text} NOT NULL"


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"root": "VARCHAR", "length": 0}, "length 0 of type VARCHAR is out of range. Use 1 to 2147483647"),
        ({"root": "BINARY", "length": MAX_LENGTH + 1}, "length 2147483648 of type BINARY"),
        ({"root": "DECIMAL", "precision": 39}, "precision 39 of type DECIMAL is out of range. Use 1 to 38"),
        ({"root": "DECIMAL", "precision": 5, "scale": 6}, "scale 6 of type DECIMAL is out of range. Use 0 to 5"),
        ({"root": "TIMESTAMP", "precision": 10}, "precision 10 of type TIMESTAMP is out of range. Use 0 to 9"),
        ({"root": "TIME", "precision": -1}, "precision -1 of type TIME"),
        ({"root": "INT", "length": 4}, "type INT has no length. Remove it."),
        ({"root": "CHAR", "scale": 1}, "type CHAR has no scale. Remove it."),
        ({"root": "DATE", "precision": 3}, "type DATE has no precision. Remove it."),
        ({"root": "UUID"}, "'UUID' is not a type. Use one of BIGINT, BINARY"),
    ],
)
def test_a_parameter_out_of_range_is_refused_with_the_range(values: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{fault}"):
        AtomicType(**values)


@pytest.mark.parametrize("root", sorted(ATOMIC_ROOTS))
def test_every_root_is_a_type(root: str) -> None:
    kind = AtomicType(root)
    assert kind.root == root and kind.nullable
    assert [other for other in ATOMIC_ROOTS if same_layout(kind, AtomicType(other))] == [root]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("INT", "INT NOT NULL", True),
        ("INT", "BIGINT", False),
        ("DECIMAL(10, 2)", "DECIMAL(10, 3)", False),
        ("ARRAY<INT>", "ARRAY<INT NOT NULL> NOT NULL", True),
        ("ARRAY<INT>", "ARRAY<BIGINT>", False),
        ("ARRAY<INT>", "MULTISET<INT>", False),
        ("MAP<INT, STRING>", "MAP<INT NOT NULL, STRING NOT NULL>", True),
        ("MAP<INT, STRING>", "MAP<BIGINT, STRING>", False),
        ("MAP<INT, STRING>", "MAP<INT, BYTES>", False),
        ("VECTOR<FLOAT, 3>", "VECTOR<FLOAT, 4>", False),
        ("ROW<a INT>", "ROW<a INT NOT NULL>", True),
        ("ROW<a INT>", "ROW<b INT>", False),
        ("ROW<a INT>", "ROW<a INT, b INT>", False),
        ("ROW<a INT>", "INT", False),
    ],
)
def test_types_have_the_same_layout_if_their_values_do(one: str, other: str, alike: bool) -> None:
    assert same_layout(parse_type(one), parse_type(other)) is alike
    assert same_layout(parse_type(other), parse_type(one)) is alike


def test_members_have_the_same_layout_only_with_the_same_id() -> None:
    def row(field_id: int, comment: str | None) -> RowType:
        return RowType((DataField(field_id, "a", AtomicType("INT"), comment),))

    assert same_layout(row(1, "one"), row(1, None))
    assert not same_layout(row(1, None), row(2, None))
    assert not same_layout(ArrayType(row(1, None)), ArrayType(row(2, None)))


def test_nested_row_fields_are_those_of_the_outermost_rows() -> None:
    found = [
        [member.name for member in members]
        for members in nested_row_fields(parse_type("MAP<ROW<k INT>, ARRAY<ROW<a INT, b ROW<c INT>>>>"))
    ]
    assert found == [["k"], ["a", "b"]]
    assert list(nested_row_fields(parse_type("ARRAY<INT>"))) == []


def test_a_field_in_a_schema_file_has_only_its_set_keys() -> None:
    assert field_to_json(DataField(3, "a", AtomicType("INT", nullable=False))) == {
        "id": 3,
        "name": "a",
        "type": "INT NOT NULL",
    }
    whole = DataField(4, "b", parse_type("ARRAY<INT>"), description="text", default_value="1")
    assert field_to_json(whole) == {
        "id": 4,
        "name": "b",
        "type": {"type": "ARRAY", "element": "INT"},
        "description": "text",
        "defaultValue": "1",
    }


def test_quotes_in_names_and_comments_of_members_are_doubled() -> None:
    assert DataField(0, "a`b", AtomicType("INT"), "it's").sql() == "`a``b` INT 'it''s'"


def test_the_maximum_nesting_is_accepted_and_one_level_more_is_refused() -> None:
    data_type: Any = AtomicType("INT")
    for _ in range(MAX_NESTING - 1):
        data_type = ArrayType(data_type)
    check_nesting("a", data_type)
    with pytest.raises(
        InvalidInputError, match=r"the type of column 'a' has more than 64 levels of nested types\. Use fewer\."
    ):
        check_nesting("a", ArrayType(data_type))
