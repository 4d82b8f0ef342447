"""The changes of an attempt follow from its base snapshot. Nothing is written to compute them."""

from __future__ import annotations

from lakelsm.commit.attempt_changes import AttemptChanges
from lakelsm.commit.commit_message import CommitMessage, CommitRequest
from lakelsm.format.snapshot import CommitKind
from tests.commit.commit_table import CommitTable, add, delete, file, hash_index, partition, vector_index

A = add(file("a"))
TOP = add(file("top", level=5))


def changes(table: CommitTable, kind: CommitKind, message: CommitMessage) -> AttemptChanges:
    request = CommitRequest(
        kind=kind,
        message=message,
        commit_user="u",
        identifier=1,
        replaces_partitions=kind is CommitKind.OVERWRITE,
        checks_base=kind is CommitKind.APPEND,
    )
    return AttemptChanges(table.store, request)


def test_an_append_publishes_its_entries_and_keeps_the_index(table: CommitTable) -> None:
    table.append(A, index_adds=[hash_index("h")])
    message = CommitMessage([add(file("b", seq=(10, 11)))], base_snapshot_id=1)
    found = changes(table, CommitKind.APPEND, message).on(table.snapshots.latest())
    assert (found.delta, found.index) == (message.entries, None)
    assert table.snapshots.latest_id() == 1


def test_an_overwrite_deletes_the_files_of_the_snapshot_and_its_index(table: CommitTable) -> None:
    table.append(A, add(file("b"), dt="b"), index_adds=[hash_index("h"), hash_index("g", dt="b")])
    message = CommitMessage([TOP], overwrite_partitions=lambda stored: stored == partition("a"))
    attempt = changes(table, CommitKind.OVERWRITE, message)
    assert attempt.on(None).delta == [TOP], "each snapshot is read again"
    found = attempt.on(table.snapshots.latest())
    assert (found.delta, found.index) == ([delete(A), TOP], [hash_index("g", dt="b")])


def test_a_compaction_that_deletes_a_file_with_a_vector_changes_the_index(table: CommitTable) -> None:
    vectors, elsewhere = vector_index("i", "top"), vector_index("j", "x", bucket=1)
    table.append(A, index_adds=[])
    table.compact([delete(A), TOP, add(file("x", level=5), bucket=1)], index_adds=[vectors, elsewhere])
    table.append(A2)
    latest = table.snapshots.latest()
    assert latest is not None
    for entries, index in [([delete(A2)], None), ([delete(TOP)], [elsewhere])]:
        message = CommitMessage([*entries, add(file("n", level=4))], base_snapshot_id=latest.id)
        assert changes(table, CommitKind.COMPACT, message).on(latest).index == index


A2 = add(file("a2", seq=(20, 29)))


def test_existing_files_of_a_message_show_an_earlier_run(table: CommitTable) -> None:
    table.append(A)
    for kind, entries in [(CommitKind.APPEND, [A]), (CommitKind.COMPACT, [A]), (CommitKind.OVERWRITE, [A])]:
        outcome = changes(table, kind, CommitMessage(entries)).published_before(table.snapshots.latest(), 3)
        assert outcome is not None and outcome.already_committed and outcome.attempts == 3
        assert (outcome.snapshot is None) == (kind is not CommitKind.APPEND)
        other = CommitMessage([add(file(), bucket=0)])
        assert changes(table, kind, other).published_before(table.snapshots.latest(), 3) is None
    assert changes(table, CommitKind.APPEND, CommitMessage([A])).published_before(None, 1) is None
