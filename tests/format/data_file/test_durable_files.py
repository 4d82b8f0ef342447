from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelsm.format.paths import TablePaths
from tests.compact.local_table import LocalTable

COLUMNS = "dt STRING NOT NULL, id INT NOT NULL, v STRING"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return the events in order: 'sync <path>', and 'publish <path>' when a snapshot becomes visible."""
    events: list[str] = []
    fsync, link = os.fsync, os.link

    def recorded_sync(descriptor: int) -> None:
        events.append("sync " + os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def recorded_link(source: str, target: str) -> None:
        events.append(f"publish {target}")
        link(source, target)

    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(os, "link", recorded_link)
    yield events


def assert_durable(table: LocalTable, events: list[str], published: int) -> None:
    """Assert that the newest snapshot's files and their directories were synced before it was published."""
    at = events.index(f"publish {TablePaths(str(table.root)).snapshot_file(published)}")
    before = set(events[:at])
    files = [table.path_of(entry) for entry in table.live()]
    files += list(table.root.rglob("changelog-*.parquet")) + list((table.root / "index").glob("index-*"))
    for path in files:
        assert f"sync {path}" in before or path.parent.name == "index"
        folder = path.parent
        while folder != table.root.parent:
            assert f"sync {folder}" in before, folder
            folder = folder.parent
    events.clear()


def test_files_are_durable_before_the_snapshot_that_names_them(tmp_path: Path, synced: list[str]) -> None:
    table = LocalTable(tmp_path / "t", COLUMNS, ("dt", "id"), ("dt",), changelog_producer="input")
    table.write(("a", 1, "x"), ("b", 2, "y"))
    assert_durable(table, synced, 1)
    table.write(("a", 1, "z"))
    synced.clear()
    table.compact()
    new = {table.path_of(entry) for entry in table.live() if entry.file.file_source == 1}
    at = synced.index(f"publish {TablePaths(str(table.root)).snapshot_file(3)}")
    assert new and all(f"sync {path}" in synced[:at] for path in new)


def test_an_option_disables_it(tmp_path: Path, synced: list[str]) -> None:
    table = LocalTable(tmp_path / "t", bucket="1", **{"lakelsm__durable_files": "false"})
    table.write((1, "x"))
    assert not [event for event in synced if event.startswith("sync") and "bucket-" in event]
    assert [event for event in synced if "manifest" in event]
