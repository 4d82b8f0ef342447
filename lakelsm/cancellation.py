"""Cancellation: long work calls `raise_if_cancelled` between its steps.

A pool of threads declares with `cancelled_by` when the work of a thread is cancelled. Other work is never cancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WorkCancelled(BaseException):
    """Ends a task whose result is not needed. It is not an Exception, so no task handles it as its own failure."""


class _Cancellation(threading.local):
    """The function that says whether this thread's work is cancelled; None for work that is never cancelled."""

    is_cancelled: Callable[[], bool] | None = None


_cancellation = _Cancellation()


@contextmanager
def cancelled_by(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Cancel what this thread does in the context as soon as ``is_cancelled()`` is true."""
    before, _cancellation.is_cancelled = _cancellation.is_cancelled, is_cancelled
    try:
        yield
    finally:
        _cancellation.is_cancelled = before


def raise_if_cancelled() -> None:
    """Raise `WorkCancelled` if this thread's work is cancelled."""
    if _cancellation.is_cancelled is not None and _cancellation.is_cancelled():
        raise WorkCancelled
