"""Threads that run units at the same time, while one consumer takes their batches in the order of the units."""

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
    """Runs some units once.

    Units are started in order. A thread waits while ``read_ahead`` bytes wait for the consumer, except with the next
    batch that the consumer takes. With ``fail_fast`` the first failure cancels all units, else only later ones, so that
    the batches before the failure do not depend on timing.
    """

    def __init__(
        self, units: Sequence[Unit], task: Task[Unit], *, read_ahead: int, fail_fast: bool = False
    ) -> None:
        self._units = units
        self._task = task
        self._read_ahead = read_ahead
        self._fails_at_once = fail_fast
        self._changed = threading.Condition()
        # All fields below are read and written under the condition's lock, except those that `_unwanted` reads.
        self._next_unit = 0
        self._consumed_unit = 0
        self._waiting: list[deque[tuple[pa.RecordBatch, int]]] = [deque() for _ in units]
        self._waiting_bytes = 0
        self._finished = [False] * len(units)
        self._failures: dict[int, BaseException] = {}
        self._first_failed_unit = len(units)
        self._closed = False
        self._working: set[threading.Thread] = set()
        self._threads: list[threading.Thread] = []

    def run(self, threads: int, table: str) -> Generator[pa.RecordBatch, None, None]:
        """Yield all batches; call it once. A failure is raised as the `known_failure` of the ``table``.

        No thread runs after this generator ends, for whatever reason.
        """
        names = [f"lakelsm-{index}" for index in range(threads)]
        workers = [threading.Thread(target=self._run_thread, name=name, daemon=True) for name in names]
        try:
            self._working.update(workers)
            self._threads = workers
            for worker in workers:
                worker.start()
            for unit in range(len(self._units)):
                while (batch := self._next_batch(unit, table)) is not None:
                    yield batch
                    del batch
        finally:
            self._close()

    def _next_batch(self, unit: int, table: str) -> pa.RecordBatch | None:
        """Wait for the next batch of a unit; None at the end of the unit."""
        waiting = self._waiting[unit]
        with self._changed:
            self._consumed_unit = unit
            self._changed.notify_all()
            while not waiting or self._fails_now():
                failed = self._first_failed_unit
                if self._fails_now() or failed == unit:
                    error = known_failure(self._failures[failed], table)
                    if error is self._failures[failed]:
                        raise error
                    raise error from self._failures[failed]
                if self._finished[unit]:
                    return None
                self._changed.wait()
            batch, size = waiting.popleft()
            self._waiting_bytes -= size
            self._changed.notify_all()
            return batch

    def _fails_now(self) -> bool:
        return self._fails_at_once and bool(self._failures)

    def _close(self) -> None:
        """Cancel the work and wait for it. An interrupt by the user is raised when no thread runs any more."""
        interrupt: KeyboardInterrupt | None = None
        # The garbage collector may close an abandoned run in one of its own threads.
        others = {thread for thread in self._threads if thread is not threading.current_thread()}
        while True:
            try:
                with self._changed:
                    self._closed = True
                    self._changed.notify_all()
                    while any(thread.is_alive() for thread in self._working & others):
                        self._changed.wait()
                for thread in filter(threading.Thread.is_alive, others):  # The thread is about to end.
                    thread.join()
                break
            except KeyboardInterrupt as again:
                interrupt = again
        if interrupt is not None:
            raise interrupt

    def _run_thread(self) -> None:
        try:
            self._run_units()
        finally:
            with self._changed:
                self._working.discard(threading.current_thread())
                self._changed.notify_all()

    def _run_units(self) -> None:
        while (unit := self._start_unit()) is not None:
            try:
                with cancelled_by(partial(self._unwanted, unit)):
                    self._run_unit(unit)
            except WorkCancelled:
                continue
            except BaseException as error:  # noqa: BLE001  The consumer raises any error.
                self._fail_unit(unit, error)
            else:
                self._finish_unit(unit)

    def _run_unit(self, unit: int) -> None:
        batches = self._task(self._units[unit])
        try:
            for batch in batches:
                self._add_batch(unit, batch)
                del batch
        finally:
            if isinstance(batches, Generator):
                batches.close()  # Clean up in this thread, before the failure is reported.

    def _start_unit(self) -> int | None:
        with self._changed:
            unit = self._next_unit
            if unit >= len(self._units) or self._unwanted(unit):
                return None
            self._next_unit += 1
            return unit

    def _unwanted(self, unit: int) -> bool:
        return self._closed or unit > self._first_failed_unit or self._fails_now()

    def _add_batch(self, unit: int, batch: pa.RecordBatch) -> None:
        size = int(batch.nbytes)
        waiting = self._waiting[unit]
        with self._changed:
            while not self._unwanted(unit) and self._waiting_bytes and self._waiting_bytes + size > self._read_ahead:
                if unit == self._consumed_unit and not waiting:
                    break
                self._changed.wait()
            raise_if_cancelled()
            waiting.append((batch, size))
            self._waiting_bytes += size
            self._changed.notify_all()

    def _fail_unit(self, unit: int, error: BaseException) -> None:
        with self._changed:
            self._failures[unit] = error
            self._first_failed_unit = min(self._failures)
            self._changed.notify_all()

    def _finish_unit(self, unit: int) -> None:
        with self._changed:
            self._finished[unit] = True
            self._changed.notify_all()
