"""Ends work that is no longer needed: long work checks between two of its steps.

A pool of threads sets with `cancelled_by` how its work learns that it is not needed; elsewhere nothing
ever cancels it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WorkCancelled(BaseException):
    """Ends a task whose result is not needed. Not an Exception: no task treats it as a failure of its own."""


class _Check(threading.local):
    """The check of each thread's work."""

    unwanted: Callable[[], bool] | None = None


_check = _Check()


@contextmanager
def cancelled_by(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Let `raise_if_cancelled` end what this thread does in the context, once ``unwanted`` is true."""
    before, _check.unwanted = _check.unwanted, unwanted
    try:
        yield
    finally:
        _check.unwanted = before


def raise_if_cancelled() -> None:
    """Raise `WorkCancelled` where this thread's work is not wanted any more."""
    if _check.unwanted is not None and _check.unwanted():
        raise WorkCancelled
