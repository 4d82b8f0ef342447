"""What is wrong with a value at any depth: NULL where a part is NOT NULL, a number that is no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from lakelsm.types import parse_columns, parse_type
from lakelsm.write.value_faults import value_faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = parse_columns(
    "r ROW<x INT NOT NULL, y STRING>, a ARRAY<ROW<p INT NOT NULL>>, n ARRAY<INT NOT NULL>, "
    "m MAP<STRING, INT NOT NULL>, d MAP<STRING, ARRAY<ROW<q INT NOT NULL>>>, t TIME(3), u ARRAY<TIME(0)>"
)
_TYPES = (
    "r STRUCT<x: INT, y: STRING>, a ARRAY<STRUCT<p: INT>>, n ARRAY<INT>, m MAP<STRING, INT>, "
    "d MAP<STRING, ARRAY<STRUCT<q: INT>>>, t INT, u ARRAY<INT>"
)
_NULL = "which is NOT NULL, is NULL in a row of the DataFrame: filter or fill such rows"
_TIME = "is a number of milliseconds from 0 to 86399999, and a row has another"
#: A column, a value with a fault, and how the fault is told.
FAULTY = [
    ("r", (None, "b"), f"'r.x', {_NULL}"),
    ("a", [None, (None,)], f"'a.element.p', {_NULL}"),
    ("n", [1, None], f"'n.element', {_NULL}"),
    ("m", {"a": 1, "b": None}, f"'m.value', {_NULL}"),
    ("d", {"a": None, "b": [(1,), (None,)]}, f"'d.value.element.q', {_NULL}"),
    ("t", 86_400_000, f"'t' (TIME(3)) {_TIME}"),
    ("t", -1, f"'t' (TIME(3)) {_TIME}"),
    ("u", [0, 86_400_000], f"'u.element' (TIME(0)) {_TIME}"),
]
#: Values without a fault; a part of a row that is NULL itself is not there.
SOUND = [
    {"r": (7, None), "a": [(7,), None], "n": [1], "m": {"a": 1}, "d": {"a": None, "b": [None]}, "t": 86_399_999},
    {"a": [], "n": [], "m": {}, "d": {}, "t": 0, "u": [None, 0]},
    {},
]


def test_each_fault_is_found_where_it_is_and_nowhere_else(spark: SparkSession) -> None:
    values = [{name: value} for name, value, _ in FAULTY] + SOUND
    frame = spark.createDataFrame([tuple(value.get(field.name) for field in FIELDS) for value in values], _TYPES)
    faults = [(field.name, finds, text) for field in FIELDS for finds, text in value_faults(field.type, field.name)]
    assert {text for _, _, text in faults} == {text for _, _, text in FAULTY}
    told = [F.when(finds(F.col(name)), F.lit(text)) for name, finds, text in faults]
    found = [row[0] for row in frame.coalesce(1).select(F.array_compact(F.array(*told))).collect()]
    assert found == [[text] for _, _, text in FAULTY] + [[]] * len(SOUND)


@pytest.mark.parametrize(
    "kind", ["INT NOT NULL", "STRING", "ROW<x INT>", "MAP<INT NOT NULL, STRING>", "ARRAY<ARRAY<INT>>"]
)
def test_a_value_that_can_have_no_fault_costs_no_check(kind: str) -> None:
    assert value_faults(parse_type(kind), "c") == []
