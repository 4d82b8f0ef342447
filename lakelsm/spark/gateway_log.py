"""What Python says to the JVM is logged at the level DEBUG: credentials are sent without."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

#: Loggers of py4j that show what is sent.
_LOGGERS = ("py4j.clientserver", "py4j.java_gateway")
_lock = Lock()


@contextmanager
def unlogged() -> Iterator[None]:
    """Meanwhile nothing that is said to the JVM is logged, of any thread's."""
    with _lock:
        loggers = [logger for logger in map(logging.getLogger, _LOGGERS) if not logger.disabled]
        for logger in loggers:
            logger.disabled = True
        try:
            yield
        finally:
            for logger in loggers:
                logger.disabled = False
