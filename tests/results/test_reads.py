"""A count is its number of rows."""

from __future__ import annotations

from lakelsm.results import CountResult


def test_a_count_is_its_rows() -> None:
    assert int(CountResult(snapshot_id=1, rows=7, how="metadata")) == 7
