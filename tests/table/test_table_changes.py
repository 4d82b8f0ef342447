"""Incremental reads of the public API: producers, ranges, modes and order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.schema_changes import AddColumn, SetOption
from lakelsm.types import parse_type
from tests.engines import Row, TableEngine, each_case
from tests.option_keys import option_keys
from tests.table_files import live_files, root_of, stored_files


def create(engine: TableEngine, folder: Path, producer: str = "none", name: str = "db.t", **options: str) -> Table:
    """Create a table of (k, v) with one bucket. Writes compact it unless the options disable that."""
    keys = {"changelog-producer": producer, "write-only": "false", **option_keys(options)}
    return engine.create(folder, "k INT, v STRING", ["k"], options=keys, name=name)


def write(engine: TableEngine, table: Table, *rows: Row) -> int:
    """Write (kind, k, v) rows, and return the id of the snapshot."""
    snapshot = engine.write(table, rows, "op").snapshot_id
    assert isinstance(snapshot, int)
    return snapshot


def tag(table: Table, name: str, snapshot: int) -> None:
    root = root_of(table)
    (root / "tag").mkdir(exist_ok=True)
    (root / "tag" / f"tag-{name}").write_bytes((root / "snapshot" / f"snapshot-{snapshot}").read_bytes())


def test_input_keeps_every_written_row_in_its_order(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path, "input", write_only="true")
    write(engine, table, ("+I", 2, "a"), ("+I", 1, "b"), ("-U", 2, "a"), ("+U", 2, "c"))
    write(engine, table, ("-D", 1, "b"))
    assert engine.changes(table, where="k = 2") == [("+I", 2, "a"), ("-U", 2, "a"), ("+U", 2, "c")]
    assert engine.changes(table, 1) == [("-D", 1, "b")]
    assert engine.rows(table) == [(2, "c")]
    snapshot = table._store().snapshots.get(1)
    assert (snapshot.changelog_record_count, snapshot.total_record_count) == (4, 2)
    assert [row[-2:] for row in engine.changes(table, end=1, positions=True)] == [(1, at) for at in range(4)]


def test_a_batch_that_is_redone_after_a_race_keeps_all_its_rows(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path, "input", write_only="true")
    rivals = [("+I", 1, "rival")]

    def step(name: str) -> None:
        if name == "data-files-written" and rivals:
            write(engine, table, rivals.pop())

    frame = engine.frame([("+I", 1, "a"), ("+U", 1, "b")], "op STRING, k INT, v STRING")
    engine.append(table, frame, step, "op")
    assert engine.changes(table) == [("+I", 1, "rival"), ("+I", 1, "a"), ("+U", 1, "b")]
    assert engine.rows(table) == [(1, "b")]
    assert stored_files(table) == live_files(table)
    assert len(stored_files(table, "changelog-*")) == 2


@each_case("producer", ["lookup", "full-compaction"], on_spark=["lookup"])
def test_changes_written_to_another_table_make_it_equal(engine: TableEngine, tmp_path: Path, producer: str) -> None:
    table, mirror = create(engine, tmp_path, producer), create(engine, tmp_path, name="db.mirror")
    write(engine, table, ("+I", 1, "a"), ("+I", 2, "b"))
    write(engine, table, ("+U", 1, "c"), ("+I", 3, "d"))
    write(engine, table, ("-D", 2, None))
    write(engine, table, ("+I", 2, "e"))
    mirror.write(engine.changelog(table), row_kind="rowkind")
    assert engine.rows(mirror) == engine.rows(table) == [(1, "c"), (2, "e"), (3, "d")]


def test_a_table_without_a_producer_returns_merged_changes(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path, write_only="true")
    write(engine, table, ("+I", 1, "a"), ("+I", 2, "b"))
    write(engine, table, ("+I", 1, "c"), ("-D", 2, "b"), ("+I", 3, "d"))
    write(engine, table, ("+I", 1, "e"))
    engine.compact(table, full=True)
    assert sorted(engine.changes(table, 1)) == [("+I", 1, "e"), ("+I", 3, "d"), ("-D", 2, "b")]
    assert engine.changes(table, 2) == [("+I", 1, "e")]
    assert sorted(engine.changes(table, 1, mode="diff")) == [
        ("+I", 3, "d"),
        ("+U", 1, "e"),
        ("-D", 2, "b"),
        ("-U", 1, "a"),
    ]
    assert engine.changes(table, 3) == []


def test_an_overwrite_has_no_changelog_and_later_changes_contain_its_rows(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path, "lookup")
    write(engine, table, ("+I", 1, "a"), ("+I", 2, "b"))
    before = table._store().snapshots.latest_id()
    assert table.overwrite(engine.frame([(1, "x")], "k INT, v STRING")).compaction is not None
    assert engine.changes(table, before) == []
    assert sorted(engine.changes(table, before, mode="diff")) == [("+U", 1, "x"), ("-D", 2, "b"), ("-U", 1, "a")]
    write(engine, table, ("+I", 1, "y"), ("+I", 2, "z"))
    assert sorted(engine.changes(table, before)) == [("+I", 2, "z"), ("+U", 1, "y"), ("-U", 1, "x")]


def test_ranges_are_ids_tags_and_times(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, "input", write_only="true")
    moments = []
    for number in (1, 2, 3):
        write(local, table, ("+I", number, None))
        path = root_of(table) / "snapshot" / f"snapshot-{number}"
        moments.append(datetime(2024, 7, 1, 10 + number, tzinfo=timezone.utc))
        values = {**json.loads(path.read_text()), "timeMillis": int(moments[-1].timestamp() * 1000)}
        path.write_text(json.dumps(values))

    def keys(*points: Any, **more: Any) -> Sequence[int]:
        return sorted(row[1] for row in local.changes(table, *points, **more))

    tag(table, "first", 1)
    assert keys() == keys(0) == keys(datetime(2024, 1, 1, tzinfo=timezone.utc)) == [1, 2, 3]
    assert keys(1) == keys("first") == keys(moments[0]) == [2, 3]
    assert keys(1, 2) == keys(end=2)[1:] == keys(moments[0], moments[1]) == [2]
    assert keys(3) == keys(2, 2) == keys(2, moments[1]) == []
    assert keys(1, where="k > 2") == [3]
    (root_of(table) / "snapshot" / "snapshot-1").unlink()
    assert keys() == keys(1) == [2, 3]
    tag(table, "third", 3)
    # Between tags the states are compared, because the snapshots between them may have expired.
    (root_of(table) / "snapshot" / "snapshot-2").unlink()
    assert keys("first", "third") == [2, 3]
    with pytest.raises(SnapshotNotFoundError, match="expired"):
        keys(1, 3)


def test_an_impossible_range_is_refused(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path, "input", write_only="true")
    assert engine.changes(table) == []
    write(engine, table, ("+I", 1, "a"))
    write(engine, table, ("+I", 2, "b"))
    with pytest.raises(InvalidInputError, match="after end"):
        engine.changelog(table, 2, 1)
    for missing in (7, "monthly"):
        with pytest.raises(SnapshotNotFoundError, match=str(missing)):
            engine.changelog(table, missing)
    output = engine.changelog(table, 1, kind_column="op")
    assert (output.schema.names if engine.spark is None else output.columns) == ["op", "k", "v"]


def test_changes_before_a_new_column_have_null_in_it(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path, "lookup")
    write(engine, table, ("+I", 1, "a"))
    engine.catalog(tmp_path).alter_table("db.t", AddColumn("w", parse_type("INT")))
    engine.write(table, [(1, "b", 5)])
    assert engine.changes(table) == [("+I", 1, "a", None), ("-U", 1, "a", None), ("+U", 1, "b", 5)]
    assert sorted(engine.changes(table, 1, mode="diff")) == [("+U", 1, "b", 5), ("-U", 1, "a", None)]


def test_a_condition_on_partitions_skips_other_changelogs(engine: TableEngine, tmp_path: Path) -> None:
    options = {"changelog-producer": "lookup", "write-only": "false"}
    table = engine.create(tmp_path, "p STRING, k INT, v INT", ["p", "k"], ["p"], options)
    engine.write(table, [(f"p{number % 5}", number, 1) for number in range(10)])
    for path in root_of(table).rglob("changelog-*"):
        if "p=p3" not in str(path):
            path.unlink()
    assert engine.changes(table, where="p = 'p3' AND k > 3") == [("+I", "p3", 8, 1)]


def test_first_row_returns_new_keys_only_and_rewrites_no_other(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, "lookup", merge_engine="first-row", num_sorted_run__compaction_trigger="9")
    write(local, table, *[("+I", number, "first") for number in range(200)])
    old = stored_files(table)
    write(local, table, ("+I", 5, "second"), ("+I", 500, "new"))
    assert local.changes(table, 2) == [("+I", 500, "new")]
    assert len(local.rows(table)) == 201
    assert local.rows(table, "k = 5") == [(5, "first")]
    assert live_files(table) & old


def test_a_lookup_producer_cannot_change_for_engines_that_combine_rows(
    local: TableEngine, tmp_path: Path
) -> None:
    table = create(local, tmp_path, "lookup", merge_engine="aggregation")
    write(local, table, ("+I", 1, "a"))
    with pytest.raises(InvalidInputError, match="changelog-producer"):
        local.catalog(tmp_path).alter_table("db.t", SetOption("changelog-producer", "none"))
