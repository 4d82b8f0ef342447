"""The partitions of a table, as conditions compare them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa

from lakelsm.format.row.binary_row import encode_row
from lakelsm.lsm.pruning import partitions_that_may_match
from lakelsm.predicate.predicate import Compare, IsNotNull, IsNull
from lakelsm.snapshots.table_store import TableStore
from tests.compact.local_table import LocalTable


def test_partitions_of_dates_outside_pythons_calendar_are_kept_by_conditions(tmp_path: Path) -> None:
    store: TableStore = LocalTable(tmp_path / "t", "d DATE, k INT", ["d", "k"], ["d"]).store
    far = pa.scalar(5_000_000, pa.int32()).cast(pa.date32())
    partitions = [encode_row([value], store.partition_types) for value in (far, dt.date(2024, 1, 1), None)]
    rows = store.comparable_partitions(partitions)
    may_match = [
        partitions_that_may_match(predicate, ["d"], rows)
        for predicate in (Compare("d", "=", dt.date(2024, 1, 1)), IsNull("d"), IsNotNull("d"))
    ]
    assert may_match == [[True, True, False], [False, False, True], [True, True, False]]
    assert store.comparable_partitions(partitions[1:]) == [(dt.date(2024, 1, 1),), (None,)]
