"""Sources of merges on Spark: their rows are computed once, and their keys are summarized."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelsm.frames.merge_source import computed_once, source_types, source_values
from tests.engines import ON_SPARK, TableEngine


@ON_SPARK
def test_a_source_with_other_rows_each_time_is_merged_as_one(engine: TableEngine, tmp_path: Path) -> None:
    assert engine.spark is not None
    table = engine.create(tmp_path, "id BIGINT, n BIGINT", ["id"], options={"bucket": "2"})
    table.write({"id": list(range(2000)), "n": [0] * 2000})
    chance = F.udf(lambda _: random.randrange(2000), T.LongType()).asNondeterministic()
    source = engine.spark.range(8).select(chance("id").alias("id")).distinct()
    merge = table.merge(source, "id").when_matched_update({"n": "t.n + 1"}).when_not_matched_insert({"id": "s.id"})
    for _ in range(3):
        result = merge.execute()
        assert result.inserted_rows == 0 and (result.updated_rows or 0) > 4


@ON_SPARK
def test_values_of_many_partitions_and_columns_with_odd_names(engine: TableEngine) -> None:
    assert engine.spark is not None
    frame = engine.spark.range(0, 5000, 1, 7).select(
        F.col("id").alias("a.b"), F.when(F.col("id") > 1, F.lit("x")).alias("`t"), F.expr("INTERVAL 1 MONTH").alias("i")
    )
    found = source_values(frame, {"a.b": True, "`t": False}, "/nowhere")
    numbers, texts = found.columns["a.b"], found.columns["`t"]
    assert (found.rows, numbers.low, numbers.high, numbers.values) == (5000, 0, 4999, None)
    assert found.unique_columns() == ["a.b"]
    assert (texts.values, texts.has_null, numbers.has_null) == ({"x"}, True, False)
    assert [kind is None for kind in dict(source_types(frame)).values()] == [False, False, True]


@ON_SPARK
def test_rows_are_kept_until_the_end(engine: TableEngine) -> None:
    assert engine.spark is not None
    chance = F.udf(lambda _: random.randrange(1 << 60), T.LongType()).asNondeterministic()
    frame = engine.spark.range(3).select(chance("id").alias("id"))
    before = set(engine.spark.sparkContext._jsc.getPersistentRDDs())
    with pytest.raises(KeyError), computed_once(frame) as kept:
        assert kept.collect() == kept.select("id").where("id >= 0").collect() != frame.collect()
        assert set(engine.spark.sparkContext._jsc.getPersistentRDDs()) > before
        raise KeyError
    assert set(engine.spark.sparkContext._jsc.getPersistentRDDs()) == before
