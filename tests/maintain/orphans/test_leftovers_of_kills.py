"""A process that is killed at any step of a write or compaction leaves files, and removal deletes exactly these."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from tests.crashing_file_io import crashes
from tests.maintain.orphans.table_census import census, unnamed


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
    "dynamic buckets": {"bucket": "-1", "dynamic-bucket.target-row-num": "7", "changelog-producer": "input"},
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


@pytest.mark.parametrize(
    ("what", "layout"),
    [
        ("write", "dynamic buckets"),
        ("overwrite", "changelog, vectors and file indexes"),
        ("compact", "changelog, vectors and file indexes"),
    ],
)
def test_removal_deletes_exactly_the_files_that_a_kill_at_any_step_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, layout: str
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    root = made(tmp_path / "made", LAYOUTS[layout])
    assert unnamed(root) == set()
    last, leftovers = 1, 0
    while True:
        copy = Path(shutil.copytree(root, tmp_path / f"{last}" / "t"))
        if not crashes(copy, WORK[what], last):
            break
        expected, before = unnamed(copy), census(copy)
        table = Table.for_path(str(copy))
        shown = table.to_arrow(ordered=True)
        planned = table.maintenance.remove_orphans(0, force=True, dry_run=True, engine="local")
        assert census(copy) == before and planned.files == len(expected)
        result = table.maintenance.remove_orphans(0, force=True, engine="local")
        assert before - census(copy) == expected, last
        assert (result.files, result.kinds, result.failures) == (len(expected), planned.kinds, ())
        assert table.to_arrow(ordered=True) == shown
        if last % 4 == 0:  # The next process finds a table that works.
            WORK[what](table)
            assert table.maintenance.remove_orphans(0, force=True, engine="local").files == 0
        leftovers += bool(expected)
        last += 1
    assert leftovers >= 4, "data files, manifests, lists, ..."
