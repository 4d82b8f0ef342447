"""System tables of snapshots, tags, branches, consumers, schemas, options and statistics."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Tag
from lakelsm.format.statistics_file import TableStatistics
from lakelsm.schema_changes import AddColumn, UpdateComment
from lakelsm.snapshots.consumer_store import consumer_text
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables import metadata_tables
from lakelsm.system_tables.metadata_tables import (
    AGGREGATION_FIELDS,
    BRANCHES,
    COMMITS,
    CONSUMERS,
    OPTIONS,
    SCHEMAS,
    SNAPSHOTS,
    STATISTICS,
    TAGS,
    duration_text,
)
from lakelsm.system_tables.system_table import SystemTable, TableState
from lakelsm.types import parse_type
from tests.commit.commit_table import CommitTable, add, file
from tests.system_tables.states import AT_UTC, shown


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path)


def test_each_snapshot_has_the_values_of_its_file(table: CommitTable) -> None:
    table.append(add(file(rows=10)), changelog_entries=[add(file(rows=4))])
    table.compact([add(file(rows=12, level=5))])
    first, second = shown(table, SNAPSHOTS)
    stored = table.snapshots.get(1)
    assert first == {
        "snapshot_id": 1,
        "schema_id": 0,
        "commit_user": "u",
        "commit_identifier": stored.commit_identifier,
        "commit_kind": "APPEND",
        "commit_time": dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=stored.time_millis),
        "base_manifest_list": stored.base_manifest_list,
        "delta_manifest_list": stored.delta_manifest_list,
        "changelog_manifest_list": stored.changelog_manifest_list,
        "total_record_count": 10,
        "delta_record_count": 10,
        "changelog_record_count": 4,
        "watermark": stored.watermark,
        "next_row_id": stored.next_row_id,
        "operation": "WRITE",
        "writer_version": stored.writer_version,
    }
    assert (second["snapshot_id"], second["commit_kind"], second["operation"]) == (2, "COMPACT", None)


def test_each_tag_has_its_snapshot_and_its_retention_time(table: CommitTable) -> None:
    table.append(add(file(rows=3)))
    snapshot = table.snapshots.get(1)
    kept = Tag(snapshot, create_time=(2026, 9, 30, 12, 0, 1, 999_999_999), time_retained_seconds=93_600.0)
    for name, tag in (("b", Tag(snapshot)), ("a", kept), ("damaged", replace(kept, create_time=(2026, 13)))):
        table.file_io.write(table.paths.tag(name), tag.to_json().encode())
    with pytest.raises(CorruptTableError, match=r"Tag 'damaged': tagCreateTime \[2026, 13\]"):
        shown(table, TAGS)
    table.file_io.delete(table.paths.tag("damaged"))
    first, second = shown(table, TAGS)
    commit_time = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=snapshot.time_millis)
    assert first == {
        "tag_name": "a",
        "snapshot_id": 1,
        "schema_id": 0,
        "commit_time": commit_time,
        "record_count": 3,
        "create_time": dt.datetime(2026, 9, 30, 12, 0, 1, 999_000),
        "time_retained": "PT26H",
    }
    assert (second["tag_name"], second["create_time"], second["time_retained"]) == ("b", None, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "PT0S"), (93_780, "PT26H3M"), (1.5, "PT1.5S"), (-61, "PT-1M-1S"), (31_536_000, "PT8760H")],
)
def test_a_duration_has_the_text_of_java(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_branch_has_the_time_of_its_oldest_schema_and_needs_a_schema(table: CommitTable) -> None:
    branch = table.paths.of_branch("b")
    shutil.copytree(table.paths.schema_dir, branch.schema_dir)
    os.utime(branch.schema_file(0), (86_400, 86_400))
    table.file_io.mkdirs(table.paths.of_branch("empty").branch_root)
    assert shown(table, BRANCHES) == [{"branch_name": "b", "create_time": dt.datetime(1970, 1, 2)}]


def test_a_consumer_has_the_snapshot_that_it_reads_next(table: CommitTable) -> None:
    table.append(add())
    table.file_io.write(table.paths.consumer("reader"), consumer_text(7))
    assert shown(table, CONSUMERS) == [{"consumer_id": "reader", "next_snapshot_id": 7}]


def test_each_snapshot_has_its_counts_and_its_operation(table: CommitTable) -> None:
    table.append(add(file(rows=10)), changelog_entries=[add(file(rows=4))])
    table.append(add(file(rows=5)), add(file(rows=1), dt="b"))
    table.compact([add(file(rows=12, level=5))])
    table.overwrite(add(file(rows=3), dt="b"), partitions=["b"])
    found = shown(table, COMMITS)
    assert [row["snapshot_id"] for row in found] == [1, 2, 3, 4]
    assert [(row["commit_kind"], row["operation"], row["commit_user"]) for row in found] == [
        ("APPEND", "WRITE", "u"),
        ("APPEND", "WRITE", "u"),
        ("COMPACT", "COMPACT", "c"),
        ("OVERWRITE", "OVERWRITE", "o"),
    ]
    assert [(row["total_record_count"], row["delta_record_count"]) for row in found] == [
        (10, 10), (16, 6), (28, 12), (30, 2),
    ]
    assert [row["changelog_record_count"] for row in found] == [4, 0, 0, 0]
    assert [(row["added_file_count"], row["deleted_file_count"]) for row in found] == [(1, 0), (2, 0), (1, 0), (1, 1)]
    since = found[0]["commit_time"] - datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert since == timedelta(milliseconds=table.snapshots.get(1).time_millis)


def test_a_concurrently_expired_snapshot_is_left_out_and_damage_is_an_error(
    table: CommitTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        table.append(add())
    real = metadata_tables.read_delta_metas

    def expiring(file_io: Any, paths: Any, snapshot: Any) -> Any:
        if snapshot.id == 1:
            table.file_io.delete(paths.manifest(snapshot.delta_manifest_list))
            if expires:
                table.file_io.delete(paths.snapshot_file(1))
        return real(file_io, paths, snapshot)

    monkeypatch.setattr(metadata_tables, "read_delta_metas", expiring)
    expires = False
    with pytest.raises(CorruptTableError):
        shown(table, COMMITS)
    expires = True
    assert [row["snapshot_id"] for row in shown(table, COMMITS)] == [2]


OPTION_TEXTS = {
    "bucket": "1",
    "merge-engine": "aggregation",
    "fields.v.aggregate-function": "sum",
    "fields.v.ignore-retract": "true",
}


def schema_rows(tmp_path: Path, system: SystemTable) -> pa.Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_table("db.t", "k INT, v BIGINT COMMENT 'ü'", primary_key=["k"], options=OPTION_TEXTS)
    catalog.alter_table("db.t", AddColumn("r", parse_type("ROW<a INT>")), UpdateComment("told"))
    return system.rows(TableState(TableStore.open(str(tmp_path / "db.db" / "t")), None, AT_UTC))


def test_each_schema_has_its_columns_keys_and_options_as_flat_json(tmp_path: Path) -> None:
    first, second = schema_rows(tmp_path, SCHEMAS).to_pylist()
    assert first["fields"] == (
        '[{"id":0,"name":"k","type":"INT NOT NULL"},{"id":1,"name":"v","type":"BIGINT","description":"ü"}]'
    )
    assert (first["schema_id"], first["partition_keys"], first["primary_keys"]) == (0, "[]", '["k"]')
    assert json.loads(first["options"]) == OPTION_TEXTS and ": " not in first["options"]
    assert (first["comment"], second["comment"], second["schema_id"]) == (None, "told", 1)


def test_options_are_those_of_the_newest_schema(tmp_path: Path) -> None:
    found = schema_rows(tmp_path, OPTIONS).to_pylist()
    assert {row["key"]: row["value"] for row in found} == OPTION_TEXTS


def test_each_column_has_the_options_that_name_it(tmp_path: Path) -> None:
    key, value, _ = schema_rows(tmp_path, AGGREGATION_FIELDS).to_pylist()
    assert key == {
        "field_name": "k", "field_type": "INT NOT NULL", "function": "[]", "function_options": "[]", "comment": None,
    }
    assert (value["function"], value["comment"]) == ("[sum, true]", "ü")
    assert value["function_options"] == "[fields.v.aggregate-function, fields.v.ignore-retract]"


def test_a_secret_among_the_options_is_redacted(tmp_path: Path) -> None:
    store = Catalog(str(tmp_path)).create_table("db.t", "k INT", primary_key=["k"])._opened
    stored = {**store.schema.options, "s3.secret-key": "hunter2", "bucket-key": "k", "bucket": "1"}
    path = store.paths.schema_file(0)
    store.file_io.write(path, store.schema.with_options(stored).to_json().encode())
    state = TableState(TableStore.open(store.paths.root), None, AT_UTC)
    shown = {row["key"]: row["value"] for row in OPTIONS.rows(state).to_pylist()}
    assert (shown["s3.secret-key"], shown["bucket-key"]) == ("…", "k")
    assert "hunter2" not in str(SCHEMAS.rows(state).to_pylist()) + repr(state.store) + repr(state.store.schema)


def test_the_statistics_of_the_snapshot_are_one_row(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    assert shown(table, STATISTICS) == []
    table.append(add())
    assert shown(table, STATISTICS) == []
    statistics = TableStatistics(snapshot_id=1, schema_id=0, merged_record_count=5, merged_record_size=60)
    table.file_io.write(table.paths.statistics("stat-x-0"), statistics.to_json().encode())
    table.rewrite(1, statistics="stat-x-0")
    assert shown(table, STATISTICS) == [
        {"snapshot_id": 1, "schema_id": 0, "mergedRecordCount": 5, "mergedRecordSize": 60, "colstat": "{ }"}
    ]
