"""The limits of a batch."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.stream.stream_limits import UNLIMITED, StreamLimits


def test_a_batch_may_have_what_all_limits_allow() -> None:
    limits = StreamLimits(max_files=2, max_bytes=100, max_rows=10)
    assert limits.admits(2, 100, 10)
    assert not any((limits.admits(3, 1, 1), limits.admits(1, 101, 1), limits.admits(1, 1, 11)))
    assert UNLIMITED.admits(10**9, 10**18, 10**18)


@pytest.mark.parametrize(
    "limits", [{"min_rows": 1}, {"max_delay": 1.0}, {"min_rows": 11, "max_rows": 10, "max_delay": 1.0}]
)
def test_limits_that_contradict_each_other_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match="limits: the minimum"):
        StreamLimits(**limits)  # type: ignore[arg-type]
