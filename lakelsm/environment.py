"""The inputs of the engine besides storage: time, waits, random numbers and ids.

No other module reads them from the system; the linter enforces it. Commits, writers, compactions and their tasks get an
`Environment`, and the same environment gives the same run. It is sent to Spark tasks, so its functions must pickle.
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
    """Functions for time, waits, random numbers and ids.

    ``clock`` returns milliseconds since 1970. ``local_offset`` takes seconds since 1970 and returns how many seconds the
    local time zone is ahead of UTC then. ``monotonic`` returns seconds that never decrease, for durations. ``sleep``
    takes seconds. ``chance`` returns a number in [0, 1), ``new_uuid`` a unique version 4 uuid.
    """

    clock: Callable[[], int] = _epoch_millis
    local_offset: Callable[[int], int] = _local_offset
    monotonic: Callable[[], float] = _monotonic
    sleep: Callable[[float], None] = _sleep
    chance: Callable[[], float] = _chance
    new_uuid: Callable[[], str] = _new_uuid

    def local_wall_clock(self, epoch_millis: int) -> int:
        """Return a time as in ``_CREATION_TIME``: the local wall clock as if it were UTC (docs/format.md 5.3)."""
        return epoch_millis + self.local_offset(epoch_millis // 1000) * 1000


#: The functions of the system.
SYSTEM = Environment()


def is_submitted() -> bool:
    """Return whether spark-submit started this program: it sets the address of its JVM in an environment variable."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def executor_directory() -> str | None:
    """Return the scratch directory of the executor if this process is a worker of Spark; None for other processes.

    Spark deletes the directory with the executor.
    """
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None


def utc_zone() -> str | None:
    """Return 'UTC' if it is the machine's time zone; None for other zones, whose clocks may step."""
    return "UTC" if time.tzname == ("UTC", "UTC") else None


def login_and_host() -> tuple[str, str]:
    """Return the user and the host name of this process, for display; '' for a user that the system does not know."""
    try:
        login = getpass.getuser()
    except (OSError, KeyError, ImportError):
        login = ""
    return login, socket.gethostname()
