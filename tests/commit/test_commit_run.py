"""A commit that loses a race is retried on the newest snapshot, as often and as long as the options allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.commit.commit_run import wait_seconds
from lakelsm.errors import CommitConflictError, CommitOutcomeUnknownError, SequenceConflictError
from lakelsm.format.snapshot import CommitKind
from lakelsm.options import TableOptions
from tests.commit.commit_table import CommitTable, add, delete, file, hash_index, interfering

APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE


def test_a_lost_race_is_retried_on_the_newest_snapshot(table: CommitTable) -> None:
    table.append(add(file("a")))
    step = interfering(lambda: table.append(add(file("b", seq=(0, 9)), bucket=1)))
    message = CommitMessage([add(file("c", seq=(10, 11)))], base_snapshot_id=1)
    outcome = table.committer(step).commit(APPEND, message, "u")
    assert outcome.attempts == 2 and outcome.snapshot is not None and outcome.snapshot.id == 3
    assert table.live_names() == {"a@0", "b@0", "c@0"}
    assert table.metadata_names() == table.named_metadata()
    assert outcome.snapshot.total_record_count == 30


def test_a_retry_checks_conflicts_again(table: CommitTable) -> None:
    a = add(file("a"))
    table.append(a)
    rival = interfering(lambda: table.append(add(file("b", seq=(10, 19)))))
    with pytest.raises(SequenceConflictError):
        message = CommitMessage([add(file("c", seq=(10, 11)))], base_snapshot_id=1)
        table.committer(rival).commit(APPEND, message, "u")
    rival = interfering(lambda: table.compact([delete(a), add(file("x", level=5))]))
    with pytest.raises(CommitConflictError, match="no longer"):
        message = CommitMessage([delete(a), add(file("y", level=5))])
        table.committer(rival).commit(COMPACT, message, "u")
    assert table.metadata_names() == table.named_metadata()


def test_a_retried_overwrite_also_deletes_concurrently_committed_files(table: CommitTable) -> None:
    table.append(add(file("a")))
    rival = interfering(lambda: table.append(add(file("b", seq=(10, 19)))), at="base-list-written")
    message = CommitMessage([add(file("c", seq=(20, 29)))])
    outcome = table.committer(rival).commit(OVERWRITE, message, "u")
    assert outcome.attempts == 2 and table.live_names() == {"c@0"}
    assert table.metadata_names() == table.named_metadata()


def test_a_retry_over_a_concurrent_overwrite_does_not_revive_its_files(table: CommitTable) -> None:
    table.append(add(file("a")))
    rival = interfering(lambda: table.overwrite(partitions=["a"]))
    message = CommitMessage([add(file("c", seq=(10, 11)))], base_snapshot_id=1)
    table.committer(rival).commit(APPEND, message, "u")
    assert table.live_names() == {"c@0"}
    latest = table.snapshots.latest()
    assert latest is not None and latest.total_record_count == 10


def test_a_race_lost_too_often_ends_with_a_conflict_and_growing_waits(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t", {"commit.max-retries": "3", "commit.max-retry-wait": "25 ms"})
    numbers = iter(range(0, 10_000, 10))

    def rival() -> None:
        first = next(numbers)
        table.append(add(file(seq=(first, first)), bucket=1))

    with pytest.raises(CommitConflictError, match="won 4 times"):
        committer = table.committer(interfering(rival, at="base-list-written", times=99))
        committer.commit(APPEND, CommitMessage([add()]), "u")
    assert table.sleeps == [0.010, 0.020, 0.025]
    assert table.metadata_names() == table.named_metadata()


def test_a_commit_fails_after_its_timeout(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t", {"commit.timeout": "1 s"})
    table.append(add(file(seq=(0, 0)), bucket=1))

    def rival() -> None:
        table.time += 600
        table.append(add(file(seq=(table.time, table.time)), bucket=1))

    with pytest.raises(CommitConflictError, match="won 2 times"):
        committer = table.committer(interfering(rival, at="base-list-written", times=99))
        committer.commit(APPEND, CommitMessage([add()], base_snapshot_id=1), "u")


@pytest.mark.parametrize("failing", ["base-list-written", "delta-list-written", "index-manifest-written"])
def test_a_failure_before_the_publication_leaves_no_file(table: CommitTable, failing: str) -> None:
    def step(name: str) -> None:
        if name == failing:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.committer(step).commit(APPEND, CommitMessage([add()], index_adds=[hash_index("i")]), "u")
    assert table.snapshots.ids() == [] and table.metadata_names() == set()


def test_a_failure_after_publishing_is_an_unknown_outcome_and_deletes_nothing(table: CommitTable) -> None:
    def step(name: str) -> None:
        if name == "snapshot-published":
            raise RuntimeError("lost")

    with pytest.raises(CommitOutcomeUnknownError, match=rf"{table.root}: .* failed \(lost\), and .* may be visible"):
        table.committer(step).commit(APPEND, CommitMessage([add(file("a"))]), "u")
    assert table.live_names() == {"a@0"} and table.named_metadata() == table.metadata_names()


def test_an_attempt_that_lost_uses_its_delta_again(table: CommitTable) -> None:
    table.append(add(file("a")))
    written: list[str] = []
    rival = interfering(lambda: table.append(add(file("b", seq=(10, 19)), bucket=1)))

    def step(name: str) -> None:
        written.append(name)
        rival(name)

    table.committer(step).commit(APPEND, CommitMessage([add(file("c", seq=(20, 29)))], base_snapshot_id=1), "u")
    assert written.count("base-list-written") == 2 and written.count("delta-list-written") == 1


def test_waits_double_up_to_the_longest_and_chance_adds_at_most_a_fifth() -> None:
    options = TableOptions.parse({"commit.min-retry-wait": "10 ms", "commit.max-retry-wait": "100 ms"}, for_reads=True)
    assert [wait_seconds(options, retry, 0.0) for retry in range(5)] == [0.01, 0.02, 0.04, 0.08, 0.1]
    assert wait_seconds(options, 10**9, 0.0) == 0.1
    assert wait_seconds(options, 0, 0.5) == pytest.approx(0.011)
    assert wait_seconds(options, 9, 0.999999) < 0.12
