"""Faults at each step of a commit: the table reads as before or as after it, and a rerun succeeds."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelsm.commit.commit_message import COMMIT_STEPS, CommitMessage, CommitOutcome
from lakelsm.errors import CommitOutcomeUnknownError, SequenceConflictError, UnsupportedFeatureError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind
from lakelsm.snapshots.sequence_base import table_max_sequence
from lakelsm.storage import LocalFileIO
from tests.acting_file_io import ALWAYS, ActingFileIO, raising
from tests.commit.commit_table import CommitTable, add, file, hash_index, upgrade
from tests.processes import CONTEXT, PATIENCE, ended, started

APPEND = CommitKind.APPEND
#: A merge of manifests is due after two commits, so that a third one has all steps.
OPTIONS = {"manifest.merge-min-count": "2"}


def prepared(root: Path, **more: Any) -> CommitTable:
    table = CommitTable(root, OPTIONS, **more)
    if table.snapshots.latest() is None:
        table.append(add(file("a", seq=(0, 9))))
        table.append(add(file("b", seq=(10, 19))))
    return table


def third_commit(
    table: CommitTable, name: str, step: Callable[[str], None] = lambda name: None
) -> CommitOutcome:
    message = CommitMessage(
        [add(file(name, seq=(20, 29)))],
        changelog_entries=[add(file(f"changelog-{name}"))],
        index_adds=[hash_index(f"index-{name}")],
        base_snapshot_id=2,
    )
    return table.committer(step).commit(APPEND, message, "job", 7)


def _exit_at(root: str, fatal: str) -> None:
    def step(name: str) -> None:
        if name == fatal:
            os._exit(9)

    third_commit(prepared(Path(root)), "first", step)


def test_a_third_commit_takes_every_step(tmp_path: Path) -> None:
    seen: list[str] = []
    third_commit(prepared(tmp_path), "first", seen.append)
    assert tuple(seen) == COMMIT_STEPS


@pytest.mark.parametrize("fatal", COMMIT_STEPS)
def test_a_kill_at_any_step_leaves_the_table_as_before_or_after_and_a_rerun_succeeds(
    tmp_path: Path, fatal: str
) -> None:
    table = prepared(tmp_path)
    process = multiprocessing.get_context("fork").Process(target=_exit_at, args=(str(tmp_path), fatal))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 9
    landed = fatal in ("snapshot-published", "hint-written")
    assert table.live_names() == ({"a@0", "b@0", "first@0"} if landed else {"a@0", "b@0"})
    outcome = third_commit(table, "second")
    assert outcome.already_committed == landed
    assert outcome.files_published == (not landed)
    assert table.live_names() == {"a@0", "b@0", "first@0" if landed else "second@0"}
    latest = table.snapshots.latest()
    assert latest is not None and (latest.id, latest.total_record_count) == (3, 30)
    assert table.named_metadata() <= table.metadata_names()


@pytest.mark.parametrize("failing", COMMIT_STEPS)
def test_an_exception_at_any_step_leaves_no_stray_file_unless_the_snapshot_is_visible(
    tmp_path: Path, failing: str
) -> None:
    def step(name: str) -> None:
        if name == failing:
            raise RuntimeError("fault")

    table = prepared(tmp_path)
    visible = failing in ("snapshot-published", "hint-written")
    if failing == "hint-written":
        with pytest.warns(UserWarning, match="the commit succeeded, and the LATEST hint of snapshot 3 .*fault"):
            outcome = third_commit(table, "first", step)
        assert [(failure.error, failure.kind) for failure in outcome.failures] == [("RuntimeError", None)]
    else:
        with pytest.raises(CommitOutcomeUnknownError if visible else RuntimeError, match="fault"):
            third_commit(table, "first", step)
    if visible:
        assert "first@0" in table.live_names()
        assert third_commit(table, "second").already_committed
        assert table.named_metadata() <= table.metadata_names()
    else:
        assert table.metadata_names() == table.named_metadata()
        assert third_commit(table, "second").snapshot is not None


class FaultyFileIO(LocalFileIO):
    """A FileIO that applies one of ``faults`` to each request for a snapshot file, and then works normally."""

    def __init__(self, *faults: str) -> None:
        self.faults = list(faults)
        self.reads_fail = False
        self.hint_fails = False

    def create_if_absent(self, path: str, data: bytes) -> bool:
        fault = self.faults.pop(0) if "/snapshot-" in path and self.faults else ""
        if fault == "not sent":
            raise TimeoutError("no route")
        if fault == "refused":
            raise UnsupportedFeatureError("no such operation")
        created = super().create_if_absent(path, data)
        if fault == "answer lost":
            raise TimeoutError("answer lost")
        if fault == "repeated by the client":
            return super().create_if_absent(path, data)
        if fault == "answer lost, reads fail":
            self.reads_fail = True
            raise TimeoutError("answer lost")
        return created

    def read(self, path: str, limit: int | None = None) -> bytes:
        if self.reads_fail and "/snapshot-" in path:
            raise TimeoutError("reads fail")
        return super().read(path, limit)

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        if self.hint_fails and path.endswith("LATEST"):
            raise OSError("disk full")
        super().write(path, data, durable)


def faulty_table(root: Path, *faults: str) -> tuple[CommitTable, FaultyFileIO]:
    prepared(root)
    file_io = FaultyFileIO(*faults)
    return CommitTable(root, OPTIONS, file_io=file_io), file_io


@pytest.mark.parametrize("fault", ["answer lost", "repeated by the client", "not sent"])
def test_a_lost_answer_is_read_back_as_a_success(tmp_path: Path, fault: str) -> None:
    table, _ = faulty_table(tmp_path, fault)
    outcome = third_commit(table, "first")
    assert outcome.snapshot is not None and outcome.attempts == 1 and not outcome.already_committed
    assert table.live_names() == {"a@0", "b@0", "first@0"}
    assert table.metadata_names() == table.named_metadata()
    assert table.snapshots.latest_id() == 3


def test_a_lost_answer_of_a_lost_race_is_read_back_as_a_loss(tmp_path: Path) -> None:
    table, _ = faulty_table(tmp_path, "not sent")
    rival = CommitTable(tmp_path, OPTIONS)
    done: list[str] = []

    def step(name: str) -> None:
        if name == "index-manifest-written" and not done:
            done.append(name)
            rival.append(add(file("rival", seq=(20, 29)), bucket=1))

    outcome = third_commit(table, "first", step)
    assert outcome.attempts == 2 and outcome.snapshot is not None and outcome.snapshot.id == 4
    assert table.live_names() == {"a@0", "b@0", "rival@0", "first@0"}
    assert table.metadata_names() == table.named_metadata()


def test_an_outcome_that_stays_unknown_deletes_nothing_and_a_rerun_finds_it(tmp_path: Path) -> None:
    table, file_io = faulty_table(tmp_path, "answer lost, reads fail")
    with pytest.raises(CommitOutcomeUnknownError, match="no file was deleted"):
        third_commit(table, "first")
    file_io.reads_fail = False
    assert table.live_names() == {"a@0", "b@0", "first@0"}
    assert table.named_metadata() <= table.metadata_names()
    outcome = third_commit(table, "first")
    assert outcome.already_committed and outcome.files_published


def test_a_publication_that_never_succeeds_has_an_unknown_outcome(tmp_path: Path) -> None:
    table, _ = faulty_table(tmp_path, *["not sent"] * 9)
    with pytest.raises(CommitOutcomeUnknownError, match="snapshot-3"):
        third_commit(table, "first")
    assert table.live_names() == {"a@0", "b@0"}
    assert third_commit(CommitTable(tmp_path), "first").snapshot is not None


def test_a_store_without_create_if_absent_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    table, _ = faulty_table(tmp_path, "refused")
    with pytest.raises(UnsupportedFeatureError):
        third_commit(table, "first")
    assert table.metadata_names() == table.named_metadata()


def test_a_hint_that_cannot_be_written_does_not_make_a_commit_fail(tmp_path: Path) -> None:
    table, file_io = faulty_table(tmp_path)
    file_io.hint_fails = True
    with pytest.warns(UserWarning, match="LATEST hint of snapshot 3 .*disk full"):
        outcome = third_commit(table, "first")
    assert outcome.snapshot is not None and outcome.failures[0].text == "OSError: disk full"
    assert table.file_io.read(table.paths.latest_hint) == b"2"
    assert table.snapshots.latest_id() == 3


@pytest.mark.parametrize("hint", [b"1", b"", b"x", b"-4", None])
def test_a_commit_continues_after_an_outdated_or_damaged_hint(tmp_path: Path, hint: bytes | None) -> None:
    table = prepared(tmp_path)
    if hint is None:
        table.file_io.delete(table.paths.latest_hint)
    else:
        table.file_io.write(table.paths.latest_hint, hint)
    outcome = third_commit(table, "first")
    assert outcome.snapshot is not None and outcome.snapshot.id == 3
    assert table.file_io.read(table.paths.latest_hint) == b"3"


def test_a_manifest_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    prepared(tmp_path)
    no_space = raising(OSError(28, "No space left on device"))
    full = ActingFileIO(no_space, "write", path="/manifest/", first=2, times=ALWAYS)
    table = CommitTable(tmp_path, OPTIONS, file_io=full)
    with pytest.raises(OSError, match="No space left"):
        third_commit(table, "first")
    assert table.metadata_names() == table.named_metadata()
    assert table.live_names() == {"a@0", "b@0"}


def _write(
    table: CommitTable, entry: ManifestEntry, name: str, user: str, number: int, arguments: dict[str, Any]
) -> None:
    """Commit a file of an own bucket and one of the shared bucket, with new numbers until it succeeds."""
    while True:
        latest = table.snapshots.latest()
        first = table_max_sequence(table.file_io, table.paths, latest) + 1
        entry.file.min_sequence_number = entry.file.max_sequence_number = first
        shared = add(file(f"s{name}", seq=(first, first), rows=1))
        message = CommitMessage([entry, shared], base_snapshot_id=latest.id if latest else None)
        try:
            outcome = table.committer(**arguments).commit(APPEND, message, user, number)
        except SequenceConflictError:
            continue
        assert outcome.snapshot is not None and not outcome.already_committed
        return


def _race(root: str, who: int, commits: int, failed: multiprocessing.Queue[str]) -> None:
    """Write to an own bucket and to a shared one, and compact the own bucket sometimes."""
    try:
        table = CommitTable(Path(root))
        arguments: dict[str, Any] = {"sleep": time.sleep, "clock": lambda: time.time_ns() // 1_000_000}
        mine = []
        for number in range(commits):
            entry = add(
                file(f"w{who}-{number}", seq=(number, number), rows=1, keys=(number, number)), bucket=10 + who
            )
            _write(table, entry, f"{who}-{number}", f"w{who}", number, arguments)
            mine.append(entry)
            if number % 4 == 3:
                compact = [item for e in mine for item in upgrade(e, 5)]
                table.committer(**arguments).commit(CommitKind.COMPACT, CommitMessage(compact), f"c{who}")
                mine = []
        failed.put("")
    except BaseException as error:
        failed.put(repr(error))
        raise


def test_four_processes_racing_on_one_table_lose_nothing(tmp_path: Path) -> None:
    table = CommitTable(
        tmp_path,
        {"commit.max-retries": "1000", "commit.max-retry-wait": "100 ms", "manifest.merge-min-count": "5"},
    )
    failed: multiprocessing.Queue[str] = CONTEXT.Queue()
    workers = [started(_race, str(tmp_path), who, 10, failed) for who in range(4)]
    assert [failed.get(timeout=PATIENCE) for _ in workers] == [""] * 4
    assert [ended(worker) for worker in workers] == [0] * 4
    everyone = {f"{kind}{who}-{number}" for kind in "ws" for who in range(4) for number in range(10)}
    assert {entry.file.file_name for entry in table.live()} == everyone
    snapshots = table.snapshots.list()
    assert [snapshot.id for snapshot in snapshots] == list(range(1, 4 * 10 + 4 * 2 + 1))
    assert snapshots[-1].total_record_count == len(everyone)
    assert table.metadata_names() == table.named_metadata()
    assert table.file_io.list(table.paths.snapshot_dir).count("LATEST") == 1
    shared = [entry.file for entry in table.live() if entry.bucket == 0]
    assert len({meta.min_sequence_number for meta in shared}) == len(shared)
    times = [snapshot.time_millis for snapshot in snapshots]
    assert times == sorted(times)
