"""A process with a Spark session that runs actions; it, its JVM or a Python worker of a task is killed."""

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
from tests.campaign.locations import TableLocation
from tests.campaign.processes import PATIENCE, CampaignError, Child, Voice, descendants, wait_for_end

#: The victims and their weights, while tasks run, and while only the driver works.
VICTIMS = {"write": (1, 1, 2), "compact": (1, 1, 2), "orphans": (1, 1, 2), "expire": (1, 1, 0), "rollback": (1, 1, 0)}
#: The actions under Spark, and their weights.
KINDS = {"write": 5, "compact": 5, "orphans": 1, "expire": 1, "rollback": 1}
DRIVER, JVM, WORKER = "driver under Spark", "JVM", "Python worker"
#: Seconds until the children of a killed process have ended.
_END_SECONDS = 60.0

#: A refusal by a Spark call of the user, which makes the DataFrame to write, and not by the engine.
OWN_CALL = "an error of the user's own call"
_ENGINE = str(Path(lakelsm.__file__).parent)

Said: TypeAlias = tuple[str, Any]


def act_on_spark(say: Voice, scratch: Path) -> None:
    """Run the actions that the parent sends, until it closes the pipe."""
    from tests.spark_session import build_session

    scratch.mkdir(exist_ok=True)
    log = os.open(scratch / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    # A killed worker does not fail the job: its task is retried.
    spark = build_session("lakelsm-campaign", scratch, spark__master="local[2, 4]")
    say("ready")
    while (received := say.receive()) is not None:
        location, action = received
        doer = Doer(say, location.opened(spark), spark)
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
    """Starts a driver with a session when needed; it survives if only a worker is killed."""

    scratch: Path
    child: Child | None = None

    def killed(
        self, location: TableLocation, action: Action, seconds: float, chance: random.Random
    ) -> tuple[str, list[Said]]:
        """Begin an action, and kill something after at most so many seconds.

        Returns what was killed, or nothing where the action was done before, and what the driver has said. Raises
        CampaignError where it ended with another error than the one for a JVM that is gone.
        """
        try:
            return self._killed(location, action, seconds, chance)
        except BaseException:
            self.stop()
            raise

    def _killed(
        self, location: TableLocation, action: Action, seconds: float, chance: random.Random
    ) -> tuple[str, list[Said]]:
        child = self._running()
        child.pipe.send((location, action))
        _expect(child, "begin")
        victim = chance.choices((DRIVER, JVM, WORKER), VICTIMS[action.kind])[0]
        end, words = time.monotonic() + chance.uniform(0, seconds), list[Said]()
        while not _is_done(words) and (time.monotonic() < end or (victim == WORKER and not _workers(child))):
            words += _heard(child)
        if _is_done(words):
            return "", words
        if victim == WORKER:
            _kill(chance.choice(_workers(child)))
            while not _is_done(words):  # The task is retried.
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
        """End the driver."""
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
    """Return the reports of a driver within ``seconds``."""
    if not child.says_within(seconds):
        if seconds >= PATIENCE:
            raise CampaignError(f"a driver says nothing for {seconds:.0f} s")
        return []
    heard = child.heard()
    is_expected = may_be_refused and heard is not None and heard[1] in (SparkUnavailableError.__name__, OWN_CALL)
    if heard is None or heard[0] == "raised" or (heard[0] == "refused" and not is_expected):
        raise CampaignError(f"a driver ended an action with {heard}")
    return [heard]


def _expect(child: Child, word: str) -> None:
    heard = child.heard()
    if heard is None or heard[0] != word:
        raise CampaignError(f"a driver says {heard} instead of {word!r}")


def _workers(child: Child) -> list[int]:
    """Return the Python processes that run tasks: children of the daemon that the JVM starts."""
    java = [pid for pid, name in descendants(child.pid).items() if name == "java"]
    return [worker for pid in java for daemon in descendants(pid) for worker in descendants(daemon)]


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # The process has ended.
        os.kill(pid, signal.SIGKILL)


def _await_end(below: Iterable[int]) -> None:
    """Wait for the end of a JVM, because its tasks write until then."""
    left = wait_for_end(list(below), _END_SECONDS)
    if left:
        raise CampaignError(f"processes {left} are still there after their driver or JVM was killed")
