"""Small files of merged sections are read by the tasks that merge them, large ones by Spark's own scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from lakelsm import Table
from lakelsm.plan.read_plan import plan_read
from lakelsm.read.scan_frame import scan_frame
from lakelsm.snapshots.table_store import TableStore
from tests.read.tables import create, frame, rows_of
from tests.read.test_pushed_down import parquet_scans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WANTED = [(i, 10 * i if i % 3 else 10 * i + 100, i) for i in range(20) if i != 7] + [(30, 3, 3)]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Keys 0 to 19, every third of them and key 30 in a second run, key 7 deleted in a third."""
    options = {
        "merge-engine": "aggregation",
        "fields.s.aggregate-function": "sum",
        "aggregation.remove-record-on-delete": "true",
    }
    made = create(spark, tmp_path_factory.mktemp("handed"), "id INT, s INT, v INT", ["id"], options=options)
    made.write(frame(made, [(i, 10 * i, i) for i in range(20)]))
    made.write(frame(made, [(i, 100, i) for i in range(0, 20, 3)] + [(30, 3, 3)]))
    made.write(frame(made, [(7, 0, 0)]).withColumn("op", F.lit("-D")), row_kind="op")
    return made


@pytest.mark.parametrize(("small", "scanned"), [("every file", 0), ("all but the largest", 1), ("none", 3)])
def test_rows_are_the_same_whoever_reads_them(table: Table, small: str, scanned: int) -> None:
    sizes = sorted(file.file_size for file in table.plan().merged_files)
    assert len(set(sizes)) == 3
    cost = {"every file": sizes[-1] + 1, "all but the largest": sizes[-1], "none": 1}[small]
    store = TableStore.open(f"file:{table._opened.paths.root}").with_options({"source.split.open-file-cost": f"{cost} b"})
    found = scan_frame(table.spark, store, plan_read(store, store.snapshots.latest(), None))
    assert len(found.inputFiles()) == scanned
    assert len(parquet_scans(found)) == min(scanned, 1)
    assert rows_of(found) == sorted(WANTED, key=repr)
    assert rows_of(found.where("v >= 18")) == [row for row in sorted(WANTED, key=repr) if row[2] >= 18]


def test_small_files_are_handed_over_by_default(table: Table) -> None:
    assert table.read().inputFiles() == []
    assert rows_of(table.read(columns=["s"])) == sorted([row[1:2] for row in WANTED], key=repr)
