"""System tables of snapshots, tags, branches and consumers."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Tag
from lakelsm.maintain.system_tables.snapshot_tables import BRANCHES, CONSUMERS, SNAPSHOTS, TAGS, duration_text
from lakelsm.snapshots.consumer_store import consumer_text
from tests.commit.commit_table import CommitTable, add, file
from tests.maintain.system_tables.states import shown


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path)


def test_each_snapshot_is_told_as_its_file_says(table: CommitTable) -> None:
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


def test_each_tag_has_its_snapshot_and_how_long_it_lives(table: CommitTable) -> None:
    table.append(add(file(rows=3)))
    snapshot = table.snapshots.get(1)
    kept = Tag(snapshot, create_time=(2026, 9, 30, 12, 0, 1, 999_999_999), time_retained_seconds=93_600.0)
    for name, tag in (("b", Tag(snapshot)), ("a", kept), ("damaged", replace(kept, create_time=(2026, 13)))):
        table.file_io.write(table.paths.tag(name), tag.to_json().encode())
    with pytest.raises(CorruptTableError, match=r"Tag 'damaged' has \[2026, 13\]"):
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
def test_a_duration_is_told_as_java_prints_it(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_branch_is_as_old_as_its_oldest_schema_and_one_without_is_left_out(table: CommitTable) -> None:
    branch = table.paths.of_branch("b")
    shutil.copytree(table.paths.schema_dir, branch.schema_dir)
    os.utime(branch.schema_file(0), (86_400, 86_400))
    table.file_io.mkdirs(table.paths.of_branch("empty").branch_root)
    assert shown(table, BRANCHES) == [{"branch_name": "b", "create_time": dt.datetime(1970, 1, 2)}]


def test_a_consumer_has_the_snapshot_that_it_reads_next(table: CommitTable) -> None:
    table.append(add())
    table.file_io.write(table.paths.consumer("reader"), consumer_text(7))
    assert shown(table, CONSUMERS) == [{"consumer_id": "reader", "next_snapshot_id": 7}]
