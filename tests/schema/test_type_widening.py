"""The type changes that keep every value."""

from __future__ import annotations

import pytest

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.schema.type_widening import can_change, can_widen, check_readable
from lakelsm.types import DataField, RowType, parse_type

WIDER = [
    ("INT", "INT NOT NULL"),
    ("INT", "BIGINT NOT NULL"),
    ("TINYINT", "INT"),
    ("BIGINT", "DOUBLE"),
    ("DECIMAL(10, 2)", "DOUBLE"),
    ("INT", "DECIMAL(12, 2)"),
    ("DECIMAL(10, 2)", "DECIMAL(12, 3)"),
    ("CHAR(3)", "STRING"),
    ("BINARY(3)", "BYTES"),
    ("TIMESTAMP(3)", "TIMESTAMP(6)"),
    ("BOOLEAN", "BOOLEAN"),
    ("BIGINT", "FLOAT"),
    ("DECIMAL(38, 10)", "DOUBLE"),
    ("FLOAT", "DOUBLE"),
    ("INT", "DECIMAL(10, 0)"),
    ("BIGINT", "DECIMAL(21, 2)"),
    ("DECIMAL(5, 2)", "DECIMAL(7, 4)"),
    ("CHAR(3)", "VARCHAR(3)"),
    ("VARCHAR(3)", "STRING"),
    ("BINARY(3)", "VARBINARY(3)"),
    ("TIMESTAMP(3)", "TIMESTAMP(9)"),
    ("TIME(0)", "TIME(3)"),
    ("ARRAY<INT>", "ARRAY<BIGINT>"),
    ("MAP<INT, FLOAT>", "MAP<BIGINT, DOUBLE>"),
    ("MULTISET<INT>", "MULTISET<BIGINT>"),
    ("VECTOR<FLOAT, 3>", "VECTOR<DOUBLE, 3>"),
]
NO_WIDER = [
    ("INT", "STRING"),
    ("STRING", "INT"),
    ("INT", "DECIMAL(9, 0)"),
    ("INT", "DECIMAL(11, 2)"),
    ("DECIMAL(10, 2)", "DECIMAL(10, 3)"),
    ("CHAR(3)", "CHAR(5)"),
    ("TIMESTAMP(6)", "DATE"),
    ("MAP<INT, INT>", "MAP<INT, STRING>"),
    ("DECIMAL(5, 0)", "INT"),
    ("BOOLEAN", "INT"),
    ("VARCHAR(3)", "CHAR(3)"),
    ("VARCHAR(4)", "VARCHAR(3)"),
    ("STRING", "BYTES"),
    ("DATE", "TIMESTAMP(3)"),
    ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)"),
    ("ARRAY<INT>", "MULTISET<INT>"),
    ("VECTOR<FLOAT, 3>", "VECTOR<FLOAT, 4>"),
    ("ARRAY<INT>", "INT"),
    ("MAP<INT, INT>", "MAP<INT, TINYINT>"),
]


@pytest.mark.parametrize(("old", "new"), WIDER)
def test_a_wider_type_holds_every_value_and_not_the_reverse(old: str, new: str) -> None:
    assert can_widen(parse_type(old), parse_type(new))
    assert can_widen(parse_type(new), parse_type(old)) is (new in ("INT NOT NULL", old))


@pytest.mark.parametrize(("old", "new"), NO_WIDER)
def test_a_type_that_could_lose_or_change_a_value_is_not_wider(old: str, new: str) -> None:
    assert not can_widen(parse_type(old), parse_type(new))


def row(text: str, *ids: int) -> RowType:
    kind = parse_type(text)
    assert isinstance(kind, RowType)
    return RowType(tuple(type(field)(at, field.name, field.type) for at, field in zip(ids, kind.fields)))


def test_members_of_rows_are_matched_by_id_and_may_be_added_or_dropped() -> None:
    old = row("ROW<x INT, y STRING>", 1, 2)
    assert can_widen(old, row("ROW<y BIGINT, z DATE>", 1, 3))
    assert not can_widen(old, row("ROW<x BIGINT, y INT>", 1, 2))


_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
#: Paimon's implicit casts between types of different roots (`DataTypeCasts`).
_IMPLICIT = {
    *((old, new) for at, old in enumerate(_INTEGERS) for new in _INTEGERS[at + 1 :]),
    *((old, new) for old in (*_INTEGERS, "DECIMAL") for new in ("FLOAT", "DOUBLE")),
    *((old, "DECIMAL") for old in (*_INTEGERS, "FLOAT", "DOUBLE")),
    ("FLOAT", "DOUBLE"),
    ("CHAR", "VARCHAR"),
    ("BINARY", "VARBINARY"),
    ("TIMESTAMP", "DATE"),
    ("TIMESTAMP", "TIME"),
    ("TIMESTAMP", "TIMESTAMP_LTZ"),
    ("TIMESTAMP_LTZ", "TIMESTAMP"),
}
_EACH_ROOT = (
    *_INTEGERS,
    *("FLOAT", "DOUBLE", "DECIMAL(20, 0)", "BOOLEAN", "CHAR(3)", "STRING", "BINARY(3)", "BYTES", "DATE", "TIME(3)"),
    *("TIMESTAMP(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "ARRAY<INT>", "MULTISET<INT>", "MAP<INT, INT>"),
    "ROW<a INT>",
)


@pytest.mark.parametrize("old", _EACH_ROOT)
def test_only_implicit_casts_change_the_root_of_a_type(old: str) -> None:
    source = parse_type(old)
    for new in _EACH_ROOT:
        target = parse_type(new)
        if source.root != target.root and can_widen(source, target):
            assert (source.root, target.root) in _IMPLICIT, f"'disable-explicit-type-casting' = 'true' forbids {new}"


def test_a_changed_precision_of_time_is_read_but_not_made_because_java_has_no_such_cast() -> None:
    for old, new in (("TIME(0)", "TIME(3)"), ("ARRAY<TIME(0)>", "ARRAY<TIME(3)>"), ("ROW<a TIME>", "ROW<a TIME(3)>")):
        assert can_widen(parse_type(old), parse_type(new))
        assert not can_change(parse_type(old), parse_type(new))
    assert can_change(parse_type("TIME(3)"), parse_type("TIME(3)"))
    assert can_change(parse_type("ARRAY<INT>"), parse_type("ARRAY<BIGINT>"))


def test_a_file_with_values_outside_the_new_type_is_refused_by_name() -> None:
    column = DataField(1, "c", parse_type("INT"))
    check_readable(column, DataField(1, "old", parse_type("SMALLINT")))
    with pytest.raises(UnsupportedFeatureError, match="column 'c' is BIGINT in a data file and INT in the table"):
        check_readable(column, DataField(1, "c", parse_type("BIGINT")))
