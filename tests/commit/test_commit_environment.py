"""The policies of a commit."""

from __future__ import annotations

import pytest

from lakelsm.commit.commit_environment import RetryPolicy


def test_waits_double_up_to_the_longest_and_chance_adds_at_most_a_fifth() -> None:
    policy = RetryPolicy(max_retries=9, timeout=None, min_wait=10, max_wait=100)
    assert [policy.wait_seconds(retry, 0.0) for retry in range(5)] == [0.01, 0.02, 0.04, 0.08, 0.1]
    assert policy.wait_seconds(10**9, 0.0) == 0.1
    assert policy.wait_seconds(0, 0.5) == pytest.approx(0.011)
    assert policy.wait_seconds(9, 0.999999) < 0.12
