"""A rollback during a commit: at any moment, the commit is in the history or conflicts, and nothing is damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.commit.commit_message import CommitMessage
from lakelsm.errors import CommitConflictError, CommitOutcomeUnknownError, CorruptTableError
from lakelsm.format.snapshot import CommitKind
from lakelsm.results import CheckFinding, CompactionResult, CompactionStatus
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from tests.acting_file_io import ActingFileIO
from tests.commit.commit_table import CommitTable, add, delete, file, interfering

APPEND, COMPACT, OVERWRITE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE


def rows(text: str) -> pa.Table:
    return pa.table({"k": pa.array(range(6), pa.int32()), "p": ["a", "b"] * 3, "v": [text] * 6})


CHANGES: dict[str, Callable[[Table], object]] = {
    "write": lambda table: table.write(rows("new")),
    "overwrite": lambda table: table.overwrite(rows("new")),
    "delete": lambda table: table.delete("k < 3", engine="local"),
    "delete of keys": lambda table: table.delete(keys=pa.table({"k": pa.array([1], pa.int32()), "p": ["b"]})),
    "compact": lambda table: table.compact(full=True, engine="local"),
    "drop": lambda table: table.maintenance.drop_partitions("p = 'a'"),
    "analyze": lambda table: table.maintenance.analyze(engine="local"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a table with three writes."""
    warehouse = tmp_path_factory.mktemp("made")
    table = Catalog(str(warehouse)).create_table(
        "db.t",
        "k INT, p STRING, v STRING",
        primary_key=["k", "p"],
        partition_by=["p"],
        options={"bucket": 1, "write-only": True, "commit.min-retry-wait": "1 ms"},
    )
    for number in range(3):
        table.write(rows(f"{number}"))
    return warehouse / "db.db" / "t"


@pytest.mark.parametrize(("change", "to"), [*((change, 1) for change in CHANGES), ("write", 2), ("compact", 2)])
def test_a_rollback_at_any_moment_of_a_change_is_a_conflict_or_before_it(
    made: Path, tmp_path: Path, change: str, to: int
) -> None:
    outcomes, moment = [], 0
    while True:
        root = Path(shutil.copytree(made, tmp_path / f"{moment}"))
        other = Table.for_path(str(root))
        store = TableStore.open(str(root))
        # Before the n-th access to a file of the table.
        file_io = ActingFileIO(partial(other.rollback, to), "read", "filesystem", path="^(?!.*/schema/)", first=moment)
        table = Table(replace(store, file_io=file_io.within(store.paths.root)))
        try:
            result = CHANGES[change](table)
            is_lost = isinstance(result, CompactionResult) and result.status is CompactionStatus.CONFLICT
        except CommitConflictError:
            is_lost = True
        assert findings(other) == ()
        if not file_io.acted:
            break
        outcomes.append(is_lost)
        shutil.rmtree(root)
        moment += 1
    assert outcomes and not outcomes[0] and any(outcomes)


def findings(table: Table) -> Sequence[CheckFinding]:
    return table.maintenance.check(data="full", engine="local").findings


def roll_back(table: CommitTable, to: int) -> None:
    """Roll back like `maintain/versions/rollback.py`: write the hint, then delete snapshots from the newest."""
    table.file_io.write(table.paths.latest_hint, str(to).encode())
    table.expire(*range(table.snapshots.latest_id() or 0, to, -1), *(n for n in table.snapshots.ids()[::-1] if n > to))


def three(table: CommitTable) -> None:
    for number in range(3):
        table.append(add(file(f"f{number}", seq=(10 * number, 10 * number + 9))))


@pytest.mark.parametrize("at", ["base-list-written", "delta-list-written", "snapshot-published"])
def test_a_commit_on_a_rolled_back_snapshot_deletes_its_snapshot_and_conflicts(table: CommitTable, at: str) -> None:
    three(table)
    before = table.metadata_names()
    step = interfering(lambda: roll_back(table, 1), at=at)
    fingerprint = table.snapshots.get(3).fingerprint
    message = CommitMessage([add(file("late", seq=(90, 99)))], base_snapshot_id=3, base_fingerprint=fingerprint)
    with pytest.raises(CommitConflictError, match="the base of snapshot 4 was rolled back"):
        table.committer(step).commit(APPEND, message, "late")
    assert list(table.snapshots.ids()) == [1] and table.live_names() == {"f0@0"}
    assert table.metadata_names() == before


def test_a_commit_deletes_its_snapshot_if_others_use_the_id_of_its_base_again(table: CommitTable) -> None:
    three(table)
    fingerprint = table.snapshots.get(3).fingerprint

    def again() -> None:
        roll_back(table, 1)
        table.append(add(file("n2", seq=(10, 99))))
        table.append(add(file("n3", seq=(100, 199))))

    for at in ("delta-list-written", "base-list-written"):
        message = CommitMessage([add(file("late", seq=(30, 39)))], base_snapshot_id=3, base_fingerprint=fingerprint)
        with pytest.raises(CommitConflictError, match=r"base of snapshot 4 was rolled back|another commit has its id"):
            table.committer(interfering(again, at=at)).commit(APPEND, message, "late")
        assert list(table.snapshots.ids()) == [1, 2, 3] and table.live_names() == {"f0@0", "n2@0", "n3@0"}


