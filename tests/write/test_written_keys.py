"""The check whether other commits wrote the keys of a delete."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lakelsm.format.manifest import ManifestEntry
from lakelsm.snapshots.manifest_scan import read_delta_entries
from lakelsm.write.written_keys import others_wrote_keys
from tests.compact.local_table import LocalTable, Row

#: Replaces the runner if none may be used: files that do not overlap are decided by metadata.
NO_RUNNER: Any = None


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    made = LocalTable(tmp_path, write_only="true")
    made.write(*((number, "old") for number in range(10)))
    return made


def delta(table: LocalTable, *rows: Row) -> Sequence[ManifestEntry]:
    """The level-0 files of a delete of these rows."""
    store = table.store
    return list(read_delta_entries(store.file_io, store.paths, table.delete(*rows)))


def wrote(runner: Any, table: LocalTable, ours: Sequence[ManifestEntry], after: int) -> bool:
    return others_wrote_keys(runner, table.store, ours, after, table.latest.id)


def test_no_key_was_written_without_snapshots_in_between(table: LocalTable) -> None:
    assert not wrote(NO_RUNNER, table, delta(table, (3, "old")), table.latest.id)


def test_files_of_other_keys_and_compactions_are_not_opened(table: LocalTable) -> None:
    ours = delta(table, (3, "old"), (5, "old"))
    table.write((6, "new"))
    table.compact()
    assert not wrote(NO_RUNNER, table, ours, 2)


def test_an_expired_snapshot_may_have_written_the_keys(table: LocalTable) -> None:
    ours = delta(table, (3, "old"))
    table.write((9, "new"))
    table.write((9, "newer"))
    table.store.file_io.delete(table.store.paths.snapshot_file(3))
    assert wrote(NO_RUNNER, table, ours, 2)


def test_an_overwrite_that_deleted_files_of_the_range_may_have_written_the_keys(table: LocalTable) -> None:
    ours = delta(table, (3, "old"))
    table.overwrite((9, "new"))
    assert wrote(NO_RUNNER, table, ours, 2)


@pytest.mark.parametrize(("keys", "expected"), [((4,), False), ((2, 5), True), ((2, 6), False)])
def test_if_ranges_overlap_the_keys_decide(
    table: LocalTable, keys: tuple[int, ...], expected: bool
) -> None:
    ours = delta(table, (1, "old"), (3, "old"), (5, "old"))
    table.write(*((key, "new") for key in keys))
    assert wrote(table.runner, table, ours, 2) is expected
