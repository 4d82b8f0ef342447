"""The search for an earlier commit of a batch: it is found, or the batch is refused if snapshots have expired."""

from __future__ import annotations

import dataclasses
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.commit.replay import HIGHEST_IDENTIFIER_PROPERTY
from lakelsm.errors import BatchHistoryExpiredError, CommitConflictError, CorruptTableError
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from tests.commit.commit_table import CommitTable, ReadingFileIO, add, file, interfering, upgrade
from tests.commit.commit_table import commit_batch as commit

_Steps = list[tuple[str, int]]
APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE


def is_new(table: CommitTable, identifier: int, user: str = "job", kind: CommitKind = APPEND) -> bool:
    before = table.snapshots.latest_id() or 0
    outcome = commit(table, identifier, user, kind)
    assert outcome.already_committed == ((table.snapshots.latest_id() or 0) == before)
    if outcome.already_committed:
        assert outcome.snapshot is not None and outcome.snapshot.commit_identifier == identifier
    return not outcome.already_committed


def test_a_replay_is_a_no_op_and_reports_whether_its_files_are_in_the_table(table: CommitTable) -> None:
    first = CommitMessage([add(file("a"))])
    committed = table.committer().commit(APPEND, first, "job", 7).snapshot
    fresh = table.committer().commit(APPEND, CommitMessage([add(file("b"))]), "job", 7)
    assert (fresh.snapshot, fresh.already_committed, fresh.files_published) == (committed, True, False)
    same = table.committer().commit(APPEND, first, "job", 7)
    assert (same.snapshot, same.already_committed, same.files_published) == (committed, True, True)
    assert table.live_names() == {"a@0"}
    assert table.metadata_names() == table.named_metadata()


@pytest.mark.parametrize("order", list(permutations((0, 1, 2))))
@pytest.mark.parametrize("kind", [APPEND, OVERWRITE])
def test_each_batch_is_committed_once_in_any_order(
    table: CommitTable, order: tuple[int, ...], kind: CommitKind
) -> None:
    for identifier in order:
        assert table.committer().committed("job", identifier) is None
        assert is_new(table, identifier, kind=kind)
    for identifier in (*order, *reversed(order)):
        assert table.committer().committed("job", identifier) is not None
        assert not is_new(table, identifier)
    assert is_new(table, 3) and not is_new(table, 1) and is_new(table, 1, "other")


def test_only_writes_of_the_user_with_an_identifier_count(table: CommitTable) -> None:
    commit(table, 5)
    table.committer().commit(COMPACT, CommitMessage(upgrade(table.live()[0], 5)), "job", 4)
    table.committer().commit(COMPACT, CommitMessage(upgrade(table.live()[0], 6)), "job", 99)
    table.append(add(file(seq=(1000, 1001))), user="job")
    assert is_new(table, 4) and not is_new(table, 4) and not is_new(table, 5)
    assert is_new(table, 6) and not is_new(table, 6)


def test_a_batch_out_of_order_records_the_highest_of_its_user(table: CommitTable) -> None:
    def recorded() -> str | None:
        latest = table.snapshots.latest()
        return None if latest is None else (latest.properties or {}).get(HIGHEST_IDENTIFIER_PROPERTY)

    commit(table, 7)
    assert recorded() is None
    commit(table, 9, "other")
    commit(table, 3)
    assert recorded() == "7"
    commit(table, 5)
    assert recorded() == "7"
    commit(table, 8)
    assert recorded() is None
    damaged = dataclasses.replace(table.snapshots.get(4), extra={}).to_json().replace('"7"', '"seven"')
    table.file_io.write(table.paths.snapshot_file(4), damaged.encode())
    with pytest.raises(CorruptTableError, match=r"Snapshot 4: .*'seven' is not a number"):
        commit(table, 6)


def test_a_batch_below_the_newest_is_refused_if_expired_snapshots_may_be_it(table: CommitTable) -> None:
    for identifier in (3, 5, 6):
        commit(table, identifier)
    table.expire(1)
    assert is_new(table, 7)
    assert not is_new(table, 5)
    names = table.metadata_names()
    for identifier in (0, 3, 4):
        with pytest.raises(BatchHistoryExpiredError, match=rf"batch {identifier} .*'job'.*batch 7.*before 2 have"):
            commit(table, identifier)
    assert table.snapshots.latest_id() == 4 and table.metadata_names() == names


def test_a_lower_batch_of_the_user_that_is_retained_proves_that_one_above_it_did_not_expire(table: CommitTable) -> None:
    for identifier in (2, 3, 6):
        commit(table, identifier)
    table.expire(1)
    assert is_new(table, 4) and is_new(table, 5) and not is_new(table, 5) and not is_new(table, 6)
    with pytest.raises(BatchHistoryExpiredError):
        commit(table, 2)


def test_a_batch_out_of_order_proves_nothing_about_earlier_batches(table: CommitTable) -> None:
    for identifier in (6, 9, 3):
        commit(table, identifier)
    table.expire(1, 2)
    with pytest.raises(BatchHistoryExpiredError, match=r"batch 6 .*batch 9"):
        commit(table, 6)
    with pytest.raises(BatchHistoryExpiredError, match=r"batch 9 .*batch 9"):
        commit(table, 9)
    assert not is_new(table, 3) and is_new(table, 10)


