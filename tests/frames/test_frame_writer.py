"""A DataFrame's rows on the way to level-0 files: all rows of a key are in one task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelsm.environment import SYSTEM
from lakelsm.errors import StorageError
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.file_names import AttemptNames
from lakelsm.frames.frame_writer import _on_shared_disk
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.write.level0_task import Level0Job
from tests.compact.local_table import LocalTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.parametrize("bucket", ["1", "8"])
def test_the_written_files_have_one_row_for_each_key(
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


def test_an_input_of_few_bytes_and_cheap_steps_is_small(spark: SparkSession, tmp_path: Path) -> None:
    from lakelsm.frames import frame_writer as small_input
    from lakelsm.frames.frame_writer import is_small_input

    few = spark.range(100).selectExpr("id", "id * 2 AS twice").where("id > 3")
    few.write.parquet(str(tmp_path / "few"))
    stored = spark.read.parquet(str(tmp_path / "few"))
    assert is_small_input(few) and is_small_input(stored) and is_small_input(few.union(stored))
    assert not is_small_input(spark.range(small_input.SMALL_BYTES // 8 + 1))
    assert is_small_input(spark.range(small_input.SMALL_BYTES // 8 - 1))


def test_an_input_that_may_need_all_cores_is_never_small(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from lakelsm.frames.frame_writer import is_small_input

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


def test_rows_of_a_planned_query_are_small_if_one_task_computes_them(spark: SparkSession) -> None:
    """Batches of streams have such rows. Their steps are unknown, and more than one task may be needed for them."""
    from lakelsm.frames.frame_writer import SMALL_BYTES, is_small_input

    def planned(parts: int, rows: int = 100) -> DataFrame:
        return spark.range(0, rows, 1, parts).localCheckpoint(eager=False).selectExpr("id", "id * 2 AS twice")

    assert is_small_input(planned(1))
    assert not is_small_input(planned(2)) and not is_small_input(planned(1, SMALL_BYTES // 8 + 1))


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
def test_small_and_large_inputs_are_written_in_input_order(
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

    calls = []

    def rule(frame: object) -> bool:
        calls.append(frame)
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
    assert calls
    first = "first_value" in options.values()
    wanted = {(at % 3, f"k{at % 100}"): at for at in (reversed(range(2000)) if first else range(2000))}
    assert {(row.p, row.k): row.v for row in table.read().collect()} == wanted
    if "changelog-producer" in options:
        assert table.changelog(0, 1).count() == 2000


def test_a_task_on_a_machine_without_the_tables_directory_fails(tmp_path: Path) -> None:
    assert _on_shared_disk(str(tmp_path), list)(iter([])) == []  # type: ignore[arg-type]
    with pytest.raises(StorageError, match=r"/nowhere/t does not exist on a machine of .* Use a warehouse"):
        _on_shared_disk("/nowhere/t", list)(iter([]))  # type: ignore[arg-type]
