"""Streaming queries whose batches a function writes: their settings, and the identity of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelsm.errors import SparkUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.spark
def test_a_batch_has_the_id_of_its_query_and_joins_small_partitions(spark: SparkSession, tmp_path: Path) -> None:
    from lakelsm.frames.stream_query import StreamQuery, query_id_of

    rows = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=10, numPartitions=2).load()
    writer = rows.writeStream.option("checkpointlocation", str(tmp_path)).trigger(availableNow=True).queryName("name")
    seen = []

    def write(batch: DataFrame, batch_id: int, query_id: str) -> None:
        parts = batch.groupBy("value").count().rdd.getNumPartitions()
        seen.append((batch_id, query_id, batch.sparkSession.conf.get("spark.sql.adaptive.enabled"), parts))

    query = StreamQuery.checked(writer, overwrite=False).start(write)
    assert query.awaitTermination(60) and query.name == "name"
    assert seen == [(0, query.id, "true", 1)]
    with pytest.raises(SparkUnavailableError, match="no query id"):
        query_id_of(spark)
