"""Partitions of a snapshot that a condition selects as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.plan.partition_files import check_whole_partitions, chosen_partitions
from lakelsm.predicate.parser import parse_where
from tests.maintain.partitions.partitioned_table import fill, partitioned


def test_a_condition_selects_partitions_by_their_values(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    assert chosen_partitions(table._store(), None, None) == []
    fill(table, "a", "b")
    fill(table, "b")
    store = table._store()
    snapshot = store.snapshots.latest()
    every = chosen_partitions(store, snapshot, None)
    assert [(files.rows, files.files) for files in every] == [(1, 1), (2, 2)]
    some = chosen_partitions(store, snapshot, parse_where("dt <> 'a'", store.schema.fields))
    assert [store.partition_label(files.partition) for files in some] == ["dt=b"]


def test_a_condition_on_rows_selects_no_whole_partition(tmp_path: Path) -> None:
    store = partitioned(tmp_path)._store()
    with pytest.raises(InvalidInputError, match="why not"):
        check_whole_partitions(store, parse_where("id = 1", store.schema.fields), "why not")
