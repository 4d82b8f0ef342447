"""The compaction that follows a write: when it is full, and how often it is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.commit.commit_message import CommitOutcome
from lakelsm.compact.after_write import compact_after_write
from lakelsm.results import CompactionResult
from lakelsm.write.batch_write import BatchResult
from tests.compact.local_table import LocalTable


def write(table: LocalTable, *commits: int, overwrites: bool = False) -> BatchResult:
    """One commit of three rows for each number, without a compaction; the last one's result."""
    for text in commits:
        before = table.names()
        rows = [(key, f"v{text}") for key in (1, 2, 3)]
        snapshot = table.overwrite(*rows) if overwrites else table.write(*rows)
    entries = tuple(entry for entry in table.live() if entry.file.file_name not in before)
    return BatchResult(CommitOutcome(snapshot), entries)


def compacted(table: LocalTable, batch: BatchResult) -> CompactionResult:
    return compact_after_write(table.spark, table.store, batch, "u", 1)  # type: ignore[arg-type]


def outrun(table: LocalTable, times: int) -> None:
    """So many compactions lose to another's, after which four more commits come."""

    def act() -> None:
        nonlocal times
        times -= 1
        table.spark.after_tasks = None
        table.compact()
        write(table, 5, 6, 7, 8)
        table.spark.after_tasks = act if times else None

    table.spark.after_tasks = act


@pytest.mark.parametrize(
    ("options", "losses", "levels", "tries"),
    [
        ({"stop_trigger": "4"}, 1, [5], 1),
        ({"stop_trigger": "4"}, 3, [5], 1),
        ({"stop_trigger": "5"}, 1, [0, 0, 0, 0, 5], 0),
        ({"stop_trigger": "4", "retries": "0"}, 1, [0, 0, 0, 0, 5], 0),
        ({"stop_trigger": "4", "retries": "2"}, 3, [0, 0, 0, 0, 5], 0),
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
    assert (result.status, len(result.snapshot_ids)) == ("conflict", tries), "what was lost is still told"
    assert table.rows() == [(1, "v8"), (2, "v8"), (3, "v8")]


def test_a_compaction_that_wins_is_not_repeated(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", num_sorted_run__compaction_trigger="2", num_sorted_run__stop_trigger="2")
    result = compacted(table, write(table, 1, 2, 3))
    assert (result.status, len(result.snapshot_ids), len(table.levels())) == ("done", 1, 1)


def test_below_the_compaction_trigger_nothing_is_compacted(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    assert compacted(table, write(table, 1)).status == "nothing"


def test_full_compactions_come_every_so_many_commits(tmp_path: Path) -> None:
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
