"""Following a table: polls with back-off, heartbeats, timeouts, bounded batches, and progress that is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Table
from lakelsm.environment import Environment
from lakelsm.errors import SnapshotNotFoundError, StreamOffsetError
from lakelsm.local.arrow_changes import changes_schema
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.stream.followed_batch import FollowedBatch
from lakelsm.stream.stream_limits import UNLIMITED, StreamLimits
from lakelsm.stream.table_follower import FollowSettings, TableFollower
from tests.engines import plain_rows
from tests.stream.stream_reader import Change, feed_of, put, table_of

pytestmark = pytest.mark.filterwarnings("ignore:Table db.t. no changelog contains snapshot")


class Clock:
    """The time of a test. ``beside`` has work of other processes, which runs when the follower sleeps past its time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.beside: list[tuple[float, Callable[[], None]]] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        for work in [work for work in self.beside if work[0] <= self.now]:
            self.beside.remove(work)
            work[1]()


def followed(table: Table, clock: Clock, limits: StreamLimits = UNLIMITED, **more: object) -> Iterator[FollowedBatch]:
    names = ("max_wait", "heartbeat", "timeout")
    times = {"max_wait": 1.0, **{name: more.pop(name) for name in names if name in more}}
    feed, store = feed_of(table, **more), table._store()
    schema = changes_schema(store, "rowkind", False, "ns")
    settings = FollowSettings(schema, "rowkind", positions=False, limits=limits, **times)  # type: ignore[arg-type]
    environment = Environment(monotonic=lambda: clock.now, sleep=clock.sleep)
    follower = TableFollower(store, feed, feed.first(), settings, runner=LocalRunner(2), environment=environment)
    return follower.batches()


def rows(batch: FollowedBatch) -> list[Change]:
    return plain_rows(batch.rows)


def test_an_idle_table_is_polled_less_often_until_there_is_news(tmp_path: Path) -> None:
    table, clock = table_of(tmp_path), Clock()
    put(table, ("+I", 1, "a"))
    clock.beside = [(3.0, lambda: put(table, ("+I", 2, "b")))]
    found = [rows(batch) for batch in followed(table, clock, timeout=5.0)]
    assert found == [[("+I", 1, "a")], [("+I", 2, "b")]]
    news = next(at for at in range(1, len(clock.waits)) if clock.waits[at] < clock.waits[at - 1])
    for waits in (clock.waits[:news], clock.waits[news:-1]):
        assert waits[:8] == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0] and max(waits) == 1.0
    assert clock.now == pytest.approx(sum(clock.waits[:news]) + 5)


def test_a_timeout_of_zero_reads_what_is_there(tmp_path: Path) -> None:
    table, clock = table_of(tmp_path), Clock()
    assert list(followed(table, clock, timeout=0)) == []
    put(table, ("+I", 1, "a"))
    assert [rows(batch) for batch in followed(table, clock, timeout=0)] == [[("+I", 1, "a")]]
    assert clock.waits == []


def test_a_heartbeat_is_an_empty_batch_and_refreshes_the_consumer(tmp_path: Path) -> None:
    table, clock = table_of(tmp_path), Clock()
    put(table, ("+I", 1, "a"))
    batches = followed(table, clock, heartbeat=2.0, timeout=10.0, consumer_id="c")
    first = next(batches)
    first.done()
    path = Path(table._store().paths.consumer("c"))
    path.write_text('{"nextSnapshot": 1}')
    beat = next(batches)
    assert (len(beat), beat.offset, beat.rows.schema, clock.now) == (0, first.offset, first.rows.schema, 2.0)
    assert table.consumers.list()[0].next_snapshot_id == 2, "the file was written again"
    table.overwrite([{"k": 1, "v": "x"}])
    for _ in range(9):
        table.compact(True)
        put(table, ("+I", 1, "z"))
        table.rollback(table._store().snapshots.latest_id() or 1)
    later = [next(batches) for _ in range(2)]
    assert len(later[0]) > 0 and table.consumers.list()[0].next_snapshot_id == 2, "what is not done is not recorded"
    later[0].done()
    assert table.consumers.list()[0].next_snapshot_id == later[0].snapshot_id + 1