def test_an_overwrite_on_a_rolled_back_snapshot_conflicts_because_its_files_may_be_deleted(table: CommitTable) -> None:
    three(table)
    step = interfering(lambda: roll_back(table, 2), at="delta-list-written")
    with pytest.raises(CommitConflictError, match="base of snapshot 4 was rolled back or expired"):
        table.committer(step).commit(OVERWRITE, CommitMessage([add(file("whole", seq=(50, 59)))]), "o")
    assert list(table.snapshots.ids()) == [1, 2] and table.metadata_names() >= table.named_metadata()


def test_a_base_that_expires_during_the_commit_is_no_conflict(table: CommitTable) -> None:
    three(table)
    message = CommitMessage([add(file("next", seq=(30, 39)))], base_snapshot_id=3)
    step = interfering(lambda: table.expire(1, 2, 3), at="snapshot-published")
    outcome = table.committer(step).commit(APPEND, message, "u")
    assert outcome.snapshot is not None and list(table.snapshots.ids()) == [4]


def others_commit_and_expire(table: CommitTable, first: int) -> None:
    """Other commits take an id and later ones, and all but the newest expire: the id is free again."""
    for number in range(first, first + 3):
        table.append(add(file(f"other{number}", seq=(100 * number, 100 * number + 9))))
    table.snapshots.announce_earliest(first + 2)
    table.expire(*range(1, first + 2))


@pytest.mark.parametrize(("kind", "snapshots"), [(OVERWRITE, 0), (OVERWRITE, 3), (APPEND, 3)])
def test_a_commit_under_an_expired_id_conflicts_and_is_not_lost(
    table: CommitTable, kind: CommitKind, snapshots: int
) -> None:
    if snapshots:
        three(table)
    step = interfering(lambda: others_commit_and_expire(table, snapshots + 1), at="delta-list-written")
    message = CommitMessage([add(file("c", seq=(50, 59)))], base_snapshot_id=snapshots if kind is APPEND else None)
    with pytest.raises(CommitConflictError, match=f"base of snapshot {snapshots + 1} was rolled back or expired"):
        table.committer(step).commit(kind, message, "o")
    assert list(table.snapshots.ids()) == [snapshots + 3]


def test_a_commit_that_expired_after_others_were_based_on_it_succeeds(table: CommitTable) -> None:
    three(table)

    def go_on() -> None:
        table.append(add(file("after", seq=(40, 49))))
        table.snapshots.announce_earliest(5)
        table.expire(1, 2, 3, 4)

    step = interfering(go_on, at="snapshot-published")
    outcome = table.committer(step).commit(APPEND, CommitMessage([add(file("c", seq=(30, 39)))], base_snapshot_id=3), "u")
    assert outcome.snapshot is not None and outcome.attempts == 1
    assert list(table.snapshots.ids()) == [5] and "c@0" in table.live_names()


def test_a_compaction_of_files_that_a_rollback_deleted_conflicts(table: CommitTable) -> None:
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
def test_a_missing_snapshot_below_the_newest_is_damage(table: CommitTable, hint: bytes | None) -> None:
    numbered(table, 3)
    table.expire(2)
    if hint is None:
        table.file_io.delete(table.paths.latest_hint)
    else:
        table.file_io.write(table.paths.latest_hint, hint)
    missing = "snapshot-77 is missing" if hint == b"77" else r"3 exists, and snapshot 2 below it .*snapshot-2, or roll"
    with pytest.raises(CorruptTableError, match=missing):
        late(table)
    assert list(table.snapshots.ids()) == [1, 3] and table.metadata_names() >= table.named_metadata()
    assert len(table.sleeps) < (5 if hint in (b"2", b"3") else 20)


def test_a_missing_snapshot_above_the_base_of_a_write_is_damage(table: CommitTable) -> None:
    numbered(table, 4)
    table.expire(3)
    message = CommitMessage([add(file("late", seq=(9, 9)))], base_snapshot_id=2)
    with pytest.raises(CorruptTableError, match=r"snapshot 3 is missing, and later snapshots exist.* back to snapshot 2"):
        table.committer().commit(APPEND, message, "u")
    assert list(table.snapshots.ids()) == [1, 2, 4]


def test_a_missing_snapshot_that_the_hint_names_is_damage(table: CommitTable) -> None:
    numbered(table, 3)
    table.expire(3)
    with pytest.raises(CorruptTableError, match=r"snapshot-3 .*accept its loss with a rollback to snapshot 2"):
        late(table)
    assert list(table.snapshots.ids()) == [1, 2]


