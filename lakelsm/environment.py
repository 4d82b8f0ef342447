"""The external inputs of the engine besides storage: time, waiting, random numbers and ids.

No other module reads them from the system (the linter enforces it): commit, writer, compaction and their tasks are
handed an `Environment`, so that the same ones give the same run. It travels to Spark tasks, so what it holds must pickle.
"""

from __future__ import annotations

import getpass
import os
import random
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass


def _epoch_millis() -> int:
    return time.time_ns() // 1_000_000


def _local_offset(epoch_seconds: int) -> int:
    return time.localtime(epoch_seconds).tm_gmtoff


def _monotonic() -> float:
    return time.monotonic()


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _chance() -> float:
    return random.random()


def _new_uuid() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, kw_only=True)
class Environment:
    """``clock`` gives milliseconds since 1970, ``local_offset`` the seconds that the local zone is ahead of UTC at a time
    in seconds since 1970. ``monotonic`` gives seconds that never go back, for durations. ``sleep`` takes seconds.
    ``chance`` returns numbers in [0, 1), ``new_uuid`` a unique version 4 uuid.
    """

    clock: Callable[[], int] = _epoch_millis
    local_offset: Callable[[int], int] = _local_offset
    monotonic: Callable[[], float] = _monotonic
    sleep: Callable[[float], None] = _sleep
    chance: Callable[[], float] = _chance
    new_uuid: Callable[[], str] = _new_uuid

    def local_wall_clock(self, epoch_millis: int) -> int:
        """A time as ``_CREATION_TIME`` has it: the local wall clock, read as if it were UTC (docs/format.md 5.3)."""
        return epoch_millis + self.local_offset(epoch_millis // 1000) * 1000


#: The real ones.
SYSTEM = Environment()


def is_submitted() -> bool:
    """Whether this program is one of spark-submit, which sets the address of its JVM in an environment variable."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def executor_directory() -> str | None:
    """Where the Spark executor whose worker this process is keeps files that go with it; None for other processes."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None


def utc_zone() -> str | None:
    """The machine's time zone where it is UTC; None for others, whose clocks may step."""
    return "UTC" if time.tzname == ("UTC", "UTC") else None


def login_and_host() -> tuple[str, str]:
    """The user and the machine of this process, for people to read; '' if the system does not know."""
    try:
        login = getpass.getuser()
    except (OSError, KeyError, ImportError):
        login = ""
    return login, socket.gethostname()
