"""The changes that a commit publishes, inherits, refuses and repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakelsm.commit.commit_message import CommitMessage, CommitOutcome
from lakelsm.errors import (
    BucketAssignConflictError,
    CommitConflictError,
    InvalidInputError,
    RowsChangedError,
    SequenceConflictError,
)
from lakelsm.format.snapshot import CommitKind
from lakelsm.snapshots.manifest_scan import read_delta_entries, read_index_entries
from tests.commit.commit_table import CommitTable, add, delete, file, hash_index, interfering, partition, upgrade

APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE


def test_an_empty_commit_is_skipped(table: CommitTable) -> None:
    for kind in (APPEND, COMPACT):
        outcome = table.committer().commit(kind, CommitMessage(), "u")
        assert (outcome.snapshot, outcome.attempts, outcome.already_committed) == (None, 0, False)
    assert table.snapshots.latest() is None and table.metadata_names() == set()


def test_an_append_that_deletes_is_published_as_an_overwrite_and_checked(table: CommitTable) -> None:
    a = add(file("a"))
    table.append(a)
    message = CommitMessage([delete(a), add(file("b", seq=(10, 11)))], base_snapshot_id=1)
    outcome = table.committer().commit(APPEND, message, "u")
    assert outcome.snapshot is not None and outcome.snapshot.commit_kind is OVERWRITE
    assert table.live_names() == {"b@0"}
    with pytest.raises(CommitConflictError, match="no longer"):
        again = CommitMessage([delete(a), add(file("c", seq=(12, 13)))], base_snapshot_id=2)
        table.committer().commit(APPEND, again, "u")


def test_an_overwrite_replaces_its_partitions_and_spares_others(table: CommitTable) -> None:
    table.append(add(file("a0")), add(file("a1", level=5), bucket=1), add(file("b"), dt="b"), add(file("n"), dt=None))
    snapshot = table.overwrite(add(file("new", seq=(10, 11), rows=1)), partitions=["a"])
    assert table.live_names() == {"new@0", "b@0", "n@0"}
    assert (snapshot.commit_kind, snapshot.operation) == (OVERWRITE, "OVERWRITE")
    assert (snapshot.delta_record_count, snapshot.total_record_count) == (1 - 20, 21)


def test_an_overwrite_of_the_whole_table_spares_postponed_files(table: CommitTable) -> None:
    table.append(add(file("a")), add(file("p", seq=(-1, -1)), bucket=-2, total=-2), add(file("b"), dt="b"))
    table.overwrite()
    assert table.live_names() == {"p@0"}


def test_an_overwrite_may_change_the_bucket_count(table: CommitTable) -> None:
    table.append(add(file("a"), total=2))
    table.overwrite(add(file("b", seq=(10, 11)), total=4, bucket=3), partitions=["a"])
    assert [entry.total_buckets for entry in table.live()] == [4]


def test_an_overwrite_refuses_rows_outside_its_partitions(table: CommitTable) -> None:
    with pytest.raises(InvalidInputError, match="dt=b"):
        table.overwrite(add(dt="b"), partitions=["a"])
    assert table.snapshots.latest() is None and table.metadata_names() == set()


def test_index_files_are_replaced_carried_over_and_dropped_with_their_partition(table: CommitTable) -> None:
    def live_index() -> set[str]:
        latest = table.snapshots.latest()
        assert latest is not None
        return {entry.file.file_name for entry in read_index_entries(table.file_io, table.paths, latest)}

    one, two, other = hash_index("i1"), hash_index("i2", bucket=1), hash_index("ib", dt="b")
    first = table.append(add(total=-1), index_adds=[one, two, other])
    second = table.append(add(file(seq=(10, 11)), total=-1))
    assert second.index_manifest == first.index_manifest
    table.append(add(file(seq=(12, 13)), total=-1), index_adds=[hash_index("i1-new")])
    assert live_index() == {"i1-new", "i2", "ib"}
    table.overwrite(partitions=["a"])
    assert live_index() == {"ib"}
    assert table.overwrite(partitions=["zzz"]).index_manifest == table.snapshots.get(4).index_manifest
    assert table.overwrite().index_manifest is None


def test_writers_that_took_the_same_numbers_conflict_and_a_compaction_between_does_not(
    table: CommitTable,
) -> None:
    a = add(file("a", seq=(0, 9)))
    table.append(a)
    table.append(add(file("b", seq=(10, 19)), bucket=1), base_snapshot_id=1)
    table.compact(upgrade(a, 5))
    table.append(add(file("c", seq=(10, 12))), base_snapshot_id=1)
    with pytest.raises(SequenceConflictError, match=r"bucket 0 of partition dt=a.*begins at 10"):
        table.append(add(file("d", seq=(10, 12))), base_snapshot_id=1)
    assert table.metadata_names() == table.named_metadata()


def test_a_first_write_planned_on_no_snapshot_is_checked_from_the_beginning(table: CommitTable) -> None:
    table.append(add(), base_snapshot_id=None)
    with pytest.raises(SequenceConflictError):
        table.append(add(), base_snapshot_id=None)


def test_competing_assigners_of_dynamic_buckets_conflict(table: CommitTable) -> None:
    table.append(add(total=-1), index_adds=[hash_index("i1")])
    mine = add(file(seq=(10, 11)), total=-1, bucket=1)
    table.append(add(file(seq=(10, 11)), total=-1), index_adds=[hash_index("i2")], base_snapshot_id=1)
    with pytest.raises(BucketAssignConflictError, match="dt=a"):
        table.append(mine, index_adds=[hash_index("i3", bucket=1)], base_snapshot_id=1)


@pytest.mark.parametrize(("base", "text"), [(1, "expired"), (9, "rolled back")])
def test_an_append_whose_base_has_expired_is_repeated(table: CommitTable, base: int, text: str) -> None:
    for first in (0, 10, 20, 30):
        table.append(add(file(seq=(first, first + 9))))
    for old in (1, 2):
        table.file_io.delete(table.paths.snapshot_file(old))
    with pytest.raises(CommitConflictError, match=text):
        table.append(add(file(seq=(40, 49))), base_snapshot_id=base)


def test_a_compaction_of_replaced_files_loses_and_leaves_nothing(table: CommitTable) -> None:
    a, b = add(file("a", seq=(0, 4))), add(file("b", seq=(5, 9)))
    table.append(a, b)
    table.compact([delete(a), delete(b), add(file("one", level=5))])
    with pytest.raises(CommitConflictError, match=r"a \(bucket 0, level 0\), b"):
        table.compact([delete(a), delete(b), add(file("two", level=5))])
    table.overwrite(partitions=["a"])
    with pytest.raises(CommitConflictError):
        table.compact([delete(add(file("one", level=5))), add(file("three", level=5))])
    assert table.metadata_names() == table.named_metadata()
    assert len(table.snapshots.list()) == 3


def test_compactions_of_disjoint_ranges_both_commit_and_overlapping_ones_do_not(table: CommitTable) -> None:
    a, b = add(file("a", keys=(1, 5), seq=(0, 4))), add(file("b", keys=(7, 7), seq=(5, 9)))
    c = add(file("c", keys=(5, 6), seq=(10, 11)))
    table.append(a, b, c)
    table.compact(upgrade(a, 5))
    table.compact(upgrade(b, 5))
    with pytest.raises(CommitConflictError, match=r"files on level 5 would overlap"):
        table.compact(upgrade(c, 5))


@pytest.mark.parametrize("kind", [APPEND, COMPACT, OVERWRITE])
def test_the_same_message_committed_again_keeps_its_files(table: CommitTable, kind: CommitKind) -> None:
    """A caller that retries after an unknown outcome must not delete files that are in the table."""
    a = add(file("a"))
    table.append(a)
    entries = [delete(a), add(file("n", level=5))] if kind is COMPACT else [add(file("n", seq=(10, 11)))]
    message = CommitMessage(entries, base_snapshot_id=1)
    table.committer().commit(kind, message, "u")
    before = table.live_names()
    again = table.committer().commit(kind, message, "u")
    assert again.already_committed and again.files_published
    assert table.live_names() == before and table.snapshots.latest_id() == 2


@pytest.mark.parametrize(
    ("kind", "message", "text"),
    [
        (OVERWRITE, CommitMessage([delete(add())]), "has new files only"),
        (OVERWRITE, CommitMessage(changelog_entries=[add()]), "changelog"),
        (APPEND, CommitMessage([add()], changelog_entries=[delete(add())]), "changelog"),
        (APPEND, CommitMessage([add()], overwrite_partitions=lambda stored: True), "OVERWRITE"),
    ],
)
def test_an_invalid_message_is_refused(
    table: CommitTable, kind: CommitKind, message: CommitMessage, text: str
) -> None:
    with pytest.raises(InvalidInputError, match=text):
        table.committer().commit(kind, message, "u")


@pytest.mark.parametrize("user", ["job", "a b/c\\d", "ü", "名前", "\U0001f642", '"', "x" * 1000])
def test_any_printable_commit_user_reads_back(table: CommitTable, user: str) -> None:
    table.append(add(), user=user)
    assert [snapshot.commit_user for snapshot in table.snapshots.list()] == [user]
    assert [snapshot.id for snapshot in table.snapshots.of_user(user)] == [1]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"properties": {"a": "\ud800"}}, "surrogates"),
        ({"properties": {"a": {1: "x"}}}, "properties"),
        ({"properties": {"a": b"x"}}, "JSON"),
        ({"properties": {"a": "x" * (17 << 20)}}, "readers accept"),
        ({"operation": 7}, "operation"),
        ({"statistics": "../x"}, "statistics"),
    ],
)
def test_a_snapshot_that_would_not_read_back_is_not_published(table: CommitTable, more: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"snapshot-1 was not written: .*{text}"):
        table.committer().commit(APPEND, CommitMessage([add()]), "u", **more)
    assert table.snapshots.ids() == [] and table.metadata_names() == set()
    assert table.append(add()).id == 1


def test_the_delta_holds_deletes_before_adds(table: CommitTable) -> None:
    table.append(add(file("a")))
    snapshot = table.overwrite(add(file("b", seq=(10, 11))))
    delta = read_delta_entries(table.file_io, table.paths, snapshot)
    assert [(int(entry.kind), entry.file.file_name) for entry in delta] == [(1, "a"), (0, "b")]
    assert delta[1].partition == partition("a")


def test_an_append_of_read_rows_conflicts_with_later_writes_of_their_keys(table: CommitTable) -> None:
    table.append(add(file("a", keys=(1, 9))))

    def delete_read_at(base: int, name: str, step: Callable[[str], None] = lambda name: None) -> CommitOutcome:
        entry = add(file(name, keys=(4, 5), seq=(100, 101)))
        message = CommitMessage([entry], base_snapshot_id=base, rows_as_of=base)
        return table.committer(step).commit(APPEND, message, "d", operation="DELETE")

    table.append(add(file("apart", keys=(6, 9), seq=(10, 19))))
    outcome = delete_read_at(1, "first")
    assert outcome.snapshot is not None and outcome.snapshot.operation == "DELETE"
    table.append(add(file("near", keys=(5, 9), seq=(20, 29))))
    with pytest.raises(RowsChangedError, match=r"bucket 0 of partition dt=a: snapshot 4 of u wrote to the key range"):
        delete_read_at(3, "second")
    rival = interfering(lambda: table.append(add(file("nearer", keys=(4, 4), seq=(20, 29)))))
    with pytest.raises(RowsChangedError, match="snapshot 5"):
        delete_read_at(4, "third", rival)
    table.compact(upgrade(next(entry for entry in table.live() if entry.file.file_name == "a"), 5))
    assert delete_read_at(5, "fourth").snapshot is not None
    table.expire(*range(1, 7))
    with pytest.raises(RowsChangedError, match="have expired"):
        delete_read_at(5, "fifth")
    assert {"first@0", "fourth@0"} <= table.live_names() and not {"second@0", "third@0", "fifth@0"} & table.live_names()
