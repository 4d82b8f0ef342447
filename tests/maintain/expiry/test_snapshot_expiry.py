"""Expiry compared with a simple, slow computation: needed files stay, and files of expired snapshots are deleted."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import SnapshotNotFoundError
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.expiry import expired_files
from lakelsm.maintain.expiry.retention import Retention
from lakelsm.maintain.expiry.snapshot_expiry import expire_snapshots
from lakelsm.maintain.versions.branches import create_branch
from lakelsm.maintain.versions.tags import create_tag, delete_tags
from lakelsm.snapshots.consumer_store import consumer_text
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from tests.acting_file_io import ALWAYS, ActingFileIO, raising
from tests.commit.commit_table import hash_index
from tests.examples import examples
from tests.maintain.expiry.expiry_table import ExpiryTable

STEPS = ("append", "rewrite", "upgrade", "overwrite", "readd", "tag", "untag", "branch", "consumer", "rollback", "expire")


@contextmanager
def younger(millis: int) -> Iterator[None]:
    """Assume that clocks differ by at most this many milliseconds."""
    kept = expired_files._YOUNGER
    expired_files._YOUNGER = millis
    try:
        yield
    finally:
        expired_files._YOUNGER = kept


class History:
    """Random steps on a table. Each expiry is compared with the expected result."""

    def __init__(self, root: Path, options: dict[str, str]) -> None:
        self.table = ExpiryTable(root, options)
        self.writes_changelog = options.get("changelog-producer", "none") != "none"
        #: Appended files may be changelogs. They are deleted with the changelog of the compaction that replaced them.
        self.puts_off = not self.writes_changelog and "changelog.num-retained.min" in options
        self.back: set[tuple[object, ...]] = set()
        self.numbers = 0

    def take(self, step: str, pick: int) -> None:
        getattr(self, step)(pick)

    def append(self, pick: int) -> None:
        table = self.table
        buckets = [(("a", "b")[pick % 2], pick % 3 % 2), ("a", 0)][: 1 + pick % 2]
        entries = [table.new(*bucket) for bucket in buckets]
        changes = [table.changelog()] if self.writes_changelog and pick % 3 else []
        index = []
        if pick % 5 == 0:
            self.numbers += 1
            index = [hash_index(f"index-{self.numbers}", dt="a", bucket=0)]
            path = Path(table.paths.index(f"index-{self.numbers}"))
            path.parent.mkdir(exist_ok=True)
            path.touch()
        table.append(*entries, changelog_entries=changes, index_adds=index)

    def rewrite(self, pick: int) -> None:
        live = self.table.live()
        if live:
            chosen = live[pick % len(live)]
            same = [entry for entry in live if (entry.partition, entry.bucket) == (chosen.partition, chosen.bucket)]
            changes = [self.table.changelog()] if self.writes_changelog and pick % 2 else []
            self.table.compact(self.table.rewritten(*same[: 1 + pick % 3]), changelog_entries=changes)

    def upgrade(self, pick: int) -> None:
        live = self.table.live()
        if live:
            self.table.compact(self.table.moved(live[pick % len(live)]))

    def overwrite(self, pick: int) -> None:
        self.table.overwrite(self.table.new("a"), partitions=["a"])

    def readd(self, pick: int) -> None:
        """Add files of an older snapshot or tag again, like a rollback that is committed as the newest state."""
        table = self.table
        older: list[Snapshot] = [*table.snapshots.list(), *(tag.snapshot for tag in table.store.tags.all().values())]
        if older:
            had = table.live(older[pick % len(older)])
            live = {entry.identity[:2] + entry.identity[3:4] for entry in table.live()}
            back = [entry for entry in had if entry.identity[:2] + entry.identity[3:4] not in live | self.back]
            if back:
                parts = {str(table.store.partition_values(entry.partition)["dt"]) for entry in back[:2]}
                table.overwrite(*back[:2], partitions=parts)
                self.back |= {entry.identity[:2] + entry.identity[3:4] for entry in back[:2]}
                self.puts_off = True  # A file that an overwrite adds again stays until that overwrite expires.

    def tag(self, pick: int) -> None:
        snapshots = self.table.snapshots.list()
        if snapshots:
            self.numbers += 1
            self.table.tag(f"t{self.numbers}", snapshots[pick % len(snapshots)])

    def untag(self, pick: int) -> None:
        names = self.table.store.tags.names()
        if names:
            self.table.file_io.delete(self.table.paths.tag(names[pick % len(names)]))

    def branch(self, pick: int) -> None:
        names = self.table.store.tags.names()
        if names:
            self.numbers += 1
            create_branch(self.table.store, f"b{self.numbers}", names[pick % len(names)])

    def consumer(self, pick: int) -> None:
        latest = self.table.snapshots.latest_id()
        if latest:
            path = self.table.paths.consumer("c")
            self.table.file_io.write(path, consumer_text(max(latest - pick % 4, 1)))

    def rollback(self, pick: int) -> None:
        """Run a rollback that is killed. It leaves tags of removed snapshots, whose ids are used again."""
        table, ids = self.table, self.table.snapshots.ids()
        if len(ids) > 1:
            target = ids[pick % len(ids)]
            table.expire(*(number for number in ids if number > target))
            table.snapshots.write_latest_hint(table.snapshots.get(target))
            for name, tag in table.store.tags.all().items():
                if tag.snapshot.id > target and pick % 3:
                    table.file_io.delete(table.paths.tag(name))

    def expire(self, pick: int) -> None:
        table = self.table
        before, states = table.needed(), self.states()
        keep, limit = 1 + pick % 4, (1, 2, 1000, 1000)[pick % 4]
        planned = expire_snapshots(table.store, retention(keep, limit), dry_run=True)
        assert table.needed() == before, "a dry run changes nothing"
        done = expire_snapshots(table.store, retention(keep, limit))
        assert (planned.data_files, planned.metadata_files) == (done.data_files, done.metadata_files)
        after = table.needed()
        there = table.on_disk()
        assert after - there == set(), "needed files exist"
        if not self.puts_off:
            assert (before - after) & there == set(), "files that no state needs are deleted"
        left = self.states()
        assert left == {name: files for name, files in states.items() if name in left}, "no state has changed"
        consumers = table.store.consumers.all()
        ids = table.snapshots.ids()
        assert len(ids) >= 1 and list(ids) == list(range(ids[0], ids[-1] + 1))
        assert all(ids[0] <= max(number, min(ids)) for number in consumers.values())

    def states(self) -> dict[str, set[str]]:
        """Return the live files of each snapshot and tag."""
        table = self.table
        found = {f"snapshot {s.id} {s.fingerprint}": table.live_names(s) for s in table.snapshots.list()}
        return found | {name: table.live_names(tag.snapshot) for name, tag in table.store.tags.all().items()}


def retention(keep: int, limit: int = 1000) -> Retention:
    return Retention(min_count=keep, max_count=keep, older_than=0, limit=limit)


OPTIONS = (
    {},
    {"changelog-producer": "input"},
    {"changelog-producer": "input", "changelog.num-retained.min": "12", "changelog.num-retained.max": "12"},
    {"changelog.num-retained.min": "12", "changelog.num-retained.max": "12"},
    {"manifest.merge-min-count": "2"},
)


@examples(6)
@given(
    st.sampled_from(OPTIONS),
    st.sampled_from([0, 50 * 3_600_000]),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 59)), min_size=5, max_size=40),
)
def test_expiry_deletes_exactly_the_files_that_no_state_needs(
    options: dict[str, str], clocks: int, steps: Sequence[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, younger(clocks):
        history = History(Path(folder) / "t", options)
        for step, pick in [("append", 0), ("append", 1), *steps, ("expire", 2), ("expire", 0)]:
            history.take(step, pick)


class Killed(BaseException):
    """The process is killed here."""


def before_operation(moment: int, act: Callable[[], object]) -> ActingFileIO:
    """Return storage that runs ``act`` before the n-th operation."""
    return ActingFileIO(act, "read", "list", "write", "delete", first=moment)


@pytest.mark.parametrize("options", OPTIONS[1:4], ids=["input", "input decoupled", "none decoupled"])
def test_a_run_killed_at_any_step_leaves_a_readable_table_and_the_next_run_completes_it(
    tmp_path: Path, options: dict[str, str]
) -> None:
    steps = [("append", 1), ("append", 5), ("rewrite", 1), ("tag", 0), ("overwrite", 0), ("append", 4), ("rewrite", 0)]
    options = {key: "2" if key.startswith("changelog.num") else value for key, value in options.items()}
    options |= {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    ends: set[frozenset[int]] = set()
    history = History(tmp_path / "t", options)
    for step, pick in steps:
        history.take(step, pick)
    before = history.states()
    shutil.copytree(tmp_path / "t", tmp_path / "made")
    for moment in range(200):
        shutil.rmtree(tmp_path / "t")
        shutil.copytree(tmp_path / "made", tmp_path / "t")
        history.table.file_io = ActingFileIO(raising(Killed()), "write", "delete", first=moment)
        try:
            expire_snapshots(history.table.store, retention(2))
            killed = False
        except Killed:
            killed = True
        history.table.file_io = LocalFileIO()
        first = history.table.snapshots.earliest_id()
        kept = {name for name in before if "snapshot" not in name or int(name.split()[1]) >= (first or 0)}
        for name in kept:  # Reads of retained states.
            assert _files_of(history, name) <= history.table.on_disk(), (moment, name)
        expire_snapshots(history.table.store, retention(9))
        assert history.table.missing() == set()
        ends.add(frozenset(history.table.snapshots.ids()))
        left = history.table.on_disk() - history.table.needed()
        assert not left or history.puts_off, (moment, left)
        if not killed:
            break
    else:
        raise AssertionError("it never ends")
    assert moment > 10
    assert ends <= {frozenset([5, 6]), frozenset(range(1, 7))}


def _files_of(history: History, name: str) -> set[str]:
    table = history.table
    if name.startswith("snapshot"):
        return table.of_state(table.snapshots.get(int(name.split()[1])))
    return table.of_state(table.store.tags.get(name).snapshot)


def test_empty_directories_are_deleted_if_the_option_is_set(tmp_path: Path) -> None:
    for clean in ("false", "true"):
        table = ExpiryTable(tmp_path / clean, {"snapshot.clean-empty-directories": clean})
        table.append(table.new("a"), table.new("b"))
        table.overwrite(partitions=["a"])
        table.expire_to(1)
        assert (table.root / "dt=a").exists() == (clean == "false")
        assert (table.root / "dt=b" / "bucket-0").exists()


def test_files_that_cannot_be_deleted_are_reported(tmp_path: Path) -> None:
    table = ExpiryTable(tmp_path / "t")
    entry = table.new()
    table.append(entry)
    table.compact(table.rewritten(entry))
    table.file_io = ActingFileIO(raising(PermissionError("it stays")), "delete", path="/bucket-", times=ALWAYS)
    done = table.expire_to(1)
    assert (done.snapshots, done.data_files, len(done.failures)) == (1, 1, 1)
    assert entry.file.file_name in done.failures[0]
    assert list(table.snapshots.ids()) == [2]


def test_a_concurrently_created_tag_is_seen_or_refused(tmp_path: Path) -> None:
    """The tag is created before each storage operation of the expiry, in turn."""
    outcomes: set[str] = set()
    for moment in range(60):
        table = ExpiryTable(tmp_path / str(moment))
        entry = table.new()
        state = table.append(entry)
        table.compact(table.rewritten(entry))
        plain = table.store

        def tag(plain: TableStore = plain, state: Snapshot = state) -> None:
            try:
                create_tag(plain, "concurrent", state)
                outcomes.add("done")
            except SnapshotNotFoundError:
                outcomes.add("refused")

        table.file_io = file_io = before_operation(moment, tag)
        table.expire_to(1)
        table.file_io = LocalFileIO()
        assert table.missing() == set(), moment
        if not file_io.acted:
            break
    assert outcomes == {"done", "refused"} and not file_io.acted


def test_a_concurrently_deleted_tag_does_not_stop_expiry(tmp_path: Path) -> None:
    """The tag, with the files that only it kept, is deleted before each storage operation of the expiry, in turn."""
    table = ExpiryTable(tmp_path / "t")
    entry = table.new()
    create_tag(table.store, "old", table.append(entry))
    compacted = table.rewritten(entry)
    table.compact(compacted)
    table.expire_to(1)
    table.compact(table.rewritten(compacted[1]))
    plain = table.store
    shutil.copytree(table.root, tmp_path / "made")
    for moment in range(60):
        shutil.rmtree(table.root)
        shutil.copytree(tmp_path / "made", table.root)
        table.file_io = file_io = before_operation(moment, lambda: delete_tags(plain, ["old"]))
        table.expire_to(1)
        table.file_io = LocalFileIO()
        assert table.missing() == set(), moment
        if not file_io.acted:
            break


def test_two_concurrent_expiries_do_no_harm(tmp_path: Path) -> None:
    history = History(tmp_path / "t", {})
    for step, pick in [("append", 1), ("append", 5), ("rewrite", 1), ("tag", 0), ("overwrite", 0), ("append", 4)]:
        history.take(step, pick)
    table = history.table
    plain = table.store
    shutil.copytree(table.root, tmp_path / "made")
    for moment in range(60):
        shutil.rmtree(table.root)
        shutil.copytree(tmp_path / "made", table.root)
        table.file_io = file_io = before_operation(moment, lambda: expire_snapshots(plain, retention(1)))
        expire_snapshots(table.store, retention(3))
        table.file_io = LocalFileIO()
        assert table.missing() == set(), moment
        if not file_io.acted:
            break
    assert list(table.snapshots.ids()) == [3, 4, 5] and moment > 20
