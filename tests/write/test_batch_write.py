"""One batch: replayed, repeated after a lost race, and with dynamic buckets that others assign concurrently."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError
from lakelsm.format.snapshot import CommitKind
from lakelsm.snapshots.manifest_scan import read_index_entries
from lakelsm.write.batch_write import BatchResult, BatchWriter
from tests.engines import TableEngine, each_case, in_order, plain_rows
from tests.option_keys import option_keys
from tests.table_files import live_entries, live_files, root_of, stored_files


def create(
    engine: TableEngine,
    folder: Path,
    columns: str = "k INT, v STRING",
    key: Sequence[str] = ("k",),
    partition: Sequence[str] = (),
    **options: str,
) -> Table:
    return engine.create(folder, columns, key, partition, option_keys(options))


def read(engine: TableEngine, table: Table) -> dict[int, str]:
    found = engine.rows(table)
    assert len(found) == len(dict(found)), f"a key has two rows: {found}"
    return dict(found)


def append(
    engine: TableEngine,
    table: Table,
    rows: Sequence[Sequence[Any]],
    concurrent: Callable[[], Any],
    times: int = 1,
    row_kind: str | None = None,
) -> BatchResult:
    """Write a batch; ``concurrent`` commits first each time when the batch has written its files."""
    left = [times]

    def step(name: str) -> None:
        if name == "data-files-written" and left[0]:
            left[0] -= 1
            concurrent()

    result: BatchResult = engine.append(table, engine.frame_for(table, rows, row_kind), step, row_kind)
    return result


def test_options_of_one_write_act_in_it_alone(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path)
    options = {"target-file-row-num": 1, "commit.user-prefix": "nightly", "file.compression": "none"}
    assert local.write(table, [(1, "a"), (2, "b"), (3, "c")], options=options).files == 3
    local.write(table, [(1, "d"), (2, "e"), (3, "f")])
    first, second = (snapshot.commit_user for snapshot in table._store().snapshots.list())
    assert first.startswith("nightly_") and not second.startswith("nightly")
    with pytest.raises(InvalidInputError, match=r"'partition\.expiration-time' = '2 h' cannot be set for one call"):
        local.write(table, [(1, "g")], options={"partition.expiration-time": "2 h"})


def test_a_repeated_batch_is_a_no_op_and_is_reported(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path)
    first = local.write(table, [(1, "a")], commit_user="u", batch_id=3)
    local.write(table, [(1, "b")])
    files = stored_files(table)
    again = local.write(table, [(1, "a")], commit_user="u", batch_id=3)
    assert (again.snapshot_id, again.already_committed, again.files) == (first.snapshot_id, True, 0)
    assert not local.write(table, [(2, "c")], commit_user="other", batch_id=3).already_committed
    assert read(local, table) == {1: "b", 2: "c"} and files < stored_files(table)


def test_a_failed_batch_may_be_run_after_a_later_one(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path)
    local.write(table, [(1, "second")], commit_user="u", batch_id=2)
    first = local.write(table, [(3, "first")], commit_user="u", batch_id=1)
    assert not first.already_committed and read(local, table) == {1: "second", 3: "first"}
    for batch_id in (1, 2):
        assert local.write(table, [(9, "again")], commit_user="u", batch_id=batch_id).already_committed
    assert read(local, table) == {1: "second", 3: "first"}


def test_a_batch_that_another_process_commits_concurrently_is_not_written_twice(
    local: TableEngine, tmp_path: Path
) -> None:
    table = create(local, tmp_path)
    rows = [(1, "a")]
    result = append(local, table, rows, lambda: local.write(table, rows, commit_user="slow", batch_id=5))
    assert result.outcome.already_committed and result.entries == ()
    assert len(table._store().snapshots.ids()) == 1
    assert stored_files(table) == live_files(table)


def test_a_batch_is_renumbered_if_another_wins_in_its_bucket(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path)
    engine.write(table, [(1, "old"), (2, "old")])
    fast = [(1, "fast"), (4, "fast")]
    result = append(engine, table, [(1, "slow"), (3, "slow")], lambda: engine.write(table, fast))
    assert result.outcome.snapshot is not None and result.outcome.snapshot.id == 3
    assert read(engine, table) == {1: "slow", 2: "old", 3: "slow", 4: "fast"}
    spans = sorted((e.file.min_sequence_number, e.file.max_sequence_number) for e in live_entries(table))
    assert all(high < low for (_, high), (low, _) in pairwise(spans))
    assert stored_files(table) == live_files(table)
    engine.compact(table, full=True)
    assert read(engine, table) == {1: "slow", 2: "old", 3: "slow", 4: "fast"}


@each_case("producer", ["none", "input"], ["input"])
def test_ignored_rows_are_counted_once_if_a_batch_is_written_again(
    engine: TableEngine, tmp_path: Path, producer: str
) -> None:
    dropped = create(engine, tmp_path, ignore_delete="true", changelog_producer=producer)
    rows = [("-D", 1, "x"), ("-U", 2, "x"), ("+U", 2, "y"), ("-D", 2, "y")]
    fast = [(2, "fast")]
    result = append(engine, dropped, rows, lambda: engine.write(dropped, fast), row_kind="op")
    assert (result.ignored_rows, result.ignored_deletes) == (3, 2)
    assert read(engine, dropped) == {2: "y"}
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "changelog-producer": producer}
    summed = engine.create(tmp_path, "k INT, v INT", ["k"], options=options, name="db.summed")
    adds = [("+I", 1, 5), ("-D", 1, None), ("-U", 1, 1)]
    again = append(engine, summed, adds, lambda: engine.write(summed, [(1, 7)]), row_kind="op")
    assert (again.ignored_rows, again.ignored_deletes) == (1, 1) and read(engine, summed) == {1: 11}


def test_ignored_rows_of_a_batch_that_changes_nothing_are_counted_and_those_of_a_replay_are_not(
    local: TableEngine, tmp_path: Path
) -> None:
    table = create(local, tmp_path, ignore_delete="true")
    deletes = [("-D", key, "x") for key in range(5)]
    with pytest.warns(UserWarning, match="ignored 5 rows of kind -D") as caught:
        result = local.write(table, deletes, "op")
    assert (result.snapshot_id, result.rows, result.ignored_rows, len(caught)) == (None, 0, 5, 1)
    assert stored_files(table) == set() and local.write(table, [], "op").ignored_rows == 0
    local.write(table, [("+I", 1, "a")], "op", commit_user="u", batch_id=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert local.write(table, deletes, "op", commit_user="u", batch_id=1).ignored_rows == 0
    raced = append(
        local, table, [*deletes, ("+I", 7, "a")],
        lambda: local.write(table, [(7, "a")], commit_user="slow", batch_id=5), row_kind="op",
    )  # fmt: skip
    assert raced.outcome.already_committed and (raced.ignored_rows, raced.ignored_deletes) == (0, 0)


def test_a_slow_batch_conflicts_with_faster_writers_only_once(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path)
    count = [0]

    def fast() -> None:
        count[0] += 1
        local.write(table, [(1, f"fast {count[0]}"), (100 + count[0], "fast")])

    append(local, table, [(1, "slow")], fast, times=5)
    assert count == [2]
    assert read(local, table) == {1: "slow", 101: "fast", 102: "fast"}
    local.write(table, [(1, "later")])
    assert read(local, table)[1] == "later"


def test_a_batch_of_other_buckets_is_not_repeated(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, "k INT, p INT, v STRING", ["p", "k"], ["p"])
    count = [0]

    def other() -> None:
        count[0] += 1
        local.write(table, [(1, 2, "other")])

    append(local, table, [(1, 1, "mine")], other, times=3)
    assert count == [1]
    assert local.rows(table) == [(1, 1, "mine"), (1, 2, "other")]


ALL_TYPES = (
    "k INT, a BOOLEAN, b TINYINT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(20, 3), g CHAR(2), h BYTES, i DATE, j TIME(3), "
    "l TIMESTAMP(3), m TIMESTAMP(6), n TIMESTAMP(9), o TIMESTAMP_LTZ(6), p ARRAY<INT>, q MAP<STRING, INT>, "
    "r ROW<x INT, y STRING>"
)
NOON = datetime.datetime(2020, 2, 29, 12, 30, 1, 123000)
OLD = datetime.datetime(1850, 1, 1, 1, 2, 3, 4000)


def test_a_repeated_batch_keeps_values_of_each_type(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path, ALL_TYPES)
    noon = [NOON, NOON, NOON, NOON.replace(tzinfo=datetime.timezone.utc)]
    old = [OLD, OLD, OLD, OLD.replace(tzinfo=datetime.timezone.utc)]
    number = Decimal("-12345678901234567.891")
    values: list[list[Any]] = [
        [1, True, -7, 1 << 60, 0.5, -0.0, number, "ab", b"\0\1", NOON.date(), 86_399_999, *noon, [1, None]],
        [2, False, 7, -1, 1.0, 1.5, Decimal("0.001"), "é", b"", OLD.date(), 0, *old, []],
        [3, *[None] * 17],
    ]
    values[0] += [{"a": 1, "b": None}, {"x": 1, "y": None}]
    values[1] += [{}, {"x": None, "y": "y"}]
    append(engine, table, values, lambda: engine.write(table, [(4, *[None] * 17)]))
    frame = engine.frame_for(table, values)
    wanted = plain_rows(frame) if engine.spark is None else [tuple(row) for row in frame.collect()]
    assert engine.rows(table) == [*in_order(wanted), (4, *[None] * 17)]


def test_deletes_of_a_repeated_batch_stay_deletes(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path)
    engine.write(table, [(1, "a"), (2, "b")])
    rows = [("-D", 1, None), ("+I", 3, "c")]
    append(engine, table, rows, lambda: engine.write(table, [(1, "fast")]), row_kind="op")
    assert read(engine, table) == {2: "b", 3: "c"}


def test_competing_assigners_of_dynamic_buckets_agree_in_the_end(engine: TableEngine, tmp_path: Path) -> None:
    table = create(engine, tmp_path, bucket="-1", dynamic_bucket__target_row_num="5")
    fast = [(k, "fast") for k in range(10, 22)]
    result = append(engine, table, [(k, "slow") for k in range(18)], lambda: engine.write(table, fast))
    assert result.outcome.snapshot is not None and result.outcome.snapshot.id == 2
    assert read(engine, table) == {**dict.fromkeys(range(18, 22), "fast"), **dict.fromkeys(range(18), "slow")}
    check_index(table, 22)
    engine.write(table, [(k, "last") for k in range(22)])
    assert set(read(engine, table).values()) == {"last"} and len(read(engine, table)) == 22
    check_index(table, 22)
    stored = {path.name for path in (root_of(table) / "index").iterdir()}
    assert {e.file.file_name for e in index_of(table)} <= stored


def index_of(table: Table) -> list[Any]:
    store = table._store()
    latest = store.snapshots.latest()
    assert latest is not None
    return list(read_index_entries(store.file_io, store.paths, latest))


def check_index(table: Table, keys: int) -> None:
    """Check that each bucket with rows has a HASH index, and that together they have each key once."""
    entries = index_of(table)
    assert {entry.bucket for entry in live_entries(table)} == {entry.bucket for entry in entries}
    assert sum(entry.file.row_count for entry in entries) == keys


def test_an_overwrite_assigns_dynamic_buckets_again_and_keys_stay_unique(
    engine: TableEngine, tmp_path: Path
) -> None:
    table = create(engine, tmp_path, bucket="-1", dynamic_bucket__target_row_num="4")
    engine.write(table, [(k, "a") for k in range(20)])
    assert len(index_of(table)) == 5
    table.overwrite(engine.frame_for(table, [(k, "b") for k in range(10, 20)]))
    check_index(table, 10)
    assert {entry.bucket for entry in live_entries(table)} == {0, 1, 2}
    engine.write(table, [(k, "c") for k in range(19, 4, -1)])
    assert read(engine, table) == dict.fromkeys(range(5, 20), "c")
    check_index(table, 15)


def test_an_append_planned_before_an_overwrite_is_repeated_on_it(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, bucket="-1", dynamic_bucket__target_row_num="4")
    local.write(table, [(k, "a") for k in range(12)])
    replacing = local.frame_for(table, [(3, "o"), (4, "o")])
    append(local, table, [(3, "slow"), (50, "slow")], lambda: table.overwrite(replacing))
    assert read(local, table) == {3: "slow", 4: "o", 50: "slow"}
    check_index(table, 3)


def test_an_overwrite_whose_partition_filter_fails_leaves_no_file(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path)
    store = table._store()

    def refuse(written: set[bytes]) -> None:
        raise InvalidInputError("no such partition")

    prepared = local.product.prepared_rows(store, local.frame_for(table, [(1, "a")]))
    with pytest.raises(InvalidInputError, match="no such partition"):
        BatchWriter(local.product.writer(store), store).overwrite(prepared, refuse, "u")
    assert stored_files(table) == set() and store.snapshots.ids() == []


def test_many_commits_of_one_bucket_keep_ascending_numbers(local: TableEngine, tmp_path: Path) -> None:
    table = create(local, tmp_path, bucket="2")
    for n in range(3):
        local.write(table, [(k, f"v{n}") for k in range(6)])
    local.compact(table, full=True)
    local.write(table, [(0, "last")])
    assert read(local, table) == {0: "last", **dict.fromkeys(range(1, 6), "v2")}
    newest = [e.file for e in live_entries(table) if e.file.level == 0]
    oldest = [e.file for e in live_entries(table) if e.file.level > 0]
    assert len(newest) == 1
    assert newest[0].min_sequence_number > max(file.max_sequence_number for file in oldest)
    assert table._store().snapshots.get(4).commit_kind is CommitKind.COMPACT


@each_case("bucket", ["2", "-1"], on_spark=["-1"])
def test_columns_may_have_any_name(engine: TableEngine, tmp_path: Path, bucket: str) -> None:
    columns = "`a.b` STRING NOT NULL, `the key` INT NOT NULL, `back``tick` STRING, `a` ROW<b INT>"
    options = {"bucket": bucket, **({"dynamic-bucket.target-row-num": "2"} if bucket == "-1" else {})}
    table = create(engine, tmp_path, columns, ["a.b", "the key"], ["a.b"], **options)
    rows = [("p", key, f"v{key}", {"b": key}) for key in range(5)]
    append(engine, table, rows, lambda: engine.write(table, rows))
    assert engine.rows(table) == [("p", key, f"v{key}", (key,)) for key in range(5)]
    engine.compact(table, full=True)
    assert engine.rows(table, "`back``tick` = 'v3'", ["a.b", "the key"]) == [("p", 3)]
