"""jobs/compact.py on Spark: a lost race, and ``spark-submit``. What needs no Spark is in tests/cli."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from lakelsm.cli.compact import COMPACT
from lakelsm.cli.verb import run_alone
from tests.cli.fake_table import last_object
from tests.jobs.submitted import submit


def two_runs(spark: SparkSession, warehouse: Path, name: str) -> Table:
    table = Catalog(str(warehouse), spark).create_table(
        name, "id BIGINT, v STRING", primary_key=["id"], options={"bucket": "2", "write-only": "true"}
    )
    for text in ("a", "b"):
        table.write(spark.createDataFrame([(number, text) for number in range(100)], "id BIGINT, v STRING"))
    return table


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_lost_race_ends_with_4_and_the_winners_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = two_runs(spark, tmp_path, "d.t")
    path = tmp_path / "d.db" / "t"
    from lakelsm.spark.spark_runner import SparkRunner

    real = SparkRunner.messages

    def raced(*arguments: Any) -> object:
        monkeypatch.undo()
        messages = real(*arguments)
        table.overwrite(spark.createDataFrame([(7, "won")], "id BIGINT, v STRING"))
        return messages

    monkeypatch.setattr(SparkRunner, "messages", raced)
    assert run_alone(COMPACT, "compact.py", ["--path", str(path), "--full", "--report", "json"]) == 4
    found = last_object(capsys.readouterr().out)
    assert (found["status"], found["snapshot_ids"], found["exit_status"]) == ("conflict", [], 4)
    assert [tuple(row) for row in table.read().collect()] == [(7, "won")]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_spark_submit_returns_the_exit_status_of_the_job(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = tmp_path / "wh"
    table = two_runs(spark, warehouse, "d.t")
    before = sorted(table.read().collect())
    two_runs(spark, warehouse, "d.broken")
    missing = next((warehouse / "d.db" / "broken").glob("bucket-0/*"))
    missing.unlink()
    named = ["--warehouse", warehouse.as_uri(), "--full", "--report", "json", "--max-task-memory", "64mb", "--table"]

    done, broken = submit("compact.py", *named, "d.t"), submit("compact.py", *named, "d.broken")
    out, err = done.communicate(timeout=300)
    assert done.returncode == 0, err
    found = last_object(out)
    assert (found["status"], found["exit_status"], found["snapshot_ids"], found["rows_written"]) == ("done", 0, [3], 100)
    assert sorted(table.read().collect()) == before
    assert {row.level for row in table.files().collect()} == {5}

    out, err = broken.communicate(timeout=300)
    assert broken.returncode == 1, err
    assert last_object(out)["status"] == "failed"
    # spark-submit joins the standard error of a Python program to its own standard output.
    (line,) = [line for line in out.splitlines() if line.startswith("compact.py: ")]
    assert missing.name in line and "Traceback" not in out

    again = submit("compact.py", *named, "d.t")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert (last_object(out)["status"], last_object(out)["exit_status"]) == ("nothing", 0)
