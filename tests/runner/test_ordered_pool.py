"""Threads that run units at the same time for one consumer."""

from __future__ import annotations

import gc
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.cancellation import WorkCancelled, raise_if_cancelled
from lakelsm.errors import CorruptTableError, StorageError
from lakelsm.runner.ordered_pool import OrderedPool
from tests.processes import PATIENCE


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int64())], names=["n"])


#: Bytes of a batch of one number.
BATCH = numbers(1).nbytes


def values(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [number for batch in batches for number in batch.column(0).to_pylist()]


def pool(units: int, task: Callable[[int], Iterator[pa.RecordBatch]], **settings: Any) -> OrderedPool[int]:
    return OrderedPool(range(units), task, **{"read_ahead": 1 << 20, **settings})


@pytest.fixture
def threads_of_pools() -> Callable[[], list[str]]:
    """``threads_of_pools()``: names of running threads that pools have started in this test."""
    others = set(threading.enumerate())

    def running() -> list[str]:
        mine = set(threading.enumerate()) - others
        return [thread.name for thread in mine if re.fullmatch(r"lakelsm-\d+", thread.name)]

    return running


class Work:
    """Tasks that record which units were started and which generators were closed."""

    def __init__(self, batches: int = 1, seconds: float = 0.0) -> None:
        self.batches, self.seconds = batches, seconds
        self.begun: list[int] = []
        self.closed: list[int] = []
        self.yielded = 0

    def __call__(self, unit: int) -> Iterator[pa.RecordBatch]:
        self.begun.append(unit)
        try:
            for number in range(self.batches):
                time.sleep(self.seconds)
                yield numbers(unit * self.batches + number)
                self.yielded += 1
        finally:
            self.closed.append(unit)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_batches_are_in_order_whichever_unit_finishes_first(
    threads: int, threads_of_pools: Callable[[], list[str]]
) -> None:
    def task(unit: int) -> Iterator[pa.RecordBatch]:
        time.sleep(0.002 * (unit * 7 % 5))
        yield numbers(2 * unit)
        yield numbers(2 * unit + 1)

    assert values(pool(12, task).run(threads, "/t")) == list(range(24))
    assert threads_of_pools() == []


def test_no_units_yield_nothing() -> None:
    assert values(pool(0, Work()).run(0, "/t")) == []


@pytest.mark.parametrize("read_ahead", [1, 3 * BATCH])
def test_tasks_wait_for_the_consumer(read_ahead: int) -> None:
    work = Work(batches=50)
    found = pool(4, work, read_ahead=read_ahead).run(2, "/t")
    assert next(found).column(0).to_pylist() == [0]
    time.sleep(0.1)
    assert work.yielded <= 1 + max(read_ahead // BATCH, 1) + 1
    assert values(found) == list(range(1, 200))


def test_the_unit_that_the_consumer_takes_does_not_wait_for_later_ones() -> None:
    later_are_full = threading.Event()

    def task(unit: int) -> Iterator[pa.RecordBatch]:
        if unit == 0:
            assert later_are_full.wait(PATIENCE)
        for number in range(3):
            yield numbers(3 * unit + number)
            if unit:
                later_are_full.set()

    assert values(pool(3, task, read_ahead=2 * BATCH).run(2, "/t")) == list(range(9))


def test_an_abandoned_run_ends_its_tasks_and_their_generators(threads_of_pools: Callable[[], list[str]]) -> None:
    work = Work(batches=1000)
    found = pool(50, work, read_ahead=10 * BATCH).run(3, "/t")
    next(found)
    del found
    gc.collect()
    assert threads_of_pools() == []
    assert len(work.begun) <= 3 and sorted(work.closed) == sorted(work.begun)


def test_a_long_task_ends_where_it_checks_for_cancellation(threads_of_pools: Callable[[], list[str]]) -> None:
    checked = threading.Event()
    done: list[int] = []

    def task(unit: int) -> Iterator[pa.RecordBatch]:
        yield numbers(unit)
        for _ in range(100_000):
            time.sleep(0.001)
            checked.set()
            raise_if_cancelled()
        done.append(unit)

    found = pool(1, task).run(1, "/t")
    next(found)
    assert checked.wait(PATIENCE)
    found.close()
    assert done == [] and threads_of_pools() == []


def failing(at: int, error: BaseException, work: Work) -> Callable[[int], Iterator[pa.RecordBatch]]:
    def task(unit: int) -> Iterator[pa.RecordBatch]:
        if unit == at:
            raise error
        yield from work(unit)

    return task


def test_batches_before_a_failure_are_returned_first(threads_of_pools: Callable[[], list[str]]) -> None:
    for _ in range(5):
        taken: list[int] = []
        work = Work(batches=3, seconds=0.001)
        found = pool(20, failing(2, CorruptTableError("file 2 is damaged"), work)).run(4, "/t")
        with pytest.raises(CorruptTableError, match="file 2 is damaged"):
            for batch in found:
                taken += batch.column(0).to_pylist()
        assert taken == list(range(6))
        assert len(work.begun) < 20 and sorted(work.closed) == sorted(work.begun)
        assert threads_of_pools() == []


def test_a_failure_ends_earlier_units_if_fail_fast_is_set() -> None:
    work = Work(batches=100_000, seconds=0.001)
    found = pool(20, failing(1, CorruptTableError("file 1 is damaged"), work), fail_fast=True).run(2, "/t")
    with pytest.raises(CorruptTableError, match="file 1 is damaged"):
        values(found)
    assert work.begun == work.closed == [0] and work.yielded < work.batches


def test_a_failure_of_another_library_names_the_table_and_its_cause() -> None:
    cause = OSError(28, "No space left on device")
    with pytest.raises(StorageError, match=r"Table /wh/t: .*No space left") as raised:
        values(pool(3, failing(0, cause, Work())).run(2, "/wh/t"))
    assert raised.value.__cause__ is cause


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Raise interrupts, also if the tests run in a background job, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_by_the_user_ends_all_tasks_and_is_raised(threads_of_pools: Callable[[], list[str]]) -> None:
    work = Work(batches=100_000, seconds=0.001)
    taken = threading.Event()

    def task(unit: int) -> Iterator[pa.RecordBatch]:
        if unit == 1:
            assert taken.wait(PATIENCE)
            os.kill(os.getpid(), signal.SIGINT)
        yield from work(unit)

    found = pool(4, task).run(2, "/t")
    with pytest.raises(KeyboardInterrupt):
        for _ in found:
            taken.set()
    found.close()  # The interrupt may arrive between two batches.
    assert threads_of_pools() == []
    assert sorted(work.closed) == sorted(work.begun) and work.yielded < 2 * work.batches


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_tasks_end_waits_for_them(threads_of_pools: Callable[[], list[str]]) -> None:
    ended: list[int] = []

    def task(unit: int) -> Iterator[pa.RecordBatch]:
        yield numbers(unit)
        with suppress(WorkCancelled):
            while True:  # Until the run is closed.
                raise_if_cancelled()
                time.sleep(0.001)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        ended.append(unit)

    found = pool(1, task).run(1, "/t")
    next(found)
    with pytest.raises(KeyboardInterrupt):
        found.close()
    assert ended == [0] and threads_of_pools() == []