def test_a_user_without_retained_snapshots_is_new(table: CommitTable) -> None:
    commit(table, 5)
    commit(table, 1, "other")
    table.expire(1)
    assert is_new(table, 4)


def test_snapshots_that_expire_while_a_batch_is_written_may_be_that_batch(table: CommitTable) -> None:
    table.append(add(file("first")))

    def rivals() -> None:
        commit(table, 4)
        commit(table, 5)

    entry = add(file("ours", seq=(1000, 1001)))
    committer = table.committer(interfering(rivals), sleep=lambda seconds: table.expire(1, 2))
    with pytest.raises(BatchHistoryExpiredError):
        committer.commit(OVERWRITE, CommitMessage([entry]), "job", 4)
    assert "ours@0" not in table.live_names()


_STEPS = st.tuples(st.sampled_from(["commit", "commit", "commit", "compact", "expire"]), st.integers(0, 4))


@settings(max_examples=20, deadline=None)
@given(st.lists(_STEPS, max_size=9))
def test_no_batch_is_lost_or_doubled_in_any_history(tmp_path_factory: pytest.TempPathFactory, steps: _Steps) -> None:
    table = CommitTable(tmp_path_factory.mktemp("t"))
    landed: set[int] = set()
    for what, number in steps:
        ids = table.snapshots.ids()
        if what == "expire":
            table.expire(*ids[: min(number, len(ids) - 1)])
        elif what == "compact":
            level = max((entry.file.level for entry in table.live()), default=0) + 1
            for entry in table.live()[:1]:
                table.committer().commit(COMPACT, CommitMessage(upgrade(entry, level)), "job", number)
        else:
            if not any(snapshot.commit_kind is APPEND for snapshot in table.snapshots.of_user("job")):
                landed.clear()  # A user without retained snapshots is new.
            try:
                outcome = commit(table, number)
            except BatchHistoryExpiredError:
                assert table.snapshots.earliest_id() != 1
            else:
                assert outcome.already_committed == (number in landed)
                landed.add(number)


def test_ascending_batches_and_the_rerun_of_the_newest_read_the_newest_snapshot_alone(tmp_path: Path) -> None:
    reading = ReadingFileIO()
    table = CommitTable(tmp_path / "t", file_io=reading)
    for identifier in range(40):
        commit(table, identifier)
    for identifier, committed in ((40, False), (39, True)):
        reading.reads.clear()
        assert (table.committer().committed("job", identifier) is not None) == committed
        assert [name for name in reading.reads if name.startswith("snapshot-")] == [
            "snapshot-40",
            "snapshot-41",
            *(["snapshot-39"] if committed else []),  # Its base still exists.
        ]
        assert not table.file_io.exists(table.paths.snapshot_file(41)), "it is only searched"


def test_a_batch_that_is_repeated_under_the_id_of_a_rolled_back_snapshot_is_committed_once(table: CommitTable) -> None:
    commit(table, 1)
    commit(table, 1, user="other")

    def again() -> None:  # A rollback first writes a lower id to LATEST.
        table.file_io.write(table.paths.latest_hint, b"1")
        table.expire(2)
        table.file_io.write(table.paths.latest_hint, b"1")  # A rollback also writes the hint.
        assert not commit(table, 5).already_committed

    message = CommitMessage([add(file("mine", seq=(50, 59)), bucket=1)], base_snapshot_id=2)
    step = interfering(again, at="base-list-written")
    with pytest.raises(CommitConflictError, match="the base of snapshot 3 was rolled back"):
        table.committer(step).commit(APPEND, message, "job", 5)
    assert commit(table, 5).already_committed
    assert list(table.snapshots.ids()) == [1, 2] and "mine@0" not in table.live_names()


def test_a_compaction_may_share_the_identifier_of_its_write(table: CommitTable) -> None:
    a = add(file("a"))
    table.committer().commit(APPEND, CommitMessage([a]), "job", 7)
    outcome = table.committer().commit(COMPACT, CommitMessage(upgrade(a, 5)), "job", 7)
    assert not outcome.already_committed and table.live_names() == {"a@5"}


def test_the_same_batch_of_two_processes_is_committed_once(table: CommitTable) -> None:
    rival = interfering(lambda: table.committer().commit(APPEND, CommitMessage([add(file("theirs"))]), "job", 7))
    outcome = table.committer(rival).commit(APPEND, CommitMessage([add(file("mine"))]), "job", 7)
    assert outcome.already_committed and not outcome.files_published and outcome.attempts == 1
    assert table.live_names() == {"theirs@0"}
    assert table.metadata_names() == table.named_metadata()


def test_a_batch_that_a_higher_one_of_its_user_overtakes_is_committed_once(table: CommitTable) -> None:
    second = CommitMessage([add(file("second"), bucket=1)])
    outcome = commit(table, 1, step=interfering(lambda: table.committer().commit(APPEND, second, "job", 2)))
    assert outcome.attempts == 2 and not outcome.already_committed
    assert not is_new(table, 2) and not is_new(table, 1) and is_new(table, 3)


def test_the_default_identifier_is_never_a_replay(table: CommitTable) -> None:
    table.append(add(), user="job")
    snapshot = table.append(add(file(seq=(10, 11))), user="job")
    assert snapshot.id == 2 and snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
