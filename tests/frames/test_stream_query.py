"""Streaming queries whose batches a function writes: their settings, and the identity of a batch."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import MagicMock

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
    again = StreamQuery.checked(writer, overwrite=False).start(write)  # The same description, after a stop or a fault.
    assert again.awaitTermination(60) and again.id == query.id
    with pytest.raises(SparkUnavailableError, match="no query id"):
        query_id_of(spark)


class _Writer:
    """A `DataStreamWriter` whose query runs when a test calls its function."""

    _jwrite = MagicMock()

    def foreachBatch(self, function: Callable[[Any, int], None]) -> _Writer:
        self.function = function
        return self

    def start(self) -> _Writer:
        return self


@pytest.mark.parametrize(
    ("text", "is_stop"),
    [
        ("calling o7.collect: java.lang.InterruptedException" + "\n\tat a frame" * 2000, True),
        ("Job 3 cancelled part of cancelled job group e5aa4b63", True),
        ("Job 3 cancelled because killed via the Web UI", False),
    ],
)
def test_the_stop_of_a_query_in_a_batch_is_a_short_error_that_spark_recognizes(text: str, *, is_stop: bool) -> None:
    """Spark's regular expression overflows the stack on a long text, and the trace of the stack is all that is shown."""
    from lakelsm.frames.stream_query import StreamQuery

    def write(batch: object, batch_id: int, query_id: str) -> None:
        raise RuntimeError(text)

    writer: Any = _Writer()
    StreamQuery(cast(Any, None), writer).start(write)
    session = SimpleNamespace(
        sparkContext=SimpleNamespace(getLocalProperty=lambda name: "a-query"),
        conf=SimpleNamespace(get=lambda name: "false", set=lambda name, value: None),
    )
    with pytest.raises(SparkUnavailableError if is_stop else RuntimeError) as raised:
        writer.function(SimpleNamespace(sparkSession=session), 0)
    if is_stop:
        shown = "".join(traceback.format_exception(raised.value))
        assert len(shown) < 2000
        assert re.search(r"py4j\.protocol\.Py4JJavaError: An error occurred while calling.*InterruptedException", shown)
