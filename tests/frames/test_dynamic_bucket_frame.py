"""Dynamic buckets of a DataFrame's rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelsm.write.dynamic_bucket import BucketPolicy
from tests.compact.local_table import LocalTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.usefixtures("classic_functions")
def test_buckets_fill_up_to_their_target_in_each_partition(spark: SparkSession, tmp_path: Path) -> None:
    from lakelsm.frames.dynamic_bucket_frame import with_dynamic_bucket

    store = LocalTable(tmp_path / "t", "p INT, id INT", ("p", "id"), ("p",), bucket="-1").store
    frame = spark.range(0, 20, 1, 3).selectExpr("CAST(id % 2 AS INT) AS p", "CAST(id AS INT) AS id")
    policy = BucketPolicy(target_rows=4, max_buckets=-1, assigners=1)
    rows = with_dynamic_bucket(frame, store.schema, policy, store.file_io, {}).collect()
    for partition in (0, 1):
        buckets = [row[-1] for row in rows if row.p == partition]
        assert sorted(buckets) == [0] * 4 + [1] * 4 + [2] * 2
