"""Ends work that nobody waits for any more: long work asks between two of its steps.

Whoever runs work in threads of this process says by `cancelled_by` how it learns that it is not wanted; elsewhere nothing
ever asks it to end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WorkCancelled(BaseException):
    """Ends a task of which nobody wants the result. No Exception: no task takes it for a failure of its own."""


class _Asked(threading.local):
    """What the work of each thread asks."""

    unwanted: Callable[[], bool] | None = None


_asked = _Asked()


@contextmanager
def cancelled_by(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Let `end_if_cancelled` end what this thread does in the context, once ``unwanted`` is true."""
    before, _asked.unwanted = _asked.unwanted, unwanted
    try:
        yield
    finally:
        _asked.unwanted = before


def end_if_cancelled() -> None:
    """Raise `WorkCancelled` where this thread's work is not wanted any more."""
    if _asked.unwanted is not None and _asked.unwanted():
        raise WorkCancelled
