"""jobs/compact.py: what a scheduler sees of it. The command line is in lakelsm/cli/compact.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, CommitConflictError, CompactionResult, CompactionStatus, InvalidInputError, Table
from lakelsm.cli import compact as cli
from lakelsm.compact import compactor
from lakelsm.compact.compactor import DEFAULT_TASK_MEMORY

ROOT = Path(__file__).resolve().parents[2]
NAMED = ["--warehouse", "/wh", "--table", "d.t"]
DONE = CompactionResult(
    table="d.t",
    status=CompactionStatus.DONE,
    snapshot_ids=(8, 9),
    buckets=4,
    files_rewritten=12,
    files_upgraded=3,
    files_written=5,
    bytes_read=4 << 20,
    bytes_written=2 << 20,
    rows_read=1234567,
    rows_written=1000,
    seconds=12.34,
)


class FakeTable:
    """Records what it is asked for and answers as it is told."""

    def __init__(self, answer: CompactionResult | Exception) -> None:
        self.answer = answer
        self.asked: dict[str, Any] = {}

    def compact(self, full: bool, where: str | None, **more: Any) -> CompactionResult:
        self.asked = {"full": full, "where": where, **more}
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    """What the job opens in place of a table, wherever it is."""
    fake = FakeTable(DONE)
    monkeypatch.setattr(cli, "_open_table", lambda arguments: fake)
    return fake


def last_object(text: str) -> dict[str, Any]:
    """The JSON object of the last line."""
    found = json.loads(text.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_without_options_it_asks_for_an_ordinary_compaction_of_everything(table: FakeTable) -> None:
    assert cli.compact_main(NAMED) == 0
    assert table.asked == {
        "full": False,
        "where": None,
        "buckets": None,
        "dry_run": False,
        "commit_every": None,
        "deadline": None,
        "max_task_memory": DEFAULT_TASK_MEMORY,
        "commit_user": None,
    }


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--full"], "full", True),
        (["--where", "dt < '2013-06-01'"], "where", "dt < '2013-06-01'"),
        (["--buckets", "0,1, 12"], "buckets", {0, 1, 12}),
        (["--dry-run"], "dry_run", True),
        (["--commit-every", "16"], "commit_every", 16),
        (["--deadline", "90"], "deadline", 90.0),
        (["--deadline", "1.5"], "deadline", 1.5),
        (["--deadline", "30 min"], "deadline", 1800.0),
        (["--deadline", "2h"], "deadline", 7200.0),
        (["--deadline", "500 ms"], "deadline", 0.5),
        (["--max-task-memory", "256mb"], "max_task_memory", 256 << 20),
        (["--max-task-memory", "1 gb"], "max_task_memory", 1 << 30),
        (["--commit-user", "nightly"], "commit_user", "nightly"),
    ],
)
def test_each_option_reaches_the_compaction(table: FakeTable, arguments: list[str], name: str, value: object) -> None:
    assert cli.compact_main([*NAMED, *arguments]) == 0
    assert table.asked[name] == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--warehouse", "/wh"], "name the table by --warehouse and --table, or by --path"),
        (["--table", "d.t"], "name the table"),
        ([], "name the table"),
        ([*NAMED, "--path", "/wh/d.db/t"], "name the table"),
        (["--path", "/wh/d.db/t", "--table", "d.t"], "name the table"),
        ([*NAMED, "--buckets", "1,x"], "--buckets: it is '1,x'; it must be bucket numbers, such as"),
        ([*NAMED, "--buckets", "-1"], "--buckets"),
        ([*NAMED, "--commit-every", "0"], "--commit-every: it is 0; it must be a whole number of 1 or more"),
        ([*NAMED, "--commit-every", "x"], "--commit-every: it is 'x'; it must be a whole number"),
        ([*NAMED, "--deadline", "soon"], "--deadline: it is 'soon'; it must be seconds, or a duration such as '30 min'"),
        ([*NAMED, "--deadline", "nan"], "--deadline: it is 'nan'"),
        ([*NAMED, "--deadline", "inf"], "--deadline: it is 'inf'"),
        ([*NAMED, "--max-task-memory", "1mb"], "--max-task-memory: it is '1mb'; it must be bytes or a size of"),
        ([*NAMED, "--max-task-memory", "much"], "such as '256mb'"),
        ([*NAMED, "--report", "xml"], "--report"),
        ([*NAMED, "--ful"], "--ful"),
    ],
)
def test_a_wrong_command_line_is_named_and_ends_with_2(
    table: FakeTable, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.compact_main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert table.asked == {}


@pytest.mark.parametrize(
    ("status", "flags", "code"),
    [
        ("done", [], 0),
        ("planned", [], 0),
        ("deadline", [], 0),
        ("nothing", [], 0),
        ("conflict", [], 4),
        ("done", ["--distinct-exit-status"], 0),
        ("nothing", ["--distinct-exit-status"], 3),
    ],
)
@pytest.mark.parametrize("report", ["text", "json"])
def test_the_exit_status_fails_a_scheduler_only_where_the_job_has_to_run_again(
    table: FakeTable, capsys: pytest.CaptureFixture[str], status: str, flags: list[str], code: int, report: str
) -> None:
    table.answer = CompactionResult(table="d.t", status=CompactionStatus(status))
    assert cli.compact_main([*NAMED, "--report", report, *flags]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    if report == "json":
        assert (last_object(captured.out)["status"], last_object(captured.out)["exit_status"]) == (status, code)
    else:
        assert captured.out.startswith("d.t: ")


def test_help_lists_every_exit_status_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.compact_main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for status in cli.ExitStatus:
        assert f"\n  {status.value}  " in text
    for option in ("warehouse", "table", "path", "full", "where", "buckets", "dry-run", "commit-every", "deadline"):
        assert f"--{option}" in text
    assert "--max-task-memory" in text and "--report" in text and "--distinct-exit-status" in text


def test_the_json_report_is_the_whole_result_in_one_line(table: FakeTable, capsys: pytest.CaptureFixture[str]) -> None:
    cli.compact_main([*NAMED, "--report", "json"])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = last_object(out)
    assert set(found) == {field.name for field in fields(CompactionResult)} | {"exit_status"}
    assert (found["snapshot_ids"], found["rows_read"], found["seconds"]) == ([8, 9], 1234567, 12.34)


def test_the_text_report_says_what_was_read_and_written(
    table: FakeTable, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.compact_main(NAMED)
    assert capsys.readouterr().out.splitlines() == [
        "d.t: compacted (12.3 s)",
        "  buckets    4",
        "  files      12 rewritten, 3 moved up without a rewrite",
        "  read       1,234,567 rows, 4.0 MiB",
        "  written    1,000 rows, 2.0 MiB, 5 files",
        "  snapshots  8, 9",
    ]


def test_the_text_report_of_a_dry_run_says_that_nothing_changed(
    table: FakeTable, capsys: pytest.CaptureFixture[str]
) -> None:
    table.answer = CompactionResult(
        table="d.t",
        status=CompactionStatus.PLANNED,
        buckets=2,
        files_rewritten=6,
        bytes_read=1 << 20,
        rows_read=10,
    )
    cli.compact_main([*NAMED, "--dry-run"])
    text = capsys.readouterr().out
    assert "a dry run, nothing was changed" in text
    assert "6 would be rewritten" in text
    assert "written  " not in text and "snapshots" not in text


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InvalidInputError("Condition 'x' must be on partition columns.\nUse dt."), 1, "partition columns. Use dt."),
        (CommitConflictError("other commits came first"), 4, "other commits came first"),
        (OSError(28, "No space left on device"), 1, "OSError: [Errno 28] No space left on device"),
        (pa.ArrowInvalid("bad page\nat 7"), 1, "ArrowInvalid: bad page (--verbose"),
    ],
)
def test_a_failure_is_one_line_and_a_json_object_where_asked_for(
    table: FakeTable, capsys: pytest.CaptureFixture[str], error: Exception, code: int, message: str
) -> None:
    table.answer = error
    assert cli.compact_main([*NAMED, "--report", "json"]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("compact.py: ") and message in captured.err
    assert captured.err.count("\n") == 1
    found = last_object(captured.out)
    assert (found["table"], found["exit_status"]) == ("d.t", code)
    assert found["status"] == ("conflict" if code == 4 else "failed")
    assert message in found["error"]


def test_verbose_adds_the_traceback_of_a_failure(table: FakeTable, capsys: pytest.CaptureFixture[str]) -> None:
    table.answer = InvalidInputError("no")
    assert cli.compact_main([*NAMED, "--verbose"]) == 1
    captured = capsys.readouterr()
    assert "Traceback (most recent call last)" in captured.err
    assert captured.err.endswith("compact.py: no\n")
    assert captured.out == ""


def test_a_fault_of_the_program_keeps_its_traceback(table: FakeTable) -> None:
    table.answer = AssertionError("a fault")
    with pytest.raises(AssertionError):
        cli.compact_main(NAMED)


def test_a_table_that_is_not_there_fails_before_any_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelsm.table.resolve_session", lambda spark: pytest.fail("Spark was started"))
    assert cli.compact_main(["--warehouse", str(tmp_path), "--table", "d.t"]) == 1
    assert "Table d.t does not exist" in capsys.readouterr().err
    assert cli.compact_main(["--path", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err
    assert cli.compact_main(["--warehouse", str(tmp_path), "--table", "t"]) == 1
    assert "'database.table'" in capsys.readouterr().err
    assert cli.compact_main(["--warehouse", "s3://bucket/wh", "--table", "d.t"]) == 1
    assert "'s3' is not supported" in capsys.readouterr().err


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
    real = compactor.collect_messages

    def raced(*arguments: object) -> object:
        monkeypatch.undo()
        messages = real(*arguments)  # type: ignore[arg-type]
        table.overwrite(spark.createDataFrame([(7, "won")], "id BIGINT, v STRING"))
        return messages

    monkeypatch.setattr(compactor, "collect_messages", raced)
    assert cli.compact_main(["--path", str(path), "--full", "--report", "json"]) == 4
    found = last_object(capsys.readouterr().out)
    assert (found["status"], found["snapshot_ids"], found["exit_status"]) == ("conflict", [], 4)
    assert [tuple(row) for row in table.read().collect()] == [(7, "won")]


def submit(*arguments: str) -> subprocess.Popen[str]:
    """The command of the README, with this Python."""
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--properties-file", "spark-defaults.conf", "--conf", "spark.ui.enabled=false"),
        # A short-lived JVM spends more on compiling well than it wins by it.
        *("--driver-java-options", "-XX:TieredStopAtLevel=1"),
        "jobs/compact.py",
        *arguments,
    ]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": path,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_spark_submit_returns_the_exit_status_of_the_job(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = tmp_path / "wh"
    table = two_runs(spark, warehouse, "d.t")
    before = sorted(table.read().collect())
    two_runs(spark, warehouse, "d.broken")
    missing = next((warehouse / "d.db" / "broken").glob("bucket-0/*"))
    missing.unlink()
    named = ["--warehouse", warehouse.as_uri(), "--full", "--report", "json", "--max-task-memory", "64mb", "--table"]

    done, broken = submit(*named, "d.t"), submit(*named, "d.broken")
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

    again = submit(*named, "d.t")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert (last_object(out)["status"], last_object(out)["exit_status"]) == ("nothing", 0)
