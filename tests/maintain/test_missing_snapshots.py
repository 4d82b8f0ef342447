"""If a snapshot file is missing, the newest or an older one, every call reports it and none makes the damage worse."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.cli.main import main
from lakelsm.errors import CorruptTableError, ErrorKind, SnapshotNotFoundError

pytestmark = pytest.mark.usefixtures("short_waits")

ROWS = pa.table({"k": pa.array(range(4), pa.int32()), "p": ["a", "b"] * 2, "v": ["x"] * 4})
OPTIONS = {"bucket": 1, "write-only": True, "commit.min-retry-wait": "1 ms"}

CHANGES: dict[str, Callable[[Table], object]] = {
    "write": lambda table: table.write(ROWS),
    "overwrite": lambda table: table.overwrite(ROWS),
    "delete": lambda table: table.delete("k = 1", engine="local"),
    "compact": lambda table: table.compact(full=True, engine="local"),
    "expire": lambda table: table.maintenance.expire_snapshots(retain_last=1),
    "expire dry": lambda table: table.maintenance.expire_snapshots(retain_last=1, dry_run=True),
    "orphans": lambda table: table.maintenance.remove_orphans(0, force=True, engine="local"),
    "tag": lambda table: table.tags.create("kept"),
    "drop": lambda table: table.maintenance.drop_partitions("p = 'a'"),
    "analyze": lambda table: table.maintenance.analyze(engine="local"),
    "changelog": lambda table: table.changelog_reader(1, 5).read_all(),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with six writes."""
    warehouse = tmp_path_factory.mktemp("made")
    table = Catalog(str(warehouse)).create_table(
        "db.t", "k INT, p STRING, v STRING", primary_key=["k", "p"], partition_by=["p"], options=OPTIONS
    )
    for _ in range(6):
        table.write(ROWS)
    return warehouse / "db.db" / "t"


def without(made: Path, folder: Path, snapshot_id: int) -> Table:
    """A copy of the table without a snapshot's file."""
    root = Path(shutil.copytree(made, folder / "t"))
    (root / "snapshot" / f"snapshot-{snapshot_id}").unlink()
    return Table.for_path(str(root))


@pytest.fixture(params=[5, 6])
def damaged(made: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Path, int, bytes]]:
    """A copy of the table without one snapshot file; the id of the snapshot, and the content of the file."""
    root = Path(shutil.copytree(made, tmp_path / "t"))
    file = root / "snapshot" / f"snapshot-{request.param}"
    content = file.read_bytes()
    file.unlink()
    yield root, request.param, content
    file.write_bytes(content)
    table = Table.for_path(str(root))
    assert table.to_arrow().num_rows == 4 and table.maintenance.check(data="full", engine="local").findings == ()


def files(root: Path) -> set[str]:
    """All files except the records of maintenance runs, which failed runs leave too."""
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith("service/")}


def test_every_change_names_the_missing_file_and_deletes_nothing(damaged: tuple[Path, int, bytes]) -> None:
    root, missing, _ = damaged
    before = files(root)
    for name, change in CHANGES.items():
        with pytest.raises(CorruptTableError, match=f"snapshot-{missing}[ ,].*[Rr]oll") as caught:
            change(Table.for_path(str(root)))
        assert caught.value.kind is ErrorKind.CORRUPT, name
    assert files(root) == before
    rules = {
        finding.rule for finding in Table.for_path(str(root)).maintenance.check(data="none", engine="local").findings
    }
    assert rules == ({"latest-hint"} if missing == 6 else {"snapshot-gap"})


def test_commands_end_with_the_exit_status_of_damage(damaged: tuple[Path, int, bytes]) -> None:
    root, missing, _ = damaged
    for command in (["compact"], ["expire", "--retain-last", "1"]):
        assert main([command[0], "--path", str(root), *command[1:]]) == 5, command
    if missing == 6:
        with pytest.raises(CorruptTableError, match="snapshot-6 is missing"):
            Table.for_path(str(root)).to_arrow()
    else:
        assert Table.for_path(str(root)).to_arrow().num_rows == 4, "the newest snapshot is complete"


def _has_leftovers_alone(table: Table) -> None:
    """Manifests that only the lost snapshot named stay until orphan removal."""
    assert {finding.rule for finding in table.maintenance.check(data="full", engine="local").findings} == {
        "manifest-stray"
    }
    table.maintenance.remove_orphans(0, force=True, engine="local")
    assert table.maintenance.check(data="full", engine="local").findings == ()


@pytest.mark.parametrize("missing", [5, 6])
def test_a_rollback_accepts_the_loss(made: Path, tmp_path: Path, missing: int) -> None:
    table = without(made, tmp_path, missing)
    table.rollback(missing - 1)
    table.write(ROWS)
    _has_leftovers_alone(table)


def test_earliest_above_a_gap_accepts_the_loss_of_what_is_below(made: Path, tmp_path: Path) -> None:
    table = without(made, tmp_path, 5)
    (tmp_path / "t" / "snapshot" / "EARLIEST").write_text("6")
    table.maintenance.expire_snapshots(retain_last=1)
    table.write(ROWS)
    _has_leftovers_alone(table)
    assert table.to_arrow().num_rows == 4


def test_a_missing_oldest_snapshot_counts_as_expired(made: Path, tmp_path: Path) -> None:
    table = without(made, tmp_path, 1)
    with pytest.raises(SnapshotNotFoundError, match="has expired"):
        table.at(snapshot=1).to_arrow()
    table.write(ROWS)
    table.maintenance.expire_snapshots(retain_last=1)
