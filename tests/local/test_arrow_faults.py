"""Faults in parts of values are found at any depth, but not in parts of a NULL row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.local.arrow_faults import check_values
from lakelsm.types import parse_columns, to_arrow

FIELDS = {
    field.name: field.type
    for field in parse_columns(
        "r ROW<x INT NOT NULL, y STRING>, a ARRAY<ROW<p INT NOT NULL>>, n ARRAY<INT NOT NULL>, "
        "m MAP<STRING, INT NOT NULL>, d MAP<STRING, ARRAY<ROW<q INT NOT NULL>>>, t TIME(3), u ARRAY<TIME(0)>, "
        "s MULTISET<STRING>"
    )
}
_NULL = "which is NOT NULL, is NULL in a row. Remove or fill such rows"
_TIME = "has a number outside 0 to 86399999 (milliseconds) in a row"
#: A column, a value with a fault, and the text of the fault, which is the same for Spark (tests/frames/test_prepare.py).
FAULTY: list[tuple[str, Any, str]] = [
    ("r", {"x": None, "y": "b"}, f"'r.x', {_NULL}"),
    ("a", [None, {"p": None}], f"'a.element.p', {_NULL}"),
    ("n", [1, None], f"'n.element', {_NULL}"),
    ("m", [("a", 1), ("b", None)], f"'m.value', {_NULL}"),
    ("d", [("a", None), ("b", [{"q": 1}, {"q": None}])], f"'d.value.element.q', {_NULL}"),
    ("s", [("a", None)], f"'s.value', {_NULL}"),
    ("t", 86_400_000, f"'t' (TIME(3)) {_TIME}"),
    ("t", -1, f"'t' (TIME(3)) {_TIME}"),
    ("u", [0, 86_400_000], f"'u.element' (TIME(0)) {_TIME}"),
]
#: Values without a fault.
SOUND: dict[str, list[Any]] = {
    "r": [{"x": 7, "y": None}, None],
    "a": [[{"p": 7}, None], [], None],
    "n": [[1], [], None],
    "m": [[("a", 1)], [], None],
    "d": [[("a", None), ("b", [None])], None],
    "s": [[("a", 2)], [], None],
    "t": [86_399_999, 0, None],
    "u": [[None, 0], None],
}


def column(name: str, values: list[Any]) -> pa.Array:
    """Return the values in stored form; times are numbers."""
    kind = to_arrow(FIELDS[name])
    of_numbers = {"t": pa.int32(), "u": pa.list_(pa.int32())}
    plain = {"r": [("x", pa.int32()), ("y", pa.string())]}
    loose = pa.struct(plain[name]) if name in plain else of_numbers.get(name, kind)
    return cast_column(pa.array(values, loose), kind)


@pytest.mark.parametrize(("name", "value", "fault"), FAULTY, ids=str)
def test_each_fault_has_the_text_of_a_spark_frame_unless_it_is_outside_a_slice(name: str, value: Any, fault: str) -> None:
    sound = SOUND[name]
    with pytest.raises(InvalidInputError) as caught:
        check_values(column(name, [*sound, value, *sound]), FIELDS[name], name)
    assert str(caught.value) == f"Nothing was written: {fault}."
    check_values(column(name, [value, *sound, value]).slice(1, len(sound)), FIELDS[name], name)


@pytest.mark.parametrize("name", SOUND)
def test_values_without_a_fault_pass(name: str) -> None:
    check_values(column(name, SOUND[name]), FIELDS[name], name)


def test_parts_of_a_null_row_are_not_checked() -> None:
    rows = pa.StructArray.from_arrays(
        [pa.array([None, 1], pa.int32()), pa.array(["a", "b"])], names=["x", "y"], mask=pa.array([True, False])
    )
    check_values(rows, FIELDS["r"], "r")
