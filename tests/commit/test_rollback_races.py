"""A rollback beside a change: whenever it comes, the change is committed or is a conflict; nothing is called damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs as arrow_fs

from lakelsm import Catalog, Table
from lakelsm.errors import CommitConflictError
from lakelsm.results import CheckFinding, CompactionResult, CompactionStatus
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO


def rows(text: str) -> pa.Table:
    return pa.table({"k": pa.array(range(6), pa.int32()), "p": ["a", "b"] * 3, "v": [text] * 6})


class Interrupted(LocalFileIO):
    """Acts before the n-th look at a file of the table's content (from 1)."""

    def __init__(self, last: int, act: Callable[[], object]) -> None:
        self.state = [last]
        self._act = act

    def _look(self) -> None:
        self.state[0] -= 1
        if self.state[0] == 0:
            self._act()

    def read(self, path: str, limit: int | None = None) -> bytes:
        if "/schema/" not in path:
            self._look()
        return super().read(path, limit)

    def filesystem(self) -> arrow_fs.FileSystem:
        self._look()
        return super().filesystem()


CHANGES: dict[str, Callable[[Table], object]] = {
    "write": lambda table: table.write(rows("new")),
    "overwrite": lambda table: table.overwrite(rows("new")),
    "delete": lambda table: table.delete("k < 3", engine="local"),
    "delete of keys": lambda table: table.delete(keys=pa.table({"k": pa.array([1], pa.int32()), "p": ["b"]})),
    "compact": lambda table: table.compact(full=True, engine="local"),
    "drop": lambda table: table.maintenance.drop_partitions("p = 'a'"),
    "analyze": lambda table: table.maintenance.analyze(engine="local"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three writes."""
    warehouse = tmp_path_factory.mktemp("made")
    table = Catalog(str(warehouse)).create_table(
        "db.t",
        "k INT, p STRING, v STRING",
        primary_key=["k", "p"],
        partition_by=["p"],
        options={"bucket": 1, "write-only": True, "commit.min-retry-wait": "1 ms"},
    )
    for number in range(3):
        table.write(rows(f"{number}"))
    return warehouse / "db.db" / "t"


@pytest.mark.parametrize(("change", "to"), [*((change, 1) for change in CHANGES), ("write", 2), ("compact", 2)])
def test_a_rollback_at_any_moment_of_a_change_is_a_conflict_or_before_it(
    made: Path, tmp_path: Path, change: str, to: int
) -> None:
    outcomes, moment = [], 1
    while True:
        root = Path(shutil.copytree(made, tmp_path / f"{moment}"))
        other = Table.for_path(str(root))
        store = TableStore.open(str(root))
        file_io = Interrupted(moment, partial(other.rollback, to))
        table = Table(replace(store, file_io=file_io.within(store.paths.root)))
        try:
            result = CHANGES[change](table)
            is_lost = isinstance(result, CompactionResult) and result.status is CompactionStatus.CONFLICT
        except CommitConflictError:
            is_lost = True
        assert findings(other) == ()
        if file_io.state[0] > 0:
            break
        outcomes.append(is_lost)
        shutil.rmtree(root)
        moment += 1
    assert outcomes and not outcomes[0] and any(outcomes)


def findings(table: Table) -> Sequence[CheckFinding]:
    return table.maintenance.check(data="full", engine="local").findings
