"""Results of references know whether anything changed, which decides their outcome."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from lakelsm.results import ConsumerExpiryResult, FastForwardResult, RollbackResult, TagDeletionResult
from lakelsm.results.result import OperationResult

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("unchanged", "changed"),
    [
        (TagDeletionResult(table="t"), TagDeletionResult(table="t", tags=("a",))),
        (
            ConsumerExpiryResult(table="t", older_than=NOW),
            ConsumerExpiryResult(table="t", older_than=NOW, consumers=("c",)),
        ),
        (RollbackResult(table="t", snapshot_id=1), RollbackResult(table="t", snapshot_id=1, restored=True)),
        (
            FastForwardResult(table="t", branch="b", snapshot_id=1),
            FastForwardResult(table="t", branch="b", snapshot_id=1, tags_removed=("a",)),
        ),
    ],
)
def test_the_outcome_is_nothing_if_nothing_changed(unchanged: OperationResult, changed: OperationResult) -> None:
    assert (unchanged.changed, unchanged.outcome) == (False, "nothing")
    assert (changed.changed, changed.outcome) == (True, "done")
