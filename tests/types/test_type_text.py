"""Type text, JSON form and DDL: what is read, written and refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.types import (
    MAX_LENGTH,
    UNASSIGNED_ID,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    parse_columns,
    parse_type,
    type_to_json,
)

_names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


def _of(*roots: str, **parameters: st.SearchStrategy[int]) -> st.SearchStrategy[AtomicType]:
    return st.builds(AtomicType, st.sampled_from(roots), nullable=st.booleans(), **parameters)


def _atomic_types() -> st.SearchStrategy[AtomicType]:
    return st.one_of(
        _of("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "VARIANT", "BLOB"),
        _of("CHAR", "VARCHAR", "BINARY", "VARBINARY", length=st.integers(1, 300) | st.just(MAX_LENGTH)),
        _of("TIME", "TIMESTAMP", "TIMESTAMP_LTZ", precision=st.integers(0, 9)),
        st.integers(1, 38).flatmap(lambda p: _of("DECIMAL", precision=st.just(p), scale=st.integers(0, p))),
    )


def _nested_types(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    members = st.builds(DataField, st.just(UNASSIGNED_ID), _names, inner, st.none() | _names)
    return st.one_of(
        st.builds(ArrayType, inner, st.booleans()),
        st.builds(MultisetType, inner, st.booleans()),
        st.builds(VectorType, inner, st.integers(1, 9), st.booleans()),
        st.builds(MapType, inner, inner, st.booleans()),
        st.builds(RowType, st.lists(members, max_size=3).map(tuple), st.booleans()),
    )


data_types = st.recursive(_atomic_types(), _nested_types, max_leaves=6)


@given(data_types)
def test_a_type_is_read_back_from_its_text(data_type: DataType) -> None:
    assert parse_type(data_type.sql()) == data_type


@given(data_types)
def test_a_type_is_read_back_from_its_schema_file_form(data_type: DataType) -> None:
    assert parse_type(type_to_json(data_type)) == data_type


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("decimal", "DECIMAL(10, 0)"),
        ("NUMERIC(5)", "DECIMAL(5, 0)"),
        ("dec(5,2)", "DECIMAL(5, 2)"),
        ("integer", "INT"),
        ("double precision", "DOUBLE"),
        ("char", "CHAR(1)"),
        ("VARCHAR", "VARCHAR(1)"),
        ("varchar(2147483647)", "STRING"),
        ("BINARY", "BINARY(1)"),
        ("VARBINARY(2147483647) NOT NULL", "BYTES NOT NULL"),
        ("time", "TIME(0)"),
        ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
        ("timestamp", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"),
        ("TIMESTAMP_LTZ", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("timestamp_ltz(3) not null", "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL"),
        ("timestamp with local time zone", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("INT NULL", "INT"),
        ("INT NOT NULL ARRAY", "ARRAY<INT NOT NULL>"),
        ("struct<a: int, b: array<string>>", "ROW<`a` INT, `b` ARRAY<STRING>>"),
        ("ROW<c1 INT,c2 STRING>", "ROW<`c1` INT, `c2` STRING>"),
        ("MAP<INT,STRING>", "MAP<INT, STRING>"),
    ],
)
def test_paimons_spellings_of_a_type_are_read(text: str, canonical: str) -> None:
    assert parse_type(text).sql() == canonical


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a type"),
        ("INTT", "did you mean INT"),
        ("LONG", "Paimon's for LONG is BIGINT"),
        ("ARRAY<text>", "Paimon's for TEXT is STRING"),
        ("DATETIME", "Paimon's for DATETIME is TIMESTAMP"),
        ("TIMESTAMP WITH TIME ZONE", "WITH LOCAL TIME ZONE"),
        ("DECIMAL(39, 2)", "precision 39"),
        ("DECIMAL(5, 6)", "scale 6"),
        ("TIMESTAMP(10)", "precision 10"),
        ("CHAR(0)", "length 0"),
        ("INT(4)", "expected the end"),
        ("ARRAY<INT", "expected '>'"),
        ("MAP<INT>", "expected ','"),
        ("DECIMAL(x)", "expected a whole number"),
        ("INT NOT NULL NOT NULL", "expected the end"),
        ("ROW<`a INT>", "unclosed quote"),
        ("id BIGINT PRIMARY KEY", "expected a type"),
    ],
)
def test_bad_type_text_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_type(text)
    assert reason in str(caught.value)


def test_an_unsupported_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="GEOMETRY"):
        parse_type("GEOMETRY")


def test_columns_are_read_from_ddl() -> None:
    columns = parse_columns("id BIGINT NOT NULL COMMENT 'it''s', `a b` STRING, r ROW<x INT 'inner'>")
    assert [column.name for column in columns] == ["id", "a b", "r"]
    assert [column.type.sql() for column in columns] == ["BIGINT NOT NULL", "STRING", "ROW<`x` INT 'inner'>"]
    assert [column.description for column in columns] == ["it's", None, None]


def test_a_primary_key_clause_in_ddl_names_the_argument() -> None:
    with pytest.raises(InvalidInputError, match="primary_key="):
        parse_columns("id BIGINT PRIMARY KEY")


@pytest.mark.parametrize(
    "text",
    [
        "ARRAY<" * 10_000 + "INT" + ">" * 10_000,
        "ARRAY<" * 10_000,
        "ROW<a " * 3_000 + "INT" + ">" * 3_000,
        "MAP<INT, " * 65 + "INT" + ">" * 65,
        "INT" + " ARRAY" * 10_000,
        "INT" + " MULTISET" * 65,
    ],
    ids=lambda text: text[:8],
)
def test_a_type_with_endless_nesting_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="more than 64 levels of nested types"):
        parse_type(text)
    with pytest.raises(InvalidInputError, match="more than 64 levels of nested types"):
        parse_columns(f"a {text}")


@pytest.mark.parametrize("text", ["VARCHAR(" + "9" * 100_000 + ")", "DECIMAL(" + "9" * 5000 + ", 1)"])
def test_a_number_of_many_digits_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="a whole number"):
        parse_type(text)
