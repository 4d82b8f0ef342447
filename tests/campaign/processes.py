"""Processes of a campaign, forked from one that has loaded the engine and has no other state."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.campaign.preloaded"])
#: Longer than anything that a process of a campaign does, on a busy machine.
PATIENCE = 300.0


class CampaignError(AssertionError):
    """A guarantee that was broken."""


@dataclass
class Child:
    """A process that reports what it has done as pairs of (word, value)."""

    process: BaseProcess
    pipe: Connection

    @staticmethod
    def of(work: Callable[..., None], *arguments: Any) -> Child:
        """Start a process that calls ``work(say, *arguments)``."""
        here, there = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_run, args=(there, work, arguments))
        process.start()
        there.close()
        return Child(process, here)

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def heard(self, seconds: float = PATIENCE) -> tuple[str, Any] | None:
        """Return the next report, or None if the process ended. A silent process prints its stacks."""
        if not self.pipe.poll(seconds):
            os.kill(self.pid, signal.SIGUSR1)
            time.sleep(1)
            raise CampaignError(f"process {self.process.pid} has reported nothing for {seconds:.0f} s")
        try:
            word, value = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return None
        return word, value

    def heard_until(self, word: str, times: int) -> list[tuple[str, Any]]:
        """Return its reports until it has reported ``word`` that many times, or ends."""
        found: list[tuple[str, Any]] = []
        while times and (heard := self.heard()) is not None:
            found.append(heard)
            times -= heard[0] == word
        return found

    def all_heard(self) -> list[tuple[str, Any]]:
        """Return all further reports, until it ends."""
        found = []
        while (heard := self.heard()) is not None:
            found.append(heard)
        self.process.join()
        self.pipe.close()
        return found

    def says_within(self, seconds: float) -> bool:
        return self.pipe.poll(seconds)

    def kill(self) -> None:
        with suppress(ProcessLookupError):  # The process has ended.
            os.kill(self.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Voice:
    """The pipe of a child process: it sends reports and receives work."""

    pipe: Connection

    def __call__(self, word: str, value: Any = None) -> None:
        self.pipe.send((word, value))

    def receive(self) -> Any:
        """Return the next work; None if the parent has closed the pipe."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return None


def _run(pipe: Connection, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    say = Voice(pipe)
    faulthandler.register(signal.SIGUSR1)  # It prints its stacks.
    try:
        work(say, *arguments)
    except BaseException:  # noqa: BLE001 - any failure is reported
        say("raised", traceback.format_exc())


def done_by(work: Callable[..., None], *arguments: Any) -> Any:
    """Run a process that is not killed; return the value of its report 'result'. Raises CampaignError for its error."""
    child = Child.of(work, *arguments)
    for word, value in child.all_heard():
        if word == "raised":
            raise CampaignError(f"{work.__name__}: {value}")
        if word == "result":
            return value
    raise CampaignError(f"{work.__name__} ended with {child.process.exitcode}")


def descendants(pid: int) -> dict[int, str]:
    """Return the descendants of a process, with the names of their programs."""
    known = {each: found for each in _process_ids() if (found := _parent_and_name(each)) is not None}
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        above = waiting.pop()
        below = {each: name for each, (parent, name) in known.items() if parent == above}
        found |= below
        waiting += below
    return found


def ancestors(pid: int) -> list[tuple[int, str]]:
    """Return the ancestors of a process, nearest first, with the names of their programs."""
    found: list[tuple[int, str]] = []
    while (known := _parent_and_name(pid)) is not None and known[0] > 0:
        pid = known[0]
        above = _parent_and_name(pid)
        found += [(pid, above[1])] if above is not None else []
    return found


def wait_for_end(pids: list[int], seconds: float) -> list[int]:
    """Wait for processes to end; return those that still run after ``seconds``."""
    end = time.monotonic() + seconds
    while (left := [pid for pid in pids if _parent_and_name(pid) is not None]) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def with_variable(text: bytes) -> list[int]:
    """Return the processes that were started with a variable of the environment, given as name=value."""
    found = []
    for pid in _process_ids():
        with suppress(OSError):
            if text in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def _process_ids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def _parent_and_name(pid: int) -> tuple[int, str] | None:
    """Return the parent and the program of a running process, else None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name, _, rest = text.partition(" (")[2].rpartition(") ")
    state, parent = rest.split()[:2]
    return None if state == "Z" else (int(parent), name)
