"""Named files are dropped from the listed files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.maintain.orphans import unreferenced_files
from lakelsm.maintain.orphans.listing_task import KINDS, LISTED_SCHEMA
from lakelsm.maintain.orphans.unreferenced_files import UnreferencedFiles


def batch(directory: str, *files: tuple[str, str, int, bool]) -> pa.RecordBatch:
    names, kinds, sizes, old = ([list(column)] for column in zip(*files))
    numbers = [[[str(kind) for kind in KINDS].index(kind) for kind in kinds[0]]]
    return pa.RecordBatch.from_pydict(
        {"directory": [directory], "names": names, "kinds": numbers, "sizes": sizes, "old": old}, schema=LISTED_SCHEMA
    )


def listed() -> UnreferencedFiles:
    return UnreferencedFiles(
        [
            batch("/t/bucket-0", ("a", "data", 1, True), ("b", "data", 10, False), ("c", "changelog", 100, True)),
            batch("/t/manifest", ("a", "manifest", 1000, True), ("d", "manifest", 10_000, True)),
        ]
    )


def test_remaining_files_have_kinds_sizes_and_directories() -> None:
    files = listed()
    files.drop([pa.array(["x", "c"])])
    orphans = files.orphans()
    assert (len(files), len(orphans)) == (4, 3)
    assert list(orphans.paths()) == ["/t/bucket-0/a", "/t/manifest/a", "/t/manifest/d"]
    assert (orphans.bytes, orphans.kinds) == (11_001, {"data": 1, "manifest": 2})
    assert orphans.directories == {"/t/bucket-0", "/t/manifest"}


def test_a_name_is_dropped_in_any_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreferenced_files, "_NAMES", 2)
    files = listed()
    files.drop([pa.array([name]) for name in "abcd"] + [pa.array([], pa.string())])
    assert (len(files), len(files.orphans()), files.orphans().bytes, files.orphans().kinds) == (0, 0, 0, {})


def test_an_empty_listing_has_no_orphans() -> None:
    assert (len(UnreferencedFiles()), UnreferencedFiles().orphans().kinds) == (0, {})
