"""Evaluators: the types of columns, values of partitions, lists, and copies for other processes."""

from __future__ import annotations

import pickle
from datetime import date, datetime, timezone

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.expressions.duck_evaluator import DuckEvaluator, ListEvaluator, RowColumn, evaluated_type
from lakelsm.predicate.expression import BOOLEAN, INT, STRING
from lakelsm.types import DataField, parse_type, to_arrow
from tests.expressions.typed_rows import FIELDS, rows

BY_NAME = {field.name: RowColumn(f"c{at}", field) for at, field in enumerate(FIELDS)}


def evaluator(sql: str, *names: str) -> DuckEvaluator:
    return DuckEvaluator(sql, tuple(BY_NAME[name] for name in names), BOOLEAN, text="the text")


@pytest.mark.parametrize("name", [field.name for field in FIELDS])
def test_a_column_of_each_type_is_evaluated(name: str) -> None:
    column = BY_NAME[name]
    assert evaluator(f"({column.name} IS NULL)", name)(rows()).to_pylist() == [False, False, True, False]
    kind = evaluated_type(column.field.type)
    values = DuckEvaluator(column.name, (column,), kind, text="x")(rows())
    assert values.type == to_arrow(kind)
    same = DuckEvaluator(f"CASE WHEN TRUE THEN {column.name} END", (column,), kind, text="x")
    assert str(same(rows().slice(1, 2))) == str(values.slice(1, 2).take(pa.array([0, 1])))


def test_types_in_evaluators() -> None:
    for text, expected in (
        ("TIME(3)", "INT"),
        ("CHAR(2) NOT NULL", "STRING"),
        ("TIMESTAMP(9)", "TIMESTAMP(6)"),
        ("ARRAY<TIMESTAMP(9)>", "ARRAY<TIMESTAMP(6)>"),
        ("MAP<CHAR(2), ROW<a TIME(3)>>", "MAP<STRING, ROW<`a` INT>>"),
        ("MULTISET<VARCHAR(3)>", "MULTISET<STRING>"),
    ):
        assert evaluated_type(parse_type(text)).sql() == parse_type(expected).sql()


def test_values_of_partitions() -> None:
    upper = evaluator("(upper(c1) = 'AA')", "t")
    assert upper.of_values({"t": ["aa", None, "b"]}) == [True, None, False]
    year = DuckEvaluator("(year(c3) + year(c4))", (BY_NAME["d"], BY_NAME["m"]), INT, text="x")
    assert year.of_values({"d": [date(2020, 1, 1)], "m": [datetime(2021, 1, 1)]}) == [4041]
    instant = DuckEvaluator("epoch(c10)", (BY_NAME["z"],), parse_type("DOUBLE"), text="x")
    assert instant.of_values({"z": [datetime(1970, 1, 2, tzinfo=timezone.utc)]}) == [86400.0]
    assert year.of_values({"d": [object()], "m": [datetime(2021, 1, 1)]}) is None
    assert evaluator("(CAST(c1 AS INTEGER) = 1)", "t").of_values({"t": ["x"]}) is None


def test_an_evaluator_is_equal_to_its_copy() -> None:
    upper = evaluator("(upper(c1) = 'AA')", "t")
    listed = ListEvaluator(DuckEvaluator("lower(c1)", (BY_NAME["t"],), STRING, text="x"), ("aa",), negated=False)
    for each in (upper, listed):
        copy = pickle.loads(pickle.dumps(each))
        assert copy == each and repr(copy) == repr(each) and hash(copy) == hash(each)
        assert copy(rows()).to_pylist() == [True, False, None, False]


def test_a_list_can_be_negated() -> None:
    value = DuckEvaluator("lower(c1)", (BY_NAME["t"],), STRING, text="x")
    outside = ListEvaluator(value, ("aa", "b"), negated=True)
    assert outside(rows()).to_pylist() == [False, True, None, True]
    assert outside.of_values({"t": ["AA", None, "c"]}) == [False, None, True]
    assert outside.columns == {"t"}


def test_an_error_names_the_text() -> None:
    with pytest.raises(InvalidInputError, match=r"^condition 'the text': "):
        evaluator("(CAST(c1 AS INTEGER) = 1)", "t")(rows())


def test_chunks_and_batches_of_rows() -> None:
    field = DataField(0, "i", parse_type("INT"))
    double = DuckEvaluator("(c0 * 2)", (RowColumn("c0", field),), INT, text="x")
    table = pa.table({"i": pa.chunked_array([[1, 2], [], [3]], pa.int32())})
    assert double(table).to_pylist() == [2, 4, 6]
    assert double(table.to_batches()[0]).to_pylist() == [2, 4]
    assert double(table.slice(0, 0)).to_pylist() == []
