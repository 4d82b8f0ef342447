"""Partitions expire by their values or by their newest file, by calls and after commits."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.maintain.partitions.partition_expiry import expire_partitions, expire_partitions_after_commit
from lakelsm.schema_changes import SetOption
from tests.maintain.partitions.partitioned_table import fill, left, partitioned

DAY = 86_400_000
#: Noon of 2026-03-10. The local time zone is UTC.
NOON = int(datetime(2026, 3, 10, 12, tzinfo=timezone.utc).timestamp() * 1000)


def at(millis: int) -> Environment:
    return replace(SYSTEM, clock=lambda: millis, local_offset=lambda seconds: 0)


def test_partitions_expire_by_their_values(tmp_path: Path) -> None:
    table = partitioned(tmp_path, **{"primary-key.nullable": True})
    fill(table, "2026-03-08", "2026-03-09", "2026-03-10", "2027-01-01", "odd", None)
    store = table._store()
    plan = expire_partitions(store, NOON - DAY, dry_run=True, environment=at(NOON))
    done = expire_partitions(store, NOON - DAY, environment=at(NOON))
    assert plan.partitions == done.partitions == ("dt=2026-03-08", "dt=2026-03-09")
    assert (plan.snapshot_ids, done.snapshot_ids, done.unread) == ((), (2,), ("dt=NULL", "dt=odd"))
    assert expire_partitions(store, NOON - DAY, environment=at(NOON)).snapshot_ids == ()
    assert table.inspect.partitions().to_arrow()["partition"].to_pylist() == [
        "dt=2026-03-10",
        "dt=2027-01-01",
        "dt=NULL",
        "dt=odd",
    ]


def test_the_local_clock_counts(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    fill(table, "2026-03-10 13:00:00")
    east = replace(at(NOON), local_offset=lambda seconds: 7200)
    assert expire_partitions(table._store(), NOON, dry_run=True, environment=at(NOON)).partitions == ()
    assert len(expire_partitions(table._store(), NOON, environment=east).partitions) == 1


@pytest.mark.parametrize(
    ("key", "kind", "values", "kept"),
    [
        ("dt DATE", pa.date32(), [date(2026, 3, 1), date(2026, 3, 10)], [date(2026, 3, 10)]),
        ("dt TIMESTAMP(3)", pa.timestamp("ms"), [datetime(2026, 3, 1), datetime(2026, 3, 10)], [datetime(2026, 3, 10)]),
        ("dt INT", pa.int32(), [20260301, 20260310], [20260310]),
    ],
)
def test_partitions_of_dates_times_and_numbers_expire(
    tmp_path: Path, key: str, kind: pa.DataType, values: list[object], kept: list[object]
) -> None:
    options = {"partition.timestamp-formatter": "yyyyMMdd"} if key == "dt INT" else {}
    table = partitioned(tmp_path, key, **options)
    fill(table, *values, kind=kind)
    expire_partitions(table._store(), NOON - 2 * DAY, environment=at(NOON))
    assert left(table) == kept


def test_partitions_expire_by_their_newest_file(tmp_path: Path) -> None:
    table = partitioned(tmp_path, **{"partition.expiration-strategy": "update-time"})
    fill(table, "a", "b")
    now = SYSTEM.clock()
    assert expire_partitions(table._store(), now - 60_000).partitions == ()
    assert expire_partitions(table._store(), now + 60_000, dry_run=True).partitions == ("dt=a", "dt=b")
    result = table.maintenance.expire_partitions(datetime.now() + timedelta(minutes=1), strategy="update-time")
    assert result.partitions == ("dt=a", "dt=b") and table.count().rows == 0


def test_a_concurrently_written_partition_is_read_again(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    fill(table, "a", "b")
    bound = SYSTEM.clock() + 100
    late = replace(SYSTEM, clock=lambda: bound + 5000)
    raced: list[int] = []

    def user() -> str:
        if not raced:
            raced.append(1)
            SYSTEM.sleep(0.2)
            fill(table, "b")
        return SYSTEM.new_uuid()

    result = expire_partitions(table._store(), bound, strategy="update-time", environment=replace(late, new_uuid=user))
    assert result.partitions == ("dt=a",) and left(table) == ["b"]


def test_a_run_is_bounded_and_commits_in_batches(tmp_path: Path) -> None:
    table = partitioned(tmp_path, **{"partition.expiration-max-num": 5, "partition.expiration-batch-size": 2})
    fill(table, *(f"2025-01-{day:02}" for day in range(1, 9)))
    result = table.maintenance.expire_partitions("30 d")
    assert (len(result.partitions), result.waiting, len(result.snapshot_ids)) == (5, 3, 3)
    assert result.partitions[0] == "dt=2025-01-01"
    assert table.maintenance.expire_partitions("30 d", dry_run=True).waiting == 0
    assert len(table.maintenance.expire_partitions("30 d").partitions) == 3


def aged(folder: Path, **options: object) -> Table:
    return partitioned(folder, **{"write-only": False, "partition.expiration-time": "30 d", **options})


def test_commits_check_for_expired_partitions_once_per_interval(tmp_path: Path) -> None:
    table = aged(tmp_path, **{"partition.expiration-check-interval": "1 h"})
    fill(table, "2025-01-01", "2999-01-01")
    fill(table, "2025-01-01")
    fill(table, "2025-01-01")
    store = table._store()
    newest = store.snapshots.latest()
    assert newest is not None
    expire_partitions_after_commit(store, at(newest.time_millis))
    once = left(table)
    expire_partitions_after_commit(store, at(newest.time_millis + 3_600_000))
    assert left(table) == ["2999-01-01"]
    assert once in (["2999-01-01"], ["2025-01-01", "2999-01-01"])  # A new hour may start during the test.


def test_every_batch_checks_if_the_option_is_set(tmp_path: Path) -> None:
    for key, value in (("end-input.check-partition-expire", True), ("partition.expiration-check-interval", "0 s")):
        table = aged(tmp_path / key, **{key: value})
        fill(table, "2025-01-01", "2999-01-01")
        assert left(table) == ["2999-01-01"]
    kept = aged(tmp_path / "write-only", **{"partition.expiration-check-interval": "0 s", "write-only": True})
    fill(kept, "2025-01-01")
    assert left(kept) == ["2025-01-01"]


def test_partitions_that_cannot_expire_are_reported(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    fill(table, "2025-01-01")
    with pytest.raises(InvalidInputError, match=r"partition\.expiration-time"):
        table.maintenance.expire_partitions()
    with pytest.raises(InvalidInputError, match=r"strategy: .* got 'custom'"):
        table.maintenance.expire_partitions("1 d", strategy="custom")
    with pytest.raises(UnsupportedFeatureError, match=r"partition\.expiration-strategy"):
        Catalog(str(tmp_path)).alter_table("db.t", SetOption("partition.expiration-strategy", "custom"))
    with pytest.raises(UnsupportedFeatureError, match="yyyy-MMM"):
        Catalog(str(tmp_path)).alter_table("db.t", SetOption("partition.timestamp-formatter", "yyyy-MMM"))
    whole = Catalog(str(tmp_path)).create_table("db.whole", "id INT", primary_key=["id"])
    with pytest.raises(InvalidInputError, match="no partition columns"):
        whole.maintenance.expire_partitions("1 d")
    assert left(table) == ["2025-01-01"]
