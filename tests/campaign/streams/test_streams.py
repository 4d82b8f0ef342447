"""Kills of streams at a few steps, and the checks of the campaign; `make kill-streams` runs many."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaign.locations import Warehouse
from tests.campaign.processes import CampaignError
from tests.campaign.streams.queries import DATA_SOURCE, NATIVE
from tests.campaign.streams.sessions import StreamSession
from tests.campaign.streams.steps import DRIVER, SINK, SOURCE, TASK, Order, Orders
from tests.campaign.streams.stream_audit import check_batches, check_sums, since
from tests.campaign.streams.stream_kills import STEPS, StreamLife, StreamTally
from tests.campaign.streams.stream_soak import DELETED, KEYS, check_copy, check_rates

SUMS = {1: (2, 30, 2, 2), 2: (1, 5, 1, 1)}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamSession]:
    session = StreamSession(tmp_path_factory.mktemp("streams"))
    yield session
    session.stop()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kinds", "orders"),
    [
        (("table", NATIVE), [Order(DRIVER, "after snapshot"), Order(SOURCE, "after partitions")]),
        (("files", DATA_SOURCE), [Order(TASK, "after data file", kills=4), Order(SINK, "after snapshot")]),
    ],
    ids=["from a table, native", "from files, data source"],
)
def test_killed_streams_write_each_batch_once(
    session: StreamSession, tmp_path: Path, kinds: tuple[str, str], orders: list[Order]
) -> None:
    tally = StreamTally()
    life = StreamLife.create(session, Warehouse(str(tmp_path)), tmp_path, 0, tally, kinds)
    life.add(1)
    life.finished()
    for order in orders:
        life.add(1)
        life.killed(order)
        life.audit(complete=False)
    life.ended()
    assert tally.kills.total() == sum(order.kills for order in orders), tally
    assert not tally.late


@pytest.mark.parametrize(
    "wrong",
    [
        {1: (3, 40, 2, 2), 2: (1, 5, 1, 1)},
        {1: (2, 30, 2, 2)},
        {1: (2, 30, 1, 2), 2: (1, 5, 1, 1)},
        {1: (2, 35, 2, 2), 2: (1, 5, 1, 1)},
        {**SUMS, 3: (1, 1, 1, 1)},
    ],
    ids=["doubled", "lost", "out of order", "of another change", "of another key"],
)
def test_lost_doubled_and_disordered_changes_are_detected(wrong: dict[int, tuple[int, int, int, int]]) -> None:
    with pytest.raises(CampaignError):
        check_sums(wrong, SUMS, complete=True)


def test_a_stream_that_has_not_ended_may_lack_its_newest_changes() -> None:
    check_sums({1: (1, 10, 1, 1)}, SUMS, complete=False)
    with pytest.raises(CampaignError, match="3 changes"):
        check_sums({1: (3, 40, 3, 3)}, SUMS, complete=False)


def test_the_changes_since_a_checkpoint() -> None:
    assert since({1: (1, 10, 1, 1), 2: (1, 5, 1, 1)}, SUMS) == {1: (1, 20, 2, 2)}


def test_batches_of_a_user_ascend() -> None:
    check_batches([("a", 0), ("b", 0), ("a", 1), ("b", 5)])
    for wrong in (1, 0):
        with pytest.raises(CampaignError, match="user a committed batch"):
            check_batches([("a", 0), ("a", 1), ("b", 0), ("a", wrong)])


def test_the_rows_of_soaked_streams() -> None:
    for end in (3, DELETED, KEYS, 3 * KEYS + DELETED + 1):
        last = {value % KEYS: value for value in range(max(0, end - KEYS + 1), end + 1)}
        rows = {key: value for key, value in last.items() if value % DELETED}
        check_rates(rows)
        with pytest.raises(CampaignError):
            check_rates({**rows, 1: 0})
    with pytest.raises(CampaignError, match="the copy differs"):
        check_copy({(0, 1): (2,)}, {(0, 1): (1,)})


def test_an_order_is_claimed_once_for_each_kill(tmp_path: Path) -> None:
    orders = Orders(tmp_path / "orders")
    order = Order(TASK, "after data file", nth=2, kills=2)
    orders.give(order)
    claimed = []
    while (current := orders.current()) is not None:
        claimed.append(orders.is_due(current))
    assert claimed == [False, True, True]
    assert orders.kills() == 2
    orders.give(None)
    assert orders.kills() == 0


def test_random_orders_name_known_steps(tmp_path: Path) -> None:
    life = StreamLife.create(
        StreamSession(tmp_path / "spark"), Warehouse(str(tmp_path)), tmp_path, 0, StreamTally(), ("table", DATA_SOURCE)
    )
    life.chance = random.Random(0)
    drawn = {(order.role, order.step) for order in (life.order() for _ in range(1000))}
    consumer = {(SOURCE, "before consumer"), (SOURCE, "after consumer")}
    assert drawn | consumer == {*STEPS[DATA_SOURCE], *STEPS["table"]}
    assert ("consumer-id" in life.query.read_options) == (consumer <= drawn)
    life.has_started = True
    assert {order.step for order in (life.order() for _ in range(1000))} == {
        step for _, step in drawn if not step.endswith("initialOffset")
    }
