"""Operations on the DataFrame after `read()` reach the Parquet scans, also those of overlapping sections."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm import Table
from tests.read.tables import create, frame, rows_of


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Keys 0 to 49 in overlapping runs with deletes, keys 100 to 149 in a separate file."""
    made = create(spark, tmp_path_factory.mktemp("pushed"), "id INT, v INT, w STRING, x DOUBLE", ["id"])
    made.write(frame(made, [(i, i, str(i), float(i)) for i in range(50)]))
    made.write(frame(made, [(i, -i, "new", 0.0) for i in range(0, 50, 5)]))
    made.write(frame(made, [(7, 0, None, None)]).withColumn("op", F.lit("-D")), row_kind="op")
    made.write(frame(made, [(i, i, str(i), float(i)) for i in range(100, 150)]))
    plan = made.explain()
    assert plan.raw_files and plan.merged_files
    return made


def parquet_scans(found: DataFrame) -> list[tuple[set[str], str]]:
    """Return (columns of the table that are read, pushed filters) of each Parquet scan in the executed plan."""
    text = found._jdf.queryExecution().explainString(
        found.sparkSession._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    )
    scans = []
    for part in re.findall(r"Scan parquet.*?(?=\n\n)", text, re.DOTALL):
        schema = re.search(r"ReadSchema: struct<(.*)>", part)
        filters = re.search(r"PushedFilters: \[(.*)\]", part)
        if schema:
            columns = set(re.findall(r"(\w+):", schema[1])) - {"_tmp_metadata_row_index"}
            scans.append((columns, filters[1] if filters else ""))
    return scans


def test_a_projection_reaches_every_scan(table: Table) -> None:
    found = table.read().select("id")
    scans = parquet_scans(found)
    assert len(scans) == 2
    assert [columns for columns, _ in scans] == [{"id"}, {"id"}]
    assert found.count() == 99


def test_a_condition_reaches_every_scan_and_the_answer_is_right(table: Table) -> None:
    found = table.read().where("v > 47 AND w IS NOT NULL").select("id", "v")
    scans = parquet_scans(found)
    assert len(scans) == 2
    for columns, filters in scans:
        assert columns == {"id", "v", "w"}
        assert "GreaterThan(v,47)" in filters
        assert "IsNotNull(w)" in filters
    assert rows_of(found) == sorted([(48, 48), (49, 49), *((i, i) for i in range(100, 150))], key=repr)


def test_a_condition_does_not_bring_hidden_rows_back(table: Table) -> None:
    assert rows_of(table.read().where("v IN (5, 7, 10)").select("id")) == []
    assert rows_of(table.read().where("w = 'new' AND v = -45").select("id")) == [(45,)]


def test_a_count_reads_no_column(table: Table) -> None:
    found = table.read().agg(F.count("*"))
    assert all(columns == set() for columns, _ in parquet_scans(found))
    assert rows_of(found) == [(99,)]


def test_files_without_overlap_are_scanned_as_any_parquet(table: Table) -> None:
    text = table.read("id >= 100")._jdf.queryExecution().toString()
    assert "Join" not in text
    assert "ArrowEvalPython" not in text and "MapInArrow" not in text
    assert table.explain("id >= 100").files_scanned == 1


def test_the_frame_has_the_files_of_the_plan(table: Table) -> None:
    plan = table.explain()
    files = {path.rsplit("/", 1)[-1] for path in table.read().inputFiles()}
    assert files == {file.path.rsplit("/", 1)[-1] for file in (*plan.raw_files, *plan.merged_files)}
