"""Tags, rollbacks and consumers of Java Paimon and lakelsm: each reads and continues those of the other."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Table
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon
from tests.interop.samples import rows_of

COLUMNS = "k INT NOT NULL, v STRING"
OPTIONS = {"bucket": "1", "write-only": "true"}


def row(key: int) -> pa.Table:
    return rows_of(COLUMNS, {"k": [key], "v": [f"v{key}"]})


def upto(key: int) -> list[tuple[int, str]]:
    return [(each, f"v{each}") for each in range(1, key + 1)]


def held(table: Table, tag: str) -> list[tuple[object, ...]]:
    return [tuple(each.values()) for each in table.at(tag=tag).to_arrow(ordered=True).to_pylist()]


def test_java_continues_tags_and_rollbacks_of_lakelsm(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    ours.create(path, COLUMNS, ["k"], options=OPTIONS)
    for key in range(1, 5):
        ours.write(path, row(key))
    table = Table.for_path(str(path))
    table.tags.create("kept", 2, time_retained="1 d")
    table.tags.create("three", 3)
    table.compact(full=True, engine="local")
    table.maintenance.expire_snapshots(retain_last=1)
    table.consumers.record("etl", 6)
    assert java.read(path, tag="kept") == upto(2) and java.read(path, tag="three") == upto(3)
    columns, tags = java.system(path, "tags")
    named = [dict(zip([name for name, _ in columns], each)) for each in tags]
    assert {(each["tag_name"], each["snapshot_id"]) for each in named} == {("kept", 2), ("three", 3)}
    assert java.system(path, "consumers")[1] == [("etl", 6)]
    java.version(path, "delete", "three")
    assert [tag.name for tag in table.tags.list()] == ["kept"] and held(table, "kept") == upto(2)
    done = table.rollback("kept")
    assert done.restored and java.read(path) == ours.read(path) == upto(2)
    assert java.system(path, "consumers")[1] == [("etl", 3)]
    java.write(path, row(3))
    ours.write(path, row(4))
    assert java.read(path) == ours.read(path) == upto(4)
    assert java.read(path, tag="kept") == upto(2)
    java.version(path, "rollback", "", 3)
    table.tags.delete("kept")
    assert java.read(path) == ours.read(path) == upto(3)


def test_lakelsm_continues_tags_and_rollbacks_of_java(ours: LakelsmTables, java: JavaPaimon, path: Path) -> None:
    java.create(path, COLUMNS, ["k"], options=OPTIONS)
    for key in range(1, 5):
        java.write(path, row(key))
    table = Table.for_path(str(path))
    java.version(path, "create", "kept", 2, 3600)
    java.version(path, "create", "plain", 3)
    java.version(path, "consume", "flink", 4)
    kept, plain = table.tags.list()
    assert (kept.name, kept.snapshot_id, kept.time_retained) == ("kept", 2, timedelta(hours=1))
    javas_now = datetime.now(timezone.utc).replace(tzinfo=None)  # Its process is in UTC (tests/interop/conftest.py).
    assert kept.created_at is not None and abs(kept.created_at - javas_now) < timedelta(minutes=10)
    assert (plain.name, plain.created_at) == ("plain", None) and held(table, "kept") == upto(2)
    assert [(each.name, each.next_snapshot_id) for each in table.consumers.list()] == [("flink", 4)]
    java.version(path, "rollback", "plain")
    assert ours.read(path) == java.read(path) == upto(3)
    ours.write(path, row(4))
    assert table.rollback(2).tags == ("plain",)
    assert ours.read(path) == java.read(path) == java.read(path, tag="kept") == upto(2)
    java.write(path, row(3))
    assert ours.read(path) == upto(3)


@pytest.mark.parametrize(
    "more",
    [
        {"tag.automatic-creation": "process-time"},
        {
            "tag.automatic-creation": "process-time",
            "tag.creation-period": "hourly",
            "tag.period-formatter": "without_dashes_and_spaces",
            "sink.process-time-zone": "GMT-08:00",
            "tag.default-time-retained": "2 d",
        },
    ],
)
def test_both_create_the_same_automatic_tags(
    ours: LakelsmTables, java: JavaPaimon, tmp_path: Path, more: dict[str, str]
) -> None:
    told = []
    for name, engine in (("ours", ours), ("java", java)):
        path = tmp_path / "w.db" / name
        engine.create(path, COLUMNS, ["k"], options={"bucket": "1", **more})  # type: ignore[attr-defined]
        for key in (1, 2):
            engine.write(path, row(key))  # type: ignore[attr-defined]
        table = Table.for_path(str(path))
        ours.write(path, row(3))
        told.append([(tag.name, tag.snapshot_id, tag.time_retained) for tag in table.tags.list()])
    assert told[0] == told[1] and len(told[0]) == 1
