"""Columns that are decoded in lanes equal the records that fastavro reads, for all schemas and block sizes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import read_container, read_records, write_container
from lakelsm.format.avro.lanes import (
    Column,
    DecodedColumns,
    ListColumn,
    SliceColumn,
    UnsupportedLayoutError,
    decode_columns,
)
from tests.format.avro.avro_files import container, number, record

LONGS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-70, 70)
INTS = st.integers(-(1 << 31), (1 << 31) - 1)
TEXTS = st.text(max_size=5) | st.just("x" * 200)


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


INNER = record("inner", "long", ["null", "bytes"])
#: Types that lanes decode, each with values.
SHAPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("long", LONGS),
    ("int", INTS),
    ("string", TEXTS),
    ("bytes", st.binary(max_size=4)),
    ("null", st.none()),
    (["null", "long"], st.none() | LONGS),
    (["string", "null"], st.none() | TEXTS),
    (array("long"), st.lists(LONGS, max_size=3)),
    (array("string"), st.lists(TEXTS, max_size=3)),
    (array(["null", "int"]), st.lists(st.none() | INTS, max_size=3)),
    (["null", array("bytes")], st.none() | st.lists(st.binary(max_size=3), max_size=3)),
    (INNER, st.fixed_dictionaries({"f0": LONGS, "f1": st.none() | st.binary(max_size=3)})),
    ("double", st.floats(allow_nan=False)),
    (["null", "float"], st.none() | st.floats(width=32, allow_nan=False)),
]
#: Types that are skipped and that cannot be columns.
PASSED_OVER = ("null", "double", ["null", "float"])


def values(decoded: DecodedColumns, column: Column, rows: list[int]) -> list[Any]:
    """Return some values of a column as Python values."""
    present = [True] * len(rows) if column.present is None else column.present[rows].tolist()
    found: list[Any]
    if isinstance(column, ListColumn):
        bounds = [range(int(column.offsets[row]), int(column.offsets[row + 1])) for row in rows]
        found = [values(decoded, column.items, list(bound)) for bound in bounds]
    elif isinstance(column, SliceColumn):
        pairs = zip(column.offsets[rows].tolist(), column.lengths[rows].tolist())
        found = [decoded.data[start : start + length] for start, length in pairs]
    else:
        found = column.values[rows].tolist()
    return [value if there else None for value, there in zip(found, present)]


def as_bytes(value: Any) -> Any:
    if isinstance(value, list):
        return [as_bytes(item) for item in value]
    return value.encode() if isinstance(value, str) else value


@given(st.data(), st.sampled_from([1, 16, 60, 1 << 20]))
def test_lanes_and_fastavro_agree_on_every_value(data: st.DataObject, block_bytes: int) -> None:
    shapes = [SHAPES[0], *data.draw(st.lists(st.sampled_from(SHAPES), max_size=3, unique_by=str))]
    kinds = {f"f{at}": kind for at, (kind, _) in enumerate(shapes)}
    rows = st.fixed_dictionaries({f"f{at}": strategy for at, (_, strategy) in enumerate(shapes)})
    records = data.draw(st.lists(rows, max_size=12))
    halves = records[: len(records) // 2], records[len(records) // 2 :]
    schema = record("r", *kinds.values())
    files = [read_container(write_container(schema, half, "null", block_bytes), "m") for half in halves]
    wanted = [name for name, kind in kinds.items() if kind not in PASSED_OVER and kind != INNER]
    wanted += [f"{name}.{member}" for name, kind in kinds.items() if kind == INNER for member in ("f0", "f1")]
    decoded = decode_columns(files, wanted)
    assert decoded.count == len(records)
    assert set(decoded.columns) == set(wanted)
    every = list(range(decoded.count))
    for path, column in decoded.columns.items():
        name, _, member = path.partition(".")
        truth = [row[name][member] if member else row[name] for row in records]
        assert values(decoded, column, every) == [as_bytes(value) for value in truth], path


def test_a_boolean_is_decoded_from_its_byte() -> None:
    files = [read_container(container([(2, b"\1\0"), (1, b"\1")], schema=record("r", "boolean")), "m")]
    column = decode_columns(files, ["f0"]).columns["f0"]
    assert not isinstance(column, (ListColumn, SliceColumn))
    assert (column.values != 0).tolist() == [True, False, True]


def test_a_block_of_an_array_may_have_its_size() -> None:
    """A negative count is followed by the size of the block; an array may have several blocks."""
    lists = [
        number(-2) + number(2) + number(5) + number(6) + number(1) + number(7) + number(0),
        number(0),
        number(1) + number(8) + number(-1) + number(1) + number(9) + number(0),
    ]
    files = [read_container(container([(1, part) for part in lists], schema=record("r", array("long"))), "m")]
    decoded = decode_columns(files, ["f0"])
    assert values(decoded, decoded.columns["f0"], [0, 1, 2]) == [[5, 6, 7], [], [8, 9]]
    assert [found["f0"] for found in read_records(files[0])] == [[5, 6, 7], [], [8, 9]]


@pytest.mark.parametrize(
    ("kind", "block", "fault"),
    [
        ("bytes", number(3) + b"ab", "a record is truncated"),
        ("bytes", number(-1), "a text has a negative length"),
        ("bytes", number(1) + b"a" + b"left", "a block has bytes after its records"),
        (["null", "long"], number(2), "a union has a branch that is not in its schema"),
        (["null", "long"], number(-1), "a union has a branch that is not in its schema"),
        (array("long"), number(1 << 40) + number(0), "an array claims more items than there are bytes"),
        ("long", b"\xff" * 11, "a number has more than ten bytes"),
    ],
)
def test_a_block_that_does_not_decode_to_its_end_is_corrupt(kind: Any, block: bytes, fault: str) -> None:
    whole = number(0) if kind != "bytes" else number(1) + b"a"
    files = [read_container(container([(1, whole), (1, block)], schema=record("r", kind)), "m")]
    with pytest.raises(CorruptTableError, match=f"^m is not a readable Avro file: {fault}"):
        decode_columns(files, ["f0"])


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ({"type": "map", "values": "long"}, "f0 is of Avro type map"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "f0 is of Avro type enum"),
        ({"type": "fixed", "name": "z", "size": 2}, "f0 is of Avro type fixed"),
        (array(array("long")), "f0 is of Avro type array"),
        (array(record("inner", "long")), "an array of records"),
        (["null", "int", "string"], "f0 is a union of several types"),
        ("double", "f0 is of Avro type double"),
    ],
)
def test_unsupported_shapes_are_named(kind: Any, fault: str) -> None:
    with pytest.raises(UnsupportedLayoutError, match=fault):
        decode_columns([read_container(container([], schema=record("r", kind)), "m")], ["f0"])


def test_lanes_leave_long_arrays_to_fastavro() -> None:
    schema = record("r", {"type": "array", "items": "long"})
    long = number(300_000) + b"\0" * 300_000 + number(0)
    opened = read_container(container([(1, long), (1, b"\0")], schema=schema), "m")
    with pytest.raises(UnsupportedLayoutError, match="f0 has a long array"):
        decode_columns([opened], ["f0"])
    assert [len(found["f0"]) for found in read_records(opened)] == [300_000, 0]
