"""A commit that others overtake is tried again on what they left, as often and as long as the options say."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.errors import CommitConflictError, CommitOutcomeUnknownError, CorruptTableError, SequenceConflictError
from lakelsm.format.snapshot import CommitKind
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


def test_a_retried_overwrite_also_removes_what_was_committed_meanwhile(table: CommitTable) -> None:
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

    with pytest.raises(CommitConflictError, match="came first 4 times"):
        committer = table.committer(interfering(rival, at="base-list-written", times=99))
        committer.commit(APPEND, CommitMessage([add()]), "u")
    assert table.sleeps == [0.010, 0.020, 0.025]
    assert table.metadata_names() == table.named_metadata()


def test_a_commit_gives_up_after_its_timeout(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t", {"commit.timeout": "1 s"})
    table.append(add(file(seq=(0, 0)), bucket=1))

    def rival() -> None:
        table.time += 600
        table.append(add(file(seq=(table.time, table.time)), bucket=1))

    with pytest.raises(CommitConflictError, match="came first 2 times"):
        committer = table.committer(interfering(rival, at="base-list-written", times=99))
        committer.commit(APPEND, CommitMessage([add()], base_snapshot_id=1), "u")


@pytest.mark.parametrize("failing", ["base-list-written", "delta-list-written", "index-manifest-written"])
def test_whatever_ends_a_commit_before_it_publishes_leaves_no_file(table: CommitTable, failing: str) -> None:
    def step(name: str) -> None:
        if name == failing:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.committer(step).commit(APPEND, CommitMessage([add()], index_adds=[hash_index("i")]), "u")
    assert table.snapshots.ids() == [] and table.metadata_names() == set()


def test_a_failure_after_publishing_is_an_unknown_outcome_and_deletes_nothing(table: CommitTable) -> None:
    def step(name: str) -> None:
        if name == "snapshot-published":
            raise RuntimeError("gone")

    with pytest.raises(CommitOutcomeUnknownError, match=rf"{table.root}: .* may be visible \(gone\)"):
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


def roll_back(table: CommitTable, to: int) -> None:
    """What a rollback does to snapshots: the hint first, then the newest one first."""
    table.file_io.write(table.paths.latest_hint, str(to).encode())
    table.expire(*range(table.snapshots.latest_id() or 0, to, -1), *(n for n in table.snapshots.ids()[::-1] if n > to))


def three(table: CommitTable) -> None:
    for number in range(3):
        table.append(add(file(f"f{number}", seq=(10 * number, 10 * number + 9))))


@pytest.mark.parametrize("at", ["base-list-written", "delta-list-written", "snapshot-published"])
def test_a_commit_on_a_snapshot_that_was_rolled_back_is_taken_back_and_refused(table: CommitTable, at: str) -> None:
    three(table)
    before = table.metadata_names()
    step = interfering(lambda: roll_back(table, 1), at=at)
    message = CommitMessage([add(file("late", seq=(90, 99)))], base_snapshot_id=3, base_mark=table.snapshots.get(3).mark)
    with pytest.raises(CommitConflictError, match="the snapshot before 4 was rolled back"):
        table.committer(step).commit(APPEND, message, "late")
    assert list(table.snapshots.ids()) == [1] and table.live_names() == {"f0@0"}
    assert table.metadata_names() == before


def test_a_commit_is_taken_back_where_others_took_the_ids_of_its_base_again(table: CommitTable) -> None:
    three(table)
    mark = table.snapshots.get(3).mark

    def again() -> None:
        roll_back(table, 1)
        table.append(add(file("n2", seq=(10, 99))))
        table.append(add(file("n3", seq=(100, 199))))

    for at in ("delta-list-written", "base-list-written"):
        message = CommitMessage([add(file("late", seq=(30, 39)))], base_snapshot_id=3, base_mark=mark)
        with pytest.raises(CommitConflictError, match=r"snapshot before 4 was rolled back|is another one now"):
            table.committer(interfering(again, at=at)).commit(APPEND, message, "late")
        assert list(table.snapshots.ids()) == [1, 2, 3] and table.live_names() == {"f0@0", "n2@0", "n3@0"}


def test_an_overwrite_on_a_rolled_back_snapshot_is_refused_as_its_files_may_be_gone(table: CommitTable) -> None:
    three(table)
    step = interfering(lambda: roll_back(table, 2), at="delta-list-written")
    with pytest.raises(CommitConflictError, match="files of 4 may have gone with it"):
        table.committer(step).commit(OVERWRITE, CommitMessage([add(file("whole", seq=(50, 59)))]), "o")
    assert list(table.snapshots.ids()) == [1, 2] and table.metadata_names() >= table.named_metadata()


def test_a_base_that_expired_meanwhile_takes_nothing_back(table: CommitTable) -> None:
    three(table)
    message = CommitMessage([add(file("next", seq=(30, 39)))], base_snapshot_id=3)
    step = interfering(lambda: table.expire(1, 2, 3), at="snapshot-published")
    outcome = table.committer(step).commit(APPEND, message, "u")
    assert outcome.snapshot is not None and list(table.snapshots.ids()) == [4]


def others_come_and_go(table: CommitTable, first: int) -> None:
    """Others commit from an id on, and all but the newest of them expires: the id is free again, below what is seen."""
    for number in range(first, first + 3):
        table.append(add(file(f"other{number}", seq=(100 * number, 100 * number + 9))))
    table.snapshots.announce_earliest(first + 2)
    table.expire(*range(1, first + 2))


@pytest.mark.parametrize("snapshots", [0, 3])
def test_a_commit_under_an_id_that_expired_is_refused_and_not_lost(table: CommitTable, snapshots: int) -> None:
    if snapshots:
        three(table)
    step = interfering(lambda: others_come_and_go(table, snapshots + 1), at="delta-list-written")
    with pytest.raises(CommitConflictError, match=f"before {snapshots + 1} was rolled back or expired"):
        table.committer(step).commit(OVERWRITE, CommitMessage([add(file("whole", seq=(50, 59)))]), "o")
    assert list(table.snapshots.ids()) == [snapshots + 3]


def test_an_append_under_an_id_that_expired_is_refused(table: CommitTable) -> None:
    three(table)
    step = interfering(lambda: others_come_and_go(table, 4), at="delta-list-written")
    with pytest.raises(CommitConflictError, match="the snapshot before 4 was rolled back or expired"):
        table.committer(step).commit(APPEND, CommitMessage([add(file("c", seq=(30, 39)))], base_snapshot_id=3), "u")
    assert list(table.snapshots.ids()) == [6]


def test_a_commit_that_others_went_on_from_and_that_expired_is_done(table: CommitTable) -> None:
    three(table)

    def go_on() -> None:
        table.append(add(file("after", seq=(40, 49))))
        table.snapshots.announce_earliest(5)
        table.expire(1, 2, 3, 4)

    step = interfering(go_on, at="snapshot-published")
    outcome = table.committer(step).commit(APPEND, CommitMessage([add(file("c", seq=(30, 39)))], base_snapshot_id=3), "u")
    assert outcome.snapshot is not None and outcome.attempts == 1
    assert list(table.snapshots.ids()) == [5] and "c@0" in table.live_names()


def test_a_compaction_of_files_that_a_rollback_took_is_refused(table: CommitTable) -> None:
    three(table)
    entries = table.live()
    roll_back(table, 2)
    message = CommitMessage([*map(delete, entries), add(file("big", level=5))])
    with pytest.raises(CommitConflictError, match="no longer in the table: f2"):
        table.committer().commit(COMPACT, message, "c")


def numbered(table: CommitTable, count: int) -> None:
    for number in range(count):
        table.append(add(file(f"f{number}", seq=(number, number))))


def late(table: CommitTable) -> None:
    table.append(add(file("late", seq=(9, 9))))


@pytest.mark.parametrize("hint", [b"3", b"2", b"77", b"", None])
def test_a_snapshot_that_is_missing_below_the_newest_is_damage(table: CommitTable, hint: bytes | None) -> None:
    numbered(table, 3)
    table.expire(2)
    if hint is None:
        table.file_io.delete(table.paths.latest_hint)
    else:
        table.file_io.write(table.paths.latest_hint, hint)
    missing = "snapshot-77 is missing" if hint == b"77" else r"3 lies above a gap: snapshot 2 .*snapshot-2, or roll"
    with pytest.raises(CorruptTableError, match=missing):
        late(table)
    assert list(table.snapshots.ids()) == [1, 3] and table.metadata_names() >= table.named_metadata()
    assert len(table.sleeps) < (5 if hint in (b"2", b"3") else 20)


def test_a_snapshot_that_is_missing_above_what_a_write_was_planned_on_is_damage(table: CommitTable) -> None:
    numbered(table, 4)
    table.expire(3)
    message = CommitMessage([add(file("late", seq=(9, 9)))], base_snapshot_id=2)
    with pytest.raises(CorruptTableError, match=r"snapshot 3 is missing, and later ones are there.* back to snapshot 2"):
        table.committer().commit(APPEND, message, "u")
    assert list(table.snapshots.ids()) == [1, 2, 4]


def test_the_newest_snapshot_that_the_hint_names_is_missed(table: CommitTable) -> None:
    numbered(table, 3)
    table.expire(3)
    with pytest.raises(CorruptTableError, match=r"snapshot-3 is missing.*or accept its loss: roll back to snapshot 2"):
        late(table)
    assert list(table.snapshots.ids()) == [1, 2]


@pytest.mark.parametrize("gone", [2, 3])
def test_a_gap_that_a_rollback_leaves_while_it_runs_is_a_conflict(table: CommitTable, gone: int) -> None:
    numbered(table, 3)
    table.expire(gone)
    table.file_io.write(table.paths.consumer("lakelsm-rollback-to-1"), b'{"nextSnapshot": 1}')
    if gone == 3:  # A commit wrote the hint late: the rollback corrects it.
        late(table)
        return
    with pytest.raises(CommitConflictError, match="a rollback is under way, or was cut off: snapshot 3 lies above a gap"):
        late(table)
    assert list(table.snapshots.ids()) == [1, 3]


def test_a_hint_that_is_written_after_a_rollback_names_a_snapshot_that_is_there(table: CommitTable) -> None:
    three(table)
    step = interfering(lambda: roll_back(table, 3), at="snapshot-published")
    outcome = table.committer(step).commit(APPEND, CommitMessage([add(file("d", seq=(30, 39)))]), "u")
    assert outcome.snapshot is not None and outcome.snapshot.id == 4, "it was published and rolled back"
    assert table.file_io.read(table.paths.latest_hint) == b"3" and table.snapshots.latest_id() == 3


def test_the_gap_that_a_rollback_left_is_not_filled(table: CommitTable) -> None:
    """Its hint says that snapshot 1 is the newest: one more in the gap would make 3 and 4 the table's again."""
    numbered(table, 4)
    table.expire(2)
    table.file_io.write(table.paths.latest_hint, b"1")
    with pytest.raises(CommitConflictError, match="rollback is under way, or was cut off: snapshot 2 is missing"):
        late(table)
    assert list(table.snapshots.ids()) == [1, 3, 4] and table.metadata_names() >= table.named_metadata()
    table.expire(3, 4)
    late(table)
    assert list(table.snapshots.ids()) == [1, 2]


