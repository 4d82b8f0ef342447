"""Runs actors as greenlets: chooses the next one at each storage operation, and has the virtual clock and the faults."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from random import Random

from greenlet import GreenletExit, getcurrent, greenlet

from lakelsm.environment import Environment
from lakelsm.errors import StorageError
from tests.simulation.scenario import Actor, Fault

#: The maximum duration of an operation in milliseconds.
_LONGEST = 40
_START = 1_700_000_000_000
#: More operations than any run needs. More than these mean a hang.
_MAX_OPERATIONS = 100_000


class Killed(BaseException):
    """The process is killed: no clean-up runs."""


class Interrupted(BaseException):
    """A signal. It is not an Exception, and clean-up runs."""


class HangingError(Exception):
    """The actors never finish."""


class Process:
    """The process of one actor: its `Gate`, its environment, and the faults that will hit it."""

    def __init__(self, scheduler: Scheduler, actor: Actor) -> None:
        self.actor = actor
        self.is_dead = False
        self.is_ended = False
        self.had_fault = False
        self.only_looks = False
        self._scheduler = scheduler
        self._faults = list(actor.faults)
        self._counts: dict[str, int] = {}
        self._refusing = 0
        self.environment = Environment(
            clock=lambda: scheduler.now + actor.skew,
            local_offset=lambda seconds: 0,
            monotonic=lambda: scheduler.now / 1000,
            sleep=self._sleep,
            chance=scheduler.chance.random,
            new_uuid=scheduler.new_uuid,
        )

    def start(self, body: Callable[[], None]) -> None:
        """Create its greenlet, which starts at its first turn."""
        self.greenlet = greenlet(body, self._scheduler.hub)

    @property
    def is_refusing(self) -> bool:
        """Whether the store will refuse its next operation."""
        return self._refusing > 0

    def end(self) -> None:
        """End the run. Later operations have no effect."""
        self.is_dead = self.is_ended = True
        self.greenlet.throw(GreenletExit)

    def chance(self) -> float:
        """Return a number in [0, 1) of the schedule."""
        return self._scheduler.chance.random()

    def passes(self, kind: str, path: str, land: Callable[[], object]) -> None:
        """See `Gate.passes`."""
        if self.is_dead:
            raise Killed
        scheduler = self._scheduler
        scheduler.turn(self)
        if self.is_dead:
            raise Killed
        if self.only_looks and kind not in ("read", "list"):
            scheduler.stop(AssertionError(f"{self.actor.name} was to change nothing, and {path} is about to change"))
        if not self._faults and not self._refusing:
            return
        self._apply_faults(kind, path, land)

    def restarted(self) -> None:
        """Continue the work in a new process."""
        self.is_dead = False
        self._refusing = 0

    def _apply_faults(self, kind: str, path: str, land: Callable[[], object]) -> None:
        counts = self._counts
        counts["any"] = counts.get("any", 0) + 1
        counts[kind] = counts.get(kind, 0) + 1
        fault = next((fault for fault in self._faults if counts.get(fault.counted) == fault.at
                      and fault.counted in ("any", kind)), None)
        if fault is not None:
            self._faults.remove(fault)
            self._apply(fault, path, land)
        if self._refusing:
            self._refusing -= 1
            self._scheduler.on_fault(self.actor.name)
            raise TimeoutError(f"{path}: refused")

    def _apply(self, fault: Fault, path: str, land: Callable[[], object]) -> None:
        self.had_fault = True
        kind = fault.kind
        if kind == "late" and (not self._scheduler.lands_late(path)):
            kind = "refused"
        if kind in ("lost", "kill-after", "signal-after", "lost-outage"):
            land()
        self._scheduler.on_fault(self.actor.name)
        if kind in ("kill", "kill-after"):
            self.is_dead = True
            raise Killed
        if kind in ("signal", "signal-after"):
            raise Interrupted
        if kind == "full":
            raise StorageError(f"{path}: no space")
        if kind in ("outage", "lost-outage"):
            self._refusing = 2 + int(self.chance() * 12)
        if kind == "late":
            self._scheduler.later(land)
        raise TimeoutError(f"{path}: {kind}")

    def _sleep(self, seconds: float) -> None:
        if self.is_dead:
            raise Killed
        self._scheduler.now += int(seconds * 1000 * self.chance())
        self._scheduler.turn(self, always=True)


class Scheduler:
    """Runs actors until all have finished, or until an error stops them."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.now = _START
        self.hub = getcurrent()
        self.stopped: BaseException | None = None
        self.current = ""
        self.on_fault: Callable[[str], None] = lambda actor: None
        self.lands_late: Callable[[str], bool] = lambda path: True
        self.steps = 0
        self._ids = Random(seed ^ 0x5DEECE66D)
        self._waiting: list[Process] = []
        self._late: list[tuple[int, Callable[[], object]]] = []

    def clock(self) -> int:
        """The time of the store."""
        return self.now

    def new_uuid(self) -> str:
        """A version 4 uuid."""
        return str(uuid.UUID(int=self._ids.getrandbits(128), version=4))

    def later(self, land: Callable[[], object]) -> None:
        """Let an operation take effect after some steps."""
        self._late.append((self.steps + 1 + int(self.chance.random() * 60), land))

    def stop(self, reason: BaseException) -> None:
        """End the run at the next step. The first reason counts."""
        if self.stopped is None:
            self.stopped = reason

    def turn(self, process: Process, always: bool = False) -> None:
        """Called before each operation of a process. Others may run first."""
        self.steps += 1
        self.now += 1 + int(self.chance.random() * _LONGEST)
        if self._late:
            self._land_late()
        if self.stopped is None and not always and self.chance.random() < process.actor.steady:
            return
        self.hub.switch()

    def run(self, processes: list[Process]) -> None:
        """Run all processes. Raises the reason of a stop, or the error of an actor."""
        waiting = list(processes)
        try:
            while waiting and self.stopped is None:
                process = waiting[int(self.chance.random() * len(waiting))]
                self.current = process.actor.name
                process.greenlet.switch()
                if process.greenlet.dead:
                    waiting.remove(process)
                if self.steps > _MAX_OPERATIONS:
                    raise HangingError(f"{[process.actor.name for process in waiting]} do not finish")
        finally:
            for process in waiting:
                process.end()
        while self._late and self.stopped is None:
            self._late.pop(0)[1]()
        if self.stopped is not None:
            raise self.stopped

    def _land_late(self) -> None:
        due = [entry for entry in self._late if entry[0] <= self.steps]
        if due:
            self._late = [entry for entry in self._late if entry[0] > self.steps]
            for _, land in due:
                land()


