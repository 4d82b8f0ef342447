"""A process with a Spark session that does actions and is killed, or its JVM is, or a Python worker of a task."""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from py4j.protocol import Py4JError

import lakelsm
from lakelsm import LakelsmError
from lakelsm.errors import SparkUnavailableError
from tests.campaign.actions import Action, Doer
from tests.campaign.places import TablePlace
from tests.campaign.processes import PATIENCE, CampaignError, Child, Voice, descendants, wait_for_end

#: What is killed, and how often of so many, while tasks run, and while the driver works alone.
VICTIMS = {"write": (1, 1, 2), "compact": (1, 1, 2), "orphans": (1, 1, 2), "expire": (1, 1, 0), "rollback": (1, 1, 0)}
#: What is done under Spark, and how often of so many.
KINDS = {"write": 5, "compact": 5, "orphans": 1, "expire": 1, "rollback": 1}
DRIVER, JVM, WORKER = "driver under Spark", "JVM", "Python worker"
#: Processes end so soon after the one that they belong to.
_END_SECONDS = 60.0

#: A call of Spark that is the user's and not the engine's, which makes the DataFrame that is written.
OWN_CALL = "an error of the user's own call"
_ENGINE = str(Path(lakelsm.__file__).parent)

Said: TypeAlias = tuple[str, Any]


def act_on_spark(say: Voice, scratch: Path) -> None:
    """Actions that it is told of, one by one, until nobody tells it more."""
    from tests.spark_session import build_session

    scratch.mkdir(exist_ok=True)
    log = os.open(scratch / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    # A worker that is killed is no failure of the job: its task is tried again.
    spark = build_session("lakelsm-campaign", scratch, spark__master="local[2, 4]")
    say("ready")
    while (told := say.told()) is not None:
        place, action = told
        doer = Doer(say, place.opened(spark), spark)
        say("begin")
        try:
            doer.does(action)
        except LakelsmError as error:
            say("refused", type(error).__name__)
        except (Py4JError, ConnectionError) as error:
            if any(frame.filename.startswith(_ENGINE) for frame in traceback.extract_tb(error.__traceback__)):
                raise
            say("refused", OWN_CALL)
    spark.stop()


@dataclass
class SparkDriver:
    """Starts a session where none is at hand; one lives on where only a worker was killed."""

    scratch: Path
    child: Child | None = None

    def killed(
        self, place: TablePlace, action: Action, seconds: float, chance: random.Random
    ) -> tuple[str, list[Said]]:
        """Begin an action, and kill something after at most so many seconds.

        Returns what was killed, or nothing where the action was done before, and what the driver has said. Raises
        CampaignError where it ended with another error than the one for a JVM that is gone.
        """
        try:
            return self._killed(place, action, seconds, chance)
        except BaseException:
            self.stop()
            raise

    def _killed(
        self, place: TablePlace, action: Action, seconds: float, chance: random.Random
    ) -> tuple[str, list[Said]]:
        child = self._running()
        child.pipe.send((place, action))
        _expect(child, "begin")
        victim = chance.choices((DRIVER, JVM, WORKER), VICTIMS[action.kind])[0]
        end, words = time.monotonic() + chance.uniform(0, seconds), list[Said]()
        while not _is_done(words) and (time.monotonic() < end or (victim == WORKER and not _workers(child))):
            words += _heard(child)
        if _is_done(words):
            return "", words
        if victim == WORKER:
            _kill(chance.choice(_workers(child)))
            while not _is_done(words):  # The task is tried again.
                words += _heard(child, PATIENCE)
            return victim, words
        below = descendants(child.pid)
        if victim == JVM:
            _kill(next(pid for pid, name in below.items() if name == "java"))
            while not _is_done(words):
                words += _heard(child, PATIENCE, may_be_refused=True)
        self.child = None
        child.kill()
        words += child.all_heard()
        _await_end(below)
        return victim, words

    def stop(self) -> None:
        """End the session."""
        if self.child is not None:
            below = descendants(self.child.pid)
            self.child.kill()
            self.child.all_heard()
            _await_end(below)
            self.child = None

    def _running(self) -> Child:
        if self.child is None:
            self.child = Child.of(act_on_spark, self.scratch)
            _expect(self.child, "ready")
        return self.child


def _is_done(words: list[Said]) -> bool:
    return bool(words) and words[-1][0] in ("done", "refused")


def _heard(child: Child, seconds: float = 0.02, may_be_refused: bool = False) -> list[Said]:
    """What a driver says within so many seconds."""
    if not child.says_within(seconds):
        if seconds >= PATIENCE:
            raise CampaignError(f"a driver says nothing for {seconds:.0f} s")
        return []
    heard = child.heard()
    told_well = may_be_refused and heard is not None and heard[1] in (SparkUnavailableError.__name__, OWN_CALL)
    if heard is None or heard[0] == "raised" or (heard[0] == "refused" and not told_well):
        raise CampaignError(f"a driver ended an action with {heard}")
    return [heard]


def _expect(child: Child, word: str) -> None:
    heard = child.heard()
    if heard is None or heard[0] != word:
        raise CampaignError(f"a driver says {heard} instead of {word!r}")


def _workers(child: Child) -> list[int]:
    """The Python processes that run tasks: below a daemon that forks them, which is below the JVM."""
    java = [pid for pid, name in descendants(child.pid).items() if name == "java"]
    return [worker for pid in java for daemon in descendants(pid) for worker in descendants(daemon)]


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # It has ended.
        os.kill(pid, signal.SIGKILL)


def _await_end(below: Iterable[int]) -> None:
    """Tasks of a JVM write until it ends."""
    left = wait_for_end(list(below), _END_SECONDS)
    if left:
        raise CampaignError(f"processes {left} are still there after their driver or JVM was killed")
