"""Tasks that all run at the same time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakelsm.errors import InvalidInputError
from lakelsm.spark.barrier_stage import run_barrier_stage


def test_each_task_has_a_number_and_gathers_the_texts_of_all(spark: SparkSession, tmp_path: Path) -> None:
    def task(number: int, host: str, gather: Callable[[str], list[str]]) -> None:
        (tmp_path / str(number)).write_text(f"{host} {' '.join(gather(f'task {number}'))}")

    run_barrier_stage(spark, 2, task, "together")
    texts = [(tmp_path / str(number)).read_text().split(" ", 1) for number in range(2)]
    assert [text for _, text in texts] == ["task 0 task 1"] * 2
    assert all(host for host, _ in texts)


def test_more_tasks_than_a_local_master_has_cores_are_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidInputError, match="1000 tasks must run at the same time"):
        run_barrier_stage(spark, 1000, lambda number, host, gather: None, "together")
