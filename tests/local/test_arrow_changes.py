"""Incremental reads in this process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.errors import (
    CorruptTableError,
    InvalidInputError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from tests.compact.local_table import LocalTable


def changes(table: LocalTable, *arguments: object, **more: object) -> list[tuple[object, ...]]:
    found = Table.for_path(str(table.root)).changelog_reader(*arguments, **more)  # type: ignore[arg-type]
    return [tuple(row.values()) for row in found.read_all().to_pylist()]


def test_a_changelog_is_in_the_order_of_snapshots_with_positions(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", changelog_producer="input")
    table.write((1, "a"), (2, "b"))
    table.write((1, "c"), (1, "d"))
    table.delete((2, None))
    assert changes(table) == [("+I", 1, "a"), ("+I", 2, "b"), ("+I", 1, "c"), ("+I", 1, "d"), ("-D", 2, None)]
    assert changes(table, 1, 2, positions=True) == [("+I", 1, "c", 2, 2), ("+I", 1, "d", 2, 3)]
    assert changes(table, where="v = 'c' OR v IS NULL", kind_column="k") == [("+I", 1, "c"), ("-D", 2, None)]
    schema = Table.for_path(str(table.root)).changelog_reader(positions=True).read_all().schema
    assert schema.names == ["rowkind", "id", "v", "_SNAPSHOT_ID", "_SEQUENCE_NUMBER"]
    assert schema.field("id") == pa.field("id", pa.int32())


def test_appends_are_merged_and_states_compared(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"), (2, "b"), (3, "c"))
    table.write((1, "x"))
    table.delete((2, None))
    assert sorted(changes(table, 1)) == [("+I", 1, "x"), ("-D", 2, None)]
    assert sorted(changes(table, 1, mode="diff")) == [("+U", 1, "x"), ("-D", 2, "b"), ("-U", 1, "a")]
    assert changes(LocalTable(tmp_path / "empty")) == []


def test_wrong_arguments_and_damage_raise_errors(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", changelog_producer="input")
    table.write((1, "a"))
    with pytest.raises(InvalidInputError, match="mode: expected one of"):
        changes(table, mode="all")
    with pytest.raises(InvalidInputError, match="kind_column: 'v'"):
        changes(table, kind_column="v")
    with pytest.raises(UnsupportedFeatureError, match="UUID"):
        changes(table, where="uuid() = v")
    path = next(table.root.rglob("bucket-0/changelog-*"))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CorruptTableError, match=path.name):
        changes(table)


@pytest.mark.parametrize("mode", ["changelog", "delta", "diff"])
def test_an_expiry_during_a_changelog_read_is_not_reported_as_damage(tmp_path: Path, mode: str) -> None:
    written = LocalTable(tmp_path / "t", changelog_producer="input")
    for value in "abc":
        written.write((1, value))
    table = Table.for_path(str(written.root))
    reader = table.changelog_reader(1, 2, mode=mode)
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)
    with pytest.raises(SnapshotNotFoundError, match=f"snapshot {1 if mode == 'diff' else 2} was deleted while"):
        reader.read_all()


def test_a_long_lived_changelog_with_a_missing_file_is_damaged(tmp_path: Path) -> None:
    written = LocalTable(tmp_path / "t", **{"changelog-producer": "input", "changelog.num-retained.min": "12"})
    for value in "abc":
        written.write((1, value))
    table = Table.for_path(str(written.root))
    reader = table.changelog_reader(0, 1)
    table.maintenance.expire_snapshots(retain_last=1)
    assert len(changes(written, 0, 1)) == 1
    for path in written.root.rglob("bucket-0/changelog-*"):
        path.unlink()
    with pytest.raises(CorruptTableError):
        reader.read_all()
