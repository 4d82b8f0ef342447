"""Records of maintenance in snapshots: inherited, limited in size, and never a reason for a commit to fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.inheritance import inherited_property
from lakelsm.snapshots.maintenance_record import (
    MAINTENANCE_PROPERTY,
    MaintenanceRecord,
    records_of,
    with_maintenance_records,
)
from tests.commit.commit_table import CommitTable, add, file

RECORD = MaintenanceRecord(
    run="0123abcd", operation="compact", user="u", host="h", started=1_700_000_000_000, seconds=1.5, files=2, bytes=300
)


def no_older(snapshot_id: int) -> Snapshot | None:
    raise AssertionError("no older snapshot is read")


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path / "t")


def committed(table: CommitTable, record: MaintenanceRecord | None = None) -> Snapshot:
    snapshot = table.append(add(file(seq=(0, 0))))
    if record is not None:
        table.rewrite(snapshot.id, properties=with_maintenance_records(record.as_property(), snapshot.id, None, no_older))
    return table.snapshots.get(snapshot.id)


def recorded(table: CommitTable) -> list[MaintenanceRecord]:
    return records_of(inherited_property(table.snapshots.latest(), table.snapshots.try_get, MAINTENANCE_PROPERTY))


def test_a_record_reads_back_with_the_snapshot_that_it_is_in() -> None:
    properties = with_maintenance_records({"k": "v", **RECORD.as_property()}, 7, None, no_older)
    assert records_of(properties[MAINTENANCE_PROPERTY]) == [replace(RECORD, snapshot_ids=(7,))]
    assert properties["k"] == "v"


def test_a_commit_inherits_the_records_of_its_base(table: CommitTable) -> None:
    committed(table, RECORD)
    for _ in range(3):
        committed(table)
    assert recorded(table) == [replace(RECORD, snapshot_ids=(1,))]


def test_a_table_without_maintenance_has_no_such_property(table: CommitTable) -> None:
    committed(table)
    assert MAINTENANCE_PROPERTY not in (committed(table).properties or {}) and recorded(table) == []


@pytest.mark.parametrize(("others", "kept"), [(1, True), (9, True), (10, False)])
def test_a_few_snapshots_of_other_engines_do_not_end_the_inheritance_of_records(
    table: CommitTable, others: int, kept: bool
) -> None:
    committed(table, RECORD)
    for _ in range(others):
        table.rewrite(committed(table).id, properties=None, writer_version="1.4")
    assert bool(recorded(table)) == kept
    committed(table)
    assert bool(recorded(table)) == kept


def test_an_unreadable_predecessor_ends_the_search_without_an_error(table: CommitTable) -> None:
    table.rewrite(committed(table).id, writer_version=None)
    latest = replace(committed(table), properties=None, writer_version=None)

    def damaged(snapshot_id: int) -> Snapshot | None:
        raise CorruptTableError("damaged")

    assert inherited_property(latest, damaged, MAINTENANCE_PROPERTY) is None
    assert inherited_property(latest, lambda snapshot_id: None, MAINTENANCE_PROPERTY) is None


def test_of_one_run_the_newest_record_stays_with_the_ids_of_all_its_snapshots() -> None:
    first = Snapshot.from_json(json.dumps(_minimal(with_maintenance_records(RECORD.as_property(), 1, None, no_older))))
    so_far = replace(RECORD, files=5, snapshot_ids=(1,))
    other = replace(RECORD, run="other", operation="analyze")
    second = replace(first, id=2, properties=with_maintenance_records(so_far.as_property(), 2, first, no_older))
    second = second.signed()
    third = with_maintenance_records(other.as_property(), 3, second, no_older)
    assert records_of(third[MAINTENANCE_PROPERTY]) == [
        replace(other, snapshot_ids=(3,)), replace(so_far, snapshot_ids=(1, 2))
    ]


def _minimal(properties: dict[str, str]) -> dict[str, object]:
    return {
        "id": 1, "schemaId": 0, "baseManifestList": "b", "deltaManifestList": "d", "commitUser": "u",
        "commitIdentifier": 1, "commitKind": "COMPACT", "timeMillis": 1, "totalRecordCount": 0, "deltaRecordCount": 0,
        "properties": properties,
    }


def test_the_newest_records_are_kept_within_the_limits() -> None:
    snapshot = Snapshot.from_json(json.dumps(_minimal({})))
    for number in range(300):
        record = replace(RECORD, run=f"{number}", user="u" * 1000, snapshot_ids=tuple(range(100)))
        properties = with_maintenance_records(record.as_property(), number + 1, snapshot, no_older)
        snapshot = replace(snapshot, id=number + 1, properties=properties).signed()
        assert len(properties[MAINTENANCE_PROPERTY]) <= 8192
    kept = records_of(properties[MAINTENANCE_PROPERTY])
    assert [record.run for record in kept] == [str(299 - position) for position in range(len(kept))]
    assert 40 < len(kept) <= 100 and kept[0].user == "u" * 64 and len(kept[0].snapshot_ids) == 8


@pytest.mark.parametrize(
    "text", ["", "no json", "{}", "[1]", "[[]]", '[["a"]]', b"\xff", "[" * 100_000, json.dumps([["x"] * 10])]
)
def test_invalid_records_are_ignored(text: str | bytes) -> None:
    assert records_of(text) == []
    good = RECORD.as_property()[MAINTENANCE_PROPERTY]
    assert records_of(f'[["a"], {good[1:-1]}]') == [RECORD]
