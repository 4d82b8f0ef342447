"""A commit user belongs to one streaming query: batches of another query are refused, in any race and any history."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm.commit.commit_message import COMMIT_STEPS, CommitMessage, CommitOutcome
from lakelsm.commit.replay import STREAM_QUERY_PROPERTY
from lakelsm.errors import BatchHistoryExpiredError, CommitUserTakenError, InvalidInputError
from lakelsm.format.snapshot import CommitKind
from tests.commit.commit_table import CommitTable, add, commit_batch, file, interfering, upgrade

APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE


def commit(table: CommitTable, identifier: int, query: str | None, **options: Any) -> CommitOutcome:
    """Commit a new file as a batch of a query."""
    return commit_batch(table, identifier, query=query, **options)


def refused(table: CommitTable, identifier: int, query: str | None, match: str, kind: CommitKind = APPEND) -> None:
    """Check that a batch is refused before its work and by the commit, and that nothing of it remains."""
    before, names = table.snapshots.latest_id(), table.metadata_names()
    for refuse in (
        lambda: table.committer().committed("job", identifier, query),
        lambda: commit(table, identifier, query, kind=kind),
    ):
        with pytest.raises(CommitUserTakenError, match=match):
            refuse()
    assert table.snapshots.latest_id() == before and table.metadata_names() == names


@pytest.mark.parametrize("kind", [APPEND, OVERWRITE])
def test_batches_of_another_query_are_refused_and_replays_of_the_same_one_are_no_ops(
    table: CommitTable, kind: CommitKind
) -> None:
    for identifier in (0, 1):
        snapshot = commit(table, identifier, "one", kind=kind).snapshot
        assert snapshot is not None and (snapshot.properties or {})[STREAM_QUERY_PROPERTY] == "one"
    for identifier in (0, 1, 2, 7):
        refused(table, identifier, "two", "'job' belongs to streaming query 'one', .* of query 'two'.*another", kind)
        refused(table, identifier, None, "'job' belongs to streaming query 'one', .* has no query", kind)
    assert commit(table, 0, "one").already_committed and commit(table, 1, "one").already_committed
    assert not commit(table, 2, "one").already_committed
    assert not commit(table, 0, "two", user="other").already_committed


@pytest.mark.parametrize("at", COMMIT_STEPS[1:4])
@pytest.mark.parametrize("rival", ["other query", "no query"])
def test_of_two_queries_that_start_together_one_commits_and_the_other_leaves_nothing(
    table: CommitTable, at: str, rival: str
) -> None:
    theirs = "two" if rival == "other query" else None
    step = interfering(lambda: commit(table, 0, theirs), at=at)
    error, match = CommitUserTakenError, "'job' belongs to streaming query 'two'"
    if theirs is None:
        assert commit(table, 0, "one", step=step).already_committed, "a batch by hand with this id, just before the query"
        return
    with pytest.raises(error, match=match):
        commit(table, 0, "one", step=step)
    assert table.live_names() == {"two-0-None@0"} and table.metadata_names() == table.named_metadata()


def test_the_loser_is_refused_also_if_the_snapshots_of_the_winner_are_compacted_and_expired(table: CommitTable) -> None:
    table.append(add(file("first", seq=(0, 0), keys=(50, 50))))

    def rival() -> None:
        commit(table, 0, "two")
        mine = next(entry for entry in table.live() if entry.file.file_name.startswith("two"))
        table.committer().commit(COMPACT, CommitMessage(upgrade(mine, 5)), "job", 0)
        commit(table, 1, "two")

    committer = table.committer(interfering(rival), sleep=lambda seconds: table.expire(1, 2, 3))
    message = CommitMessage([add(file("ours", seq=(1000, 1001)), bucket=1)], base_snapshot_id=1)
    with pytest.raises(CommitUserTakenError):
        committer.commit(APPEND, message, "job", 0, query_id="one")
    assert "ours@0" not in table.live_names()


def test_the_newest_batch_of_a_query_is_known_after_its_snapshots_have_expired(table: CommitTable) -> None:
    for identifier in (3, 4):
        commit(table, identifier, "one")
    commit(table, 0, "two", user="other")
    table.committer().commit(COMPACT, CommitMessage(upgrade(table.live()[0], 5)), "compactor", 0)
    table.append(add(file("by hand", seq=(5000, 5001))))
    table.expire(1, 2, 3, 4)
    assert not list(table.snapshots.of_user("job"))
    outcome = commit(table, 4, "one")
    assert outcome.already_committed and outcome.snapshot is None and not outcome.files_published
    assert commit(table, 0, "two", user="other").already_committed
    refused(table, 9, "two", "'job' belongs to streaming query 'one'")
    with pytest.raises(BatchHistoryExpiredError, match=r"whether batch 3 .* because batch 4 is committed"):
        commit(table, 3, "one")
    assert not commit(table, 5, "one").already_committed
    assert commit(table, 5, "one").already_committed


def test_a_query_that_restarts_under_another_user_does_not_commit_its_last_batch_again(table: CommitTable) -> None:
    for identifier in (3, 4):
        commit(table, identifier, "one")
    with pytest.raises(CommitUserTakenError, match=r"has written batch 4 as commit user 'job', so .* batch 3 was"):
        commit(table, 3, "one", user="renamed")
    assert commit(table, 4, "one", user="renamed").already_committed
    assert not commit(table, 5, "one", user="renamed").already_committed
    assert commit(table, 5, "one", user="renamed").already_committed
    assert not commit(table, 4, "two", user="other").already_committed
    assert not commit(table, 4, None, user="by hand").already_committed


def test_a_snapshot_that_was_rolled_back_says_nothing_about_the_batches_of_a_query(table: CommitTable) -> None:
    table.append(add(file("base", seq=(0, 0))))
    commit(table, 4, "one")
    table.append(add(file("later", seq=(900, 900))))
    table.file_io.write(table.paths.latest_hint, b"1")
    table.expire(2, 3)
    assert not commit(table, 4, "one").already_committed


def test_compactions_and_writes_without_batch_id_have_no_query(table: CommitTable) -> None:
    table.append(add(file("by hand", seq=(0, 0))), user="job")
    commit(table, 0, "one")
    table.append(add(file("later", seq=(1000, 1000))), user="job")
    table.committer().commit(COMPACT, CommitMessage(upgrade(table.live()[0], 5)), "job", 99)
    assert commit(table, 0, "one").already_committed
    refused(table, 1, "two", "belongs to streaming query 'one'")
    with pytest.raises(InvalidInputError, match="batch_id: it is missing, and query_id is set"):
        table.committer().commit(APPEND, CommitMessage([add()]), "job", query_id="one")
    for blank in ("", " \t"):
        with pytest.raises(InvalidInputError, match="query_id: "):
            commit(table, 1, blank)


def test_a_query_continues_the_batches_of_a_user_without_query_but_does_not_begin_below_them(table: CommitTable) -> None:
    for identifier in (3, 4):
        commit(table, identifier, None)
    for identifier in (0, 3):
        refused(table, identifier, "one", f"batch 4 without a streaming query, so batch {identifier} of query 'one'")
    assert commit(table, 4, "one").already_committed, "the last batch by hand, repeated from its checkpoint"
    assert not commit(table, 5, "one").already_committed
    assert commit(table, 3, "one").already_committed, "an older checkpoint of the same query"
    refused(table, 6, None, "belongs to streaming query 'one'")


def test_a_batch_by_hand_during_the_first_batch_of_a_query_is_refused_or_refuses(table: CommitTable) -> None:
    with pytest.raises(CommitUserTakenError, match="batch 9 without a streaming query, so batch 2"):
        commit(table, 2, "one", step=interfering(lambda: commit(table, 9, None)))
    assert table.live_names() == {"None-9-None@0"} and table.metadata_names() == table.named_metadata()


def test_after_a_rollback_the_user_belongs_to_the_query_of_the_remaining_batches(table: CommitTable) -> None:
    table.append(add(file("base", seq=(0, 0))))
    commit(table, 0, "one")
    table.file_io.write(table.paths.latest_hint, b"1")
    table.expire(2)
    table.file_io.write(table.paths.latest_hint, b"1")
    assert not commit(table, 0, "two").already_committed
    refused(table, 0, "one", "belongs to streaming query 'two'")


def test_an_orphaned_snapshot_of_another_query_is_not_in_the_history(table: CommitTable) -> None:
    table.append(add(file("base", seq=(0, 0))))
    table.append(add(file("rolled back", seq=(1, 1))))
    commit(table, 0, "two")
    orphaned = table.file_io.read(table.paths.snapshot_file(3))
    table.file_io.write(table.paths.latest_hint, b"1")
    table.expire(2, 3)
    table.append(add(file("other", seq=(500, 500))))
    # A killed writer had published it after its base was rolled back.
    table.file_io.write(table.paths.snapshot_file(3), orphaned)
    assert not table.snapshots.is_linked(table.snapshots.get(3))
    assert table.committer().committed("job", 0, "one") is None


_STEPS = st.tuples(
    st.sampled_from(["commit", "commit", "commit", "compact", "expire"]),
    st.integers(0, 3),
    st.sampled_from(["one", "two", None]),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(_STEPS, max_size=9))
def test_no_batch_of_a_query_is_taken_for_one_of_another_in_any_history(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str | None]]
) -> None:
    table = CommitTable(tmp_path_factory.mktemp("t"))
    landed: dict[int, str | None] = {}
    for what, number, query in steps:
        ids = table.snapshots.ids()
        if what == "expire":
            table.expire(*ids[: min(number, len(ids) - 1)])
        elif what == "compact":
            level = max((entry.file.level for entry in table.live()), default=0) + 1
            for entry in table.live()[:1]:
                table.committer().commit(COMPACT, CommitMessage(upgrade(entry, level)), "job", number)
        else:
            if not any(snapshot.commit_kind is APPEND for snapshot in table.snapshots.of_user("job")):
                # A user without retained snapshots is new, or continues the newest batch of its query.
                landed = {max(landed): landed[max(landed)]} if any(landed.values()) else {}
            owners = {each for each in landed.values() if each is not None}
            try:
                outcome = commit(table, number, query)
            except BatchHistoryExpiredError:
                assert table.snapshots.earliest_id() != 1
            except CommitUserTakenError:
                assert owners - {query} or (query is not None and max(landed) > number), "refused without a reason"
            else:
                assert not owners - {query}, "a batch of another query was accepted"
                assert outcome.already_committed == (number in landed)
                landed.setdefault(number, query)
