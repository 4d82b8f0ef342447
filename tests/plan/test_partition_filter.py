"""The partitions that a condition leaves to look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.plan.partition_filter import partition_filter
from lakelsm.predicate.parser import parse_where
from lakelsm.snapshots.table_store import TableStore
from tests.commit.commit_table import CommitTable, partition
from tests.compact.local_table import LocalTable

DAYS = ["a", "b", None, "c"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TableStore:
    return TableStore.open(str(CommitTable(tmp_path_factory.mktemp("t")).root))


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("dt = 'b'", ["b"]),
        ("dt >= 'b'", ["b", "c"]),
        ("dt IS NULL", [None]),
        ("dt IS NULL OR dt = 'c'", [None, "c"]),
        ("NOT dt = 'a'", ["b", "c"]),
        ("dt = 'a' AND id = 7", ["a"]),
        ("dt = 'a' OR id = 7", DAYS),
        ("id = 7", DAYS),
        ("dt = 'z'", []),
    ],
)
def test_only_partitions_that_may_hold_a_matching_row_are_kept(store: TableStore, where: str, kept: list[str]) -> None:
    keep = partition_filter(store, parse_where(where, store.schema.fields))
    assert keep is not None
    mask = keep([partition(day) for day in DAYS])
    assert [day for day, is_kept in zip(DAYS, mask, strict=True) if is_kept] == kept


def test_no_condition_and_no_partition_columns_leave_all(store: TableStore, tmp_path: Path) -> None:
    assert partition_filter(store, None) is None
    plain = LocalTable(tmp_path).store
    assert partition_filter(plain, parse_where("id = 1", plain.schema.fields)) is None
