"""The watermark of a write: the maximum of a column less a delay, never lower than before, on both engines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.write.batch_write import BatchWriter
from lakelsm.write.event_time import EventTime
from tests.engines import TableEngine, each_case
from tests.table_files import root_of

HOUR = 3_600_000
AT = datetime(2026, 1, 31, 8)
MILLIS = 1_769_846_400_000  # AT in UTC


def create(engine: TableEngine, folder: Path, at: str = "TIMESTAMP", **options: str) -> Table:
    keys = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    return engine.create(folder, f"k INT, v STRING, at {at}", ("k",), (), keys)


def watermarks(table: Table) -> list[int | None]:
    return [snapshot.watermark for snapshot in table._store().snapshots.list()]


def test_watermarks_ascend_and_keep_the_latest_of_late_and_empty_batches(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path)
    engine.write(table, [(1, "a", AT)])
    assert watermarks(table) == [None]
    engine.write(table, [(1, "b", AT), (2, "c", None), (1, "d", AT - timedelta(hours=1))], event_time="AT")
    engine.write(table, [(3, "late", AT - timedelta(days=9))], event_time="at")
    engine.write(table, [(4, "no time", None)], event_time="at", event_time_delay="1 h")
    engine.write(table, [(5, "delayed", AT + timedelta(hours=3))], event_time="at", event_time_delay="2 h")
    assert watermarks(table) == [None, MILLIS, MILLIS, MILLIS, MILLIS + HOUR]
    assert engine.write(table, [], event_time="at").snapshot_id is None
    engine.delete(table, "k = 1")
    engine.compact(table, full=True)
    table.overwrite(engine.frame_for(table, [(9, "new", AT + timedelta(days=1))]))
    assert watermarks(table)[5:] == [MILLIS + HOUR] * 3


def test_the_rows_of_all_tasks_count(engine: TableEngine, tmp_path: Path) -> None:
    table = engine.create(tmp_path, "k INT, d DATE", ("k", "d"), ("d",), {"bucket": "3", "target-file-row-num": "5"})
    rows = [(k, date(2026, 1, 1) + timedelta(days=k % 4)) for k in range(100)]
    engine.write(table, rows, event_time="d", event_time_delay=timedelta(milliseconds=1))
    assert watermarks(table) == [int(datetime(2026, 1, 4, tzinfo=timezone.utc).timestamp() * 1000) - 1]


NEW_YORK = {"lakelsm__time_zone": "America/New_York"}
TIMES: dict[str, tuple[str, Any, dict[str, str], int]] = {
    "a date is its start": ("DATE", AT.date(), {}, MILLIS - 8 * HOUR),
    "milliseconds": ("TIMESTAMP(3)", AT + timedelta(microseconds=123_999), {}, MILLIS + 123),
    "before 1970, floored": ("TIMESTAMP(6)", datetime(1969, 12, 31, 23, 59, 59, 999_999), {}, -1),
    "nanoseconds": ("TIMESTAMP(9)", AT + timedelta(microseconds=1), {}, MILLIS),
    "a zone of its own": ("TIMESTAMP_LTZ(6)", AT.replace(tzinfo=timezone(timedelta(hours=1))), NEW_YORK, MILLIS - HOUR),
    "the zone of the table": ("TIMESTAMP", AT, NEW_YORK, MILLIS + 5 * HOUR),
    "a date in a zone": ("DATE", AT.date(), NEW_YORK, MILLIS - 3 * HOUR),
    "twice on the clock": ("TIMESTAMP", datetime(2026, 11, 1, 1, 30), NEW_YORK, 1_793_511_000_000),
    "the first time": ("TIMESTAMP", datetime(1, 1, 1), {}, -62_135_596_800_000),
    "the last time": ("TIMESTAMP", datetime(9999, 12, 31, 23, 59, 59, 999_999), NEW_YORK, 253_402_300_799_999),
}


@each_case("name", TIMES, ["nanoseconds", "a zone of its own"])
def test_times_of_all_types_are_epoch_milliseconds(engine: TableEngine, name: str, tmp_path: Path) -> None:
    kind, value, options, expected = TIMES[name]
    table = create(engine, tmp_path, kind, **options)
    engine.write(table, [(1, "a", value), (2, "b", None)], event_time="at")
    assert watermarks(table) == [expected]


def test_a_watermark_stays_within_the_years_1_to_9999(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, "TIMESTAMP(6)")
    beyond = pa.table({"k": pa.array([1], pa.int32()), "v": ["x"], "at": pa.array([-(2**62)], pa.timestamp("us"))})
    column = EventTime("at", 10**14).in_table(table._store())
    assert column.watermark(column.newest(beyond, None)) == -62_135_596_800_000
    beyond = beyond.set_column(2, "at", [pa.array([2**63 - 1], pa.timestamp("us"))])
    assert EventTime("at", 0).in_table(table._store()).watermark(2**63 - 1) == 253_402_300_799_999
    assert column.newest(beyond, None) == (2**63 - 1) // 1000
    local.write(table, [(1, "a", datetime(1, 1, 2))], event_time="at", event_time_delay="9 days")
    assert watermarks(table) == [-62_135_596_800_000]


@pytest.mark.parametrize(("before", "after"), [(-(2**63), MILLIS), (2**63 - 1, 2**63 - 1)])
def test_watermarks_of_other_engines_that_are_no_times(
    local: TableEngine, tmp_path: Path, before: int, after: int
) -> None:
    table = create(local, tmp_path)
    local.write(table, [(1, "a", AT)])
    file = Path(root_of(table), "snapshot", "snapshot-1")
    file.write_text(json.dumps({**json.loads(file.read_text()), "watermark": before}))
    local.write(table, [(1, "a", AT)], event_time="at")
    assert watermarks(table) == [before, after]


def appended(table: Table, engine: TableEngine, rows: list[Any], concurrent: Callable[[], Any], at: str) -> None:
    pending = [concurrent]

    def step(name: str) -> None:
        if name == at and pending:
            pending.pop()()

    store, product = table._store(), engine.product
    prepared = product.prepared_rows(store, engine.frame_for(table, rows), None)
    column = EventTime("at", 0).in_table(store)
    BatchWriter(product.writer(store), store, step).append(prepared, "slow", event_time=column)


@pytest.mark.parametrize("at", ["data-files-written", "delta-list-written"])
def test_of_two_commits_at_once_the_later_watermark_counts(local: TableEngine, tmp_path: Path, at: str) -> None:
    table = create(local, tmp_path)

    def other(hours: int) -> Callable[[], Any]:
        return lambda: local.write(table, [(7, "o", AT + timedelta(hours=hours))], event_time="at")

    # The row with the later time is replaced within its batch, and the batch is written again from its own files.
    appended(table, local, [(7, "a", AT + timedelta(hours=2)), (7, "b", AT)], other(1), at)
    assert watermarks(table) == [MILLIS + HOUR, MILLIS + 2 * HOUR]
    appended(table, local, [(7, "c", AT)], other(3), at)
    assert watermarks(table)[2:] == [MILLIS + 3 * HOUR] * 2


def test_a_replay_changes_nothing(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path)
    batch = {"commit_user": "u", "batch_id": 1}
    local.write(table, [(1, "a", AT)], event_time="at", **batch)
    again = local.write(table, [(1, "a", AT + timedelta(days=1))], event_time="at", **batch)
    assert again.already_committed and watermarks(table) == [MILLIS]


WRONG = [
    ({"event_time": "no"}, "'no'"),
    ({"event_time": "v"}, "event_time: column 'v' is of type STRING. Name a column of type DATE or TIMESTAMP."),
    ({"event_time": 3}, "event_time: expected the name of a column as text, got 3"),
    ({"event_time": ""}, "event_time"),
    ({"event_time_delay": "1 h"}, "event_time_delay: event_time is missing"),
    ({"event_time": "at", "event_time_delay": "soon"}, "event_time_delay: 'soon' is not a duration"),
    ({"event_time": "at", "event_time_delay": -1}, "event_time_delay: -1 is not a duration"),
    ({"event_time": "at", "event_time_delay": float("nan")}, "event_time_delay: nan is not a duration"),
    ({"event_time": "at", "event_time_delay": "2026-01-01"}, "is not a duration"),
    ({"event_time": "at", "event_time_delay": True}, "event_time_delay: True is not a duration"),
]


@pytest.mark.parametrize(("arguments", "reason"), WRONG)
def test_wrong_arguments_are_refused_and_nothing_is_written(
    local: TableEngine, tmp_path: Path, arguments: dict[str, Any], reason: str
) -> None:
    table = create(local, tmp_path)
    with pytest.raises(InvalidInputError) as refused:
        local.write(table, [(1, "a", AT)], **arguments)
    assert reason in str(refused.value)
    assert os.listdir(root_of(table)) == ["schema"]


def test_a_column_of_a_schema_merge_can_be_the_event_time(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path)
    rows = [{"k": 1, "v": "a", "at": AT, "seen": AT + timedelta(hours=1), "note": "x"}]
    with pytest.raises(InvalidInputError, match="'note' is of type STRING"):
        table.write(rows, merge_schema=True, event_time="note")
    assert table._store().schema.id == 0, "a refused column left a schema change"
    table.write(rows, merge_schema=True, event_time="seen")
    assert watermarks(table) == [MILLIS + HOUR]


def test_a_partial_update_without_the_column_keeps_the_watermark(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, merge_engine="partial-update")
    table.write([{"k": 1, "at": AT}], event_time="at")
    table.write([{"k": 1, "v": "x"}], event_time="at")
    assert watermarks(table) == [MILLIS, MILLIS]


def test_messages_of_tasks_keep_the_latest_watermark() -> None:
    messages = TaskMessages(watermark=5)
    messages.add(TaskMessages())
    messages.add(TaskMessages(watermark=7))
    messages.add(TaskMessages(watermark=-1))
    assert messages.watermark == 7
    assert TaskMessages.of_row([column[0].as_py() for column in messages.to_batch().columns]) == messages
