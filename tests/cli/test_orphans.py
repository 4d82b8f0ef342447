"""``lakelsm orphans``: removed files, reports and deadlines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from lakelsm.maintain.orphans import orphan_removal
from lakelsm.storage import FileIO
from tests.cli.called import Called
from tests.maintain.versioned_table import values, versioned_table


def leave_orphans(called: Called, count: int) -> list[Path]:
    """Create old, unreferenced files with names of the table's files."""
    paths = [
        called.warehouse / "db.db/t/bucket-0" / f"data-{number:08x}-0000-4000-8000-000000000000-0.parquet"
        for number in range(count)
    ]
    for path in paths:
        path.write_bytes(b"left")
        os.utime(path, (0, 0))
    return paths


def test_orphans_are_removed_and_counted(called: Called) -> None:
    table = versioned_table(called.warehouse, 2)
    left = leave_orphans(called, 2)
    planned = called.planned("orphans")
    assert (planned["files"], planned["bytes"], planned["kinds"]) == (2, 8, {"data": 2})
    found = called.json("orphans")
    assert (found["status"], found["files"], found["complete"]) == ("done", 2, True)
    assert not any(path.exists() for path in left)
    assert called.json("orphans")["status"] == "nothing"
    assert values(table) == ["v1", "v2"]


def test_the_text_has_one_example(called: Called) -> None:
    versioned_table(called.warehouse, 1)
    (path,) = leave_orphans(called, 1)
    text = called.text("orphans", "--dry-run")
    assert text.startswith("db.t: 1 orphan file would be removed, 4 bytes")
    assert f"example    bucket-0/{path.name}" in text


def test_an_age_of_less_than_an_hour_needs_force(called: Called) -> None:
    versioned_table(called.warehouse, 1)
    before = called.files()
    assert "an hour or more (a day is usual), or --force if" in called.error("orphans", "--older-than", "5 min")
    assert called.files() == before
    assert called.json("orphans", "--older-than", "5 min", "--force")["files"] == 0


def test_after_the_deadline_no_file_is_deleted(called: Called) -> None:
    table = versioned_table(called.warehouse, 1)
    (path,) = leave_orphans(called, 1)
    found = called.json("orphans", "--deadline", "0")
    assert table.inspect.history(1).to_arrow()["outcome"].to_pylist() == ["partial"]
    assert (found["status"], found["files"], found["complete"]) == ("deadline", 0, False)
    assert path.exists()


def test_a_deadline_stops_between_deletions(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    versioned_table(called.warehouse, 1)
    paths = leave_orphans(called, 5)
    monkeypatch.setattr(orphan_removal, "_MAX_DELETED", 2)
    delete = orphan_removal.delete_unneeded
    ticks = iter(range(10**6))
    late: list[str] = []

    def monotonic() -> float:
        return 1000.0 + next(ticks) if late else 0.0

    def deleted(file_io: FileIO, paths: Sequence[str]) -> object:
        late.extend(paths[1:])  # The first call deletes the probe file for the clock of the store.
        return delete(file_io, paths)

    monkeypatch.setattr(orphan_removal, "delete_unneeded", deleted)
    result = removed_at(called, monotonic)
    assert (result.files, result.bytes, result.complete, len(result.examples)) == (2, 8, False, 2)
    assert sum(path.exists() for path in paths) == 3
    assert called.json("orphans")["files"] == 3


def removed_at(called: Called, monotonic: object) -> orphan_removal.OrphanResult:
    from dataclasses import replace

    from lakelsm import Table
    from lakelsm.engine import local_engine
    from lakelsm.environment import SYSTEM

    store = Table.for_path(str(called.warehouse / "db.db/t"))._store()
    environment = replace(SYSTEM, monotonic=monotonic)  # type: ignore[arg-type]
    bound = SYSTEM.clock() - 86_400_000
    return orphan_removal.remove_orphans(
        local_engine().runner, store, bound, deadline=60, environment=environment
    )
