"""The compaction that follows a write: its buckets, when it is full, how often it is repeated, and its result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakelsm.commit.commit_message import CommitOutcome
from lakelsm.compact.after_write import batch_result, compact_after_write, finish_write
from lakelsm.compact.compactor import Compactor
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.results import CommitResult, CompactionResult, CompactionStatus
from lakelsm.schema_changes import SetOption
from lakelsm.snapshots.manifest_scan import read_delta_entries
from lakelsm.write.batch_write import BatchResult
from tests.compact.local_table import LocalTable, Row


def batch_of(table: LocalTable, snapshot: Snapshot) -> BatchResult:
    """Return the result of the batch that made the snapshot."""
    store = table.store
    return BatchResult(CommitOutcome(snapshot), tuple(read_delta_entries(store.file_io, store.paths, snapshot)))


def write(table: LocalTable, *commits: int, overwrites: bool = False) -> BatchResult:
    """Commit three rows for each number, without a compaction. Returns the last result."""
    for text in commits:
        rows = [(key, f"v{text}") for key in (1, 2, 3)]
        snapshot = table.overwrite(*rows) if overwrites else table.write(*rows)
    return batch_of(table, snapshot)


def compacted(table: LocalTable, batch: BatchResult) -> CompactionResult:
    return compact_after_write(table.runner, table.store, batch, "u", 1)


def outrun(table: LocalTable, times: int) -> None:
    """Let the first ``times`` compactions lose to another one, after which four commits follow."""

    def act() -> None:
        nonlocal times
        times -= 1
        table.runner.after_tasks = None
        table.compact()
        write(table, 5, 6, 7, 8)
        table.runner.after_tasks = act if times else None

    table.runner.after_tasks = act


@pytest.mark.parametrize(
    ("options", "losses", "levels", "tries"),
    [
        ({"stop_trigger": "4"}, 1, [5], 1),
        ({"stop_trigger": "5"}, 1, [0, 0, 0, 0, 5], 0),
        ({"stop_trigger": "4", "retries": "1"}, 2, [0, 0, 0, 0, 5], 0),
    ],
)
def test_a_lost_compaction_is_repeated_while_a_bucket_is_past_the_stop_trigger(
    tmp_path: Path, options: dict[str, str], losses: int, levels: list[int], tries: int
) -> None:
    table = LocalTable(
        tmp_path / "t",
        num_sorted_run__compaction_trigger="4",
        num_levels="6",
        num_sorted_run__stop_trigger=options["stop_trigger"],
        commit__max_retries=options.get("retries", "10"),
    )
    batch = write(table, 1, 2, 3, 4)
    outrun(table, losses)
    result = compacted(table, batch)
    assert table.levels() == levels
    assert (result.status, len(result.snapshot_ids)) == ("conflict", tries), "the conflict is still reported"
    assert table.rows() == [(1, "v8"), (2, "v8"), (3, "v8")]


@pytest.mark.parametrize("options", [{"deletion_vectors__enabled": "true"}, {"merge_engine": "first-row"}])
def test_a_lost_compaction_is_repeated_if_its_rows_would_be_invisible(tmp_path: Path, options: dict[str, str]) -> None:
    table = LocalTable(tmp_path / "t", **options)
    planned = table.write((1, "a"))
    batch = batch_of(table, table.write((2, "b")))
    rival = Compactor(table.runner, table.store)

    def act() -> None:
        table.runner.after_tasks = None
        rival.compact(CompactionScope(full=False), snapshot=planned)

    table.runner.after_tasks = act
    result = compacted(table, batch)
    assert (result.status, len(result.snapshot_ids)) == ("conflict", 1), "the conflict is still reported"
    assert 0 not in table.levels() and table.rows() == [(1, "a"), (2, "b")]


def test_a_compaction_that_lost_to_a_new_schema_continues_with_it(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", deletion_vectors__enabled="true")
    table.write((1, "a"))
    batch = batch_of(table, table.write((1, "b")))

    def act() -> None:
        table.runner.after_tasks = None
        table.alter(SetOption("deletion-vectors.enabled", "false"))

    table.runner.after_tasks = act
    result = compacted(table, batch)
    assert (result.status, result.snapshot_ids, table.runner.jobs) == ("conflict", (), 1), "level 0 is readable now"


def test_a_compaction_that_wins_is_not_repeated(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", num_sorted_run__compaction_trigger="2", num_sorted_run__stop_trigger="2")
    result = compacted(table, write(table, 1, 2, 3))
    assert (result.status, len(result.snapshot_ids), len(table.levels())) == ("done", 1, 1)


def test_below_the_compaction_trigger_nothing_is_compacted(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    assert compacted(table, write(table, 1)).status == "nothing"


def test_full_compactions_follow_the_configured_number_of_commits(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", full_compaction__delta_commits="2", num_sorted_run__compaction_trigger="9")
    levels = []
    for text in range(1, 6):
        compacted(table, write(table, text))
        levels.append(table.levels())
    assert levels == [[0], [9], [0, 9], [9], [0, 9]]


def test_an_overwrite_that_lost_is_not_compacted_again(tmp_path: Path) -> None:
    table = LocalTable(
        tmp_path / "t",
        num_sorted_run__compaction_trigger="1",
        num_sorted_run__stop_trigger="1",
        overwrite_upgrade="false",
        target_file_row_num="2",
        changelog_producer="full-compaction",
    )
    batch = write(table, 1, overwrites=True)
    outrun(table, 1)
    result = compacted(table, batch)
    assert (result.status, result.snapshot_ids) == ("conflict", ())


PARTS: dict[str, Any] = {
    "columns": "p INT NOT NULL, id INT NOT NULL, v STRING",
    "primary_key": ("p", "id"),
    "partition_by": ("p",),
}


def compacted_after(table: LocalTable, *rows: Row) -> str:
    """Return the status of the compaction after a write of the rows."""
    return compacted(table, batch_of(table, table.write(*rows))).status.value


def kinds(table: LocalTable) -> list[str]:
    return [snapshot.commit_kind.value for snapshot in table.store.snapshots.list()]


def test_only_buckets_of_the_batch_are_compacted_with_its_user_and_batch_id(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, **PARTS, num_sorted_run__compaction_trigger="2")
    table.write((1, 1, "a"), (2, 1, "a"))
    table.write((2, 1, "b"))
    assert compacted_after(table, (1, 1, "c")) == "done"
    snapshot = table.latest
    assert (snapshot.commit_kind, snapshot.commit_user, snapshot.commit_identifier) == (CommitKind.COMPACT, "u", 1)
    values = table.store.partition_values
    levels = sorted((values(entry.partition)["p"], entry.file.level > 0) for entry in table.live())
    assert levels == [(1, True), (2, False), (2, False)]


def test_a_full_compaction_of_all_buckets_follows_the_configured_number_of_commits(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, **PARTS, full_compaction__delta_commits="2")
    found = [compacted_after(table, (1, 1, "a"), (2, 1, "a"))]
    found += [compacted_after(table, (1, 1, text)) for text in "bcde"]
    assert found == ["nothing", "done", "nothing", "done", "nothing"]
    assert kinds(table) == ["APPEND", "APPEND", "COMPACT", "APPEND", "APPEND", "COMPACT", "APPEND"]
    assert {entry.file.level for entry in table.live() if table.store.partition_values(entry.partition)["p"] == 2} == {5}


def test_commits_are_counted_from_snapshots_that_have_not_expired(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, full_compaction__delta_commits="3")
    for number in (1, 2):
        table.write((number, "a"))
    store = table.store
    store.file_io.delete(store.paths.snapshot_file(1))
    assert compacted_after(table, (3, "a")) == "nothing"
    assert compacted_after(table, (4, "a")) == "done"


def test_with_a_full_compaction_changelog_each_write_compacts_its_buckets_fully(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, **PARTS, changelog_producer="full-compaction")
    table.write((2, 1, "other"))
    result = compacted(table, batch_of(table, table.write((1, 1, "a"))))
    assert (result.status, result.changelog_rows) == ("done", 1)
    assert table.levels() == [0, 5]
    sparing = LocalTable(tmp_path / "s", changelog_producer="full-compaction", full_compaction__delta_commits="2")
    assert [compacted_after(sparing, (1, text)) for text in "ab"] == ["nothing", "done"]


def test_rows_of_an_overwrite_have_no_changelog_and_later_rows_do(tmp_path: Path) -> None:
    table = LocalTable(tmp_path, changelog_producer="lookup", overwrite_upgrade="false")
    compacted(table, batch_of(table, table.write((1, "a"))))
    overwritten = table.overwrite((1, "b"), (2, "b"))
    table.write((1, "late"))
    assert compacted(table, batch_of(table, overwritten)).changelog_rows == 0
    assert table.levels() == [0, 5]
    result = table.compact(full=False)
    assert result.changelog_rows == 2
    assert table.rows() == [(1, "late"), (2, "b")]


def test_the_result_of_a_write_has_its_files_and_its_compaction(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    batch = write(table, 1, 2, 3, 4, 5)
    result = finish_write(table.runner, table.store, batch, "u", 1)
    assert (result.snapshot_id, result.already_committed, result.rows) == (5, False, 3)
    assert result.files == len(batch.entries) > 0
    assert result.compaction is not None and result.compaction.status is CompactionStatus.DONE


def test_a_replay_writes_nothing_and_is_not_compacted_again(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    earlier = BatchResult(replace(write(table, 1).outcome, already_committed=True), ())
    assert batch_result(earlier) == CommitResult(snapshot_id=1, already_committed=True)
    assert finish_write(table.runner, table.store, earlier, "u", 1) == batch_result(earlier)