def test_what_is_not_done_comes_again_and_done_never_goes_back(tmp_path: Path) -> None:
    table, clock = table_of(tmp_path), Clock()
    for number in range(1, 5):
        put(table, ("+I", number, "a"))
    one = StreamLimits(max_files=1)
    options = {"consumer_id": "c", "consumer_mode": "at-least-once", "scan_snapshot_id": 1, "timeout": 0}
    batches = list(followed(table, clock, one, **options))
    assert [rows(batch)[0][1] for batch in batches] == [1, 2, 3, 4]
    batches[2].done()
    batches[0].done()
    assert [rows(batch)[0][1] for batch in followed(table, clock, one, **options)] == [4]
    table.maintenance.expire_snapshots(retain_last=1)
    assert table._store().snapshots.earliest_id() == 4, "expiry keeps what is not done"


def test_a_large_commit_comes_in_bounded_batches_and_again_until_the_last_is_done(tmp_path: Path) -> None:
    table, clock = table_of(tmp_path), Clock()
    put(table, *(("+I", key, "a") for key in range(10)))
    limits, options = StreamLimits(max_rows=4), {"consumer_id": "c", "timeout": 0}
    batches = list(followed(table, clock, limits, **options))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert [batch.offset["position"] for batch in batches] == [0, 0, None]
    batches[1].done()
    assert [len(batch) for batch in followed(table, clock, limits, **options)] == [4, 4, 2]
    batches[2].done()
    assert list(followed(table, clock, limits, **options)) == []


def test_commits_without_rows_are_recorded_if_everything_before_them_is_done(tmp_path: Path) -> None:
    table, clock = table_of(tmp_path), Clock()
    put(table, ("+I", 1, "a"))
    batches = followed(table, clock, timeout=1.0, consumer_id="c")
    first = next(batches)
    first.done()
    for number in range(9):
        table.overwrite([{"k": number, "v": "x"}])
    assert list(batches) == []
    assert table.consumers.list()[0].next_snapshot_id == 11
    undone = followed(table, clock, timeout=1.0, scan_mode="latest-full", consumer_id="d")
    next(undone)
    for number in range(9):
        table.overwrite([{"k": number, "v": "x"}])
    assert list(undone) == []
    assert {each.name: each.next_snapshot_id for each in table.consumers.list()} == {"c": 11, "d.lakelsm-load": 10}


@pytest.mark.parametrize("loses", [False, True])
def test_an_expiry_between_batches_ends_the_reader_or_the_load_is_repeated(tmp_path: Path, loses: bool) -> None:
    table, clock = table_of(tmp_path, bucket="3"), Clock()
    put(table, *(("+I", key, "a") for key in range(9)))
    batches = followed(table, clock, StreamLimits(max_files=1), timeout=1.0, failOnDataLoss=not loses)
    state = dict(change[1:] for change in rows(next(batches)))
    for key in range(5):
        put(table, ("+I", key, "b"))
    table.compact(True)
    table.maintenance.expire_snapshots(retain_last=1)
    if not loses:
        with pytest.raises(SnapshotNotFoundError):
            list(batches)
        return
    for batch in batches:
        state.update(change[1:] for change in rows(batch))
    assert sorted(state.items()) == sorted(plain_rows(table.to_arrow()))


@pytest.mark.parametrize("loses", [False, True])
def test_a_snapshot_that_expires_while_it_is_read_is_read_again_if_data_loss_is_allowed(
    tmp_path: Path, loses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, clock, failures = table_of(tmp_path), Clock(), [SnapshotNotFoundError("it expired", was_removed=True)]
    put(table, ("+I", 1, "a"))
    run = LocalRunner.batches

    def once(self: LocalRunner, *arguments: Any) -> Iterator[Any]:
        if failures:
            raise failures.pop()
        return run(self, *arguments)

    monkeypatch.setattr(LocalRunner, "batches", once)
    batches = followed(table, clock, timeout=1.0, failOnDataLoss=not loses)
    if loses:
        assert [rows(batch) for batch in batches] == [[("+I", 1, "a")]]
    else:
        with pytest.raises(SnapshotNotFoundError, match="it expired"):
            next(batches)


def test_a_rollback_ends_the_reader(tmp_path: Path) -> None:
    table, clock = table_of(tmp_path), Clock()
    for number in range(1, 4):
        put(table, ("+I", number, "a"))
    batches = followed(table, clock, timeout=1.0)
    next(batches)
    clock.beside = [(0.02, lambda: table.rollback(2))]  # type: ignore[list-item]
    with pytest.raises(StreamOffsetError, match="rolled back"):
        next(batches)
