"""Threads that work units off side by side, while one consumer takes what they yield in the order of the units."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Sequence
from functools import partial
from typing import Generic

import pyarrow as pa

from lakelsm.cancellation import WorkCancelled, cancelled_by, raise_if_cancelled
from lakelsm.runner.runner import Task, Unit
from lakelsm.runner.task_failures import known_failure


class OrderedPool(Generic[Unit]):
    """One run of some units.

    Units are begun in order. A thread waits where ``read_ahead`` bytes wait to be taken, unless nothing waits of the unit
    that is taken from. With ``fail_fast`` the first failure ends all work; else only that of later units, so that
    what is taken before the failure is raised does not depend on chance.
    """

    def __init__(
        self, units: Sequence[Unit], task: Task[Unit], *, read_ahead: int, fail_fast: bool = False
    ) -> None:
        self._units = units
        self._task = task
        self._read_ahead = read_ahead
        self._fails_at_once = fail_fast
        self._changed = threading.Condition()
        # All below is read and written under the condition's lock, but for what `_unwanted` reads.
        self._begun = 0
        self._taken_from = 0
        self._waiting: list[deque[tuple[pa.RecordBatch, int]]] = [deque() for _ in units]
        self._waiting_bytes = 0
        self._ended = [False] * len(units)
        self._failures: dict[int, BaseException] = {}
        self._first_failed = len(units)
        self._closed = False
        self._working: set[threading.Thread] = set()
        self._threads: list[threading.Thread] = []

    def run(self, threads: int, table: str) -> Generator[pa.RecordBatch, None, None]:
        """Yield all batches; to be called once. Failures are raised as `known_failure` of the ``table``.

        No thread runs any more when it ends, however it does.
        """
        workers = [threading.Thread(target=self._work, name=f"lakelsm-{at}", daemon=True) for at in range(threads)]
        try:
            self._working.update(workers)
            self._threads = workers
            for worker in workers:
                worker.start()
            for unit in range(len(self._units)):
                while (batch := self._next_of(unit, table)) is not None:
                    yield batch
                    del batch
        finally:
            self._close()

    def _next_of(self, unit: int, table: str) -> pa.RecordBatch | None:
        """Wait for the next batch of a unit; None at its end."""
        waiting = self._waiting[unit]
        with self._changed:
            self._taken_from = unit
            self._changed.notify_all()
            while not waiting or self._told_at_once():
                failed = self._first_failed
                if self._told_at_once() or failed == unit:
                    error = known_failure(self._failures[failed], table)
                    if error is self._failures[failed]:
                        raise error
                    raise error from self._failures[failed]
                if self._ended[unit]:
                    return None
                self._changed.wait()
            batch, size = waiting.popleft()
            self._waiting_bytes -= size
            self._changed.notify_all()
            return batch

    def _told_at_once(self) -> bool:
        return self._fails_at_once and bool(self._failures)

    def _close(self) -> None:
        """End the work, and wait for it. An interrupt by the user is raised when no thread runs any more."""
        interrupt: KeyboardInterrupt | None = None
        # Garbage collection may close an abandoned run in one of its own threads.
        others = {thread for thread in self._threads if thread is not threading.current_thread()}
        while True:
            try:
                with self._changed:
                    self._closed = True
                    self._changed.notify_all()
                    while any(thread.is_alive() for thread in self._working & others):
                        self._changed.wait()
                for thread in filter(threading.Thread.is_alive, others):  # It has done its work and is about to end.
                    thread.join()
                break
            except KeyboardInterrupt as again:
                interrupt = again
        if interrupt is not None:
            raise interrupt

    def _work(self) -> None:
        try:
            self._work_all()
        finally:
            with self._changed:
                self._working.discard(threading.current_thread())
                self._changed.notify_all()

    def _work_all(self) -> None:
        while (unit := self._begin()) is not None:
            try:
                with cancelled_by(partial(self._unwanted, unit)):
                    self._work_off(unit)
            except WorkCancelled:
                continue
            except BaseException as error:  # noqa: BLE001  Whatever it is, the consumer raises it.
                self._fail(unit, error)
            else:
                self._end(unit)

    def _work_off(self, unit: int) -> None:
        found = self._task(self._units[unit])
        try:
            for batch in found:
                self._put(unit, batch)
                del batch
        finally:
            if isinstance(found, Generator):
                found.close()  # Its clean-up is done in this thread, before the failure is reported.

    def _begin(self) -> int | None:
        with self._changed:
            unit = self._begun
            if unit >= len(self._units) or self._unwanted(unit):
                return None
            self._begun += 1
            return unit

    def _unwanted(self, unit: int) -> bool:
        return self._closed or unit > self._first_failed or self._told_at_once()

    def _put(self, unit: int, batch: pa.RecordBatch) -> None:
        size = int(batch.nbytes)
        waiting = self._waiting[unit]
        with self._changed:
            while not self._unwanted(unit) and self._waiting_bytes and self._waiting_bytes + size > self._read_ahead:
                if unit == self._taken_from and not waiting:
                    break
                self._changed.wait()
            raise_if_cancelled()
            waiting.append((batch, size))
            self._waiting_bytes += size
            self._changed.notify_all()

    def _fail(self, unit: int, error: BaseException) -> None:
        with self._changed:
            self._failures[unit] = error
            self._first_failed = min(self._failures)
            self._changed.notify_all()

    def _end(self, unit: int) -> None:
        with self._changed:
            self._ended[unit] = True
            self._changed.notify_all()
