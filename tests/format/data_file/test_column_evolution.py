"""Nested columns of older schemas are read by field id, whatever their layout in memory."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.data_file.column_evolution import cast_column, evolve_array
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema_changes import AddColumn, ColumnChange, DropColumn, RenameColumn, UpdateColumnType
from lakelsm.types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    parse_type,
    same_layout,
    to_arrow,
)
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP

INT, TEXT, LONG = parse_type("INT"), parse_type("STRING"), parse_type("BIGINT")


def change(column: str, *changes: ColumnChange) -> tuple[DataType, DataType]:
    """Return the type of column c before and after the changes, each of which makes a new schema."""
    first = last = create_schema(f"id INT, c {column}", ["id"], (), {"bucket": "1"})
    for one in changes:
        last = apply_changes(last, [one], 0)
    return first.field("c").type, last.field("c").type


CASES: dict[str, tuple[str, tuple[ColumnChange, ...], Any, Any]] = {
    "a member is added": ("ROW<a INT>", (AddColumn(("c", "b"), TEXT),), {"a": 1}, {"a": 1, "b": None}),
    "a member is dropped": ("ROW<a INT, b STRING>", (DropColumn(("c", "a")),), {"a": 1, "b": "x"}, {"b": "x"}),
    "a member is renamed": ("ROW<a INT, b INT>", (RenameColumn(("c", "a"), "z"),), {"a": 1, "b": 2}, {"z": 1, "b": 2}),
    "a member is widened": ("ROW<a INT>", (UpdateColumnType(("c", "a"), LONG),), {"a": 1}, {"a": 1}),
    "a dropped member comes back": (
        "ROW<a INT, b STRING>",
        (DropColumn(("c", "b")), AddColumn(("c", "b"), TEXT)),
        {"a": 1, "b": "old"},
        {"a": 1, "b": None},
    ),
    "two members change names": (
        "ROW<a INT, b INT>",
        (RenameColumn(("c", "a"), "t"), RenameColumn(("c", "b"), "a"), RenameColumn(("c", "t"), "b")),
        {"a": 1, "b": 2},
        {"b": 1, "a": 2},
    ),
    "a deep member": (
        "ROW<r ROW<x INT, y INT>>",
        (DropColumn(("c", "r", "x")), AddColumn(("c", "r", "n"), TEXT)),
        {"r": {"x": 1, "y": 2}},
        {"r": {"y": 2, "n": None}},
    ),
    "a member of an array's elements": (
        "ARRAY<ROW<x INT>>",
        (AddColumn(("c", "element", "y"), TEXT),),
        [{"x": 1}, None, {"x": None}],
        [{"x": 1, "y": None}, None, {"x": None, "y": None}],
    ),
    "a member of a map's values": (
        "MAP<STRING, ROW<x INT, y INT>>",
        (DropColumn(("c", "value", "x")),),
        [("k", {"x": 1, "y": 2}), ("l", None)],
        [("k", {"y": 2}), ("l", None)],
    ),
    "an array's elements are widened": ("ARRAY<INT>", (UpdateColumnType(("c", "element"), LONG),), [1, None], [1, None]),
}
TYPES = {name: change(column, *changes) for name, (column, changes, _, _) in CASES.items()}


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_values_follow_the_change(name: str, data: st.DataObject) -> None:
    *_, before, after = CASES[name]
    source, target = TYPES[name]
    picks = data.draw(st.lists(st.booleans(), max_size=6))
    values = [before if pick else None for pick in picks]
    start = data.draw(st.integers(0, len(values)))
    array = pa.array(values, to_arrow(source)).slice(start)
    found = evolve_array(array, source, target)
    found.validate(full=True)
    assert found.type == to_arrow(target)
    assert found.to_pylist() == [after if pick else None for pick in picks[start:]]


def test_unchanged_columns_are_not_copied() -> None:
    for text in ("ROW<a INT, b ARRAY<STRING>>", "MAP<STRING, INT>", "MULTISET<STRING>", "INT"):
        source, target = change(text)
        array = pa.array([None], to_arrow(source))
        assert evolve_array(array, source, target) is array


def test_types_with_other_nullability_or_comments_have_the_same_layout() -> None:
    source, target = change("ROW<a INT, b INT>", DropColumn(("c", "b")), AddColumn(("c", "b"), INT))
    assert isinstance(source, RowType) and isinstance(target, RowType)
    assert not same_layout(source, target)
    assert to_arrow(source) == to_arrow(target), "Arrow does not distinguish them"
    assert same_layout(source, source.with_nullable(False))
    described = replace(
        source, fields=tuple(replace(f, description="x", type=f.type.with_nullable(False)) for f in source.fields)
    )
    assert same_layout(source, described)
    assert same_layout(ArrayType(INT), ArrayType(INT.with_nullable(False)))
    assert not same_layout(ArrayType(INT), MultisetType(INT))
    assert not same_layout(ArrayType(source), ArrayType(target))
    assert not same_layout(MapType(TEXT, source), MapType(TEXT, target))
    assert not same_layout(INT, LONG)


def test_times_in_nested_values_are_floored() -> None:
    before, after = dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 23, 59, 59, 999000)
    fine, coarse = pa.timestamp("us"), pa.timestamp("ms")
    for values, source, wanted, target in (
        ([[before, None], None], pa.list_(fine), [[after, None], None], pa.list_(coarse)),
        ([{"t": before}, None], pa.struct([("t", fine)]), [{"t": after}, None], pa.struct([("t", coarse)])),
        ([[("k", before)], None], pa.map_(pa.string(), fine), [[("k", after)], None], pa.map_(pa.string(), coarse)),
    ):
        found = cast_column(pa.chunked_array([pa.array(values, source)]), target)
        assert found.type == target
        assert found.to_pylist() == wanted


def test_a_time_keeps_its_value_if_its_precision_becomes_nanoseconds() -> None:
    far = pa.array([dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1), None], pa.timestamp("us"))
    for array in (far, pa.ListArray.from_arrays([0, 3], far)):
        target = NANO_TIMESTAMP if array is far else pa.list_(NANO_TIMESTAMP)
        assert cast_column(cast_column(array, target), array.type).equals(array)


def test_a_time_outside_the_range_of_microseconds_is_refused_by_casts() -> None:
    far = pa.array([(1 << 63) // 1000 + 1], pa.timestamp("ms"))
    for target in (NANO_TIMESTAMP, pa.timestamp("us")):
        with pytest.raises(UnsupportedFeatureError, match="294246"):
            cast_column(far, target)


@pytest.mark.parametrize("sql", [f"DECIMAL({sizes})" for sizes in ("5, 2", "18, 3", "18, 18", "19, 1", "38, 20")])
def test_a_decimal_is_cast_to_a_floating_point_number_as_java_does(sql: str) -> None:
    kind, random = parse_type(sql), Random(5)
    assert isinstance(kind, AtomicType)
    digits, scale = kind.precision or 0, kind.scale or 0
    numbers = [0, 35, 10**digits - 1, 1 - 10**digits]
    numbers += (random.randrange(10 ** random.randint(1, digits)) for _ in range(999))
    # Up to 18 digits Java divides a rounded number; its cast to FLOAT starts from that DOUBLE.
    doubles = [number / 10**scale if digits > 18 else float(number) / 10**scale for number in numbers]
    signed = [Decimal((int(n < 0), Decimal(abs(n)).as_tuple().digits, -scale)) for n in numbers]
    decimals = pa.array(signed, to_arrow(kind))
    column = pa.concat_arrays([pa.nulls(1, decimals.type), decimals])
    assert cast_column(column, pa.float64()).to_pylist() == [None, *doubles]
    floats = np.array(doubles).astype(np.float32).tolist()
    assert cast_column(column.slice(1), pa.float32()).to_pylist() == floats
    assert len(cast_column(column.slice(0, 0), pa.float64())) == 0
