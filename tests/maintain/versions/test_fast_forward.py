"""Fast-forward makes the main branch equal to a branch, also after interrupted runs and if both have own commits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import CommitConflictError, InvalidInputError, TableNotFoundError
from lakelsm.maintain.versions.fast_forward import fast_forward
from lakelsm.schema_changes import AddColumn
from lakelsm.storage import LocalFileIO
from tests.acting_file_io import ActingFileIO, raising
from tests.maintain.versions.branched_table import new_table, put, rows, tag

ADDED = {"w": AddColumn("w", "INT"), "x": AddColumn("x", "STRING")}


def branched(folder: Path) -> tuple[Table, Table]:
    """Create a table with a branch of its second snapshot. The branch has one more commit and one more tag."""
    table = new_table(folder)
    put(table, {1: "a"})
    put(table, {2: "b"})
    tag(table, "t1")
    table.branches.create("b", "t1")
    branch = table.branches.open("b")
    put(branch, {3: "branch"})
    tag(branch, "t2")
    return table, branch


def test_the_table_gets_the_rows_tags_and_schemas_of_the_branch(tmp_path: Path) -> None:
    table, branch = branched(tmp_path)
    Catalog(str(tmp_path)).alter_table("db.t$branch_b", ADDED["w"])
    branch.write(pa.table({"id": pa.array([4], pa.int32()), "v": ["d"], "w": pa.array([1], pa.int32())}))
    result = table.branches.fast_forward("b")
    assert (result.snapshot_id, result.snapshots_added, result.snapshots_removed) == (4, 2, 0)
    assert (result.tags_added, result.tags_removed) == (("t2",), ())
    assert rows(table) == rows(branch) == {1: "a", 2: "b", 3: "branch", 4: "d"}
    assert table.schema == branch.schema
    assert rows(table.at(tag="t2")) == {1: "a", 2: "b", 3: "branch"} and rows(table.at(snapshot=1)) == {1: "a"}
    put_main = pa.table({"id": pa.array([1], pa.int32()), "v": ["main"], "w": pa.array([1], pa.int32())})
    table.write(put_main)
    table.compact(full=True)
    assert rows(table)[1] == "main" and rows(branch)[1] == "a"


def test_later_commits_of_the_table_are_removed(tmp_path: Path) -> None:
    table, _ = branched(tmp_path)
    for number in range(2):
        put(table, {10 + number: "main"})
    tag(table, "mine")
    Catalog(str(tmp_path)).alter_table("db.t", ADDED["x"])
    table.consumers.record("etl", 5)
    result = table.branches.fast_forward("b")
    assert [consumer.next_snapshot_id for consumer in table.consumers.list()] == [4]
    assert (result.snapshot_id, result.snapshots_added, result.snapshots_removed) == (3, 1, 2)
    assert result.tags_removed == ("mine",)
    assert rows(table) == {1: "a", 2: "b", 3: "branch"}
    assert list(table.schema.field_names) == ["id", "v"]
    store = table._store()
    assert (store.snapshots.ids(), store.tags.names(), store.schemas.ids()) == ([1, 2, 3], ["t1", "t2"], [0])
    assert (store.snapshots.earliest_id(), store.snapshots.latest_id()) == (1, 3)
    assert table.branches.fast_forward("b").snapshots_added == 0


def test_schemas_that_changed_on_both_sides_become_those_of_the_branch(tmp_path: Path) -> None:
    table, branch = branched(tmp_path)
    Catalog(str(tmp_path)).alter_table("db.t", ADDED["x"])
    table.write(pa.table({"id": pa.array([7], pa.int32()), "v": ["m"], "x": ["text"]}))
    Catalog(str(tmp_path)).alter_table("db.t$branch_b", ADDED["w"])
    branch.write(pa.table({"id": pa.array([4], pa.int32()), "v": ["d"], "w": pa.array([1], pa.int32())}))
    table.branches.fast_forward("b")
    assert table.to_arrow(ordered=True).to_pylist() == branch.to_arrow(ordered=True).to_pylist()
    assert list(table.schema.field_names) == ["id", "v", "w"]


def test_a_branch_that_was_created_empty_replaces_all_snapshots(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        put(table, {number: "main"})
    table.branches.create("b")
    with pytest.raises(InvalidInputError, match="has no snapshot"):
        table.branches.fast_forward("b")
    put(table.branches.open("b"), {9: "b"})
    assert table.branches.fast_forward("b").snapshots_removed == 3
    assert rows(table) == {9: "b"} and table._store().snapshots.ids() == [1]


def test_older_snapshots_are_removed_if_the_branch_does_not_follow_them(tmp_path: Path) -> None:
    table, branch = branched(tmp_path)
    put(branch, {4: "d"})
    for snapshot_id in (2, 3):
        LocalFileIO().delete(branch._store().paths.snapshot_file(snapshot_id))
    table.branches.fast_forward("b")
    assert table._store().snapshots.ids() == [4]
    assert rows(table) == {1: "a", 2: "b", 3: "branch", 4: "d"}
    assert rows(table.at(tag="t1")) == {1: "a", 2: "b"}


def test_retained_states_keep_their_schemas(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    Catalog(str(tmp_path)).alter_table("db.t", ADDED["x"])
    table.write(pa.table({"id": pa.array([7], pa.int32()), "v": ["m"], "x": ["text"]}))
    tag(table, "mine")
    table.branches.create("b", "mine")
    branch = table.branches.open("b")
    put_more = pa.table({"id": pa.array([8], pa.int32()), "v": ["m"], "x": ["text"]})
    branch.write(put_more)
    LocalFileIO().delete(branch._store().paths.snapshot_file(1))
    paths = branch._store().paths
    Path(paths.schema_file(1)).write_text(Path(paths.schema_file(1)).read_text() + "\n")
    table.branches.fast_forward("b")  # The same schema in other bytes counts as the same schema.
    other = Path(paths.schema_file(1)).read_text().replace('"x"', '"y"')
    Path(paths.schema_file(1)).write_text(other)
    with pytest.raises(InvalidInputError, match="snapshot 1 of the table needs a schema"):
        table.branches.fast_forward("b")
    assert rows(table.at(tag="mine")) == {7: "m"}


def test_a_missing_or_unreadable_branch_changes_nothing(tmp_path: Path) -> None:
    table, branch = branched(tmp_path)
    with pytest.raises(TableNotFoundError):
        table.branches.fast_forward("c")
    with pytest.raises(InvalidInputError):
        table.branches.fast_forward("main")
    path = Path(branch._store().paths.snapshot_file(3))
    path.write_text("{")
    before = rows(table)
    with pytest.raises(Exception, match="snapshot-3"):
        table.branches.fast_forward("b")
    assert rows(table) == before


def before_change(change: int, act: Callable[[], object]) -> ActingFileIO:
    """Return storage that runs ``act`` before the n-th change."""
    return ActingFileIO(act, "create_if_absent", "write", "delete", first=change)


@pytest.mark.parametrize("both_altered", [False, True])
def test_an_interrupted_run_leaves_a_readable_table_and_the_next_run_completes_it(
    tmp_path: Path, both_altered: bool
) -> None:
    folder = tmp_path / "w"
    table, branch = branched(folder)
    for number in range(3):
        put(table, {10 + number: "main"})
    tag(table, "mine")
    Catalog(str(folder)).alter_table("db.t", ADDED["x"])
    if both_altered:
        Catalog(str(folder)).alter_table("db.t$branch_b", ADDED["w"])
        table.write(pa.table({"id": pa.array([7], pa.int32()), "v": ["m"], "x": ["text"]}))
    states = [rows(table.at(snapshot=i)) for i in table._store().snapshots.ids()] + [rows(branch)]
    shutil.copytree(folder, tmp_path / "made")
    for stop in range(40):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "made", folder)
        table = Catalog(str(folder)).table("db.t")
        branch = table.branches.open("b")
        try:
            fast_forward(replace(table._store(), file_io=before_change(stop, raising(OSError("pulled the plug")))), "b")
            finished = True
        except OSError:
            finished = False
            assert rows(table) in states
            hint = folder / "db.db" / "t" / "snapshot" / "LATEST"
            assert not hint.exists() or int(hint.read_text()) <= max(table._store().snapshots.ids())
            for snapshot in table._store().snapshots.list():
                rows(table.at(snapshot=snapshot.id))
            for name in table._store().tags.names():
                rows(table.at(tag=name))
            table.branches.fast_forward("b")
        assert rows(table) == {1: "a", 2: "b", 3: "branch"}
        assert table._store().snapshots.ids() == [1, 2, 3] and table.schema == branch.schema
        if finished:
            break
    assert finished and stop > 6


def test_a_concurrent_commit_is_a_conflict(tmp_path: Path) -> None:
    result = 0
    for at in range(3):
        table, _ = branched(tmp_path / str(at))
        put(table, {10: "main"})
        racing = partial(put, table, {11: "racing"})
        try:
            fast_forward(replace(table._store(), file_io=before_change(at, racing)), "b")
        except CommitConflictError:
            result += 1
            table.branches.fast_forward("b")
            assert rows(table) == {1: "a", 2: "b", 3: "branch"}
    assert result


LONG_LIVED = {"changelog.num-retained.min": 1, "changelog.num-retained.max": 3}


@pytest.mark.parametrize("options", [{}, {"changelog-producer": "input", **LONG_LIVED}], ids=str)
@pytest.mark.parametrize("expires", ["table", "branch"])
def test_neither_side_loses_shared_files_afterwards(
    tmp_path: Path, expires: str, options: dict[str, object]
) -> None:
    table = new_table(tmp_path, **{"write-only": True, **options})
    put(table, {1: "a"})
    tag(table, "t1")
    table.branches.create("b", "t1")
    branch = table.branches.open("b")
    put(branch, {2: "b"})
    put(branch, {2: "c"})
    table.branches.fast_forward("b")
    going, staying = (table, branch) if expires == "table" else (branch, table)
    states = {snapshot_id: rows(staying.at(snapshot=snapshot_id)) for snapshot_id in (1, 2, 3)}
    changes = staying.changelog_reader(1).read_all().num_rows
    for number in range(3):
        put(going, {9: str(number)})
        going.compact(full=True)
        going.maintenance.expire_snapshots(retain_last=1, older_than="0 s")
    going.tags.delete("t1")
    put(going, {11: "later"})
    going.rollback(to=going._store().snapshots.earliest_id())
    assert {number: rows(staying.at(snapshot=number)) for number in (1, 2, 3)} == states
    assert staying.changelog_reader(1).read_all().num_rows == changes
    assert rows(staying.at(tag="t1")) == {1: "a"}
    assert table.maintenance.check().ok


def test_states_that_the_branch_deletes_concurrently_are_not_copied(tmp_path: Path) -> None:
    for at in range(1, 4):
        table, branch = branched(tmp_path / str(at))
        put(branch, {3: "again"})
        branch.compact(full=True)
        going = [
            partial(branch.maintenance.expire_snapshots, retain_last=1, older_than="0 s"),
            partial(branch.tags.delete, "t2"),
        ]

        def delete_states(calls: list[Callable[[], object]] = going) -> None:
            for call in calls:
                call()

        with pytest.raises(CommitConflictError, match="deleted snapshots or tags of the branch"):
            fast_forward(replace(table._store(), file_io=before_change(at, delete_states)), "b")
        for name in table._store().tags.names():
            rows(table.at(tag=name))
        table.branches.fast_forward("b")
        assert rows(table) == rows(branch)
        assert table.maintenance.check().ok
