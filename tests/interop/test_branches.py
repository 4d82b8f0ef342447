"""Branches and partitions of Java Paimon and lakelsm: each reads and continues those of the other."""

from __future__ import annotations

from pathlib import Path

from lakelsm import Table
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon, Peer
from tests.interop.samples import rows_of

COLUMNS = "dt STRING NOT NULL, k INT, v STRING"


def made(engine: Peer, path: Path) -> Table:
    """Create a table with two partitions and the tag t1."""
    engine.create(path, COLUMNS, ["dt", "k"], ["dt"], options={"bucket": "1"})
    engine.write(path, rows_of(COLUMNS, {"dt": ["x", "y"], "k": [1, 1], "v": ["a", "b"]}))
    table = Table.for_path(str(path))
    table.tags.create("t1")
    return table


def one(day: str, value: str) -> object:
    return rows_of(COLUMNS, {"dt": [day], "k": [2], "v": [value]})


def held(table: Table) -> list[tuple[object, ...]]:
    """Return the rows that lakelsm reads, also those of a fallback branch."""
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def test_java_continues_branches_of_lakelsm(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    table = made(ours, path)
    table.branches.create("b", "t1")
    branch = table.branches.open("b")
    branch.write(one("x", "ours"))
    java.write(path, one("y", "java"), branch="b")  # type: ignore[arg-type]
    branch.compact(full=True)
    both = [("x", 1, "a"), ("x", 2, "ours"), ("y", 1, "b"), ("y", 2, "java")]
    assert java.read(path, branch="b") == both
    assert branch.to_arrow(ordered=True).num_rows == 4 and java.read(path) == [both[0], both[2]]
    table.branches.create("empty")
    assert java.read(path, branch="empty") == []
    ours.write(path, one("x", "lost"))  # type: ignore[arg-type]
    table.branches.fast_forward("b")
    assert java.read(path) == ours.read(path) == both
    java.write(path, one("x", "after"))  # type: ignore[arg-type]
    table.maintenance.drop_partitions("dt = 'y'")
    table.maintenance.mark_partitions_done()
    assert java.read(path) == ours.read(path) == [both[0], ("x", 2, "after")]
    java.write(path, one("y", "again"))  # type: ignore[arg-type]
    assert java.read(path) == ours.read(path)
    table.branches.rename("b", "c")
    assert java.read(path, branch="c") == both
    java.branch(path, "delete", "c")
    assert [info.name for info in table.branches.list()] == ["empty"]


def test_lakelsm_continues_branches_of_java(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    table = made(java, path)
    java.branch(path, "create", "b", "t1")
    java.branch(path, "create", "empty")
    java.write(path, one("x", "java"), branch="b")  # type: ignore[arg-type]
    branch = table.branches.open("b")
    assert sorted(branch.to_arrow()["v"].to_pylist()) == ["a", "b", "java"]
    branch.write(one("y", "ours"))
    branch.tags.create("t2")
    infos = {info.name: (info.schema_id, info.snapshot_id is None) for info in table.branches.list()}
    assert infos == {"b": (0, False), "empty": (0, True)}
    java.branch(path, "forward", "b")
    assert java.read(path) == ours.read(path) == java.read(path, branch="b")
    assert sorted(table.at(tag="t2").to_arrow()["v"].to_pylist()) == ["a", "b", "java", "ours"]
    table.branches.open("empty").write(one("x", "alone"))
    assert java.read(path, branch="empty") == [("x", 2, "alone")]
    table.branches.delete("b")
    table.branches.fast_forward("empty")
    assert java.read(path) == ours.read(path) == [("x", 2, "alone")]


def test_java_and_lakelsm_fall_back_to_the_same_partitions(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    table = made(ours, path)
    table.branches.create("b")
    schema = path / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"bucket"', '"scan.fallback-branch" : "b", "bucket"'))
    table.branches.open("b").write(one("x", "hidden"))
    table.branches.open("b").write(one("z", "shown"))
    assert java.read(path) == held(table) == [("x", 1, "a"), ("y", 1, "b"), ("z", 2, "shown")]
    table.maintenance.drop_partitions("dt = 'x'")
    assert java.read(path) == held(table) == [("x", 2, "hidden"), ("y", 1, "b"), ("z", 2, "shown")]


def test_a_fast_forward_of_java_below_earliest_is_not_an_unfinished_expiry(
    ours: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    """Java's fast-forward leaves EARLIEST of the main branch above the oldest copied snapshot."""
    table = made(ours, path)
    table.branches.create("b", "t1")
    ours.write(path, one("x", "lost"))  # type: ignore[arg-type]
    table.maintenance.expire_snapshots(retain_last=1)
    earliest = table._store().snapshots.earliest_id() or 0
    for _ in range(earliest + 1):
        table.branches.open("b").write(
            one("x", "branch"), options={"write-only": "true"}
        )  # Without an expiry, which would write the hint.
    java.branch(path, "forward", "b")
    assert table._store().snapshots.ids()[0] < earliest == int((path / "snapshot" / "EARLIEST").read_text())
    # Java does not delete the manifests of snapshots that it deletes.
    assert {finding.rule for finding in table.maintenance.check(data="full", engine="local").findings} <= {
        "manifest-stray"
    }
    assert java.read(path) == ours.read(path)


def test_a_fast_forward_of_java_above_older_snapshots_is_not_an_unfinished_expiry(
    ours: LakelsmTables, java: JavaPaimon, path: Path
) -> None:
    """Java's fast-forward copies EARLIEST of the branch, and keeps older snapshots of the main branch below it."""
    table = made(ours, path)
    ours.write(path, one("x", "second"))  # type: ignore[arg-type]
    newest = table._store().snapshots.latest_id() or 0
    java.version(path, "create", "t2", newest)
    java.branch(path, "create", "b", "t2")
    table.branches.open("b").write(one("x", "branch"))
    java.branch(path, "forward", "b")
    assert table._store().snapshots.ids()[0] < newest == int((path / "snapshot" / "EARLIEST").read_text())
    assert table.maintenance.check(data="full", engine="local").findings == ()
    assert java.read(path) == ours.read(path)
    table.maintenance.expire_snapshots(retain_last=1)
    assert table.maintenance.check(data="full", engine="local").findings == ()
    assert len(table._store().snapshots.ids()) == 1 and java.read(path) == ours.read(path)
