"""The choice of data files that a check opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.maintain.check.audit_plan import AuditPlan, CheckedData, plan_audit, sampled
from lakelsm.snapshots.deletion_vectors import deletion_vectors
from lakelsm.snapshots.hash_indexes import hash_indexes
from tests.compact.local_table import LocalTable
from tests.damage.samples import SAMPLES, build


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_a_sample_is_evenly_spread_and_has_no_duplicates(chance: float) -> None:
    for count in (1, 7, 8, 9, 5000, 100_000):
        found = sampled(range(count), chance)
        assert len(set(found)) == len(found) == min(count, max(8, min(-(-count // 50), 500)))
        assert max(found, default=0) < count and max(b - a for a, b in zip([-1, *found], [*found, count])) <= 202


def planned(table: LocalTable, data: CheckedData) -> AuditPlan:
    store, latest = table.store, table.latest
    indexes = hash_indexes(store, latest) if store.options.bucket == -1 else {}
    return plan_audit(store, table.live(), deletion_vectors(store, latest), indexes, data=data, chance=0.5)


def test_all_files_are_opened_and_the_requested_ones_are_read(tmp_path: Path) -> None:
    table = build(tmp_path / "t", SAMPLES["dynamic"])
    for data, in_full in ((CheckedData.FOOTERS, 0), (CheckedData.SAMPLE, 8), (CheckedData.FULL, 14)):
        plan = planned(table, data)
        files = [file for part in plan.files for bucket in part for file in bucket.files]
        assert {file.file.path for file in files} == {str(table.path_of(entry)) for entry in table.live()}
        assert sum(file.in_full for file in files) == in_full
        assert all(bucket.hash_index is not None for part in plan.files for bucket in part)
        assert sum(map(len, plan.hashes)) > len(plan.hashes) == 2 and not plan.keys


def test_keys_are_compared_if_vectors_leave_one_row_of_each_key(tmp_path: Path) -> None:
    table = build(tmp_path / "t", SAMPLES["vectors"])
    units = [unit for part in planned(table, CheckedData.FULL).keys for unit in part]
    assert units and all(file.level > 0 for unit in units for file in unit.files)
    assert not planned(table, CheckedData.FOOTERS).keys
