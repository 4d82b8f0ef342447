"""The merge engines' lanes: answers computed from the data alone, and tables that give them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.config import ENGINE_OPERATIONS, BenchConfig
from benchmarks.data import generate, rows
from benchmarks.engine import Engine
from benchmarks.merge_engines import MERGE_ENGINES, SUMMED, answers, check_frame, prepare_answers
from benchmarks.timing import Turns, measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> BenchConfig:
    config = BenchConfig(workdir=str(tmp_path_factory.mktemp("engines")), rows=5_000, buckets=1, runs=2)
    generate(config)
    prepare_answers(config)
    return config


def changes_by_id(config: BenchConfig) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for version, name in enumerate(["base", "run-0", "run-1"]):
        ids = pq.read_table(config.data(name), columns=["id"]).column("id").to_numpy()
        for row in rows(ids, np.full_like(ids, version)).select(SUMMED).to_pylist():
            found.setdefault(row["id"], []).append(row)
    return found


def sums(merged: list[Row]) -> dict[str, str]:
    def number(value: Any) -> Any:
        return value if isinstance(value, (int, Decimal)) else round(value.timestamp() * 1_000_000)

    return {"rows": str(len(merged)), **{name: str(sum(number(row[name]) for row in merged)) for name in SUMMED}}


def test_the_answers_equal_those_of_merging_row_by_row(config: BenchConfig) -> None:
    changes = changes_by_id(config)
    newest = [max(rows, key=lambda row: row["event_time"]) for rows in changes.values()]
    last = [rows[-1] for rows in changes.values()]
    by_time = [
        {**row, "quantity": new["quantity"], "event_time": new["event_time"]}
        for row, new in zip(last, newest, strict=True)
    ]
    totals = [
        {**row, **{name: sum(change[name] for change in changes[row["id"]]) for name in ("quantity", "amount")}}
        for row in by_time
    ]
    want = {"deduplicate": sums(last), "partial-update": sums(by_time), "aggregation": sums(totals)}
    assert answers(config) == want
    assert len({str(answer) for answer in want.values()}) == 3


def test_each_engine_reads_and_compacts_to_its_answer(config: BenchConfig, spark: SparkSession) -> None:
    engine = Engine(config, spark)
    engine.prepare_merge_engines()
    for operation in ENGINE_OPERATIONS:
        results = measure(operation, engine.contenders(operation), Turns(repeat=0, slow_seconds=0))
        assert [(result.contender, result.error) for result in results] == [
            (f"lakelsm {name}", "") for name in MERGE_ENGINES
        ]
        assert all(result.cpu_seconds[0] > 0 for result in results if Path("/proc/self").is_dir())


def test_the_rows_of_another_engine_are_a_wrong_answer(config: BenchConfig, spark: SparkSession) -> None:
    frame = spark.read.parquet(str(config.data("merged")))
    check_frame(config, "deduplicate", frame)
    with pytest.raises(AssertionError, match="wrong answer of aggregation"):
        check_frame(config, "aggregation", frame)
