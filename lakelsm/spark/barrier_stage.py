"""A stage whose tasks all run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession

from lakelsm.errors import InvalidInputError

#: The work of one task: its arguments are its number, its host, and a function that gathers one text of each task.
BarrierTask = Callable[[int, str, Callable[[str], list[str]]], None]


def run_barrier_stage(spark: SparkSession, count: int, task: BarrierTask, tag: str) -> None:
    """Run ``task`` in ``count`` concurrent tasks, and return when all have ended. No other job has the tag ``tag``.

    If one task fails, Spark ends all of them and runs the stage again. Raises InvalidInputError on a local master with
    fewer cores, where Spark would wait for ten minutes.
    """
    context = spark.sparkContext
    cores = int(context.defaultParallelism)
    if str(context.master).startswith("local") and count > cores:
        raise InvalidInputError(
            f"{count} tasks must run at the same time, and {context.master} has {cores} cores. Use fewer tasks or more "
            "cores."
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
