"""Results of maintenance become plain values for reports."""

from __future__ import annotations

import json

from lakelsm.maintenance_results import ExpiryResult


def test_an_expiry_is_told_in_plain_values() -> None:
    told = ExpiryResult(table="db.t", snapshots=3, held_by=("tag a",)).as_dict()
    assert json.loads(json.dumps(told))["held_by"] == ["tag a"]
    assert told["snapshots"] == 3
