"""The rows that reads leave out are found once for the same files, kept within a bound, and never for other files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from lakelsm import Table
from lakelsm.frames import hidden_rows
from lakelsm.frames.hidden_rows import _most_bytes
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from tests.compact.local_table import LocalTable
from tests.read.tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_next_read_of_a_snapshot_opens_no_file_to_merge_it_and_that_of_another_one_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    local = LocalTable(tmp_path / "t", file__compression="none", write_only="true")
    for value in ("a", "b"):
        local.write(*((key, value) for key in range(400)))
    table = Table.for_path(str(local.root), spark)
    assert table.read().where("v = 'b'").count() == 400
    file = local.path_of(local.live()[0])
    whole = file.read_bytes()
    data = bytearray(whole)
    data[pq.read_metadata(file).row_group(0).column(3).data_page_offset + 200] ^= 1  # A key that a merge would read.
    file.write_bytes(data)
    assert table.read(columns=["v"]).where("v = 'b'").count() == 400
    assert table.read(columns=["v"]).where("v = 'a'").count() == 0
    file.write_bytes(whole)
    local.write((7, "c"), (1000, "c"))
    assert rows_of(table.read().where("v = 'c'")) == [(1000, "c"), (7, "c")]
    assert table.read().count() == 401 and table.read(snapshot_id=2).count() == 400


def test_what_is_kept_is_bounded_by_the_table_and_the_oldest_goes_first(spark: SparkSession, tmp_path: Path) -> None:
    local = LocalTable(tmp_path / "t", write_only="true", **{"lakelsm.hidden-rows.max-memory": "9300 b"})
    table = Table.for_path(str(local.root), spark)
    for number in range(5):
        local.write(*((key, str(number)) for key in range(10)))

    def kept() -> list[int]:
        return [
            len(state.units[0].files)
            for owner, states in hidden_rows._kept.items()
            if owner.branch_root == str(local.root)
            for state in states
        ]

    for snapshot in (2, 3, 2):
        assert table.read(snapshot_id=snapshot).count() == 10
    assert kept() == [3, 2]
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    assert table.read(snapshot_id=5).count() == 10
    assert kept() == [2, 5]
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before
    assert _most_bytes(table.plan().units, ()) <= 9300
    unkept = LocalTable(tmp_path / "u", write_only="true", **{"lakelsm.hidden-rows.max-memory": "0 b"})
    for _ in range(2):
        unkept.write((1, "a"))
    assert Table.for_path(str(unkept.root), spark).read().count() == 1
    assert str(unkept.root) not in {owner.branch_root for owner in hidden_rows._kept}


def test_bitmaps_are_counted_as_a_bit_a_row_and_for_each_part_its_plan_and_the_rest_of_a_chunk() -> None:
    small = RunFile("small", schema_id=0, row_count=80, file_size=1)
    large = RunFile("large", schema_id=0, row_count=1 << 20, file_size=1)
    unit = MergeUnit(((large,), (small,)))
    assert _most_bytes([unit], [small]) == (80 + (1 << 20)) // 8 + 2 * (10 + 1024) + 8192 + 1024
    assert _most_bytes([unit, unit], []) - _most_bytes([unit], []) == 10 + 1024 + 8192 + 1024
