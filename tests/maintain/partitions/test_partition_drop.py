"""Whole partitions are dropped, by a condition on their columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, LakelsmError
from lakelsm.environment import SYSTEM
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.maintain.history import maintenance_record
from lakelsm.maintain.partitions.partition_drop import commit_drop
from tests.maintain.partitions.partitioned_table import fill, left, partitioned

NULLABLE = {"primary-key.nullable": True}


def test_partitions_are_dropped_in_one_commit_and_stay_in_older_snapshots(tmp_path: Path) -> None:
    table = partitioned(tmp_path, **NULLABLE)
    before = fill(table, "2025-12-30", "2025-12-31", "2026-01-01", None)
    result = table.maintenance.drop_partitions("dt < '2026-01-01'")
    assert (result.partitions, result.files, result.snapshot_id) == (("dt=2025-12-30", "dt=2025-12-31"), 2, before + 1)
    assert set(table.to_arrow()["dt"].to_pylist()) == {"2026-01-01", None}
    assert len(table.at(snapshot=before).to_arrow()) == 4
    snapshot = table._store().snapshots.get(before + 1)
    assert (snapshot.commit_kind.value, snapshot.operation, snapshot.delta_record_count) == ("OVERWRITE", "TRUNCATE", -2)


def test_a_dry_run_and_a_condition_without_a_match_commit_nothing(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    assert table.maintenance.drop_partitions("dt = 'a'").snapshot_id is None
    newest = fill(table, "a", "b")
    assert table.maintenance.drop_partitions("dt = 'a'", dry_run=True).partitions == ("dt=a",)
    assert table.maintenance.drop_partitions("dt = 'z'").partitions == ()
    assert table._store().snapshots.latest_id() == newest and left(table) == ["a", "b"]


@pytest.mark.parametrize("where", ["id = 1", "dt = 'a' OR v = 'x'", "upper(dt) = 'A'", "dt = v", "dt LIKE '%a'"])
def test_a_condition_on_other_columns_is_refused(tmp_path: Path, where: str) -> None:
    table = partitioned(tmp_path)
    fill(table, "a", "b")
    with pytest.raises(LakelsmError):
        table.maintenance.drop_partitions(where)
    assert left(table) == ["a", "b"]


def test_null_and_unusual_values_are_dropped_by_value(tmp_path: Path) -> None:
    table = partitioned(tmp_path, **NULLABLE)
    fill(table, None, "a/b", "a=b", " ", "%")
    assert table.maintenance.drop_partitions("dt IS NULL").partitions == ("dt=NULL",)
    assert table.maintenance.drop_partitions("dt IN ('a/b', '%')").files == 2
    assert left(table) == [" ", "a=b"]


def test_a_comparison_of_times_with_microseconds_is_refused(tmp_path: Path) -> None:
    table = partitioned(tmp_path, "dt TIMESTAMP(9)")
    with pytest.raises(UnsupportedFeatureError, match="microsecond"):
        table.maintenance.drop_partitions("dt = '2026-01-01 00:00:00'")


def test_hash_indexes_and_vectors_are_dropped_with_their_buckets(tmp_path: Path) -> None:
    for options in ({"bucket": -1}, {"deletion-vectors.enabled": True, "write-only": False}):
        table = partitioned(tmp_path / str(len(options)), **options)
        fill(table, "a", "b")
        fill(table, "a")
        table.compact(full=True)
        table.maintenance.drop_partitions("dt = 'a'")
        assert left(table) == ["b"]
        fill(table, "a", "a")
        table.compact(full=True)
        assert table.count("dt = 'a'").rows == 2


def test_a_drop_chosen_on_an_older_snapshot_is_refused(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    older = fill(table, "a")
    fill(table, "a")
    store = table._store()
    with pytest.raises(LakelsmError, match=f"chosen on snapshot {older}"):
        commit_drop(store, [b""], maintenance_record("drop_partitions", "u", 0), SYSTEM, as_of=older)


def test_a_drop_in_a_table_without_partitions_is_refused(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table("db.t", "id INT", primary_key=["id"])
    table.write(pa.table({"id": pa.array([1], pa.int32())}))
    with pytest.raises(InvalidInputError, match="partition columns \\(none\\)"):
        table.maintenance.drop_partitions("id = 1")
