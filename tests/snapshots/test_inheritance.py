"""The number of buckets of all files of a snapshot: recorded, lost by another engine and recorded again."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.inheritance import TOTAL_BUCKETS_PROPERTY, inherited_statistics, recorded_total_buckets
from tests.commit.commit_table import CommitTable, add, delete, upgrade


def recorded(table: CommitTable) -> int | None:
    snapshot = table.snapshots.latest()
    assert snapshot is not None
    return recorded_total_buckets(snapshot)


def test_each_snapshot_records_the_number_of_buckets_of_its_files(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(first := add())
    table.append(add(dt="b"))
    table.compact(upgrade(first, 5))
    assert recorded(table) == 2
    table.overwrite(add(dt="b", total=4), partitions=["b"])
    assert recorded(table) is None
    table.append(add(dt="c"))
    assert recorded(table) is None


def test_a_table_of_dynamic_buckets_records_nothing(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, {"bucket": "-1"})
    table.append(add(total=-1))
    assert recorded(table) is None


def test_a_number_that_a_writer_found_is_recorded_unless_others_committed(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(add())
    table.forget_properties()
    table.append(add(), base_total_buckets=2)
    assert recorded(table) == 2
    table.forget_properties()
    table.append(add(dt="b"), base_snapshot_id=1, base_total_buckets=2)
    assert recorded(table) is None


def test_deleted_files_do_not_count(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(old := add(total=4))
    table.compact([delete(old), add(total=4)])
    table.overwrite(add())
    assert recorded(table) is None


def test_a_record_that_is_not_a_number_is_damage(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    snapshot = dataclasses.replace(table.append(add()), properties={TOTAL_BUCKETS_PROPERTY: "two"}).signed()
    with pytest.raises(CorruptTableError, match=r"Snapshot 1: property 'lakelsm\.total-buckets': 'two' is not"):
        recorded_total_buckets(snapshot)


def inherited(tmp_path: Path, content: bytes | None, schema_id: int = 3) -> str | None:
    table = CommitTable(tmp_path / "t")
    snapshot: Snapshot = replace(table.append(add()), statistics="stat-u-0")
    if content is not None:
        table.file_io.write(table.paths.statistics("stat-u-0"), content)
    return inherited_statistics(table.file_io, table.paths, snapshot, schema_id)


def test_statistics_of_the_schema_are_inherited_by_name(tmp_path: Path) -> None:
    assert inherited(tmp_path, b'{"schemaId": 3, "more": [1]}') == "stat-u-0"


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{", b"[3]", b"3", b"{}", b'{"schemaId": 2}', b'{"schemaId": "3"}', b"\xff", b"[" * 100_000],
    ids=["missing", "empty", "cut", "list", "number", "none", "older", "text", "no text", "deep"],
)
def test_other_statistics_are_left_out_without_an_error(tmp_path: Path, content: bytes | None) -> None:
    assert inherited(tmp_path, content) is None


def test_a_table_without_statistics_or_snapshots_inherits_none(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "t")
    assert inherited_statistics(table.file_io, table.paths, None, 0) is None
    assert inherited_statistics(table.file_io, table.paths, table.append(add()), 0) is None
