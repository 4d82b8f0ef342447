"""Results of maintenance become plain values for reports."""

from __future__ import annotations

import json
from datetime import datetime, timezone

from lakelsm.maintenance_results import BranchInfo, ExpiryResult, FastForwardResult


def test_an_expiry_is_told_in_plain_values() -> None:
    told = ExpiryResult(table="db.t", snapshots=3, held_by=("tag a",)).as_dict()
    assert json.loads(json.dumps(told))["held_by"] == ["tag a"]
    assert told["snapshots"] == 3


def test_the_time_of_a_branch_is_told_as_text() -> None:
    told = BranchInfo(name="b", created=datetime(2026, 1, 2, tzinfo=timezone.utc), schema_id=0).as_dict()
    assert (told["created"], told["snapshot_id"]) == ("2026-01-02T00:00:00+00:00", None)
    assert FastForwardResult(table="db.t", branch="b", snapshot_id=3).as_dict()["tags_added"] == ()
