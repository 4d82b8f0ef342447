"""Branches: created empty or from a tag, opened, renamed, deleted. Each branch works as a separate table."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, LakelsmError, Table
from lakelsm.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidInputError,
    SnapshotNotFoundError,
    TableNotFoundError,
)
from lakelsm.maintain.versions.branches import create_branch, delete_branch, rename_branch
from lakelsm.schema_changes import AddColumn
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from tests.acting_file_io import ALWAYS, ActingFileIO, raising
from tests.maintain.versions.branched_table import new_table, put, rows, tag


def test_a_branch_of_a_tag_starts_with_its_rows_and_then_has_its_own(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a", 2: "b"})
    tag(table, "t1")
    put(table, {3: "main"})
    table.branches.create("audit", tag="t1")
    audit = table.branches.open("audit")
    assert (audit.name, rows(audit)) == ("db.t$branch_audit", {1: "a", 2: "b"})
    put(audit, {1: "changed", 4: "audit"})
    assert rows(audit) == {1: "changed", 2: "b", 4: "audit"}
    assert rows(table) == {1: "a", 2: "b", 3: "main"}
    assert rows(audit.at(tag="t1")) == {1: "a", 2: "b"}
    assert audit.branches.open("main").name == "db.t"
    [info] = table.branches.list()
    assert (info.name, info.schema_id, info.snapshot_id) == ("audit", 0, 2)
    assert info.created is not None and abs(info.created - datetime.now(timezone.utc)).total_seconds() < 600


def test_an_empty_branch_has_all_schemas_and_no_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    Catalog(str(tmp_path)).alter_table("db.t", AddColumn("w", "INT"))
    table.branches.create("b")
    branch = table.branches.open("b")
    assert branch.schema == table.schema
    assert branch.count().rows == 0
    put_w = pa.table({"id": pa.array([1], pa.int32()), "v": ["b"], "w": pa.array([5], pa.int32())})
    branch.write(put_w)
    assert branch.to_arrow().to_pylist() == [{"id": 1, "v": "b", "w": 5}]
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": "a", "w": None}]


def test_a_branch_has_the_rows_of_its_tag_if_the_snapshot_expired_or_was_replaced(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    tag(table, "t1")
    paths = table._store().paths
    LocalFileIO().delete(paths.snapshot_file(1))
    LocalFileIO().delete(paths.latest_hint)
    put(table, {1: "another"})
    table.branches.create("b", "t1")
    assert rows(table.branches.open("b")) == {1: "a"}


def test_changes_of_a_branch_do_not_change_the_table(tmp_path: Path) -> None:
    table = new_table(tmp_path, **{"changelog-producer": "input"})
    put(table, {1: "a", 2: "b"})
    tag(table, "t1")
    table.branches.create("b", "t1")
    branch = table.branches.open("b")
    branch.delete("id = 1")
    put(branch, {5: "e"})
    branch.compact(full=True)
    Catalog(str(tmp_path)).alter_table("db.t$branch_b", AddColumn("w", "INT"))
    assert (len(branch.schema.fields), len(table.schema.fields)) == (3, 2)
    assert branch.to_arrow(ordered=True).to_pydict()["id"] == [2, 5]
    assert rows(table) == {1: "a", 2: "b"}
    changes = branch.changelog_reader(1, kind_column="kind").read_all().to_pydict()
    assert sorted(zip(changes["kind"], changes["id"])) == [("+I", 5), ("-D", 1)]
    status = branch.inspect.status()
    assert (status.table, status.files) == ("db.t$branch_b", 1)
    branch.overwrite(pa.table({"id": pa.array([9], pa.int32()), "v": ["z"], "w": pa.array([1], pa.int32())}))
    assert branch.to_arrow().to_pydict()["id"] == [9]
    assert rows(table) == {1: "a", 2: "b"}


def test_lookups_of_a_branch_and_the_table_share_no_cache(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    tag(table, "t1")
    table.branches.create("b", "t1")
    branch = table.branches.open("b")
    put(branch, {1: "branch"})
    put(table, {1: "main"})
    for cache in ("full", "partial"):
        kept = tmp_path / f"caches-{cache}"
        with table.lookup(cache=cache, directory=kept) as ours, branch.lookup(cache=cache, directory=kept) as theirs:
            assert (ours.get(1), theirs.get(1)) == ({"id": 1, "v": "main"}, {"id": 1, "v": "branch"})


def test_a_catalog_opens_branches_by_name_and_creates_none(tmp_path: Path) -> None:
    catalog, table = Catalog(str(tmp_path)), new_table(tmp_path)
    table.branches.create("v1.0")
    put(catalog.table("db.t$branch_v1.0"), {1: "a"})
    assert rows(catalog.table("db.t$branch_v1.0")) == {1: "a"} and rows(catalog.table("db.t")) == {}
    assert catalog.list_tables("db") == ["db.t"]
    with pytest.raises(TableNotFoundError, match=r"branch 'x' does not exist\. Branches: main, v1\.0"):
        catalog.table("db.t$branch_x")
    with pytest.raises(TableNotFoundError, match=r"Table db\.u does not exist. The database has db\.t"):
        catalog.table("db.u$branch_x")
    for name in ("db.t$files", "db.t$branch_b$files"):
        with pytest.raises(InvalidInputError, match="system table"):
            catalog.table(name)
    with pytest.raises(InvalidInputError, match=r"branches\.create"):
        catalog.drop_table("db.t$branch_v1.0")
    with pytest.raises(InvalidInputError, match=r"branches\.create"):
        catalog.create_table("db.t$branch_y", "k INT", primary_key=["k"])


@pytest.mark.parametrize("name", ["main", " ", "12", "a/b", "a$b", "a\0b", "x" * 249, "", "\ud800", 7, None])
def test_names_that_paimon_refuses_or_cannot_open_are_refused(tmp_path: Path, name: object) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidInputError, match=r"^name: "):
        table.branches.create(name)  # type: ignore[arg-type]
    assert table.branches.list() == []


@pytest.mark.parametrize("name", ["..", ".", "ä b", "x" * 248, "branch_b", "1.0", "it's", "%20"])
def test_unusual_names_are_accepted(tmp_path: Path, name: str) -> None:
    table = new_table(tmp_path)
    table.branches.create(name)
    put(table.branches.open(name), {1: "a"})
    assert rows(Catalog(str(tmp_path)).table(f"db.t$branch_{name}")) == {1: "a"}
    assert [info.name for info in table.branches.list()] == [name] and rows(table) == {}
    table.branches.delete(name)
    assert table.branches.list() == []


def test_an_impossible_creation_or_deletion_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    table.branches.create("b")
    branch = table.branches.open("b")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    wrong = [
        (lambda: table.branches.create("b"), InvalidInputError, "branch 'b' already exists"),
        (lambda: table.branches.create("c", tag="none"), SnapshotNotFoundError, "tag 'none'"),
        (lambda: branch.branches.create("c"), InvalidInputError, "is a branch. To create a branch, open"),
        (lambda: branch.branches.delete("b"), InvalidInputError, "is a branch"),
        (lambda: branch.branches.rename("b", "c"), InvalidInputError, "is a branch"),
        (lambda: branch.branches.fast_forward("b"), InvalidInputError, "is a branch"),
        (lambda: table.branches.delete("c"), TableNotFoundError, "branch 'c' does not exist. Branches: b"),
        (lambda: table.branches.rename("c", "d"), TableNotFoundError, "branch 'c' does not exist"),
        (lambda: table.branches.rename("b", "main"), InvalidInputError, "new_name: .*'main' is the table itself"),
        (lambda: table.branches.rename("b", "b"), InvalidInputError, "exists"),
        (lambda: table.branches.open("c"), TableNotFoundError, "Branches: main, b"),
    ]
    for call, kind, text in wrong:
        with pytest.raises(kind, match=text):
            call()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    table.branches.create("b", ignore_if_exists=True)  # It leaves only its record.
    now = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert all("service" in path.parts for path, _ in now.items() ^ before.items())


def test_a_branch_is_renamed_with_its_history(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    tag(table, "t1")
    table.branches.create("b", "t1")
    put(table.branches.open("b"), {2: "b"})
    table.branches.rename("b", "c")
    assert [info.name for info in table.branches.list()] == ["c"]
    assert rows(table.branches.open("c")) == {1: "a", 2: "b"} and rows(table.branches.open("c").at(tag="t1")) == {1: "a"}


def stopping(changes: int) -> ActingFileIO:
    """Return storage that fails from the n-th change on."""
    stop = raising(OSError("pulled the plug"))
    return ActingFileIO(stop, "create_if_absent", "delete", "delete_dir", first=changes, times=ALWAYS)


def _two_schemas(tmp_path: Path) -> Table:
    """Create a table with a tag of its second schema."""
    table = new_table(tmp_path)
    put(table, {1: "a"})
    Catalog(str(tmp_path)).alter_table("db.t", AddColumn("w", "INT"))
    table.write(pa.table({"id": pa.array([2], pa.int32()), "v": ["b"], "w": pa.array([5], pa.int32())}))
    tag(table, "t1")
    return table


@pytest.mark.parametrize("tagged", [True, False])
def test_an_interrupted_creation_leaves_no_branch_and_can_be_completed_or_deleted(
    tmp_path: Path, tagged: bool
) -> None:
    table, of = _two_schemas(tmp_path), "t1" if tagged else None
    stopped, made = 0, False
    while not made:
        for completes in (True, False):
            store = replace(table._store(), file_io=stopping(stopped))
            try:
                create_branch(store, "b", of)
                made = True
                break
            except OSError:
                pass
            assert not store.branches.is_whole("b")
            with pytest.raises(TableNotFoundError):
                table.branches.open("b")
            assert table.maintenance.expire_snapshots(retain_last=1, dry_run=True).snapshots == 1
            left = "b" in store.branches.names()
            assert [finding.rule for finding in table.maintenance.check().findings] == ["branch-unfinished"] * left
            if left:
                [info] = table.branches.list()
                assert info.schema_id is None and info.created is None
                if tagged and stopped < 3:
                    with pytest.raises(InvalidInputError, match="is incomplete"):
                        table.branches.create("b")
            if completes:
                table.branches.create("b", of, ignore_if_exists=stopped % 2 == 0)
                assert table.branches.open("b").count().rows == (2 if tagged else 0)
                assert not table.maintenance.check().findings
            if completes or left:
                table.branches.delete("b")
        stopped += 1
    assert stopped == (5 if tagged else 3)


def test_an_interrupted_deletion_leaves_a_branch_or_none_and_can_be_completed(tmp_path: Path) -> None:
    table = _two_schemas(tmp_path)
    for stop in range(3):
        table.branches.create("b", "t1")
        table.branches.open("b").overwrite(table.to_arrow())
        with pytest.raises(OSError):
            delete_branch(replace(table._store(), file_io=stopping(stop)), "b")
        if stop < 2:
            assert table.branches.open("b").count().rows == 2 and not table.maintenance.check().findings
        else:
            with pytest.raises(TableNotFoundError):
                table.branches.open("b")
            assert [finding.rule for finding in table.maintenance.check().findings] == ["branch-unfinished"]
            with pytest.raises(InvalidInputError, match="is incomplete"):
                table.branches.create("b")
        table.branches.delete("b")
        assert not (tmp_path / "db.db/t/branch/branch-b").exists()
        table.maintenance.remove_orphans(0, force=True)  # A deletion leaves the files that only the branch named.


def test_a_branch_that_is_deleted_during_its_creation_does_not_exist(tmp_path: Path) -> None:
    table = _two_schemas(tmp_path)

    root = tmp_path / "db.db/t/branch/branch-b"

    def delete() -> None:  # The other process has already listed the files to delete.
        for name in ("snapshot/snapshot-2", "tag/tag-t1"):
            (root / name).unlink()

    deleting = ActingFileIO(delete, "create_if_absent", path="schema-0$", after=True)
    with pytest.raises(CommitConflictError, match="another process deleted branch 'b' during its creation"):
        create_branch(replace(table._store(), file_io=deleting), "b", "t1")
    assert not root.exists()
    making = ActingFileIO(lambda: table.branches.create("b", "t1"), "delete_dir", after=True)
    table.branches.create("b", "t1")
    delete_branch(replace(table._store(), file_io=making), "b")
    assert making.acted and not root.exists()


def test_of_two_creations_of_one_branch_one_is_refused_unless_it_ignores_existing_branches(tmp_path: Path) -> None:
    table = _two_schemas(tmp_path)

    def racing() -> TableStore:  # The other process continues at the same step.
        make = ActingFileIO(lambda: table.branches.create("b", "t1"), "create_if_absent", path="schema-0$")
        return replace(table._store(), file_io=make)

    with pytest.raises(InvalidInputError, match=r"branch 'b' already exists\. "):
        create_branch(racing(), "b", "t1")
    assert table.branches.open("b").count().rows == 2
    table.branches.delete("b")
    create_branch(racing(), "b", "t1", ignore_if_exists=True)
    assert table.branches.open("b").count().rows == 2 and not table.maintenance.check().findings


def test_an_interrupted_rename_keeps_the_branch_and_can_be_completed(tmp_path: Path) -> None:
    table = _two_schemas(tmp_path)
    table.branches.create("b", "t1")
    table.branches.open("b").overwrite(table.to_arrow())
    for stop in range(5):
        with pytest.raises(OSError):
            rename_branch(replace(table._store(), file_io=stopping(stop)), "b", "c")
        assert table.branches.open("b").count().rows == 2
        assert [finding.rule for finding in table.maintenance.check().findings] == ["branch-unfinished"] * (stop > 0)
    table.branches.rename("b", "c")
    assert [info.name for info in table.branches.list()] == ["c"] and table.branches.open("c").count().rows == 2
    assert not table.maintenance.check().findings


def test_if_its_tag_is_deleted_concurrently_no_branch_is_created(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    tag(table, "t1")
    store = table._store()
    untagging = ActingFileIO(lambda: store.file_io.delete(store.paths.tag("t1")), "create_if_absent", after=True)
    with pytest.raises(CommitConflictError, match="deleted or replaced"):
        create_branch(replace(store, file_io=untagging), "b", "t1")
    assert table.branches.list() == []


def test_of_two_concurrent_creations_from_different_tags_at_least_one_fails(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    tag(table, "t1")
    put(table, {1: "b"})
    tag(table, "t2")
    store = table._store()
    branch = store.paths.of_branch("b")
    store.file_io.create_if_absent(branch.tag("t2"), store.file_io.read(store.paths.tag("t2")))
    with pytest.raises(LakelsmError, match="is incomplete"):
        table.branches.create("b", "t1")
    store.file_io.delete_dir(branch.branch_root)
    snapshot = store.file_io.read(store.paths.snapshot_file(2))
    racing = ActingFileIO(
        lambda: store.file_io.create_if_absent(branch.snapshot_file(2), snapshot), "create_if_absent"
    )
    with pytest.raises(InvalidInputError, match=r"with other content\. Delete it"):
        create_branch(replace(store, file_io=racing), "b", "t1")


@pytest.mark.parametrize("file", ["snapshot/snapshot-1", "snapshot/snapshot-2", "tag/tag-own"])
def test_a_rename_of_an_unreadable_branch_changes_nothing(tmp_path: Path, file: str) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    table.tags.create("q")
    table.branches.create("b", tag="q")
    branch = table.branches.open("b")
    put(branch, {2: "b"})
    branch.tags.create("own")
    store = table._store()
    path = Path(branch._store().paths.branch_root) / file
    path.unlink()
    path.symlink_to(path.name)
    before = {found for found in tmp_path.rglob("*") if found.parent.name != "service"}
    with pytest.raises(CorruptTableError, match=path.name):
        rename_branch(store, "b", "c")
    assert {found for found in tmp_path.rglob("*") if found.parent.name != "service"} == before


def test_a_table_without_its_first_schema_creates_no_branch(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    put(table, {1: "a"})
    table.tags.create("q")
    store = table._store()
    Path(store.paths.schema_file(0)).unlink()
    for tag_name in (None, "q"):
        with pytest.raises(CorruptTableError, match="schema-0 does not exist"):
            create_branch(store, "b", tag_name)
    assert list(store.branches.names()) == []
