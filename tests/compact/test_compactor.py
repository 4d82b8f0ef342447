"""Compaction end to end without a JVM: real files, real tasks, real commits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from lakelsm.format.data_file.key_value_file import key_types
from lakelsm.format.row.binary_row import decode_row
from lakelsm.format.snapshot import CommitKind
from lakelsm.plan.compaction_plan import FULL_COMPACTION_PROPERTY
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from lakelsm.types import AtomicType
from tests.compact.local_table import LocalTable, Row
from tests.examples import examples

TOP = 5
SMALL_FILES = {"target_file_size": "1 kb", "compaction__small_file_ratio": "0.0001"}


def contents(root: Path) -> dict[str, str]:
    """Return the files below a directory with a hash of their bytes."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


def text_rows(first: int, count: int, text: str = "") -> list[Row]:
    return [(number, f"{text}{number}") for number in range(first, first + count)]


def ticking(*times: float) -> Callable[[], float]:
    """Return a clock that returns these times in order, and then always the last one."""
    left = list(times)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def four_buckets(root: Path, commits: int = 2) -> LocalTable:
    table = LocalTable(root / "t", bucket="4")
    for commit in range(commits):
        table.write(*text_rows(0, 40, f"{commit}-"))
    return table


def full_compactions(table: LocalTable) -> list[int]:
    """Return the snapshots that record a full compaction of the whole table."""
    return [s.id for s in table.store.snapshots.list() if FULL_COMPACTION_PROPERTY in (s.properties or {})]


