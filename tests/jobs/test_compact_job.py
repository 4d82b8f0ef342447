"""jobs/compact.py on Spark: a lost race, and ``spark-submit``. tests/cli has the tests without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakelsm
from lakelsm import Table
from lakelsm.cli.compact import COMPACT
from lakelsm.cli.verb import run_alone
from tests.cli.fake_table import last_object
from tests.compact.local_table import LocalTable
from tests.engines import TableEngine
from tests.jobs.submitted import submit


def two_runs(local: TableEngine, warehouse: Path, name: str) -> Table:
    table = local.create(warehouse, "id BIGINT, v STRING", ["id"], options={"bucket": "2"}, name=name)
    for text in ("a", "b"):
        local.write(table, [(number, text) for number in range(100)])
    return table


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_lost_race_exits_with_4_and_keeps_the_rows_of_the_winner(
    spark: SparkSession,
    local: TableEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = two_runs(local, tmp_path, "d.t")
    path = tmp_path / "d.db" / "t"
    from lakelsm.spark.spark_runner import SparkRunner

    real = SparkRunner.messages

    def raced(*arguments: Any) -> object:
        monkeypatch.undo()
        messages = real(*arguments)
        table.overwrite(local.frame([(7, "won")], "id BIGINT, v STRING"))
        return messages

    monkeypatch.setattr(SparkRunner, "messages", raced)
    assert run_alone(COMPACT, "compact.py", ["--path", str(path), "--full", "--report", "json"]) == 4
    found = last_object(capsys.readouterr().out)
    assert (found["status"], found["snapshot_ids"], found["exit_status"]) == ("conflict", [], 4)
    assert local.rows(table) == [(7, "won")]


@pytest.mark.spark
def test_spark_submit_returns_the_exit_status_of_the_job(local: TableEngine, tmp_path: Path) -> None:
    warehouse = tmp_path / "wh"
    for name in ("d.t", "d.broken"):
        two_runs(local, warehouse, name)
    missing = next((warehouse / "d.db" / "broken").glob("bucket-0/*"))
    missing.unlink()
    named = ["--warehouse", warehouse.as_uri(), "--full", "--report", "json", "--max-task-memory", "64mb", "--table"]

    package = Path(lakelsm.__file__).parent
    done, broken = submit(package / "__main__.py", "compact", *named, "d.t"), submit("compact.py", *named, "d.broken")
    out, err = done.communicate(timeout=600)
    assert done.returncode == 0, err
    found = last_object(out)
    assert (found["status"], found["exit_status"], found["snapshot_ids"], found["rows_written"]) == ("done", 0, [3], 100)
    table = LocalTable(warehouse / "d.db" / "t")
    assert table.rows() == [(number, "b") for number in range(100)]
    assert set(table.levels()) == {5}

    out, err = broken.communicate(timeout=600)
    assert broken.returncode == 5, err
    assert last_object(out)["status"] == "failed"
    # spark-submit joins the standard error of a Python program to its own standard output.
    (line,) = [line for line in out.splitlines() if line.startswith("compact.py: ")]
    assert missing.name in line and "Traceback" not in out
