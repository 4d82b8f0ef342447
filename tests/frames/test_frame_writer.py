"""A DataFrame's rows on their way to level-0 files: where the rows of a key meet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.file_names import AttemptNames
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.surroundings import SYSTEM
from lakelsm.write.level0_task import Level0Job
from tests.compact.local_table import LocalTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("bucket", ["1", "8"])
def test_what_was_written_can_be_read_back_and_is_a_row_a_key(
    spark: SparkSession, tmp_path: Path, bucket: str
) -> None:
    from lakelsm.frames.frame_writer import FrameWriter
    from lakelsm.frames.prepare import prepare

    store = LocalTable(tmp_path / "t", bucket=bucket).store
    job = Level0Job(
        file_io=store.file_io,
        paths=store.paths,
        layout=FileLayout.of(store.schema, store.options),
        spec=MergeSpec.of(store.schema, store.options),
        first_sequence=5,
        total_buckets=store.options.bucket,
        partition_default_name=store.options.partition_default_name,
        partition_legacy_name=store.options.partition_legacy_name,
        batch_bytes=1 << 20,
        names=AttemptNames.new(SYSTEM.new_uuid),
    )
    frame = spark.range(0, 60, 1, 4).selectExpr("CAST(id % 20 AS INT) AS id", "CAST(id AS STRING) AS v")
    writer = FrameWriter(spark, store)
    found = writer.write(prepare(frame, store.schema, store.options), job)
    assert sum(entry.file.row_count for entry in found.entries) == 20
    rows = writer.written_rows(found.entries).orderBy("id").collect()
    assert [(row.id, row.v) for row in rows] == [(key, str(key + 40)) for key in range(20)]
