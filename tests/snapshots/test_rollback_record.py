"""A LATEST hint above the newest snapshot after a rollback."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from tests.commit.commit_table import CommitTable, add, file


@pytest.mark.usefixtures("short_waits")
def test_a_hint_of_a_snapshot_that_a_rollback_deleted_is_no_damage(tmp_path: Path) -> None:
    """A commit wrote the hint after the rollback, and crashed before it checked that its snapshot exists."""
    table = CommitTable(tmp_path / "t")
    for number in range(3):
        table.append(add(file(f"f{number}", seq=(number, number))))
    kept, snapshots = table.snapshots.get(1), table.snapshots
    table.expire(2, 3)
    snapshots.record_rollback(kept)
    table.file_io.write(table.paths.latest_hint, b"3")
    written = Path(table.paths.manifest_dir) / "manifest-list-late-0"
    written.write_bytes(b"")
    record, hint = table.paths.last_rollback, table.paths.latest_hint
    for recorded, listed, hinted, is_sound in ((5, 4, 6, True), (5, 7, 6, True), (5, 5, 6, False), (5, 6, 7, False)):
        for path in Path(table.paths.manifest_dir).iterdir():
            os.utime(path, (1, 1))
        for name, second in ((record, recorded), (str(written), listed), (hint, hinted)):
            os.utime(name, (second, second))
        if is_sound:
            assert snapshots.latest_id() == 1 and snapshots.latest() == kept
            snapshots.check_complete()
        else:  # A snapshot may have been published after the rollback.
            with pytest.raises(CorruptTableError, match="snapshot-3 is missing"):
                snapshots.latest_id()
    os.utime(written, (1, 1))
    for other in (replace(kept, base_manifest_list="another"), replace(kept, id=2)):
        snapshots.record_rollback(other)
        os.utime(record, (5, 5))
        with pytest.raises(CorruptTableError, match="snapshot-3 is missing"):
            snapshots.latest()
    Path(record).write_bytes(b"{")
    with pytest.raises(CorruptTableError, match="snapshot-3 is missing"):
        snapshots.latest()
