"""The buckets that a compaction includes, from metadata alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.commit.commit_message import CommitMessage
from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.lsm.levels import FileRange
from lakelsm.plan.compaction_plan import (
    FULL_COMPACTION_PROPERTY,
    CompactionPlan,
    CompactionScope,
    checked_scope,
    commits_since_full_compaction,
    plan_bucket,
    plan_table,
    scope_after_write,
)
from lakelsm.predicate.parser import parse_where
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from tests.commit.commit_table import CommitTable, add, file, partition
from tests.compact.local_table import LocalTable
from tests.option_keys import option_keys

HOUR = 3_600_000


def table_of(root: Path, days: str = "abc", buckets: int = 2, **options: str) -> TableStore:
    """Each day and bucket has two overlapping runs on level 0; a day is one commit, so it has its own manifests."""
    keys = option_keys(options)
    table = CommitTable(root, options={"bucket": str(buckets), **keys})
    for day in days:
        pairs = [(file(seq=(0, 9)), file(seq=(10, 19))) for _ in range(buckets)]
        entries = [add(meta, dt=day, bucket=at, total=buckets) for at, pair in enumerate(pairs) for meta in pair]
        message = CommitMessage(entries, base_snapshot_id=table.snapshots.latest_id())
        table.committer().commit(CommitKind.APPEND, message, "u")
    return TableStore.open(str(root))


def plan(store: TableStore, scope: CompactionScope, now: int = 0) -> CompactionPlan:
    snapshot = store.snapshots.latest()
    assert snapshot is not None
    return plan_table(store, snapshot, scope, now)


def chosen(store: TableStore, scope: CompactionScope) -> list[tuple[object, int]]:
    found = plan(store, scope).buckets
    return [(store.partition_values(bucket.partition)["dt"], bucket.bucket) for bucket in found]


def runs(*levels: int, created: int | None = None) -> list[FileRange]:
    """One overlapping file on each level, older on higher levels, each ten times as large as the one above."""
    size = len(levels)
    return [
        FileRange(
            at,
            level,
            10 ** (3 + at),
            10,
            min_key=0,
            max_key=9,
            min_seq=10 * (size - at),
            max_seq=10 * (size - at) + 9,
            delete_rows=0,
            creation_time=created,
            name=str(at),
        )
        for at, level in enumerate(levels)
    ]


def test_every_bucket_is_planned_in_the_order_of_partitions(tmp_path: Path) -> None:
    store = table_of(tmp_path)
    assert chosen(store, CompactionScope(full=True)) == [(day, bucket) for day in "abc" for bucket in (0, 1)]
    assert plan(store, CompactionScope(full=False)).buckets == (), "two runs start no ordinary compaction"


def test_only_buckets_with_a_number_of_runs_are_planned(tmp_path: Path) -> None:
    store = table_of(tmp_path, "a")
    for runs, found in ((2, [("a", 0), ("a", 1)]), (3, [])):
        assert chosen(store, CompactionScope(full=True, min_runs=runs)) == found


def test_planned_files_are_indexes_into_the_entries_of_the_plan(tmp_path: Path) -> None:
    found = plan(table_of(tmp_path), CompactionScope(full=True))
    for bucket in found.buckets:
        assert len(bucket.rewritten_files) == 2
        for planned in bucket.rewritten_files:
            entry = found.entries[planned.index]
            assert (entry.partition, entry.bucket) == (bucket.partition, bucket.bucket)
            assert (entry.file.file_name, entry.file.row_count) == (planned.name, planned.row_count)


@pytest.mark.parametrize(
    ("where", "days"),
    [
        ("dt = 'b'", "b"),
        ("dt < 'c'", "ab"),
        ("dt in ('a', 'c', 'x')", "ac"),
        ("dt = 'a' or dt = 'c'", "ac"),
        ("not dt = 'a'", "bc"),
        ("dt is null", ""),
        ("dt = 'x'", ""),
    ],
)
def test_a_condition_selects_partitions(tmp_path: Path, where: str, days: str) -> None:
    store = table_of(tmp_path)
    scope = CompactionScope(True, partitions=parse_where(where, store.schema.fields, "UTC"))
    assert chosen(store, scope) == [(day, bucket) for day in days for bucket in (0, 1)]


def test_bucket_numbers_select_buckets_of_every_partition(tmp_path: Path) -> None:
    store = table_of(tmp_path)
    assert chosen(store, CompactionScope(True, buckets=frozenset({1, 7}))) == [("a", 1), ("b", 1), ("c", 1)]
    both = CompactionScope(True, partitions=parse_where("dt > 'a'", store.schema.fields, "UTC"), buckets=frozenset({0}))
    assert chosen(store, both) == [("b", 0), ("c", 0)]


def test_named_buckets_are_planned_without_the_manifests_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = table_of(tmp_path)
    opened: list[str] = []
    read = LocalFileIO.read

    def counted(file_io: LocalFileIO, path: str, limit: int | None = None) -> bytes:
        if "/manifest-" in path and "list" not in path:
            opened.append(path)
        return read(file_io, path, limit)

    monkeypatch.setattr(LocalFileIO, "read", counted)
    only = frozenset({(partition("b"), 1)})
    assert chosen(store, CompactionScope(True, only=only)) == [("b", 1)]
    assert len(opened) == 1


def test_a_postponed_bucket_is_not_compacted(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    entries = [add(file(seq=(0, 9)), bucket=-2), add(file(seq=(10, 19)), bucket=-2)]
    table.committer().commit(CommitKind.APPEND, CommitMessage(entries), "u")
    assert plan(TableStore.open(str(tmp_path)), CompactionScope(full=True)).buckets == ()


def test_an_ordinary_pick_follows_the_tables_options(tmp_path: Path) -> None:
    eager = table_of(tmp_path / "eager", num_sorted_run__compaction_trigger="2")
    assert len(plan(eager, CompactionScope(full=False)).buckets) == 6
    tiny = table_of(tmp_path / "tiny", compaction__total_size_threshold="1 mb")
    assert len(plan(tiny, CompactionScope(full=False)).buckets) == 6


def test_the_optimization_interval_counts_from_the_newest_file_of_the_top_level(tmp_path: Path) -> None:
    store = table_of(tmp_path, compaction__optimization_interval="1 h")
    files = runs(0, 5, created=10 * HOUR)
    assert plan_bucket(store, files, False, 11 * HOUR) is None
    due = plan_bucket(store, files, False, 11 * HOUR + 1)
    assert due is not None and due.output_level == 5


def test_deletes_are_dropped_only_if_no_level_below_has_older_rows(tmp_path: Path) -> None:
    store = table_of(tmp_path, num_sorted_run__compaction_trigger="2", compaction__size_ratio="0")
    files = [
        *runs(0, 0),
        FileRange(
            2, 5, 10**9, 10, min_key=0, max_key=9, min_seq=0, max_seq=9, delete_rows=0, creation_time=None, name="oldest"
        ),
    ]
    partial = plan_bucket(store, files, False, 0)
    assert partial is not None and (partial.output_level, partial.drop_delete) == (4, False)
    full = plan_bucket(store, files, True, 0)
    assert full is not None and (full.output_level, full.drop_delete) == (5, True)


def test_a_file_above_the_configured_levels_is_the_top_level(tmp_path: Path) -> None:
    store = table_of(tmp_path, num_levels="3")
    full = plan_bucket(store, runs(0, 7), True, 0)
    assert full is not None and (full.output_level, full.drop_delete) == (7, True)


def test_a_compacted_bucket_is_left_out_unless_a_rewrite_is_forced(tmp_path: Path) -> None:
    assert plan_bucket(table_of(tmp_path / "usual"), runs(5), True, 0) is None
    forced = table_of(tmp_path / "forced", compaction__force_rewrite_all_files="true")
    again = plan_bucket(forced, runs(5), True, 0)
    assert again is not None and [file.name for group in again.rewrites for file in group.files] == ["0"]


@pytest.mark.parametrize("where", ["id = 1", "dt = 'a' OR id = 1", "length(dt) > 1"])
def test_a_condition_that_does_not_select_whole_partitions_is_refused(tmp_path: Path, where: str) -> None:
    store = table_of(tmp_path)
    predicate = parse_where(where, store.schema.fields, "UTC")
    with pytest.raises(InvalidInputError, match=r"a compaction selects whole partitions.*partition columns \(dt\)"):
        checked_scope(store, True, predicate, None)


def test_a_scope_has_the_requested_buckets_and_partitions_if_they_exist(tmp_path: Path) -> None:
    store = table_of(tmp_path)
    predicate = parse_where("dt = 'a'", store.schema.fields, "UTC")
    assert checked_scope(store, False, None, None) == CompactionScope(False)
    wanted = CompactionScope(True, partitions=predicate, buckets=frozenset({1}))
    assert checked_scope(store, True, predicate, frozenset({1})) == wanted
    with pytest.raises(InvalidInputError, match=rf"buckets: 2, 9 do not exist\. Table {tmp_path} has the buckets 0 to 1"):
        checked_scope(store, True, None, frozenset({0, 2, 9}))


def test_any_bucket_of_a_table_with_dynamic_buckets_may_be_named(tmp_path: Path) -> None:
    store = TableStore.open(str(CommitTable(tmp_path, options={"bucket": "-1"}).root))
    assert checked_scope(store, True, None, frozenset({99})).buckets == {99}


WRITTEN = frozenset([(b"", 0)])


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    table = CommitTable(tmp_path / "t")
    table.append(add())
    return table.snapshots.get(1)


def test_commits_are_counted_back_to_the_last_full_compaction(snapshot: Snapshot) -> None:
    overwrite = replace(snapshot, commit_kind=CommitKind.OVERWRITE)
    compaction = replace(snapshot, commit_kind=CommitKind.COMPACT)
    full = replace(compaction, properties={FULL_COMPACTION_PROPERTY: "true"}).signed()
    assert commits_since_full_compaction([snapshot, compaction, overwrite, full, snapshot]) == 2
    assert commits_since_full_compaction([]) == 0


@pytest.mark.parametrize(
    ("options", "full", "whole"),
    [
        ({}, False, False),
        ({"full_compaction__delta_commits": "2"}, True, True),
        ({"full_compaction__delta_commits": "3"}, False, False),
        ({"changelog_producer": "full-compaction"}, True, False),
        ({"changelog_producer": "full-compaction", "full_compaction__delta_commits": "3"}, False, False),
    ],
)
def test_the_scope_after_two_commits_follows_the_options(
    tmp_path: Path, options: dict[str, str], full: bool, whole: bool
) -> None:
    table = LocalTable(tmp_path / "t", **options)
    table.write((1, "a"))
    table.write((1, "b"))
    scope = scope_after_write(table.store, WRITTEN)
    assert scope == CompactionScope(full, only=None if whole else WRITTEN)


@pytest.mark.parametrize(("option", "gentle"), [({}, False), ({"lookup_compact": "gentle"}, True)])
def test_level_0_may_wait_after_a_write_in_a_gentle_table(
    tmp_path: Path, option: dict[str, str], gentle: bool
) -> None:
    table = LocalTable(tmp_path / "t", **option)
    table.write((1, "a"))
    assert scope_after_write(table.store, WRITTEN).gentle is gentle


def compact_after_write(table: LocalTable) -> list[int]:
    """Return the levels of the files after the compaction that follows a write."""
    (written,) = {(entry.partition, entry.bucket) for entry in table.live()}
    table.compact(scope=scope_after_write(table.store, [written]))
    return table.levels()


def test_a_gentle_table_compacts_level_0_by_an_ordinary_rule_or_on_request(tmp_path: Path) -> None:
    options = {"deletion_vectors__enabled": "true", "num_sorted_run__compaction_trigger": "3"}
    table = LocalTable(tmp_path / "t", **options, lookup_compact="gentle")
    table.write(*((number, "a") for number in range(3_000)))
    table.compact()
    (top,) = table.levels()
    table.write((1, "b"))
    assert compact_after_write(table) == [0, top]
    table.write((2, "b"))
    assert compact_after_write(table) == [top - 1, top], "two runs of like size"
    table.write((3, "b"))
    table.compact(full=False)
    assert 0 not in table.levels()


@pytest.mark.parametrize(("interval", "waits"), [({}, True), ({"lookup_compact__max_interval": "1"}, False)])
def test_a_gentle_table_waits_for_a_maximum_number_of_files(
    tmp_path: Path, interval: dict[str, str], waits: bool
) -> None:
    """It also waits for at least as many files as the ordinary trigger, whatever the option says."""
    options = {"deletion_vectors__enabled": "true", "num_sorted_run__compaction_trigger": "3"}
    table = LocalTable(tmp_path / "t", **options, lookup_compact="gentle", **interval)
    for count in (30_000, 3_000, 1):
        assert table.levels() == [0] * len(table.levels())
        table.write(*((number, f"{count}") for number in range(count)))
        levels = compact_after_write(table)
    assert (levels == [0, 0, 0]) is waits
    assert 0 not in levels or waits
