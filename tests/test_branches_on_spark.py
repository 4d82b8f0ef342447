"""Branches on Spark: each is written, read and updated separately, also with cached hidden rows of another branch."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from lakelsm import Catalog
from lakelsm.schema_changes import AddColumn


def test_a_session_does_not_mix_branches(spark: SparkSession, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path), spark)
    table = catalog.create_table(
        "db.t", "id INT, v STRING", primary_key=["id"], options={"bucket": 1, "write-only": True}
    )
    table.write(spark.createDataFrame([(1, "a"), (2, "b")], "id INT, v STRING"))
    table.tags.create("t1")
    table.branches.create("b", "t1")
    branch = catalog.table("db.t$branch_b")
    for each, value in ((table, "main"), (branch, "branch")):
        each.write(spark.createDataFrame([(1, value)], "id INT, v STRING"))
        assert sorted(map(tuple, each.read().collect())) == [(1, value), (2, "b")]
    catalog.alter_table("db.t$branch_b", AddColumn("w", "INT"))
    branch.update({"w": "id"}, "id = 2")
    assert sorted(map(tuple, branch.read().collect())) == [(1, "branch", None), (2, "b", 2)]
    assert sorted(map(tuple, table.read().collect())) == [(1, "main"), (2, "b")]
    assert [row["delta_record_count"] for row in branch.inspect.snapshots().to_spark().collect()] == [2, 1, 1]
