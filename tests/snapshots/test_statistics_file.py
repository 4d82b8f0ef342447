"""Statistics are handed on while they are of the schema, and fail no commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.statistics_file import inherited_statistics
from tests.commit.commit_table import CommitTable, add


def inherited(tmp_path: Path, content: bytes | None, schema_id: int = 3) -> str | None:
    table = CommitTable(tmp_path / "t")
    snapshot: Snapshot = replace(table.append(add()), statistics="stat-u-0")
    if content is not None:
        table.file_io.write(table.paths.statistics("stat-u-0"), content)
    return inherited_statistics(table.file_io, table.paths, snapshot, schema_id)


def test_statistics_of_the_schema_are_handed_on_by_name(tmp_path: Path) -> None:
    assert inherited(tmp_path, b'{"schemaId": 3, "more": [1]}') == "stat-u-0"


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{", b"[3]", b"3", b"{}", b'{"schemaId": 2}', b'{"schemaId": "3"}', b"\xff", b"[" * 100_000],
    ids=["missing", "empty", "cut", "list", "number", "none", "older", "text", "no text", "deep"],
)
def test_all_others_are_left_out_without_an_error(tmp_path: Path, content: bytes | None) -> None:
    assert inherited(tmp_path, content) is None


def test_a_table_without_statistics_or_snapshots_has_none_to_hand_on(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    assert inherited_statistics(table.file_io, table.paths, None, 0) is None
    assert inherited_statistics(table.file_io, table.paths, table.append(add()), 0) is None
