"""A time limit for code that may hang."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def time_limit(seconds: int, error: BaseException) -> Iterator[None]:
    """Raise ``error`` in the main thread if the block takes longer than ``seconds``, also while it waits for a file."""

    def late(number: int, frame: FrameType | None) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
