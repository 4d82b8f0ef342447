"""The SQL lanes: every query gives the answer of the same query by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from benchmarks import sql_lane, sql_spark_lane
from benchmarks.config import FORMAT_OPERATIONS, BenchConfig
from benchmarks.data import generate
from benchmarks.engine import create
from benchmarks.names import ENGINE, FORMAT, LOCAL, READ_BY_HAND, READER_BY_HAND, SQL_LOCAL, SQL_SPARK, pushed
from benchmarks.sql_lane import answer_check
from benchmarks.sql_queries import SQL_HERE
from benchmarks.timing import Turns, measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The warm-up is the measurement.
ONCE = Turns(repeat=0, slow_seconds=0)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> BenchConfig:
    config = BenchConfig(workdir=str(tmp_path_factory.mktemp("sql")), rows=20_000, buckets=1, runs=2)
    generate(config)
    for name, data in (("state", ("base", "run-0", "run-1")), ("small", ("small",))):
        made = create(config, config.scratch / name)
        made.write(ds.dataset(config.data(data[0])).scanner().to_reader())
        for run in data[1:]:
            made.write(pq.read_table(config.data(run)))
        config.table(name).parent.mkdir(parents=True, exist_ok=True)
        (config.scratch / name / "bench.db" / "t").rename(config.table(name))
    return config


@pytest.mark.parametrize("operation", SQL_HERE)
def test_queries_in_this_process_give_the_answers_of_queries_by_hand(config: BenchConfig, operation: str) -> None:
    results = measure(operation, sql_lane.contenders(config, operation), ONCE)
    names = [READER_BY_HAND, SQL_LOCAL, *([LOCAL] if operation == "sql-count" else [])]
    assert [(result.contender, result.error) for result in results] == [(name, "") for name in names]


def test_queries_on_spark_give_the_answers_of_queries_by_hand(config: BenchConfig, spark: SparkSession) -> None:
    sql_spark_lane.prepare(config)
    results = measure("x", sql_spark_lane.contenders(config, spark, "sql-spark-partition"), ONCE)
    assert [(each.contender, each.error) for each in results] == [(READ_BY_HAND, ""), (SQL_SPARK, "")]
    for operation in FORMAT_OPERATIONS:
        names = [each.name for each in sql_spark_lane.contenders(config, spark, operation)]
        by_option = [pushed(FORMAT)] if operation in ("format-column", "format-point") else []
        assert names == [ENGINE, FORMAT, *by_option]


def test_an_answer_that_differs_from_the_first_one_is_wrong() -> None:
    check = answer_check(SQL_HERE["sql-count"])
    check([(1,)])
    with pytest.raises(AssertionError, match="wrong answer"):
        check([(2,)])
    any_rows = answer_check(SQL_HERE["sql-limit"])
    any_rows([(1,), (2,)])
    any_rows([(3,), (4,)])
    with pytest.raises(AssertionError, match="wrong answer"):
        any_rows([(3,)])
