"""Changelog files of compactions: their directory and metadata, and that a lost compaction leaves none."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.snapshot import CommitKind
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.snapshots.manifest_scan import read_changelog_entries
from tests.compact.local_table import LocalTable

TOP = 5


def changelog_of(table: LocalTable) -> list[ManifestEntry]:
    """Return the changelog files of the newest snapshot."""
    store = table.store
    return read_changelog_entries(store.file_io, store.paths, table.latest)


def changelog_files(table: LocalTable) -> set[str]:
    return {path.name for path in table.root.rglob("changelog-*")}


def stored(table: LocalTable, entry: ManifestEntry) -> list[tuple[int, int, str | None]]:
    rows = pq.ParquetFile(table.path_of(entry)).read().to_pylist()
    return [(row["_VALUE_KIND"], row["id"], row["v"]) for row in rows]


def test_the_changelog_of_a_compaction_is_in_its_snapshot_and_in_files_of_the_bucket(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", changelog_producer="lookup")
    table.write((1, "a"), (2, "b"), (3, "c"))
    table.compact(full=False)
    table.write((1, "x"), (4, "d"))
    table.delete((2, None))
    result = table.compact(full=False)
    assert (table.latest.commit_kind, table.latest.changelog_record_count) == (CommitKind.COMPACT, 4)
    assert result.changelog_rows == 4
    (entry,) = changelog_of(table)
    assert stored(table, entry) == [(1, 1, "a"), (2, 1, "x"), (3, 2, "b"), (0, 4, "d")]
    file, (data,) = entry.file, table.live()
    assert (entry.kind, file.level, file.file_source, file.row_count) == (FileKind.ADD, TOP, 0, 4)
    assert file.delete_row_count == 2
    # One uuid and one counter for both, as in Paimon.
    assert file.file_name.rsplit("-", 1)[0].removeprefix("changelog-") == data.file.file_name.rsplit("-", 1)[0][5:]
    assert file.file_name != data.file.file_name.replace("data-", "changelog-")
    assert table.rows() == [(1, "x"), (3, "c"), (4, "d")]


def test_an_upgraded_file_has_a_changelog(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", changelog_producer="lookup")
    table.write((1, "a"), (2, "b"))
    names = table.names()
    result = table.compact(full=False)
    assert (result.files_upgraded, result.files_rewritten, result.changelog_rows) == (1, 0, 2)
    assert table.names() == names
    assert [stored(table, entry) for entry in changelog_of(table)] == [[(0, 1, "a"), (0, 2, "b")]]


def test_a_compaction_that_lost_leaves_no_changelog(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", changelog_producer="lookup")
    table.write((1, "a"))
    table.compact(full=False)
    table.write((1, "b"))
    rival = LocalTable(table.root)

    def first() -> None:
        table.runner.after_tasks = None
        assert rival.compact(full=False).status == "done"

    table.runner.after_tasks = first
    assert table.compact(full=False).status == "conflict"
    (entry,) = changelog_of(table)
    assert stored(table, entry) == [(1, 1, "a"), (2, 1, "b")]
    every = {file.file.file_name for file in changelog_of(table)}
    store = table.store
    for number in range(1, table.latest.id):
        found = read_changelog_entries(store.file_io, store.paths, store.snapshots.get(number))
        every |= {file.file.file_name for file in found}
    assert changelog_files(table) == every


def test_a_key_on_several_levels_is_combined_once(tmp_path: Path) -> None:
    """A row above level 0 includes the levels below: merged again, sums would count twice."""
    options = {"merge_engine": "aggregation", "fields__v__aggregate_function": "sum", "changelog_producer": "lookup"}
    small = {"target_file_size": "1 kb", "compaction__small_file_ratio": "0.0001"}
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, v INT", **options, **small)
    table.write(*((number, 1) for number in range(400)))
    table.compact(full=True)
    for _ in range(2):
        table.write((7, 10))
        table.compact(full=False)
    assert len(set(table.levels())) > 1
    (entry,) = changelog_of(table)
    assert stored(table, entry) == [(1, 7, 11), (2, 7, 21)]
    table.compact(full=True)
    assert table.rows()[7] == (7, 21)


def test_a_full_compaction_of_some_buckets_writes_the_changes_of_the_top_level(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", changelog_producer="full-compaction")
    table.write((1, "a"), (2, "b"))
    table.compact(scope=CompactionScope(True))
    table.write((1, "x"))
    table.write((1, "y"))
    table.write((2, "b"))
    table.write((3, "c"))
    table.delete((3, None))
    table.compact(scope=CompactionScope(True))
    (entry,) = changelog_of(table)
    assert stored(table, entry) == [(1, 1, "a"), (2, 1, "y"), (1, 2, "b"), (2, 2, "b")]
    assert table.compact(scope=CompactionScope(True)).status == "nothing"


def test_changelog_files_follow_their_options(tmp_path: Path) -> None:
    options = {
        "changelog_producer": "lookup",
        "changelog_file__prefix": "cl-",
        "changelog_file__compression": "gzip",
        "changelog_file__stats_mode": "none",
    }
    table = LocalTable(tmp_path / "t", **options)
    table.write((1, "a"))
    table.compact(full=False)
    (entry,) = changelog_of(table)
    assert entry.file.file_name.startswith("cl-")
    assert entry.file.value_stats_cols == ()
    column = pq.ParquetFile(table.path_of(entry)).metadata.row_group(0).column(0)
    assert column.compression == "GZIP"
    assert table.stored(table.live()[0]).num_rows == 1


def test_a_large_run_to_look_up_in_is_shared_among_tasks(tmp_path: Path) -> None:
    small = {"target_file_size": "2 kb", "compaction__small_file_ratio": "0.0001", "changelog_producer": "lookup"}
    table = LocalTable(tmp_path / "t", **small)
    table.write(*((number, f"old {number}") for number in range(6000)))
    table.compact(full=True)
    table.write(*((number, "new") for number in range(0, 6000, 997)))
    before = table.runner.tasks
    table.compact(full=False)
    assert table.runner.tasks - before > 1
    changes = sorted(row for entry in changelog_of(table) for row in stored(table, entry))
    assert changes == sorted(
        change for number in range(0, 6000, 997) for change in ((1, number, f"old {number}"), (2, number, "new"))
    )
    assert [row for row in table.rows() if row[1] == "new"] == [(number, "new") for number in range(0, 6000, 997)]
