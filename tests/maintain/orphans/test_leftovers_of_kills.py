"""A process that dies after any step of a write or compaction leaves files, and removal takes exactly these."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs as arrow_fs

from lakelsm import Catalog, Table
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import LocalFileIO
from tests.maintain.orphans.table_census import census, unnamed


class Killed(BaseException):
    """Stands for the end of the process."""


class DyingFileIO(LocalFileIO):
    """Ends the process at its n-th change of the store: from then on every operation fails, clearing up included."""

    def __init__(self, last: int) -> None:
        self.state = [last]

    @property
    def died(self) -> bool:
        return self.state[0] <= 0

    def _change(self, after: bool = False) -> None:
        if after:
            self.state[0] -= 1
        if self.died:
            raise Killed

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        self._change()
        super().write(path, data, durable)
        self._change(after=True)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self._change()
        created = super().create_if_absent(path, data)
        self._change(after=True)
        return created

    def make_durable(self, directory: str, names: Any) -> None:
        self._change()
        self._change(after=True)

    def delete(self, path: str) -> None:
        self._change()
        super().delete(path)

    def delete_files(self, paths: Any) -> None:
        self._change()
        super().delete_files(paths)

    def filesystem(self) -> arrow_fs.FileSystem:
        self._change()
        return super().filesystem()


def rows(first: int, count: int, value: str) -> pa.Table:
    keys = range(first, first + count)
    parts = ["ab"[key % 2] for key in keys]
    return pa.table({"p": parts, "k": pa.array(keys, pa.int32()), "v": [value] * count})


LAYOUTS = {
    "changelog, vectors and file indexes": {
        "bucket": "2",
        "changelog-producer": "lookup",
        "deletion-vectors.enabled": "true",
        "file-index.bloom-filter.columns": "v",
        "file-index.in-manifest-threshold": "1 b",
    },
    "dynamic buckets": {"bucket": "-1", "dynamic-bucket.target-row-num": "4", "changelog-producer": "input"},
}
WORK: dict[str, Callable[[Table], object]] = {
    "write": lambda table: table.write(rows(5, 10, "newest")),
    "overwrite": lambda table: table.overwrite(rows(0, 4, "other")),
    "compact": lambda table: table.compact(full=True),
}


def made(root: Path, options: dict[str, str]) -> Path:
    table = Catalog(str(root)).create_table(
        "db.t",
        "p STRING, k INT, v STRING",
        primary_key=["p", "k"],
        partition_by=["p"],
        options={"write-only": "true", "manifest.full-compaction-threshold-size": "1 b", **options},
    )
    table.write(rows(0, 12, "old"))
    table.compact()
    table.write(rows(6, 12, "new"))
    return root / "db.db" / "t"


def dies(root: Path, work: Callable[[Table], object], last: int) -> bool:
    """Do work in a process that dies at its ``last`` change of the store; tell whether it came to that."""
    store = TableStore.open(str(root))
    file_io = DyingFileIO(last)
    try:
        work(Table(replace(store, file_io=file_io.within(store.paths.root))))
    except Killed:
        return True
    return file_io.died


@pytest.mark.parametrize(
    ("what", "layout"),
    [
        ("write", "dynamic buckets"),
        ("overwrite", "changelog, vectors and file indexes"),
        ("compact", "changelog, vectors and file indexes"),
    ],
)
def test_removal_takes_exactly_what_a_kill_at_any_step_leaves(tmp_path: Path, what: str, layout: str) -> None:
    root = made(tmp_path / "made", LAYOUTS[layout])
    assert unnamed(root) == set()
    last, leftovers = 1, 0
    while True:
        copy = Path(shutil.copytree(root, tmp_path / f"{last}" / "t"))
        if not dies(copy, WORK[what], last):
            break
        expected, before = unnamed(copy), census(copy)
        table = Table.for_path(str(copy))
        shown = table.to_arrow(ordered=True)
        planned = table.remove_orphans(0, force=True, dry_run=True, engine="local")
        assert census(copy) == before and planned.files == len(expected)
        result = table.remove_orphans(0, force=True, engine="local")
        assert before - census(copy) == expected, last
        assert (result.files, result.kinds, result.failures) == (len(expected), planned.kinds, ())
        assert table.to_arrow(ordered=True) == shown
        WORK[what](table)  # And whoever comes again finds a table that works.
        assert table.remove_orphans(0, force=True, engine="local").files == 0
        leftovers += bool(expected)
        last += 1
    assert leftovers >= 4, "data files, manifests, lists, ..."
