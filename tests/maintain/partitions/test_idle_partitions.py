"""Partitions marked as done because their time has passed: by the clock or by watermarks, also after a restart."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Catalog, Table
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.maintain.partitions import idle_partitions as module
from lakelsm.maintain.partitions.idle_partitions import mark_idle_after_commit
from lakelsm.schema_changes import SetOption
from tests.cli.called import Called
from tests.maintain.partitions.partitioned_table import fill, partitioned

HOUR, DAY = 3_600_000, 86_400_000
BY_TIME = {"partition.idle-time-to-done": "1 h", "partition.time-interval": "1 d"}
BY_WATERMARK = {**BY_TIME, "partition.mark-done-action.mode": "watermark"}
Restart = Callable[[], None]


@pytest.fixture(params=["in one process", "after restarts"])
def restart(request: pytest.FixtureRequest) -> Iterator[Restart]:
    """Before each step, the process keeps what it knows, or loses it."""
    module._KNOWN.clear()
    yield module._KNOWN.clear if request.param == "after restarts" else lambda: None
    module._KNOWN.clear()


def later(table: Table, millis: int) -> Environment:
    """Return an environment whose clock is ``millis`` after the newest commit."""
    newest = table._store().snapshots.latest()
    assert newest is not None
    now = newest.time_millis + millis
    return replace(SYSTEM, clock=lambda: now, local_offset=lambda seconds: 0)


def done(folder: Path) -> dict[str, tuple[int, int]]:
    """Return when each partition was first and last marked as done."""
    files = sorted(folder.rglob("_SUCCESS"))
    found = {path.parent.name.partition("=")[2]: json.loads(path.read_text()) for path in files}
    return {name: (values["creationTime"], values["modificationTime"]) for name, values in found.items()}


def test_by_the_clock_a_partition_is_done_after_its_last_write_and_again_after_a_late_row(
    tmp_path: Path, restart: Restart
) -> None:
    table = partitioned(tmp_path, **BY_TIME)
    fill(table, "2026-01-01", "2999-01-01")
    assert done(tmp_path) == {}
    restart()
    mark_idle_after_commit(table._store(), later(table, HOUR))
    assert done(tmp_path) == {}
    first = later(table, HOUR + 1)
    for _ in range(2):
        restart()
        mark_idle_after_commit(table._store(), first)
    assert done(tmp_path) == {"2026-01-01": (first.clock(), first.clock())}
    # A mark by the clock of a test is in the future of the next commit, so it is moved to the past.
    path = tmp_path / "db.db/t/dt=2026-01-01/_SUCCESS"
    moved = first.clock() - 2 * HOUR
    path.write_text(json.dumps({"creationTime": moved, "modificationTime": moved}))
    fill(table, "2026-01-01")
    restart()
    mark_idle_after_commit(table._store(), later(table, HOUR))
    assert done(tmp_path)["2026-01-01"] == (moved, moved)
    again = later(table, HOUR + 1)
    restart()
    mark_idle_after_commit(table._store(), again)
    assert done(tmp_path) == {"2026-01-01": (moved, again.clock())}


def test_by_watermarks_a_partition_is_done_when_events_are_past_its_end(tmp_path: Path, restart: Restart) -> None:
    table = events(tmp_path, **BY_WATERMARK)

    def write(day: int, **at: int) -> dict[str, tuple[int, int]]:
        restart()
        time = datetime(2026, 1, day) + timedelta(**at)
        rows = [{"dt": f"2026-01-{min(day, 2):02}", "id": 1, "at": time}]
        table.write(rows, event_time="at", event_time_delay="1 h")
        return done(tmp_path)

    assert write(1, hours=12) == write(2, hours=1) == write(2, hours=2) == {}
    [(name, first)] = write(2, hours=2, milliseconds=1).items()
    assert name == "2026-01-01"
    restart()
    table.write([{"dt": "2026-01-01", "id": 2, "at": datetime(2026, 1, 1)}], event_time="at")  # Watermark 01:00:00.001.
    assert write(2, hours=3) == write(2, hours=3, milliseconds=1) == {name: first}
    again = write(2, hours=3, milliseconds=2)[name]
    assert again[0] == first[0] and again[1] > first[1]
    assert write(2, hours=4) == write(2, hours=5) == {name: again}


def events(folder: Path, **options: object) -> Table:
    return Catalog(str(folder)).create_table(
        "db.t",
        "dt STRING, id INT, at TIMESTAMP",
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": 1, "write-only": True, **options},
    )


def test_a_stream_of_old_events_marks_its_days_with_every_batch(tmp_path: Path, restart: Restart) -> None:
    table = events(tmp_path, **{**BY_WATERMARK, "snapshot.num-retained.min": 1, "snapshot.num-retained.max": 1})
    for day in range(1, 6):
        restart()
        time = datetime(2020, 5, day, 23)
        table.write([{"dt": f"2020-05-{day:02}", "id": 1, "at": time}], event_time="at")
        table.maintenance.expire_snapshots(retain_last=1, older_than="0 s")
    assert list(done(tmp_path)) == ["2020-05-01", "2020-05-02", "2020-05-03", "2020-05-04"]


@pytest.mark.parametrize(("mode", "marked"), [(BY_TIME, 6), (BY_WATERMARK, 8)])
def test_jobs_that_run_more_often_than_the_idle_time_and_keep_one_snapshot_mark_their_partitions(
    tmp_path: Path, mode: dict[str, str], marked: int
) -> None:
    """The commit that wrote the first day has expired when its idle time ends, and no process lives so long."""
    table = events(tmp_path, **{**mode, "partition.idle-time-to-done": "6 h", "lakelsm.time-zone": "UTC"})
    first = None
    for hour in range(marked + 1):
        module._KNOWN.clear()
        time = datetime(2026, 1, 1, 23) + timedelta(hours=hour)
        table.write([{"dt": f"{time:%Y-%m-%d}", "id": 1, "at": time}], event_time="at")
        table.maintenance.expire_snapshots(retain_last=1, older_than="0 s")
        newest = table._store().snapshots.latest()
        assert newest is not None
        first = first or newest.time_millis
        clock = first + hour * HOUR + 1
        module._KNOWN.clear()
        mark_idle_after_commit(table._store(), replace(SYSTEM, clock=lambda now=clock: now))
        assert list(done(tmp_path)) == (["2026-01-01"] if hour == marked else [])


@pytest.mark.parametrize("mode", [BY_TIME, BY_WATERMARK])
def test_values_and_event_times_are_in_the_time_zone_of_the_table(tmp_path: Path, mode: dict[str, str]) -> None:
    table = events(tmp_path, **mode, **{"lakelsm.time-zone": "Asia/Tokyo"})
    table.write([{"dt": "2026-01-01", "id": 1, "at": datetime(2026, 1, 2, 1)}], event_time="at")
    newest = table._store().snapshots.latest()
    assert newest is not None and newest.watermark == utc(2026, 1, 1, 16)
    table.write([{"dt": "2026-01-02", "id": 1, "at": datetime(2026, 1, 2, 2, 0, 0, 1000)}], event_time="at")
    assert list(done(tmp_path)) == (["2026-01-01"] if mode is BY_WATERMARK else [])
    rule = module.IdleRule.of(table._store())
    assert rule is not None and rule.idle == HOUR and rule.interval == DAY
    if mode is BY_TIME:
        table.write([{"dt": "2998-12-31", "id": 1, "at": None}])
        for late, names in ((0, 2), (1, 3)):
            clock = utc(2998, 12, 31, 16) + late
            environment = replace(SYSTEM, clock=lambda now=clock: now, local_offset=lambda seconds: 12 * 3600)
            mark_idle_after_commit(table._store(), environment)
            assert len(done(tmp_path)) == names


def utc(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=timezone.utc).timestamp() * 1000)  # type: ignore[misc,arg-type]


def test_rows_that_need_a_compaction_are_not_done_before_it(tmp_path: Path, restart: Restart) -> None:
    table = partitioned(tmp_path, **BY_TIME, **{"merge-engine": "first-row"})
    fill(table, "2026-01-01", "2026-01-02")
    mark_idle_after_commit(table._store(), later(table, 2 * HOUR))
    assert done(tmp_path) == {}
    table.compact(full=True, where="dt = '2026-01-02'", engine="local")
    restart()
    mark_idle_after_commit(table._store(), later(table, 2 * HOUR))
    assert list(done(tmp_path)) == ["2026-01-02"]


def test_dropped_partitions_and_values_that_are_not_times(tmp_path: Path, restart: Restart) -> None:
    table = partitioned(tmp_path, **BY_TIME)
    fill(table, "2026-01-01")
    with pytest.warns(UserWarning, match=r"partition dt=odd is never done by its time \(2 in total\)") as warned:
        fill(table, "2026-01-02", "odd", "odder")
        fill(table, "odd")
    assert len(warned) == 1
    table.maintenance.drop_partitions("dt = '2026-01-01'")
    mark_idle_after_commit(table._store(), later(table, 2 * HOUR))
    assert list(done(tmp_path)) == ["2026-01-02"]
    assert len(module._KNOWN[table._store().paths].writes) == 2, "those without a time wait, the dropped one does not"


def test_other_writers_rollbacks_and_expired_history_are_seen(tmp_path: Path) -> None:
    table = partitioned(tmp_path, **BY_TIME)
    fill(table, "2026-01-01")
    other = Table.for_path(str(tmp_path / "db.db/t")).write
    other([{"dt": "2026-01-02", "id": 1, "v": "x"}], options={"lakelsm.durable-files": "false"})
    fill(table, "2026-01-03")
    table.rollback(1)
    fill(table, "2026-01-04")  # Snapshot 2 again, with another fingerprint.
    environment = later(table, HOUR + 1)
    mark_idle_after_commit(table._store(), environment)
    assert list(done(tmp_path)) == ["2026-01-01", "2026-01-04"]
    for value in ("2026-01-05", "2026-01-06", "2026-01-07"):
        table._store()
        known = dict(module._KNOWN)
        fill(table, value)
        module._KNOWN.update(known)
    table.maintenance.expire_snapshots(retain_last=1, older_than="0 s")
    mark_idle_after_commit(table._store(), later(table, HOUR + 1))
    assert len(done(tmp_path)) == 5


def test_a_commit_reads_only_the_deltas_since_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = partitioned(tmp_path, **BY_TIME)
    fill(table, *(f"2026-01-{day:02}" for day in range(1, 32)))
    reads: list[str] = []
    kind = type(table._store().file_io)
    read = kind.read
    monkeypatch.setattr(kind, "read", lambda self, path, *more: reads.append(path) or read(self, path, *more))
    costs = []
    for _ in range(5):
        known = dict(module._KNOWN)
        fill(table, "2026-02-01")
        module._KNOWN.update(known)
        store, environment = table._store(), later(table, 0)
        reads.clear()
        mark_idle_after_commit(store, environment)
        costs.append([Path(path).name.partition("-")[0] for path in reads])
    # The newest snapshot, the look for a later one, the last known one, and the delta.
    assert costs == [["LATEST", "snapshot", "snapshot", "snapshot", "manifest", "manifest"]] * 5


def test_a_damaged_file_is_a_warning_and_keeps_no_other_partition_from_being_marked(
    tmp_path: Path, restart: Restart
) -> None:
    table = partitioned(tmp_path, **BY_TIME)
    fill(table, "2026-01-01", "2026-01-02")
    path = tmp_path / "db.db/t/dt=2026-01-01/_SUCCESS"
    path.write_bytes(b"")
    restart()
    with pytest.raises(CorruptTableError, match="dt=2026-01-01/_SUCCESS"):
        mark_idle_after_commit(table._store(), later(table, 2 * HOUR))
    assert (path.parent.parent / "dt=2026-01-02/_SUCCESS").exists()
    path.unlink()
    mark_idle_after_commit(table._store(), later(table, 2 * HOUR))
    assert list(done(tmp_path)) == ["2026-01-01", "2026-01-02"]


def test_a_call_marks_the_partitions_that_are_due(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = events(tmp_path, **BY_WATERMARK)
    assert table.maintenance.mark_partitions_done(idle_only=True) == []
    days = [{"dt": f"2026-01-0{day}", "id": 1, "at": datetime(2026, 1, day)} for day in (1, 2, 3)]
    table.write(days, event_time="at")
    Catalog(str(tmp_path)).alter_table("db.t", SetOption("partition.idle-time-to-done", "0 ms"))
    table.write([{"dt": "2026-01-09", "id": 1, "at": datetime(2026, 1, 3, 1)}], event_time="at")
    for file in tmp_path.rglob("_SUCCESS"):
        file.unlink()
    called = Called(tmp_path, capsys)
    assert called.planned("partitions", "mark-done", "--idle-only")["partitions"] == ["dt=2026-01-01", "dt=2026-01-02"]
    assert table.maintenance.mark_partitions_done("dt > '2026-01-01'", idle_only=True, dry_run=True) == ["dt=2026-01-02"]
    assert done(tmp_path) == {}
    assert called.json("partitions", "mark-done", "--idle-only")["partitions"] == ["dt=2026-01-01", "dt=2026-01-02"]
    assert list(done(tmp_path)) == ["2026-01-01", "2026-01-02"]
    assert table.maintenance.mark_partitions_done(idle_only=True) == []


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"partition.idle-time-to-done": "1 h"}, InvalidInputError, "needs 'partition.time-interval'"),
    ({**BY_TIME, "partition.idle-time-to-done": "soon"}, InvalidInputError, "partition.idle-time-to-done"),
    ({**BY_TIME, "partition.time-interval": "0 s"}, InvalidInputError, "is less than 1 ms"),
    ({**BY_TIME, "partition.mark-done-action.mode": "event"}, InvalidInputError, "process-time, watermark"),
    ({**BY_TIME, "partition.mark-done-action": "mark-event"}, UnsupportedFeatureError, "mark-done-action"),
    ({"partition.mark-done-action.http.url": "http://x"}, UnsupportedFeatureError, "http.url"),
    ({"partition.mark-done.recover-from-state": "false"}, UnsupportedFeatureError, "recover-from-state"),
]


@pytest.mark.parametrize(("options", "error", "reason"), WRONG)
def test_wrong_options_are_refused_by_name(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        partitioned(tmp_path, **options)


def test_tables_without_the_options_or_partitions(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="needs a table with partitions"):
        Catalog(str(tmp_path)).create_table("db.u", "id INT", primary_key="id", options=BY_TIME)
    table = partitioned(tmp_path)
    fill(table, "2026-01-01")
    mark_idle_after_commit(table._store(), later(table, 9 * DAY))
    assert done(tmp_path) == {}
    with pytest.raises(InvalidInputError, match="are not both set"):
        table.maintenance.mark_partitions_done(idle_only=True)
    with pytest.raises(InvalidInputError, match="idle_only: expected True or False"):
        table.maintenance.mark_partitions_done(idle_only="yes")  # type: ignore[arg-type]