def test_a_compaction_without_commit_user_has_the_prefix_of_the_table(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", commit__user_prefix="nightly")
    table.write((1, "a"))
    table.compact()
    assert table.latest.commit_user.startswith("nightly_")


def test_a_full_compaction_leaves_the_top_level_only_and_the_same_rows(tmp_path: Path) -> None:
    table = four_buckets(tmp_path)
    table.delete((3, None), (4, None))
    rows = table.rows()
    result = table.compact()
    assert (result.status, result.snapshot_ids, result.buckets) == ("done", (4,), 4)
    assert (result.rows_read, result.rows_written) == (82, 38)
    assert (result.files_rewritten, result.files_upgraded, result.files_written) == (10, 0, 4)
    assert result.bytes_written == sum(entry.file.file_size for entry in table.live())
    assert table.levels() == [TOP] * 4
    assert table.rows() == rows
    assert (table.latest.commit_kind, table.latest.total_record_count) == (CommitKind.COMPACT, 38)
    assert full_compactions(table) == [4]


def test_a_rewritten_file_keeps_sequence_numbers_and_has_the_source_compact(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"), (2, "b"))
    table.write((2, "c"), (3, "d"))
    table.compact()
    (entry,) = table.live()
    file = entry.file
    assert (file.min_sequence_number, file.max_sequence_number, file.row_count) == (0, 3, 3)
    assert (file.file_source, file.delete_row_count, file.level) == (1, 0, TOP)
    assert table.stored(entry).column("_SEQUENCE_NUMBER").to_pylist() == [0, 2, 3]


def test_nothing_is_compacted_in_an_empty_table_and_after_a_full_compaction(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    assert table.compact().status == "nothing"
    table.write((1, "a"))
    table.write((1, "b"))
    assert table.compact(full=False).status == "nothing"
    assert table.compact().status == "done"
    before = contents(tmp_path)
    assert table.compact().status == "nothing"
    assert contents(tmp_path) == before


def test_a_dry_run_changes_no_file_and_reports_the_plan(tmp_path: Path) -> None:
    table = four_buckets(tmp_path)
    before = contents(tmp_path)
    plan = table.compact(dry_run=True)
    assert contents(tmp_path) == before
    assert table.runner.jobs == 0
    done = table.compact()
    assert (plan.status, plan.snapshot_ids, plan.files_written, plan.rows_written) == ("planned", (), 0, 0)
    for name in ("buckets", "files_rewritten", "files_upgraded", "bytes_read", "rows_read"):
        assert getattr(plan, name) == getattr(done, name)


def test_commit_every_is_the_number_of_buckets_in_a_snapshot(tmp_path: Path) -> None:
    table = four_buckets(tmp_path)
    rows = table.rows()
    result = table.compact(commit_every=3)
    assert (result.snapshot_ids, result.buckets, result.files_written) == ((3, 4), 4, 4)
    assert (result.files_rewritten, result.rows_read, result.rows_written) == (8, 80, 40)
    assert full_compactions(table) == [4], "the table is fully compacted by the last commit only"
    assert table.rows() == rows


def test_a_deadline_stops_between_commits_and_a_rerun_compacts_the_rest(tmp_path: Path) -> None:
    table = four_buckets(tmp_path)
    rows = table.rows()
    # The clock: at the start, in the first commit, before and in the second, before the third, at the end.
    result = table.compact(commit_every=1, deadline=10, clock=ticking(100, 101, 105, 106, 111, 112))
    assert (result.status, result.buckets, result.snapshot_ids, result.seconds) == ("deadline", 2, (3, 4), 12)
    assert table.levels() == [0] * 4 + [TOP] * 2
    assert table.rows() == rows
    assert full_compactions(table) == []
    rest = table.compact(commit_every=1, deadline=10, clock=ticking(100))
    assert (rest.status, rest.buckets) == ("done", 2)
    assert table.levels() == [TOP] * 4


def test_with_a_deadline_alone_a_commit_has_as_many_buckets_as_cores(tmp_path: Path) -> None:
    table = four_buckets(tmp_path)
    result = table.compact(deadline=0, clock=ticking(100, 101))
    assert (result.status, result.buckets, len(result.snapshot_ids)) == ("deadline", table.runner.cores, 1)


def test_a_delete_stays_above_older_rows_and_is_dropped_on_the_top_level(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", num_sorted_run__compaction_trigger="2", compaction__size_ratio="0", num_levels="6")
    table.write(*text_rows(0, 2000, "a long text that makes this run by far the largest "))
    table.compact()
    table.write((10_000, "x"))
    table.delete((7, None), (8, None))
    partial = table.compact(full=False)
    assert partial.status == "done"
    assert table.levels() == [TOP - 1, TOP]
    upper = min(table.live(), key=lambda entry: entry.file.level)
    assert (upper.file.row_count, upper.file.delete_row_count) == (3, 2)
    rows = table.rows()
    assert {row[0] for row in rows} == {*range(2000), 10_000} - {7, 8}
    table.compact()
    (entry,) = table.live()
    assert (entry.file.delete_row_count, entry.file.row_count) == (0, 1999)
    assert set(table.stored(entry).column("_VALUE_KIND").to_pylist()) == {0}
    assert table.rows() == rows


def test_deleting_every_row_leaves_a_table_without_files(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    table.delete((1, None))
    result = table.compact()
    assert (result.status, result.files_written, result.rows_written) == ("done", 0, 0)
    assert table.live() == []
    assert table.rows() == []
    table.write((1, "again"))
    assert table.rows() == [(1, "again")]


def test_a_file_without_overlap_is_upgraded(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write(*text_rows(0, 10))
    (before,) = table.live()
    data = table.path_of(before).read_bytes()
    result = table.compact()
    (after,) = table.live()
    assert (result.files_upgraded, result.files_rewritten, result.files_written) == (1, 0, 0)
    assert table.runner.jobs == 0, "no task is needed"
    assert after.file == before.file.upgraded(TOP)
    assert table.path_of(after).read_bytes() == data


def test_a_file_with_deletes_is_rewritten_to_the_top_level(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.delete((1, None), (2, None))
    assert table.levels() == [0]
    result = table.compact()
    assert (result.files_upgraded, result.files_rewritten, result.files_written) == (0, 1, 0)
    assert table.live() == []


def test_small_files_are_merged_without_overlap(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    for first in (0, 10, 20):
        table.write(*text_rows(first, 10))
    result = table.compact()
    assert (result.files_rewritten, result.files_upgraded, result.files_written) == (3, 0, 1)
    (entry,) = table.live()
    assert decode_row(entry.file.min_key, key_types(table.store.schema)) == (0,)
    assert decode_row(entry.file.max_key, key_types(table.store.schema)) == (29,)


def test_large_files_without_overlap_are_upgraded_while_overlapping_ones_are_merged(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", **SMALL_FILES)
    table.write(*text_rows(0, 10))
    apart = table.names()
    table.write(*text_rows(100, 10, "old"))
    table.write(*text_rows(105, 10, "new"))
    result = table.compact()
    assert (result.files_upgraded, result.files_rewritten) == (1, 2)
    assert apart < table.names()
    assert table.rows() == [*text_rows(0, 10), *text_rows(100, 5, "old"), *text_rows(105, 10, "new")]


def test_output_rolls_at_the_target_size_into_files_that_do_not_overlap(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", target_file_size="4 kb", compaction__small_file_ratio="0.0001")
    noise = [hashlib.sha256(str(number).encode()).hexdigest() * 20 for number in range(400)]
    for commit in range(2):
        table.write(*((number, f"{commit}{noise[number]}") for number in range(400)))
    rows = table.rows()
    # A row group has an eighth of the task's memory.
    table.compact(task_memory=1 << 20)
    types = key_types(table.store.schema)
    ranges = sorted((decode_row(e.file.min_key, types), decode_row(e.file.max_key, types)) for e in table.live())
    assert len(ranges) > 1
    assert all(high < low for (_, high), (low, _) in pairwise(ranges))
    assert table.rows() == rows
    # A second merge into several files of the top level is divided by key: one task for each part.
    table.write(*((number, "newest") for number in range(0, 400, 7)))
    tasks = table.runner.tasks
    table.compact(task_memory=1 << 20)
    assert table.runner.tasks - tasks > 1
    assert table.levels() == [TOP] * len(table.levels())
    assert table.rows() == sorted([row for row in rows if row[0] % 7] + [(n, "newest") for n in range(0, 400, 7)])


def test_force_rewrite_rewrites_a_compacted_bucket(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", compaction__force_rewrite_all_files="true")
    table.write((1, "a"))
    table.compact()
    before = table.names()
    result = table.compact()
    assert (result.status, result.files_rewritten, result.files_written) == ("done", 1, 1)
    assert not before & table.names()
    assert table.levels() == [TOP]


def test_sequence_fields_decide_before_the_order_of_writing(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, version INT, v STRING", sequence__field="version")
    table.write((1, 9, "newest"), (2, 1, "older"))
    table.write((1, 3, "late"), (2, 5, "newest"))
    table.compact()
    (entry,) = table.live()
    assert table.stored(entry).column("v").to_pylist() == ["newest", "newest"]


@pytest.mark.parametrize("thin", ["true", "false"])
def test_files_of_older_schemas_are_rewritten_to_the_newest(tmp_path: Path, thin: str) -> None:
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, a INT, b STRING, c STRING", data_file__thin_mode=thin)
    table.write((1, 10, "b1", "c1"), (2, 20, "b2", "c2"))
    table.alter(AddColumn("d", AtomicType("INT")), DropColumn("b"))
    table.alter(RenameColumn("c", "e"), UpdateColumnType("a", AtomicType("BIGINT")))
    # A new column with the name of the dropped one has none of its values.
    table.alter(AddColumn("b", AtomicType("VARCHAR", length=2147483647)))
    table.write((2, 2**40, "e2", 7, "new"))
    table.compact()
    (entry,) = table.live()
    stored = table.stored(entry)
    keys = [] if thin == "true" else ["_KEY_id"]
    assert stored.column_names == [*keys, "_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "a", "e", "d", "b"]
    assert entry.file.schema_id == table.store.schema.id
    assert table.rows() == [(1, 10, "c1", None, None), (2, 2**40, "e2", 7, "new")]


def test_an_upgraded_file_keeps_its_schema(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    table.alter(AddColumn("d", AtomicType("INT")))
    table.compact()
    (entry,) = table.live()
    assert (entry.file.schema_id, entry.file.level) == (0, TOP)


KEYS = st.integers(0, 12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(st.tuples(KEYS, st.integers(0, 99)), min_size=1, max_size=8)),
        st.tuples(st.just("delete"), st.lists(st.tuples(KEYS, st.none()), min_size=1, max_size=4)),
        st.tuples(st.just("compact"), st.booleans()),
    ),
    min_size=3,
    max_size=14,
)


@examples(15)
@given(steps=STEPS, options=st.sampled_from([{}, {"num_sorted_run__compaction_trigger": "2"}, SMALL_FILES]))
def test_any_history_reads_the_same_whenever_it_is_compacted(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]], options: dict[str, str]
) -> None:
    table = LocalTable(tmp_path_factory.mktemp("history") / "t", "id INT NOT NULL, v INT", **{"bucket": "2", **options})
    expected: dict[object, object] = {}
    for action, argument in steps:
        if action == "compact":
            table.compact(full=bool(argument), commit_every=1)
        else:
            rows: list[Row] = argument  # type: ignore[assignment]
            table.write(*rows, kind=0 if action == "write" else 3)
            for key, value in rows:
                expected[key] = value
        kept = sorted((key, value) for key, value in expected.items() if value is not None)
        assert table.rows() == kept
    table.compact()
    assert table.rows() == kept
    assert set(table.levels()) <= {table.store.options.num_levels - 1}
    assert table.names() <= table.data_files()
