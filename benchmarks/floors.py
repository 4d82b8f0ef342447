"""Floors: the minimum that Spark needs for the same work on the same rows as plain parquet."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.config import KEY, TABLE_CODEC, WHERE, BenchConfig
from benchmarks.names import APPEND, COPY, KEY_SORTED_WRITE, SCAN, SORTED_WRITE
from benchmarks.timing import Contender
from benchmarks.workspace import build, check_count, check_sums, remove


def drain(frame: DataFrame) -> None:
    """Compute every row and column of a frame and discard them."""
    frame.write.format("noop").mode("overwrite").save()


def check_frame(config: BenchConfig, frame: DataFrame) -> None:
    """Raise AssertionError unless the frame holds the merged rows."""
    amount = F.col("amount").cast("decimal(28,2)")
    sums = frame.agg(F.count("*"), F.sum("id"), F.sum("quantity"), F.sum(amount)).first()
    assert sums is not None
    check_sums(config, *sums)


def _with_bucket(config: BenchConfig, frame: DataFrame) -> DataFrame:
    return frame.withColumn("bucket", F.pmod(F.hash(KEY), F.lit(config.buckets)))


def prepare_floor(config: BenchConfig, spark: SparkSession) -> None:
    """Write the merged rows with Spark, one file for each bucket in key order, once in each of two codecs."""

    def make(path: Path, codec: str) -> None:
        rows = _with_bucket(config, spark.read.parquet(str(config.data("merged"))))
        ordered = rows.repartition(config.buckets, "bucket").sortWithinPartitions("bucket", KEY)
        writer = ordered.drop("bucket").write
        (writer.option("compression", codec) if codec else writer).parquet(str(path))

    build(config.floor, lambda path: make(path, config.floor_codec))
    build(config.scanned_floor, lambda path: make(path, TABLE_CODEC))


def floor_contenders(config: BenchConfig, spark: SparkSession, operation: str) -> list[Contender]:
    """Return the floors of load (sorted by bucket and key, and by key alone), upsert, read, where, count or compact."""
    if operation in ("load", "upsert", "compact"):
        return _writes(config, spark, operation)

    def scan() -> DataFrame:
        return spark.read.parquet(str(config.scanned_floor))

    if operation == "read":
        return [Contender(SCAN, lambda: drain(scan()), check=lambda _: check_frame(config, scan()))]
    if operation == "where":
        return [
            Contender(
                SCAN,
                lambda: drain(scan().where(WHERE)),
                check=lambda _: check_count(config, "where", scan().where(WHERE).count()),
            )
        ]
    return [Contender(SCAN, lambda: scan().count(), check=lambda _: check_count(config, "rows", scan().count()))]


def _writes(config: BenchConfig, spark: SparkSession, operation: str) -> list[Contender]:
    scratch = config.scratch / "floor"
    target = str(scratch)
    base, batch = str(config.data("base")), str(config.data("upsert"))

    def clear() -> None:
        remove(scratch)

    def by_bucket() -> DataFrame:
        return _with_bucket(config, spark.read.parquet(base)).repartition("bucket")

    def load() -> None:
        by_bucket().sortWithinPartitions("bucket", KEY).write.partitionBy("bucket").parquet(target)

    def load_by_key() -> None:
        by_bucket().sortWithinPartitions(KEY).drop("bucket").write.parquet(target)

    def append() -> None:
        spark.read.parquet(batch).write.mode("append").parquet(target)

    def copy() -> None:
        spark.read.parquet(str(config.floor)).write.parquet(target)

    if operation == "load":
        return [
            Contender(SORTED_WRITE, load, clear, clear),
            Contender(KEY_SORTED_WRITE, load_by_key, clear, clear),
        ]
    if operation == "upsert":
        return [Contender(APPEND, append, clear, clear)]
    return [Contender(COPY, copy, clear, clear)]
