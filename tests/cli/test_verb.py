"""The behaviour of every verb: it opens the table, reports the outcome or the failure, and returns the exit status."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.cli import verb
from lakelsm.cli.compact import COMPACT
from lakelsm.cli.main import main
from lakelsm.cli.verb import run_alone
from lakelsm.environment import SYSTEM
from lakelsm.errors import CommitConflictError, InvalidInputError
from lakelsm.results import CheckResult
from lakelsm.table import TableMaintenance
from tests.cli.fake_table import NAMED, FakeTable, last_object
from tests.storage.object_server import ObjectServer


def run(arguments: list[str]) -> int:
    return run_alone(COMPACT, "compact.py", arguments)


def test_a_failure_names_the_program_that_was_called(table: FakeTable, capsys: pytest.CaptureFixture[str]) -> None:
    table.answer = InvalidInputError("no")
    assert (run(NAMED), main(["compact", *NAMED])) == (1, 1)
    assert capsys.readouterr().err == "compact.py: no\nlakelsm compact: no\n"


def test_a_verb_alone_and_below_the_command_does_the_same(table: FakeTable, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*NAMED, "--full", "--buckets", "1,2", "--report", "json"]
    assert run(arguments) == 0
    alone, first = capsys.readouterr().out, table.arguments
    assert main(["compact", *arguments]) == 0
    assert (capsys.readouterr().out, table.arguments) == (alone, first)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InvalidInputError("Condition 'x' must be on partition columns.\nUse dt."), 1, "partition columns. Use dt."),
        (CommitConflictError("other commits came first"), 4, "other commits came first"),
        (OSError(28, "No space left on device"), 1, "OSError: [Errno 28] No space left on device"),
        (pa.ArrowInvalid("bad page\nat 7"), 1, "ArrowInvalid: bad page (--verbose"),
    ],
)
def test_a_failure_is_one_line_and_with_json_an_object(
    table: FakeTable, capsys: pytest.CaptureFixture[str], error: Exception, code: int, message: str
) -> None:
    table.answer = error
    assert run([*NAMED, "--report", "json"]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("compact.py: ") and message in captured.err
    assert captured.err.count("\n") == 1
    found = last_object(captured.out)
    assert (found["table"], found["exit_status"]) == ("d.t", code)
    assert found["status"] == ("conflict" if code == 4 else "failed")
    assert message in found["error"]


def test_verbose_adds_the_traceback_of_a_failure(table: FakeTable, capsys: pytest.CaptureFixture[str]) -> None:
    table.answer = InvalidInputError("no")
    assert run([*NAMED, "--verbose"]) == 1
    captured = capsys.readouterr()
    assert "Traceback (most recent call last)" in captured.err
    assert captured.err.endswith("compact.py: no\n")
    assert captured.out == ""


def test_a_bug_keeps_its_traceback(table: FakeTable) -> None:
    table.answer = AssertionError("a fault")
    with pytest.raises(AssertionError):
        run(NAMED)


def test_a_missing_table_fails_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelsm.frames.spark_engine.resolve_session", lambda *_: pytest.fail("Spark was started"))
    assert run(["--warehouse", str(tmp_path), "--table", "d.t"]) == 1
    assert "Table d.t does not exist" in capsys.readouterr().err
    assert run(["--path", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err
    assert run(["--warehouse", str(tmp_path), "--table", "t"]) == 1
    assert "'database.table'" in capsys.readouterr().err
    assert run(["--warehouse", "hdfs://host/wh", "--table", "d.t"]) == 1
    assert "HDFS is not supported" in capsys.readouterr().err


def test_several_tables_are_processed_and_reported_in_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("d.t", "d.u"):
        Catalog(str(tmp_path)).create_table(name, "id INT NOT NULL", primary_key=["id"])
    named = ["--warehouse", str(tmp_path), "--table", "d.t", "--table", "d.none", "--table", "d.u"]
    assert main(["tag", "list", *named]) == 1
    output = capsys.readouterr()
    assert output.out == "d.t: no tags\nd.u: no tags\n"
    assert output.err.startswith("lakelsm tag list: Table d.none does not exist") and output.err.count("\n") == 1
    assert main(["tag", "list", *named, "--report", "json"]) == 1
    found = last_object(capsys.readouterr().out)
    statuses = {each["table"]: each["exit_status"] for each in found["tables"]}
    assert statuses == {"d.t": 0, "d.none": 1, "d.u": 0}
    assert main(["compact", *named[:4], "--table", "d.u", "--distinct-exit-status"]) == 3


def test_one_deadline_applies_to_all_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("d.t", "d.u", "d.v"):
        Catalog(str(tmp_path)).create_table(name, "id INT NOT NULL", primary_key=["id"])
    given: list[float] = []
    times = iter([0.0, 40.0, 70.0])

    def check(maintenance: TableMaintenance, **arguments: Any) -> CheckResult:
        given.append(arguments["deadline"])
        return CheckResult(table=maintenance._opened.name)

    monkeypatch.setattr(TableMaintenance, "check", check)
    monkeypatch.setattr(verb, "SYSTEM", replace(SYSTEM, monotonic=lambda: next(times)))
    named = ["--warehouse", str(tmp_path), "--database", "d", "--deadline", "1 min", "--report", "json"]
    assert main(["check", *named]) == 0
    assert given == [60.0, 20.0]
    tables = last_object(capsys.readouterr().out)["tables"]
    assert [(each["table"], each["status"]) for each in tables] == [("d.t", "done"), ("d.u", "done"), ("d.v", "deadline")]


def test_a_secret_of_the_command_line_is_never_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--storage-option", "s3.secret-key=hidden", "--storage-option", "s3.endpoint=http://127.0.0.1:9"]
    named = ["--path", "s3://bucket/t", *options, "--storage-option", "s3.nothing=hidden"]
    for more in ([], ["--report", "json"], ["--verbose"], ["-vv", "--log-format", "json"]):
        assert main(["status", *named, *more]) == 1
        output = capsys.readouterr()
        assert "--storage-option: 's3.nothing' is not a setting" in output.err
        assert "hidden" not in output.out + output.err


def test_verbs_work_on_a_bucket_with_storage_options(
    object_server: ObjectServer, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = f"{object_server.new_bucket()}/w"
    catalog = Catalog(warehouse, storage_options=object_server.options)
    table = catalog.create_table("d.t", "id INT NOT NULL", primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": pa.array([1, 2], pa.int32())}))
    given = [f"--storage-option={key}={value}" for key, value in object_server.options.items()]
    assert main(["all", "--warehouse", warehouse, "--database", "d", *given, "--report", "json"]) == 0
    output = capsys.readouterr()
    steps = {step["step"]: step["status"] for step in last_object(output.out)["steps"]}
    assert (steps["check"], steps["orphans"]) == ("done", "nothing")
    assert "test-secret" not in output.out + output.err
