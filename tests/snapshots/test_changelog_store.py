"""The stored long-lived changelogs of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.snapshots.changelog_store import ChangelogStore
from tests.commit.commit_table import CommitTable, add, file


def test_changelogs_are_snapshots_by_their_ids(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    table.append(add(file()))
    changelogs = ChangelogStore(table.file_io, table.paths)
    assert list(changelogs.list()) == [] and changelogs.try_get(1) is None
    kept = table.snapshots.get(1)
    table.file_io.write(table.paths.changelog(1), kept.to_json().encode())
    table.file_io.write(f"{table.paths.changelog_dir}/LATEST", b"1")
    assert list(changelogs.list()) == [kept]
    table.file_io.write(table.paths.changelog(2), replace(kept, extra={}).to_json().encode())
    with pytest.raises(CorruptTableError, match="contains snapshot 1"):
        changelogs.list()


def test_the_changelog_of_a_snapshot_is_kept_listed_and_found_by_time(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    changelogs = ChangelogStore(table.file_io, table.paths)
    assert changelogs.at_or_before(10**13) is None
    kept = [table.append(add(file())) for _ in range(4)]
    for snapshot in kept:
        changelogs.keep(snapshot)
    changelogs.keep(kept[-1])  # A rerun of a killed expiry keeps it again.
    changelogs.announce_earliest(1)
    assert list(changelogs.list()) == kept
    hints = (Path(table.paths.changelog_dir, name).read_text() for name in ("EARLIEST", "LATEST"))
    assert list(hints) == ["1", "4"]
    for snapshot in kept:
        assert changelogs.at_or_before(snapshot.time_millis) == snapshot
    assert changelogs.at_or_before(kept[0].time_millis - 1) is None
