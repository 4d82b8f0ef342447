"""Work counted in calls of functions, as many on any machine under any load; seconds are the harness's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


def counted_calls(work: Callable[[], Result]) -> tuple[Result, int]:
    """What ``work`` returns, and how many functions, of Python and of C, it calls in this thread."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return work(), calls
    finally:
        sys.setprofile(before)
