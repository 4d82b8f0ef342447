"""``lakelsm compact``: arguments, reports and exit statuses."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.main import main
from lakelsm.compact.compactor import DEFAULT_TASK_MEMORY
from lakelsm.results import CompactionResult, CompactionStatus, Failure
from tests.cli.fake_table import DONE, NAMED, FakeTable, last_object

LOST = Failure(
    step="a commit", error="CommitConflictError", kind="retry", text="snapshot 7 was first", remedy="run it again"
)


def run(arguments: list[str]) -> int:
    return main(["compact", *arguments])


def test_the_default_is_an_ordinary_compaction_of_all_buckets(table: FakeTable) -> None:
    assert run(NAMED) == 0
    assert table.arguments == {
        "full": False,
        "where": None,
        "buckets": None,
        "dry_run": False,
        "commit_every": None,
        "deadline": None,
        "max_task_memory": DEFAULT_TASK_MEMORY,
        "commit_user": None,
        "engine": None,
    }


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--full"], "full", True),
        (["--where", "dt < '2013-06-01'"], "where", "dt < '2013-06-01'"),
        (["--buckets", "0,1, 12"], "buckets", {0, 1, 12}),
        (["--dry-run"], "dry_run", True),
        (["--commit-every", "16"], "commit_every", 16),
        (["--deadline", "1.5"], "deadline", 1.5),
        (["--deadline", "30 min"], "deadline", 1800.0),
        (["--max-task-memory", "256mb"], "max_task_memory", 256 << 20),
        (["--commit-user", "nightly"], "commit_user", "nightly"),
    ],
)
def test_each_option_reaches_the_compaction(table: FakeTable, arguments: list[str], name: str, value: object) -> None:
    assert run([*NAMED, *arguments]) == 0
    assert table.arguments[name] == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the table with --warehouse and --table or --database, or with --path"),
        ([*NAMED, "--path", "/wh/d.db/t"], "name the table"),
        ([*NAMED, "--buckets", "1,x"], "--buckets: expected bucket numbers, such as"),
        ([*NAMED, "--buckets", "-1"], "--buckets"),
        ([*NAMED, "--commit-every", "0"], "--commit-every: 0 is less than 1"),
        ([*NAMED, "--deadline", "soon"], "--deadline: 'soon' is not a duration"),
        ([*NAMED, "--max-task-memory", "1mb"], "--max-task-memory: expected bytes, or a size such as"),
        ([*NAMED, "--max-task-memory", "much"], "such as '256mb'"),
        ([*NAMED, "--report", "xml"], "--report"),
        ([*NAMED, "--ful"], "--ful"),
    ],
)
def test_a_wrong_command_line_is_named_and_exits_with_2(
    table: FakeTable, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert table.arguments == {}


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
def test_the_exit_status_is_a_failure_only_if_the_job_must_run_again(
    table: FakeTable, capsys: pytest.CaptureFixture[str], status: str, flags: list[str], code: int, report: str
) -> None:
    error = LOST if status == "conflict" else None
    table.answer = CompactionResult(table="d.t", status=CompactionStatus(status), error=error)
    assert run([*NAMED, "--report", report, *flags]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    if report == "json":
        assert (last_object(captured.out)["status"], last_object(captured.out)["exit_status"]) == (status, code)
    else:
        assert captured.out.startswith("d.t: ")


@pytest.mark.parametrize(("kind", "code"), [("retry", 4), ("fix", 1), ("corrupt", 5), ("unknown", 1), (None, 1)])
@pytest.mark.parametrize("report", ["text", "json"])
def test_a_compaction_that_failed_after_a_commit_reports_its_commits_and_its_error(
    table: FakeTable, capsys: pytest.CaptureFixture[str], kind: str | None, code: int, report: str
) -> None:
    table.answer = replace(DONE, status=CompactionStatus.FAILED, error=replace(LOST, kind=kind, text="no space"))
    assert run([*NAMED, "--report", report]) == code
    out = capsys.readouterr().out
    if report == "json":
        found = last_object(out)
        assert (found["status"], found["exit_status"], found["snapshot_ids"]) == ("failed", code, [8, 9])
        assert (found["error"], found["error_kind"], found["error_class"]) == ("no space", kind, "CommitConflictError")
    else:
        assert "  snapshots  8, 9\n  error      no space\n  remedy     run it again" in out


@pytest.mark.parametrize("report", ["text", "json"])
def test_the_report_has_the_reason_of_every_conflict(
    table: FakeTable, capsys: pytest.CaptureFixture[str], report: str
) -> None:
    other = replace(LOST, text="snapshot 9 of job took data-1.parquet")
    table.answer = replace(DONE, status=CompactionStatus.CONFLICT, error=other, conflicts=(LOST, other))
    assert run([*NAMED, "--report", report]) == 4
    out = capsys.readouterr().out
    if report == "json":
        found = last_object(out)
        assert [each["text"] for each in found["conflicts"]] == [LOST.text, other.text]
        assert (found["error"], found["error_kind"], found["remedy"]) == (other.text, "retry", "run it again")
    else:
        assert out.splitlines()[-2:] == [f"  conflict   {LOST.text}", f"  conflict   {other.text}"]


def test_help_lists_every_exit_status_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for status in ExitStatus:
        assert f"\n  {status.value}  " in text
    for option in ("warehouse", "table", "path", "full", "where", "buckets", "dry-run", "commit-every", "deadline"):
        assert f"--{option}" in text
    assert "--max-task-memory" in text and "--report" in text and "--distinct-exit-status" in text


def test_the_json_report_is_the_whole_result_in_one_line(table: FakeTable, capsys: pytest.CaptureFixture[str]) -> None:
    run([*NAMED, "--report", "json"])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = last_object(out)
    assert set(found) == {
        *(field.name for field in fields(CompactionResult)),
        *("exit_status", "error_class", "error_kind", "remedy"),
    }
    assert (found["snapshot_ids"], found["rows_read"], found["seconds"]) == ([8, 9], 1234567, 12.34)


def test_the_text_report_says_what_was_read_and_written(
    table: FakeTable, capsys: pytest.CaptureFixture[str]
) -> None:
    run(NAMED)
    assert capsys.readouterr().out.splitlines() == [
        "d.t: compacted (12.3 s)",
        "  buckets    4",
        "  files      12 rewritten, 3 moved to a higher level without a rewrite",
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
    run([*NAMED, "--dry-run"])
    text = capsys.readouterr().out
    assert "dry run, nothing is changed" in text
    assert "6 would be rewritten" in text
    assert "written  " not in text and "snapshots" not in text


def test_the_text_report_has_the_number_of_masked_rows(
    table: FakeTable, capsys: pytest.CaptureFixture[str]
) -> None:
    table.answer = replace(DONE, rows_masked=12_345)
    run(NAMED)
    assert "  masked     12,345 rows of files that are not rewritten" in capsys.readouterr().out.splitlines()
    table.answer = replace(table.answer, rows_remapped=5_000)
    run(NAMED)
    assert "rows of files that are not rewritten, 5,000 located again after another commit" in capsys.readouterr().out
