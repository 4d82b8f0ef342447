"""The stored branches of a table, and what they retain."""

from __future__ import annotations

from pathlib import Path

from lakelsm.format.snapshot import Tag
from lakelsm.snapshots.branch_store import BranchStore
from tests.acting_file_io import ActingFileIO
from tests.commit.commit_table import CommitTable, add, file


def test_the_references_of_each_branch_are_found(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    table.append(add(file()))
    snapshot = table.snapshots.get(1)
    branch = table.paths.of_branch("b")
    assert branch.name == f"{table.paths.name}$branch_b" and branch.of_branch("main") == table.paths
    assert branch.manifest_dir == table.paths.manifest_dir
    table.file_io.write(branch.tag("v"), Tag(snapshot).to_json().encode())
    store = BranchStore(table.file_io, table.paths)
    assert store.names() == ["b"]
    main, other = store.retained()
    assert (main.paths, list(main.snapshots), dict(main.tags)) == (table.paths, [snapshot], {})
    assert (other.paths, list(other.snapshots), dict(other.tags)) == (branch, [], {"v": Tag(snapshot)})
    assert BranchStore(table.file_io, branch).paths() == store.paths()


def test_a_branch_that_is_created_from_a_tag_concurrently_is_not_missed(tmp_path: Path) -> None:
    """A branch is created from a tag, and the tag is deleted, after the branches were listed."""

    def take_over() -> None:
        table.file_io.write(table.paths.of_branch("b").tag("v"), tag)
        table.file_io.delete(table.paths.tag("v"))

    table = CommitTable(tmp_path / "t")
    table.append(add(file()))
    tag = Tag(table.snapshots.get(1)).to_json().encode()
    table.file_io.write(table.paths.tag("v"), tag)
    main, other = BranchStore(ActingFileIO(take_over, "list", path="/branch$", after=True), table.paths).retained()
    assert not main.tags and list(other.tags) == ["v"]
