"""A partition keeps its number of fixed buckets as long as it has files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.plan.bucket_count import check_bucket_count
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, add, delete, partition


def checked(table: CommitTable, *days: str) -> int | None:
    store = TableStore.open(str(table.root))
    return check_bucket_count(store, store.snapshots.latest(), {partition(day) for day in days})


def test_a_partition_with_files_of_another_number_is_refused_with_both_numbers_and_the_remedy(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(add(total=4))
    message = r"Table .*: partition dt=a has files with 4 buckets.*'bucket' = '2'. Overwrite the partition.*back to '4'"
    with pytest.raises(InvalidInputError, match=message):
        checked(table, "b", "a")


def test_other_partitions_and_an_empty_write_are_not_checked(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    assert checked(table, "a") is None
    table.append(add(total=4))
    assert checked(table, "b") is None
    assert checked(table) is None


def test_files_without_a_fixed_number_and_dynamic_buckets_are_not_checked(tmp_path: Path) -> None:
    table = CommitTable(tmp_path / "fixed")
    table.append(add(total=-1))
    assert checked(table, "a") is None
    dynamic = CommitTable(tmp_path / "dynamic", {"bucket": "-1"})
    dynamic.append(add(total=-1))
    assert checked(dynamic, "a") is None


def test_a_recorded_number_is_used_without_reading_manifests(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(add())
    shutil.rmtree(table.paths.manifest_dir)
    assert checked(table, "a") is None


def test_a_number_that_no_schema_has_is_found_after_another_writer(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(add())
    table.overwrite(add(dt="b", total=4), partitions=["b"])
    table.forget_properties()
    with pytest.raises(InvalidInputError, match=r"Table .*: partition dt=b has files with 4 buckets"):
        checked(table, "a", "b")
    assert checked(table, "a") is None


def test_the_number_that_all_files_have_is_returned_if_no_snapshot_records_it(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(add())
    table.forget_properties()
    assert checked(table, "a") == 2


def test_deleted_files_do_not_count(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    table.append(old := add(total=4))
    table.compact([delete(old), add(total=4)])
    table.overwrite(add())
    assert checked(table, "a") == 2
