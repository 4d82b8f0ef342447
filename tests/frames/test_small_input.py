"""Inputs that one task computes and writes: few bytes, and no step that may need all cores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_few_bytes_that_cost_little_a_row_are_small(spark: SparkSession, tmp_path: Path) -> None:
    from lakelsm.frames import small_input
    from lakelsm.frames.small_input import is_small_input

    few = spark.range(100).selectExpr("id", "id * 2 AS twice").where("id > 3")
    few.write.parquet(str(tmp_path / "few"))
    stored = spark.read.parquet(str(tmp_path / "few"))
    assert is_small_input(few) and is_small_input(stored) and is_small_input(few.union(stored))
    assert not is_small_input(spark.range(small_input.SMALL_BYTES // 8 + 1))
    assert is_small_input(spark.range(small_input.SMALL_BYTES // 8 - 1))


def test_what_may_need_all_cores_is_not_small_however_few_its_input_is(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from lakelsm.frames.small_input import is_small_input

    few = spark.range(100)
    called = F.udf(lambda number: number, "bigint")
    for frame in (
        few.select(called("id")),
        few.mapInArrow(lambda batches: batches, "id BIGINT"),
        few.selectExpr("explode(sequence(0, id)) AS id"),
        few.groupBy("id").count(),
        few.join(few, "id"),
    ):
        assert not is_small_input(frame)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize(
    ("partitioned", "options"),
    [
        ((), {"bucket": "4"}),
        ((), {"bucket": "3", "merge-engine": "aggregation", "fields.v.aggregate-function": "first_value"}),
        (("p",), {"bucket": "2", "changelog-producer": "input"}),
    ],
    ids=["deduplicate", "first value", "partitions"],
)
def test_both_ways_write_the_rows_in_the_order_of_the_input(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    small: bool,
    partitioned: tuple[str, ...],
    options: dict[str, str],
) -> None:
    import lakelsm
    from lakelsm.frames import frame_writer

    asked = []

    def rule(frame: object) -> bool:
        asked.append(frame)
        return small

    monkeypatch.setattr(frame_writer, "is_small_input", rule)
    catalog = lakelsm.Catalog(tmp_path.as_uri(), spark=spark)
    columns = "p INT NOT NULL, k STRING NOT NULL, v BIGINT"
    table = catalog.create_table(
        "d.t", columns, primary_key=["p", "k"], partition_by=partitioned, options={**options, "write-only": "true"}
    )
    table.write(
        spark.range(0, 2000, 1, 5).selectExpr("CAST(id % 3 AS INT) AS p", "concat('k', id % 100) AS k", "id AS v")
    )
    assert asked
    first = "first_value" in options.values()
    wanted = {(at % 3, f"k{at % 100}"): at for at in (reversed(range(2000)) if first else range(2000))}
    assert {(row.p, row.k): row.v for row in table.read().collect()} == wanted
    if "changelog-producer" in options:
        assert table.changelog(0, 1).count() == 2000
