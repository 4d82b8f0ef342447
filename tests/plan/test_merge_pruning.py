"""The values of a merge's source in bounded memory, and the conditions that follow from them."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.plan.merge_pruning import SortedKeys, SourceValues, prunable_pairs, pruning_columns
from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.predicate import Constant, columns
from lakelsm.schema.table_schema import TableSchema
from tests.engines import TableEngine

PAIRS = {"k": "a", "s": "b", "d": "c"}


@pytest.fixture
def schema(local: TableEngine, tmp_path: Path) -> TableSchema:
    return local.create(tmp_path, "k TINYINT, s STRING, d DATE, f DOUBLE", ["k", "s", "d", "f"]).schema


def values(*batches: pa.RecordBatch) -> SourceValues:
    found = SourceValues.of_columns({"a": True, "b": False, "c": True})
    for batch in batches:
        part = SourceValues.of_columns({"a": True, "b": False, "c": True})
        part.add(batch)
        found.merge(pickle.loads(pickle.dumps(part)))
    return found


def rows(numbers: list[int | None], texts: list[str | None], days: list[int | None]) -> pa.RecordBatch:
    kinds = [pa.int64(), pa.string(), pa.date32()]
    return pa.RecordBatch.from_arrays([pa.array(*each) for each in zip([numbers, texts, days], kinds)], ["a", "b", "c"])


def kept(schema: TableSchema, found: SourceValues, numbers: list[int | None]) -> list[int | None]:
    days = [dt.date(1970, 1, 2)] * len(numbers)
    table = pa.table({"k": pa.array(numbers, pa.int8()), "s": ["x"] * len(numbers), "d": days})
    return table.filter(matching(found.condition(schema, {"k": "a"}), table))["k"].to_pylist()  # type: ignore[no-any-return]


def test_conditions_keep_every_row_with_a_value(schema: TableSchema) -> None:
    numbers: list[int | None] = [1, 2, 5, None, -128, 127]
    assert kept(schema, values(rows([5, 1], ["x", "y"], [1, 1]), rows([1], ["z"], [2])), numbers) == [1, 5]
    assert kept(schema, values(rows([None, 2], ["x", "y"], [1, 1])), numbers) == [2, None]
    assert kept(schema, values(rows([None], ["x"], [1])), numbers) == [None]
    assert kept(schema, values(rows([128, 1 << 40], ["x", "y"], [1, 1])), numbers) == []
    assert values().condition(schema, PAIRS) == Constant(False)


def test_many_values_become_a_range(schema: TableSchema) -> None:
    many = rows(list(range(-1500, 3)), ["x"] * 1503, [1] * 1503)
    found = values(many, rows([2, None], ["x", "y"], [1, 2]))
    assert found.rows == 1505 and len(pickle.dumps(found)) < 20_000
    assert kept(schema, found, [1, 2, 5, None, -128]) == [1, 2, None, -128]
    above = values(rows(list(range(500, 1800)), ["x"] * 1300, [1] * 1300))
    assert kept(schema, above, [1, 127]) == []


def test_days_that_python_does_not_have_exclude_nothing(schema: TableSchema) -> None:
    found = values(rows([1], ["x"], [5_000_000]))
    assert columns(found.condition(schema, PAIRS)) == {"k", "s"}


def test_columns_of_types_without_an_exact_order_are_left_out(schema: TableSchema) -> None:
    assert prunable_pairs(schema, {"k": "a", "f": "a"}) == {"k": "a"}
    assert pruning_columns(schema, {"s": "b", "f": "c", "k": "a"}) == {"b": False, "a": True}


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_every_arrow_type(schema: TableSchema, kind: pa.DataType) -> None:
    found = SourceValues.of_columns({"b": False})
    found.add(pa.RecordBatch.from_arrays([pa.array(["b", "a", None]).cast(kind)], ["b"]))
    table = pa.table({"s": ["a", "c", None]})
    assert table.filter(matching(found.condition(schema, {"s": "b"}), table))["s"].to_pylist() == ["a", None]


def test_too_many_sorted_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SortedKeys, "_MAX_KEYS", 3)
    known = SortedKeys()
    known.add(pa.array([1, 1, 2, 3]))
    assert known.keys() is not None
    known.add(pa.array([1]))
    known.add(pa.array([1]))
    assert known.keys() is None
    other = SortedKeys()
    other.merge(known)
    assert other.keys() is None


def test_columns_without_equal_values() -> None:
    found = values(rows([1, 3], ["x", "x"], [1, 1]), rows([2], ["y"], [2]))
    assert found.unique_columns() == ["a"]
    assert values(rows([1, 3], ["x", "x"], [1, 1]), rows([3], ["y"], [2])).unique_columns() == []
    assert values(rows([1, None], ["x", "x"], [1, 2])).unique_columns() == ["c"]
    assert values().unique_columns() == ["a", "c"]
