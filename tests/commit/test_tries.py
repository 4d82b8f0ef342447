"""The waits between the tries of a commit."""

from __future__ import annotations

import pytest

from lakelsm.commit.tries import wait_seconds
from lakelsm.options import TableOptions


def test_waits_double_up_to_the_longest_and_chance_adds_at_most_a_fifth() -> None:
    options = TableOptions.parse({"commit.min-retry-wait": "10 ms", "commit.max-retry-wait": "100 ms"}, for_reads=True)
    assert [wait_seconds(options, retry, 0.0) for retry in range(5)] == [0.01, 0.02, 0.04, 0.08, 0.1]
    assert wait_seconds(options, 10**9, 0.0) == 0.1
    assert wait_seconds(options, 0, 0.5) == pytest.approx(0.011)
    assert wait_seconds(options, 9, 0.999999) < 0.12