def abandoned(table: CommitTable) -> None:
    """Snapshot 3 was published on a snapshot 2 that was rolled back meanwhile, and its writer died."""
    numbered(table, 3)
    table.file_io.delete(table.paths.snapshot_file(2))
    kept = table.file_io.read(table.paths.snapshot_file(3))
    table.file_io.delete(table.paths.snapshot_file(3))
    table.file_io.write(table.paths.latest_hint, b"1")
    table.append(add(file("another", seq=(5, 5))))
    table.file_io.write(table.paths.snapshot_file(3), kept)


def test_a_snapshot_on_one_that_was_rolled_back_is_removed_where_its_writer_died(table: CommitTable) -> None:
    abandoned(table)
    message = CommitMessage([add(file("late", seq=(9, 9)))], base_snapshot_id=2)
    table.committer().commit(APPEND, message, "u")
    assert list(table.snapshots.ids()) == [1, 2, 3] and table.live_names() == {"f0@0", "another@0", "late@0"}


def test_a_snapshot_that_the_hint_names_is_never_removed(table: CommitTable) -> None:
    abandoned(table)
    table.file_io.write(table.paths.latest_hint, b"3")
    with pytest.raises(CorruptTableError, match="snapshot 3 was not published on snapshot 2"):
        late(table)
    assert list(table.snapshots.ids()) == [1, 2, 3]
