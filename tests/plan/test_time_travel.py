"""Snapshots by id, time or tag, and ranges of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.moment import Moment
from lakelsm.options import ChangelogProducer
from lakelsm.plan.changelog_plan import ChangelogPlan
from lakelsm.plan.time_travel import ChangelogRange, changelog_range, snapshot_at, state_at
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema_changes import AddColumn
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, file


def at(millis: int) -> Moment:
    return Moment.of_datetime(datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=millis))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    """Snapshots 2 to 5 of times 2000 to 5000 (1 expired) and the tags `low` (2) and `high` (4)."""
    table = CommitTable(tmp_path_factory.mktemp("t"))
    for number in range(1, 6):
        table.append(add(file(f"f{number}", keys=(number, number))))
        snapshot = replace(table.snapshots.get(number), time_millis=number * 1000, extra={})
        table.file_io.write(table.paths.snapshot_file(number), snapshot.to_json().encode())
    for name, number in (("low", 2), ("high", 4), ("gone", 1)):
        text = Path(table.paths.snapshot_file(number)).read_bytes()
        table.file_io.mkdirs(f"{table.root}/tag")
        table.file_io.write(f"{table.root}/tag/tag-{name}", text)
    table.file_io.delete(table.paths.snapshot_file(1))
    return TableStore.open(str(table.root))


@pytest.fixture
def empty(tmp_path: Path) -> TableStore:
    return TableStore.open(str(CommitTable(tmp_path).root))


def chosen(store: TableStore, point: Any) -> int:
    return snapshot_at(store, point).id


def ranged(store: TableStore, start: Any = None, end: Any = None) -> ChangelogRange:
    return changelog_range(store, start, end)


def ids(found: ChangelogRange) -> tuple[int, int | None, int | None]:
    before, after = (None if snapshot is None else snapshot.id for snapshot in (found.before, found.after))
    return found.first, before, after


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (3, 3),
        (at(3999), 3),
        (at(4000), 4),
        (at(999_999), 5),
        ("low", 2),
        ("gone", 1),
    ],
    ids=str,
)
def test_a_snapshot_is_selected_by_id_time_or_tag(
    history: TableStore, how: Any, expected: int
) -> None:
    assert chosen(history, how) == expected


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (1, "snapshot 1 "),
        (6, "snapshot 6"),
        (at(1999), "snapshot"),
        ("nope", "nope"),
    ],
    ids=str,
)
def test_a_missing_snapshot_is_refused(history: TableStore, how: Any, message: str) -> None:
    with pytest.raises(SnapshotNotFoundError, match=message):
        chosen(history, how)


def test_a_table_without_snapshots_has_none_to_select_and_no_changes(empty: TableStore) -> None:
    with pytest.raises(SnapshotNotFoundError):
        chosen(empty, at(10**13))
    found = ranged(empty)
    assert ids(found) == (1, None, None)
    assert found.plan(empty, "auto", None) == found.plan(empty, "diff", None) == ChangelogPlan()


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, (2, None, 5)),
        (3, None, (4, 3, 5)),
        (3, 5, (4, 3, 5)),
        (3, 3, (4, 3, 3)),
        (1, 3, (2, None, 3)),
        ("low", "high", (3, 2, 4)),
        ("gone", "low", (2, 1, 2)),
        (at(2500), at(4999), (3, 2, 4)),
        (at(10), 3, (2, None, 3)),
        (None, "low", (2, None, 2)),
    ],
    ids=str,
)
def test_a_range_begins_after_one_state_and_ends_with_another(
    history: TableStore, start: Any, end: Any, expected: tuple[int, int | None, int]
) -> None:
    assert ids(ranged(history, start, end)) == expected


def test_a_range_whose_start_is_after_its_end_is_refused_with_both_snapshots(history: TableStore) -> None:
    with pytest.raises(InvalidInputError, match=r"start: 4 \(snapshot 4\) is after end 3 \(snapshot 3\)"):
        ranged(history, 4, 3)


@pytest.mark.parametrize("point", [True, 1.5, b"low"], ids=str)
def test_a_point_of_another_kind_is_refused(history: TableStore, point: Any) -> None:
    for points in ((point, None), (None, point), (point, point)):
        with pytest.raises(InvalidInputError, match="expected a snapshot id, a tag name or a datetime, got"):
            ranged(history, *points)


def names(plan: ChangelogPlan) -> set[str]:
    scanned = {found.name for _, files in plan.scanned for found in files}
    return scanned | {part.name for compared in plan.compared for part in compared.unit.files}


def test_a_range_between_two_tags_is_compared_and_any_other_reads_appended_rows(history: TableStore) -> None:
    plan = ranged(history, "low", "high").plan(history, "auto", None)
    assert (bool(plan.compared), bool(plan.scanned), names(plan)) == (True, False, {"f3", "f4"})
    plan = ranged(history, 2, 4).plan(history, "auto", None)
    assert (bool(plan.compared), bool(plan.scanned), names(plan)) == (False, True, {"f3", "f4"})
    assert names(ranged(history, "low", "high").plan(history, "delta", None)) == {"f3", "f4"}
    assert names(ranged(history).plan(history, "auto", None)) == {"f2", "f3", "f4", "f5"}


def test_an_unknown_mode_is_refused_even_of_a_table_without_snapshots(history: TableStore, empty: TableStore) -> None:
    for store in (history, empty):
        with pytest.raises(InvalidInputError, match="mode: expected one of 'auto'"):
            ranged(store).plan(store, "all", None)


def test_a_difference_whose_first_state_expired_says_where_to_start(history: TableStore) -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"the state before snapshot 2 has expired. Start at 2 or later"):
        ranged(history, 1, 4).plan(history, "diff", None)
    assert names(ranged(history, 2, 4).plan(history, "diff", None)) == {"f3", "f4"}


def test_time_travel_has_the_columns_of_the_snapshot(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(add(file("f1", keys=(1, 1))))
    old = TableStore.open(str(table.root))
    changed = apply_changes(old.schema, [AddColumn("later", "INT")], 0)
    new = replace(old, schema=old.schemas.change(lambda schema: changed))
    assert new.schema == changed
    for point in (1, at(10**13)):
        store, snapshot = state_at(new, point)
        assert (snapshot.id, store.schema) == (1, old.schema)


@pytest.fixture(params=["input", "none"])
def outlived(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """Seven commits; snapshots 6 and 7 and the changelogs from 2 on are retained."""
    options = {
        "bucket": "1",
        "write-only": "true",
        "changelog-producer": request.param,
        "snapshot.num-retained.min": "2",
        "changelog.num-retained.min": "6",
        "changelog.num-retained.max": "6",
    }
    table = Catalog(str(tmp_path)).create_table(
        "db.t", "id INT NOT NULL, v STRING", primary_key=["id"], options=options
    )
    for number in range(1, 8):
        table.write(pa.table({"id": pa.array([number], pa.int32()), "v": [f"v{number}"]}))
    done = table.maintenance.expire_snapshots(retain_last=2)
    assert (done.snapshots, done.changelogs_kept) == (5, 4)
    return table


def test_changelogs_that_outlive_their_snapshots_are_read(outlived: Table) -> None:
    def ids(start: Any, end: Any = None) -> list[int]:
        return sorted(outlived.changelog_reader(start, end).read_all()["id"].to_pylist())

    assert ids(1) == [2, 3, 4, 5, 6, 7]
    assert ids(1, 3) == [2, 3]
    assert ids(4, 6) == [5, 6]
    assert ids(6) == [7]
    assert ids(None) == [6, 7], "without a start: the retained snapshots"
    with pytest.raises(SnapshotNotFoundError, match="snapshot 0 does not exist"):
        ids(0)
    with pytest.raises(SnapshotNotFoundError):
        outlived.at(snapshot=3).to_arrow()


def test_times_before_all_snapshots_mean_the_changelogs_that_are_kept(outlived: Table) -> None:
    store = TableStore.open(str(outlived._opened.paths.root))
    third, fourth = (store.changelogs.try_get(number) for number in (3, 4))
    assert third is not None and fourth is not None
    following = changelog_range(store, at(third.time_millis), None)
    assert (following.first, following.before) == (4, None)
    everything = changelog_range(store, at(5), None)
    assert everything.first == 2
    until = changelog_range(store, 1, at(fourth.time_millis))
    assert until.after is not None and (until.after.id, until.expired) == (4, True)


def test_the_error_for_an_expired_changelog_gives_the_reason(outlived: Table) -> None:
    with pytest.raises(SnapshotNotFoundError, match="the state before snapshot 2 has expired"):
        outlived.changelog_reader(1, 4, mode="diff").read_all()
    store = TableStore.open(str(outlived._opened.paths.root))
    within = changelog_range(store, 1, 4)
    with pytest.raises(SnapshotNotFoundError, match="snapshot 4 has expired and only its changelog is kept"):
        replace(within, first=1).plan(store, "diff", None)
    if store.options.changelog_producer is ChangelogProducer.INPUT:
        with pytest.raises(SnapshotNotFoundError, match=r"not the rows that it appended\. Use mode 'changelog'"):
            outlived.changelog_reader(1, 4, mode="delta").read_all()