@pytest.mark.parametrize("missing", [2, 3])
def test_a_gap_that_a_rollback_leaves_while_it_runs_is_a_conflict(table: CommitTable, missing: int) -> None:
    numbered(table, 3)
    table.expire(missing)
    table.file_io.write(table.paths.consumer("lakelsm-rollback-to-1"), b'{"nextSnapshot": 1}')
    if missing == 3:  # A commit wrote the hint late; the rollback corrects it.
        late(table)
        return
    with pytest.raises(CommitConflictError, match="a rollback is running or was interrupted: snapshot 3 exists, and"):
        late(table)
    assert list(table.snapshots.ids()) == [1, 3]


def test_a_hint_that_is_written_after_a_rollback_names_an_existing_snapshot(table: CommitTable) -> None:
    three(table)
    step = interfering(lambda: roll_back(table, 3), at="snapshot-published")
    outcome = table.committer(step).commit(APPEND, CommitMessage([add(file("d", seq=(30, 39)))]), "u")
    assert outcome.snapshot is not None and outcome.snapshot.id == 4, "the snapshot was published and rolled back"
    assert table.file_io.read(table.paths.latest_hint) == b"3" and table.snapshots.latest_id() == 3


def test_the_gap_that_a_rollback_left_is_not_filled(table: CommitTable) -> None:
    """Its hint names snapshot 1: a commit in the gap would bring snapshots 3 and 4 back."""
    numbered(table, 4)
    table.expire(2)
    table.file_io.write(table.paths.latest_hint, b"1")
    with pytest.raises(CommitConflictError, match="rollback is running or was interrupted: snapshot 2 is missing"):
        late(table)
    assert list(table.snapshots.ids()) == [1, 3, 4] and table.metadata_names() >= table.named_metadata()
    table.expire(3, 4)
    late(table)
    assert list(table.snapshots.ids()) == [1, 2]


def abandoned(table: CommitTable) -> None:
    """Snapshot 3 was published on a snapshot 2 that was rolled back concurrently, and its writer crashed."""
    numbered(table, 3)
    table.file_io.delete(table.paths.snapshot_file(2))
    kept = table.file_io.read(table.paths.snapshot_file(3))
    table.file_io.delete(table.paths.snapshot_file(3))
    table.file_io.write(table.paths.latest_hint, b"1")
    table.append(add(file("another", seq=(5, 5))))
    table.file_io.write(table.paths.snapshot_file(3), kept)


def test_an_orphaned_snapshot_is_deleted_if_its_writer_crashed(table: CommitTable) -> None:
    abandoned(table)
    message = CommitMessage([add(file("late", seq=(9, 9)))], base_snapshot_id=2)
    table.committer().commit(APPEND, message, "u")
    assert list(table.snapshots.ids()) == [1, 2, 3] and table.live_names() == {"f0@0", "another@0", "late@0"}


def test_a_snapshot_that_the_hint_names_is_never_deleted(table: CommitTable) -> None:
    abandoned(table)
    table.file_io.write(table.paths.latest_hint, b"3")
    with pytest.raises(CorruptTableError, match="snapshot 3 was not published on snapshot 2"):
        late(table)
    assert list(table.snapshots.ids()) == [1, 2, 3]


class Unanswered(LocalFileIO):
    """A FileIO whose first request for a snapshot has no answer; ``act`` is called before the second one."""

    def __init__(self) -> None:
        self.requests = 0
        self.act: Callable[[], object] = lambda: None

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self.requests += path.endswith("snapshot-2")
        if path.endswith("snapshot-2") and self.requests == 1:
            raise TimeoutError("no answer")
        if path.endswith("snapshot-2") and self.requests == 2:
            self.act()
        return super().create_if_absent(path, data)


@pytest.mark.parametrize("rollback", ["", "under way", "ended", "ended, and another commit took the id"])
def test_a_snapshot_that_is_sent_again_is_committed_only_if_no_rollback_may_have_deleted_it(
    tmp_path: Path, rollback: str
) -> None:
    table, file_io = CommitTable(tmp_path), Unanswered()
    table.append(add(file("a")))
    before = table.metadata_names()

    def roll_back() -> None:
        if rollback == "under way":
            table.file_io.write(table.paths.consumer("lakelsm-rollback-to-1"), b'{"nextSnapshot": 1}')
        if "ended" in rollback:
            for name in table.metadata_names() - before:
                table.file_io.delete(table.paths.manifest(name))
        if "another" in rollback:
            table.append(add(file("b", seq=(20, 29))))

    file_io.act = roll_back
    committer = CommitTable(tmp_path, file_io=file_io).committer()
    message = CommitMessage([add(file("c", seq=(10, 19)))], base_snapshot_id=1)
    if not rollback:
        assert committer.commit(APPEND, message, "u", 7).snapshot is not None
        return
    with pytest.raises(CommitOutcomeUnknownError, match="snapshot 2 had no answer, and a rollback may have"):
        committer.commit(APPEND, message, "u", 7)
    assert table.live_names() == ({"a@0", "b@0"} if "another" in rollback else {"a@0"})
    assert bool(table.metadata_names() - table.named_metadata()) == (rollback == "under way")
