"""Rollback: rows are right after crashes and concurrent operations."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from lakelsm import Table
from lakelsm.engine import local_engine
from lakelsm.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptTableError,
    InvalidInputError,
    SnapshotNotFoundError,
)
from lakelsm.maintain.versions.rollback import rollback, rollback_target
from lakelsm.snapshots.consumer_store import ROLLBACK_CONSUMER, consumer_text
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from lakelsm.write.batch_write import BatchWriter
from tests.acting_file_io import ActingFileIO, raising
from tests.maintain.versioned_table import rows, values, versioned_table

ROWS = {number: [f"v{each}" for each in range(1, number + 1)] for number in range(10)}


def expire(table: Table, *numbers: int) -> None:
    """Delete snapshots as an expiry does, but not their files, which tags keep in these tests."""
    paths = table._store().paths
    for number in numbers:
        Path(paths.snapshot_file(number)).unlink()
    table._store().file_io.write(paths.earliest_hint, str(table._store().snapshots.ids()[0]).encode())


def keep_changelog(table: Table, number: int) -> None:
    store = table._store()
    store.changelogs.keep(store.snapshots.get(number))


def hints(table: Table) -> tuple[str, ...]:
    paths = table._store().paths
    return tuple(Path(path).read_text() for path in (paths.earliest_hint, paths.latest_hint) if Path(path).exists())


def with_file_io(store: TableStore, file_io: LocalFileIO) -> TableStore:
    return replace(store, file_io=file_io.within(store.paths.root))


def before_deletion(ending: str, act: Callable[[], object]) -> LocalFileIO:
    """Return storage that runs ``act`` before the first deletion of a file whose path ends with ``ending``."""
    return ActingFileIO(act, "delete", path=f"{ending}$")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return versioned_table(tmp_path, 5)


def test_a_table_is_rolled_back_and_continues_from_the_snapshot(table: Table) -> None:
    table.tags.create("early", 2)
    table.tags.create("late", 4)
    table.tags.create("at", 3)
    planned = table.rollback(3, dry_run=True)
    assert (planned.dry_run, planned.snapshots, planned.tags, values(table)) == (True, (4, 5), ("late",), ROWS[5])
    done = table.rollback(to=3)
    assert (done.snapshot_id, done.snapshots, done.tags, done.restored) == (3, (4, 5), ("late",), False)
    assert values(table) == ROWS[3] and [tag.name for tag in table.tags.list()] == ["early", "at"]
    assert hints(table)[-1] == "3"
    assert table.write(rows((9, "v9"))).snapshot_id == 4
    assert values(table) == [*ROWS[3], "v9"]
    assert json.loads(json.dumps(done.as_dict()))["snapshots"] == [4, 5]
    again = table.rollback(4)
    assert (again.snapshots, again.tags) == ((), ())


def test_the_target_may_be_a_tag_or_a_time(table: Table) -> None:
    times = [snapshot.time_millis for snapshot in table._store().snapshots.list()]
    moment = datetime.fromtimestamp(times[3] / 1000, timezone.utc)
    expected = sum(time <= times[3] for time in times)
    assert table.rollback(moment).snapshot_id == expected
    table.tags.create("two", 2)
    assert table.rollback("two").snapshot_id == 2 and values(table) == ROWS[2]
    assert table.rollback(to="2999-01-01 00:00:00").snapshot_id == 2


def test_a_missing_target_is_refused_and_nothing_changes(table: Table) -> None:
    table.tags.create("q", 2)
    expire(table, 1)
    with pytest.raises(SnapshotNotFoundError, match=r"db\.t: snapshot 1 has expired\. The table has snapshots 2 to 5"):
        table.rollback(1)
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 9 does not exist"):
        table.rollback(9)
    with pytest.raises(SnapshotNotFoundError, match=r"tag 'x' does not exist\. Tags: q"):
        table.rollback("x")
    with pytest.raises(SnapshotNotFoundError, match="at or before"):
        table.rollback(datetime(1999, 1, 1))
    for wrong in (None, 2.5, True, 0):
        with pytest.raises(InvalidInputError):
            table.rollback(wrong)  # type: ignore[arg-type]
    assert values(table) == ROWS[5] and list(table._store().snapshots.ids()) == [2, 3, 4, 5]


def test_an_unreadable_state_stops_the_rollback_before_any_change(table: Table) -> None:
    table.tags.create("q", 2)
    Path(table._store().paths.tag("q")).write_text("{")
    for dry_run in (True, False):
        with pytest.raises(CorruptTableError, match="tag-q"):
            table.rollback(3, dry_run=dry_run)
    assert list(table._store().snapshots.ids()) == [1, 2, 3, 4, 5]


def test_an_expired_snapshot_is_restored_from_its_tag(table: Table) -> None:
    table.tags.create("old", 2)
    keep_changelog(table, 2)
    keep_changelog(table, 3)
    expire(table, 1, 2, 3)
    assert table.rollback("old", dry_run=True).restored
    done = table.rollback("old")
    assert (done.restored, done.snapshots, done.changelogs) == (True, (4, 5), (3,))
    assert values(table) == ROWS[2] and hints(table) == ("2", "2")
    store = table._store()
    assert list(store.changelogs.ids()) == [2]
    assert Path(f"{store.paths.changelog_dir}/LATEST").read_text() == "2"
    assert table.write(rows((9, "v9"))).snapshot_id == 3


@pytest.mark.parametrize("how", ["rollback", "branch"])
def test_a_restored_snapshot_is_without_its_expired_changelog(tmp_path: Path, how: str) -> None:
    table = versioned_table(tmp_path, 4, **{"changelog-producer": "input"})
    table.tags.create("old", 2)
    table.maintenance.expire_snapshots(retain_last=1)
    if how == "branch":
        table.branches.create("b", "old")
    else:
        table.rollback("old")
    again = table.branches.open("b") if how == "branch" else table
    assert values(again) == ROWS[2] and again.changelog_reader().read_all().num_rows == 0
    assert again.write(rows((9, "v9"))).snapshot_id == 3
    assert again.changelog_reader().read_all()["v"].to_pylist() == ["v9"]
    assert table.maintenance.check(data="full", engine="local").findings == ()
    assert table.maintenance.remove_orphans(0, force=True, dry_run=True, engine="local").files == 0


def test_the_id_of_an_expired_snapshot_is_found_in_its_tag(table: Table) -> None:
    table.tags.create("old", 2)
    expire(table, 1, 2, 3)
    assert table.rollback(2).restored and values(table) == ROWS[2]


def test_a_tag_of_a_snapshot_whose_id_was_used_again_is_refused(table: Table) -> None:
    store = table._store()
    table.tags.create("gone", 5)
    kept = Path(store.paths.tag("gone")).read_bytes()
    table.rollback(4)
    table.write(rows((9, "v9")))
    Path(store.paths.tag("gone")).write_bytes(kept)
    with pytest.raises(InvalidInputError, match="tag 'gone' is of snapshot 5, which was rolled back"):
        table.rollback("gone")
    assert values(table) == [*ROWS[4], "v9"]


def test_a_tag_of_an_engine_without_uuids_matches_its_snapshot(table: Table) -> None:
    store = table._store()
    known = json.loads(Path(store.paths.snapshot_file(3)).read_bytes())
    del known["uuid"]
    Path(store.paths.tag_dir).mkdir()
    Path(store.paths.tag("theirs")).write_text(json.dumps(known))
    assert table.rollback("theirs", dry_run=True).snapshots == (4, 5)
    assert table.rollback("theirs").snapshot_id == 3 and values(table) == ROWS[3]
    assert table.tags.delete("theirs").files == 0 and values(table) == ROWS[3]


def test_an_expiring_snapshot_is_refused(table: Table) -> None:
    table._store().snapshots.announce_earliest(4)
    with pytest.raises(CommitConflictError, match="snapshot 3 expired or was removed during"):
        table.rollback(3)
    assert values(table) == ROWS[5]


def test_consumers_beyond_the_target_continue_after_it(table: Table) -> None:
    for name, number in (("behind", 2), ("next", 4), ("beyond", 6)):
        table.consumers.record(name, number)
    assert table.rollback(3).consumers == ("beyond",)
    assert {each.name: each.next_snapshot_id for each in table.consumers.list()} == {"behind": 2, "next": 4, "beyond": 4}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("restores", [False, True])
def test_a_rollback_killed_at_any_step_leaves_a_readable_table_and_the_same_call_completes_it(
    tmp_path: Path, restores: bool, after: bool
) -> None:
    made = versioned_table(tmp_path / "w", 6)
    made.tags.create("target", 2)
    made.tags.create("late", 5)
    made.consumers.record("beyond", 7)
    if restores:
        keep_changelog(made, 3)
        expire(made, 1, 2, 3)
    whole, kills = tmp_path / "whole", 0
    shutil.copytree(tmp_path / "w", whole)
    for at in range(40):
        shutil.rmtree(tmp_path / "w")
        shutil.copytree(whole, tmp_path / "w")
        killed, changes = raising(KeyboardInterrupt("killed")), ("write", "create_if_absent", "delete", "delete_files")
        dies = ActingFileIO(killed, *changes, first=at, after=after)
        store = with_file_io(made._store(), dies)
        try:
            rollback(store, rollback_target(store, "target"))
        except KeyboardInterrupt:
            kills += 1
            newest = made._store().snapshots.latest()
            assert newest is not None and values(made) == ROWS[newest.id]
            assert newest.id in (6, 5, 4, 3, 2)
            made.rollback("target")
        assert values(made) == ROWS[2] and list(made._store().snapshots.ids())[-1] == 2
        assert [tag.name for tag in made.tags.list()] == ["target"] and made.consumers.list()[0].next_snapshot_id == 3
        assert list(made._store().changelogs.ids()) == []
        assert made.write(rows((3, "new"))).snapshot_id == 3 and values(made) == [*ROWS[2], "new"]
        if not dies.acted:
            break  # The run has fewer steps.
    assert kills >= 7 and not dies.acted


def test_a_concurrent_commit_is_removed_if_its_base_is_removed(table: Table) -> None:
    store = table._store()
    last = with_file_io(store, before_deletion("snapshot-5", lambda: table.write(rows((9, "v9")))))
    assert rollback(last, store.snapshots.get(3)).snapshots == (4, 5, 6)
    assert values(table) == ROWS[3] and hints(table)[-1] == "3"
    table.write(rows((4, "v4")))
    removing = with_file_io(store, before_deletion("tag-late", lambda: table.write(rows((8, "v8")))))
    table.tags.create("late", 4)
    assert rollback(removing, store.snapshots.get(3)).snapshots == (4,)
    assert values(table) == [*ROWS[3], "v8"], "the commit is after the rollback"


def test_the_hint_never_names_a_snapshot_published_on_a_removed_one(table: Table) -> None:
    class Recorded(LocalFileIO):
        def write(self, path: str, data: bytes, durable: bool = True) -> None:
            super().write(path, data, durable)
            if path == store.paths.last_rollback:
                table.write(rows((4, "new")))
                super().write(store.paths.snapshot_file(5), abandoned)

    store = table._store()
    abandoned = store.file_io.read(store.paths.snapshot_file(5))
    assert rollback(with_file_io(store, Recorded()), store.snapshots.get(3)).snapshots == (4, 5)
    assert hints(table)[-1] == "4"
    store.file_io.delete(store.paths.snapshot_file(5))  # Its writer deletes it.
    assert values(table)[-1] == "new" and table.write(rows((5, "next"))).snapshot_id == 5


def test_a_hint_written_after_a_rollback_is_no_damage_but_a_lost_commit_is(table: Table) -> None:
    table.rollback(2)
    latest = Path(table._store().paths.latest_hint)
    latest.write_text("5")
    assert values(table) == ROWS[2] and table.maintenance.check() is not None
    assert table.write(rows((3, "new"))).snapshot_id == 3 and latest.read_text() == "3"
    Path(table._store().paths.snapshot_file(3)).unlink()
    with pytest.raises(CorruptTableError, match="snapshot-3 is missing"):
        values(table)


def test_another_rollback_is_refused_and_the_killed_one_can_be_completed(table: Table) -> None:
    store = table._store()
    held = f"{ROLLBACK_CONSUMER}4"
    store.file_io.write(store.paths.consumer(held), consumer_text(4))
    with pytest.raises(CommitConflictError, match=f"to snapshot 4, is running.*consumers.delete\\('{held}'"):
        table.rollback(3)
    assert values(table) == ROWS[5] and [each.name for each in table.consumers.list()] == [held]
    table.rollback(4)
    assert table.rollback(3).snapshots == (4,) and not table.consumers.list()


def test_a_rollback_stops_if_the_tag_is_deleted_during_the_restore(table: Table) -> None:
    table.tags.create("t", 1)
    table.maintenance.expire_snapshots(retain_last=3)
    store = table._store()
    untags = ActingFileIO(lambda: table.tags.delete("t"), "create_if_absent", path="snapshot-1$")
    with pytest.raises(CommitConflictError, match="snapshot 1 expired or was removed"):
        rollback(with_file_io(store, untags), store.tags.get("t").snapshot)
    assert [each.id for each in store.snapshots.list()] == [3, 4, 5] and values(table) == ROWS[5]
    assert [finding.rule for finding in table.maintenance.check().findings] == ["stale-hint"], "EARLIEST already names it"


def test_a_failed_rollback_protects_its_target_until_it_is_repeated(table: Table) -> None:
    """A commit is published between the read of later snapshots and the first deletion. It is left above a gap."""
    store = table._store()

    def fails() -> None:
        table.write(rows((9, "v9")))
        Path(store.paths.snapshot_file(5)).unlink()
        raise TimeoutError("no answer")

    with pytest.raises(TimeoutError, match="no answer"):
        rollback(with_file_io(store, before_deletion("snapshot-5", fails)), store.snapshots.get(3))
    assert list(store.snapshots.ids()) == [1, 2, 3, 4, 6]
    assert table.maintenance.expire_snapshots(retain_last=1).earliest_snapshot_id == 3
    with pytest.raises(CommitConflictError, match="to snapshot 3, is running or was interrupted"):
        table.rollback(4)
    assert table.rollback(3).snapshots == (4, 6) and values(table) == ROWS[3]
    assert not table.consumers.list()
    left = {finding.rule for finding in table.maintenance.check().findings}
    assert left == {"manifest-stray"}, "the files of the snapshot that the test removed are unknown"


class LostAnswer(LocalFileIO):
    """A snapshot is created, the answer is lost, and another process acts before a delayed read confirms it."""

    def __init__(self, act: Callable[[], object], *refusals: str) -> None:
        self.act = [act]
        self.refusals = list(refusals)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        created = super().create_if_absent(path, data)
        if "/snapshot-" in path and self.act:
            self.act.pop()()
            raise TimeoutError("no answer")
        return created

    def read(self, path: str, limit: int | None = None) -> bytes:
        if path.endswith("snapshot-6") and not self.act and self.refusals:
            raise TimeoutError(self.refusals.pop())
        return super().read(path, limit)


@pytest.mark.parametrize("finished", [True, False])
def test_a_commit_with_a_lost_answer_that_was_rolled_back_is_not_repeated_with_deleted_files(
    table: Table, finished: bool
) -> None:
    def roll_back_concurrently() -> None:
        table.rollback(5)
        if not finished:
            store.file_io.write(store.paths.consumer(f"{ROLLBACK_CONSUMER}5"), consumer_text(5))

    store, engine = table._store(), local_engine()
    late = with_file_io(store, LostAnswer(roll_back_concurrently))
    with pytest.raises(CommitOutcomeUnknownError, match="a rollback may have deleted the snapshot"):
        BatchWriter(engine.writer(late), late).append(engine.prepared_rows(late, rows((1, "late")), None), "late", 1)
    assert values(table) == ROWS[5] and store.snapshots.latest_id() == 5
    assert table.maintenance.check(data="full").ok


def test_a_commit_with_a_lost_answer_that_others_build_on_is_not_removed(table: Table) -> None:
    """The consumer belongs to a rollback that was killed before it removed anything."""

    def commit_more() -> None:
        table.write(rows((2, "next")))
        store.file_io.write(store.paths.consumer(f"{ROLLBACK_CONSUMER}5"), consumer_text(5))

    store, engine = table._store(), local_engine()
    late = with_file_io(store, LostAnswer(commit_more, "no answer"))
    done = BatchWriter(engine.writer(late), late).append(engine.prepared_rows(late, rows((1, "late")), None), "late", 1)
    assert done.outcome.snapshot is not None and done.outcome.snapshot.id == 6 and store.snapshots.latest_id() == 7
    assert table.maintenance.check(data="full").ok


STEPS = ["data-files-written", "base-list-written", "delta-list-written", "snapshot-published", "hint-written"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", ["write", "again"])
def test_a_writer_beside_a_rollback_is_refused_or_committed_before(table: Table, step: str, kind: str) -> None:
    def act(name: str) -> None:
        if name == step and not done:
            done.append(name)
            table.rollback(3)
            if kind == "again":
                for number in (4, 5, 6):
                    table.write(rows((number, f"n{number}")))

    done: list[str] = []
    store, engine = table._store(), local_engine()
    writer = BatchWriter(engine.writer(store), store, act)
    late = rows((1, "late"), (7, "v7"))
    before = ROWS[3] if kind == "write" else [*ROWS[3], "n4", "n5", "n6"]
    try:
        writer.append(engine.prepared_rows(store, late, None), "late", 1)
        refused = False
    except CommitConflictError as error:
        refused = "rolled back" in str(error)
        assert refused
    assert done == [step]
    assert values(table) == before, "whether refused or published before, the rollback removed it"
    assert refused == (step != "hint-written")
    assert table.write(late, commit_user="late", batch_id=1).already_committed is False
    assert values(table)[0] == "late" and values(table)[-1] == "v7"
