"""Several tasks read a bucket: large sections are split by key, small ones share a task."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from lakelsm import Table
from lakelsm.merge.merge_unit import MergeUnit
from tests.read.tables import create, frame, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 6_000
SMALL = {"target-file-size": "16 kb", "source.split.target-size": "32 kb", "source.split.open-file-cost": "1 kb"}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """One bucket with a composite key: a compacted run of many files, an update of all its keys, deletes in a part."""
    made = create(
        spark, tmp_path_factory.mktemp("units"), "a STRING, b INT, v STRING, w BIGINT", ["a", "b"], options=SMALL
    )
    base = spark.range(ROWS).selectExpr(
        "lpad(CAST(id DIV 10 AS STRING), 5, '0') AS a",
        "CAST(id % 10 AS INT) AS b",
        "sha2(CAST(id AS STRING), 256) AS v",
        "id AS w",
    )
    made.write(base)
    made.compact(full=True)
    made.write(base.where("w % 7 = 0").withColumn("v", F.lit("new")))
    made.write(base.where("w BETWEEN 2995 AND 3004").withColumn("op", F.lit("-D")), row_kind="op")
    return made


def test_a_large_section_is_split_into_units_of_disjoint_key_ranges(table: Table) -> None:
    units = table.explain().units
    assert len(units) > 3
    assert units[0].lower is None and units[-1].upper is None
    assert all(before.upper == after.lower is not None for before, after in pairwise(units))
    bounds = [unit.lower for unit in units[1:]]
    assert bounds == sorted(bounds)  # type: ignore[type-var]
    largest = max(units, key=lambda unit: unit.cost)
    assert largest.cost < sum(file.file_size for file in table.explain().merged_files) / 2


def test_the_rows_equal_those_of_one_merge(table: Table) -> None:
    changed = set(range(0, ROWS, 7))
    found = table.read().select("w", (F.col("v") == "new").alias("new")).collect()
    wanted = {w: w in changed for w in range(ROWS) if not 2995 <= w <= 3004}
    assert len(found) == len(wanted)
    assert {row.w: row.new for row in found} == wanted


def test_several_tasks_find_the_hidden_rows_of_one_bucket(table: Table) -> None:
    plan = table.explain()
    assert {file.path.split("/bucket-")[1].split("/")[0] for file in plan.merged_files} == {"0"}
    text = table.read()._jdf.queryExecution().toString()
    tasks = [int(part.split("splits=Some(")[1].split(")")[0]) for part in text.splitlines() if "splits=Some(" in part]
    assert tasks and max(tasks) > 1


def test_small_sections_share_a_task(spark: SparkSession, tmp_path: Path) -> None:
    made = create(spark, tmp_path, "id INT, v INT", ["id"], options={"bucket": "4"})
    for version in (1, 2):
        made.write(frame(made, [(i, version) for i in range(20)]))
    units = made.explain().units
    assert len(units) == 4
    assert all(unit.lower is None and unit.upper is None for unit in units)
    text = made.read()._jdf.queryExecution().toString()
    assert "splits=Some(1)" in text
    assert rows_of(made.read()) == sorted([(i, 2) for i in range(20)], key=repr)


def test_runs_of_a_unit_are_oldest_first(table: Table) -> None:
    for unit in table.explain().units:
        assert isinstance(unit, MergeUnit)
        assert len(unit.runs[0]) >= 1
        names = [run[0].path.rsplit("/", 1)[-1] for run in unit.runs]
        numbers = {
            row.file_path.rsplit("/", 1)[-1]: row.max_sequence_number
            for row in table.inspect.files().to_spark().collect()
        }
        assert [numbers[name] for name in names] == sorted(numbers[name] for name in names)
        break


def test_locations_and_names_with_special_characters_are_read_correctly(spark: SparkSession, tmp_path: Path) -> None:
    """Spark treats paths as patterns, and shows names of files percent-encoded."""
    made = create(
        spark,
        tmp_path / "wh [1] {a,b} 50% dé+ *x",
        "id INT, p STRING, v INT",
        ["p", "id"],
        partition_by=["p"],
        options={"data-file.prefix": "my é%20-data+"},
    )
    values = ["a b", "50%", "x=1/y", "[a-z]*", "é?", "{b}", "", " "]
    for version in (1, 2):
        made.write(frame(made, [(i, p, version) for p in values for i in range(2)]))
    wanted = sorted(((i, p, 2) for p in values for i in range(2) if p), key=repr)
    assert [row for row in rows_of(made.read()) if row[1]] == wanted
    assert rows_of(made.read("p = '50%'", ["id", "v"])) == [(0, 2), (1, 2)]
    made.compact(full=True)
    assert [row for row in rows_of(made.read()) if row[1]] == wanted
