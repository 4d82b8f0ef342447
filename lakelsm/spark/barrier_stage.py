"""A stage whose tasks all run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession

from lakelsm.errors import InvalidInputError

#: What one task of several does: its number, the host that it runs on, and what gathers a text of each of them.
BarrierTask = Callable[[int, str, Callable[[str], list[str]]], None]


def run_barrier_stage(spark: SparkSession, count: int, task: BarrierTask, tag: str) -> None:
    """Run ``task`` in ``count`` tasks at once, and return when all have ended; ``tag`` is the job's alone.

    If one fails, Spark ends all of them and starts the stage again. Raises InvalidInputError on a local master with
    fewer cores, where Spark would wait for ten minutes.
    """
    context = spark.sparkContext
    cores = int(context.defaultParallelism)
    if str(context.master).startswith("local") and count > cores:
        raise InvalidInputError(
            f"{count} tasks must run at once, and {context.master} has {cores} cores: ask for fewer, or give it more."
        )

    def run(_: Iterable[int]) -> Iterable[int]:
        barrier = BarrierTaskContext.get()
        number = barrier.partitionId()
        host = barrier.getTaskInfos()[number].address.rpartition(":")[0]
        task(number, host, barrier.allGather)
        return ()

    context.addJobTag(tag)
    try:
        context.parallelize(range(count), count).barrier().mapPartitions(run).collect()
    finally:
        context.removeJobTag(tag)
