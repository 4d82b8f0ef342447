"""The maximum sequence number of a table."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.sequence_base import (
    MAX_SEQUENCE_PROPERTY,
    recorded_max_sequence,
    table_max_sequence,
    with_max_sequence,
)
from tests.commit.commit_table import CommitTable, ReadingFileIO, add, delete, file


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots 1 to 40; each adds ten sequence numbers."""
    table = CommitTable(tmp_path_factory.mktemp("made"))
    for first in range(0, 400, 10):
        table.append(add(file(seq=(first, first + 9))))
    return table.root


@pytest.fixture
def table(made: Path, tmp_path: Path) -> CommitTable:
    """A copy of the template table."""
    return CommitTable(shutil.copytree(made, tmp_path / "t"), file_io=ReadingFileIO())


def found(table: CommitTable) -> tuple[int, list[str]]:
    latest = table.snapshots.latest()
    assert isinstance(table.file_io, ReadingFileIO)
    table.file_io.reads.clear()
    return table_max_sequence(table.file_io, table.paths, latest), table.file_io.reads


def test_a_recorded_maximum_needs_no_read(table: CommitTable) -> None:
    assert found(table) == (399, [])


def test_deltas_are_read_back_to_a_snapshot_that_records_the_maximum(table: CommitTable) -> None:
    table.forget_properties(39, 40)
    bound, reads = found(table)
    assert bound == 399
    assert [name for name in reads if name.startswith("snapshot-")] == ["snapshot-39", "snapshot-38"]


@pytest.mark.parametrize("expired", [0, 35])
def test_all_manifests_are_read_if_no_snapshot_records_the_maximum(table: CommitTable, expired: int) -> None:
    table.forget_properties(*range(1, 41))
    table.expire(*range(1, expired + 1))
    assert found(table)[0] == 399


def test_the_maximum_survives_deletion_of_the_files(table: CommitTable) -> None:
    table.compact([delete(entry) for entry in table.live()])
    assert found(table) == (399, [])


def test_a_table_without_rows_has_no_maximum(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    assert table_max_sequence(table.file_io, table.paths, None) == -1
    table.overwrite()
    latest = table.snapshots.latest()
    assert latest is not None and recorded_max_sequence(latest) is None
    assert table_max_sequence(table.file_io, table.paths, latest) == -1


def test_an_invalid_maximum_is_named(table: CommitTable) -> None:
    latest = table.snapshots.latest()
    assert isinstance(latest, Snapshot)
    with pytest.raises(CorruptTableError, match=r"Snapshot 40: .*'x' is not a number"):
        recorded_max_sequence(replace(latest, properties={MAX_SEQUENCE_PROPERTY: "x"}).signed())


def test_postponed_numbers_do_not_lower_or_create_a_maximum() -> None:
    postponed = [add(file(seq=(-1, -1)))]
    assert with_max_sequence({}, -1, postponed) == {}
    assert with_max_sequence({"k": "v"}, 7, postponed) == {"k": "v", MAX_SEQUENCE_PROPERTY: "7"}


@pytest.mark.parametrize("text", ["x", "", "9" * 5000, str(1 << 62), str(1 << 63), "-2", " 5", "5.0", "٣"])
def test_a_recorded_maximum_that_is_invalid_or_too_high_is_damage(table: CommitTable, text: str) -> None:
    newest = table.snapshots.get(40)
    with pytest.raises(CorruptTableError, match=MAX_SEQUENCE_PROPERTY):
        table_max_sequence(table.file_io, table.paths, replace(newest, properties={MAX_SEQUENCE_PROPERTY: text}))
