"""Arguments of maintenance are checked and passed on."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError
from lakelsm.results import CompactionResult, CompactionStatus, ExpiryResult
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.compactable_table import CompactableTable
from lakelsm.table.table_maintenance import UPKEEP_STEPS
from tests.commit.commit_table import CommitTable, add, file
from tests.maintain.partitions.partitioned_table import fill, left, partitioned
from tests.maintain.versioned_table import versioned_table

NOTHING = CompactionResult(table="t", status=CompactionStatus.NOTHING)
ORPHAN = "data-01234567-89ab-cdef-0123-456789abcdef-0.parquet"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = CommitTable(tmp_path / "t")
    made.append(add(file(seq=(0, 0))))
    bucket = tmp_path / "t" / "dt=a" / "bucket-0"
    bucket.mkdir(parents=True, exist_ok=True)
    (bucket / ORPHAN).touch()
    os.utime(bucket / ORPHAN, (1_500_000_000, 1_500_000_000))
    return Table(TableStore.open(str(made.root)))


@pytest.mark.parametrize(
    "older_than", ["1 day", "2 h", 7200, datetime.timedelta(days=2), datetime.datetime(2018, 1, 1), "2018-01-01 00:00:00"]
)
def test_orphans_are_older_than_an_age_or_a_time(table: Table, older_than: object) -> None:
    assert table.maintenance.remove_orphans(older_than, engine="local", dry_run=True).files == 1  # type: ignore[arg-type]
    assert table.maintenance.remove_orphans(older_than, engine="local").files == 1  # type: ignore[arg-type]


def test_younger_files_are_kept(table: Table) -> None:
    result = table.maintenance.remove_orphans(datetime.datetime(2017, 1, 1), engine="local")
    assert (result.files, result.files_too_young) == (0, 1)
    assert result.older_than < datetime.datetime(2017, 1, 3, tzinfo=datetime.timezone.utc)


@pytest.mark.parametrize(
    "wrong", [{"older_than": None}, {"older_than": "59 min"}, {"older_than": -1}, {"dry_run": 1}, {"force": "yes"},
              {"engine": "flink"}]
)
def test_wrong_arguments_are_refused(table: Table, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        table.maintenance.remove_orphans(**{"engine": "local", **wrong})  # type: ignore[arg-type]


def test_wrong_arguments_of_partitions_are_named(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    fill(table, "2020-01-01")
    with pytest.raises(InvalidInputError, match="where: expected an SQL condition"):
        table.maintenance.drop_partitions(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="dry_run: expected True or False, got 1"):
        table.maintenance.drop_partitions("dt = 'a'", dry_run=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="older_than: "):
        table.maintenance.expire_partitions(-1)
    with pytest.raises(InvalidInputError, match="where: expected an SQL condition"):
        table.maintenance.mark_partitions_done(5)  # type: ignore[arg-type]
    assert left(table) == ["2020-01-01"]


def test_run_all_runs_each_step_after_failures_and_refuses_wrong_arguments(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 6, **{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
    planned = table.maintenance.run_all(dry_run=True, engine="local")
    assert [step.name for step in planned.steps] == list(UPKEEP_STEPS)
    assert (planned.outcome, planned.changed, planned.ok, planned.dry_run) == ("planned", True, True, True)
    assert len(table.inspect.snapshots()) == 6
    next((tmp_path / "db.db/t/bucket-0").glob("data-*")).unlink()
    found = table.maintenance.run_all(["check", "compact", "expire", "consumers"], data="none", engine="local")
    steps = {step.name: step for step in found.steps}
    assert [(name, step.outcome) for name, step in steps.items()] == [
        ("consumers", "nothing"), ("compact", "failed"), ("expire", "done"), ("check", "findings")
    ]
    assert steps["consumers"].reason == "consumer.expiration-time is not set"
    assert steps["compact"].error is not None and steps["compact"].error.kind == "corrupt"
    assert isinstance(steps["expire"].result, ExpiryResult) and len(table.inspect.snapshots()) == 2
    assert (found.outcome, found.ok) == ("failed", False)
    late = table.maintenance.run_all(deadline=0)
    assert {step.outcome for step in late.steps} == {late.outcome} == {"deadline"}
    for wrong in ({"steps": ["vacuum"]}, {"steps": "check"}, {"orphans_older_than": "59 min"}, {"data": "all"},
                  {"dry_run": 1}, {"deadline": -1}, {"engine": "flink"}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            table.maintenance.run_all(**wrong)  # type: ignore[arg-type]


def test_the_compaction_of_run_all_has_half_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, deadlines = versioned_table(tmp_path, 1), list[float]()
    monkeypatch.setattr(CompactableTable, "compact", lambda self, **named: deadlines.append(named["deadline"]) or NOTHING)
    table.maintenance.run_all(["compact"], deadline=100_000)
    assert 40_000 < deadlines[0] <= 50_000
