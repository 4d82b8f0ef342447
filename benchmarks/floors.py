"""What Spark alone does with the same rows as plain parquet: the least that an engine on Spark has to do."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.config import KEY, WHERE, BenchConfig
from benchmarks.timing import Contender
from benchmarks.workspace import build, check_count, check_sums, remove

SCAN = "Spark parquet scan"


def drain(frame: DataFrame) -> None:
    """Compute every row and column of a frame and keep nothing."""
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
    """The merged rows, one file a bucket, in key order, as Spark writes them."""

    def make(path: Path) -> None:
        rows = _with_bucket(config, spark.read.parquet(str(config.data("merged"))))
        ordered = rows.repartition(config.buckets, "bucket").sortWithinPartitions("bucket", KEY)
        ordered.drop("bucket").write.parquet(str(path))

    build(config.floor, make)


def floor_contender(config: BenchConfig, spark: SparkSession, operation: str) -> Contender:
    """The floor of load, upsert, read, read-again, where, count or compact."""
    scratch = config.scratch / "floor"
    target = str(scratch)
    base, batch = str(config.data("base")), str(config.data("upsert"))

    def clear() -> None:
        remove(scratch)

    def scan() -> DataFrame:
        return spark.read.parquet(str(config.floor))

    def load() -> None:
        rows = _with_bucket(config, spark.read.parquet(base)).repartition("bucket")
        rows.sortWithinPartitions("bucket", KEY).write.partitionBy("bucket").parquet(target)

    def append() -> None:
        spark.read.parquet(batch).write.mode("append").parquet(target)

    def copy() -> None:
        scan().write.parquet(target)

    if operation == "load":
        return Contender("Spark sorted write", load, clear, clear)
    if operation == "upsert":
        return Contender("Spark parquet append", append, clear, clear)
    if operation == "compact":
        return Contender("Spark parquet copy", copy, clear, clear)
    if operation in ("read", "read-again"):
        return Contender(SCAN, lambda: drain(scan()), check=lambda _: check_frame(config, scan()))
    if operation == "where":
        return Contender(
            SCAN,
            lambda: drain(scan().where(WHERE)),
            check=lambda _: check_count(config, "where", scan().where(WHERE).count()),
        )
    return Contender(
        SCAN, lambda: scan().count(), check=lambda _: check_count(config, "rows", scan().count())
    )
