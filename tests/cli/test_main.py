"""The command ``lakelsm``: finds the verb."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

import lakelsm
from lakelsm.catalog import Catalog
from lakelsm.cli import main as command
from lakelsm.cli.arguments import check_table
from lakelsm.cli.compact import COMPACT
from lakelsm.cli.exit_status import ExitStatus
from lakelsm.cli.report import Report
from lakelsm.cli.verb import CatalogVerb, Verb, VerbGroup
from tests.cli.called import Called
from tests.cli.fake_table import NAMED, FakeTable

ROOT = Path(__file__).resolve().parents[2]
SETUP = ROOT / "setup.cfg"
NAMED_T = ("--table", "db.t")


def ended_with(arguments: list[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    return ended.value.code


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_with(["--version"]) == 0
    assert capsys.readouterr().out == f"lakelsm {lakelsm.__version__}\n"


def test_help_lists_the_verbs_with_their_summaries(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_with(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert [verb.name for verb in command.VERBS if f"{verb.name} {verb.summary}" not in text] == []
    assert "lakelsm VERB --help" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vacuum"], "invalid choice: 'vacuum' (choose from"),
        ([], "the following arguments are required: VERB"),
        (["--full"], "lakelsm: error:"),
        (["compact"], "lakelsm compact: error: name the table with"),
        (["partitions"], "usage: lakelsm partitions list "),
        (["tag", "--nothing"], "lakelsm tag list: error: unrecognized arguments: --nothing"),
        (["compact", *NAMED, "--foo"], "usage: lakelsm compact "),
        (["query-service", "--warehouse", "/wh", "--database", "d"], "this verb takes one table, not a --database"),
        (["comp", *NAMED], "invalid choice: 'comp'"),
    ],
)
def test_a_command_line_without_a_known_verb_exits_with_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert ended_with(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_new_verb_is_one_file_and_one_line(
    table: FakeTable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def count(opened: object, arguments: object) -> Report:
        assert opened is table
        return Report(ExitStatus.DONE, f"{arguments.min_rows} rows", {})  # type: ignore[attr-defined]

    def add_argument(parser: ArgumentParser) -> None:
        parser.add_argument("--min-rows", default="1")

    verb = Verb(name="count", summary="Count.", details="", add_arguments=add_argument, run=count)
    monkeypatch.setattr(command, "VERBS", (*command.VERBS, verb))
    assert command.main(["count", *NAMED, "--min-rows", "7"]) == 0
    assert capsys.readouterr().out == "7 rows\n"


def test_the_session_of_the_process_is_always_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    session = SimpleNamespace(stop=lambda: stopped.append("stopped"))
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: session))
    monkeypatch.setattr("sys.argv", ["lakelsm", "vacuum"])
    for run in (command.console, lambda: command.job(COMPACT, "compact.py")):
        with pytest.raises(SystemExit):
            run()
    assert stopped == ["stopped", "stopped"]


def test_an_interruption_is_a_line_and_a_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        error = KeyboardInterrupt()
        error.__notes__ = ["Table db.t: interrupted after the commit; snapshot 3 is committed."]  # type: ignore[attr-defined]
        raise error

    monkeypatch.setattr(command, "main", interrupted)
    assert command.console() == 130
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["lakelsm: interrupted.", "Table db.t: interrupted after the commit; snapshot 3 is committed."]


def test_the_installed_entry_point_exists() -> None:
    settings = configparser.ConfigParser()
    settings.read(SETUP)
    assert settings["metadata"]["version"] == "attr: lakelsm.version.VERSION"
    name, _, target = settings["options.entry_points"]["console_scripts"].strip().partition(" = ")
    module, _, function = target.partition(":")
    assert (name, getattr(import_module(module), function)) == ("lakelsm", command.console)


def documented() -> list[str]:
    """Return the command lines of the README and of docs/maintenance.md."""
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/maintenance.md"))
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    return re.findall(r'(?:lakelsm|"\$JOB") .*', blocks)


@pytest.mark.parametrize("line", documented())
def test_every_command_line_of_the_documents_parses(line: str) -> None:
    _, *words = shlex.split(line, comments=True)
    arguments = command.command_parser("lakelsm").parse_args(words)
    check_table(arguments.parser, arguments)


def test_the_page_for_operators_has_every_verb_and_exit_status() -> None:
    page = (ROOT / "docs" / "maintenance.md").read_text(encoding="utf-8")
    assert [verb.name for verb in command.UPKEEP if not re.search(rf"`(lakelsm )?{verb.name}\b", page)] == []
    assert [status for status in ExitStatus if f"\n| {status.value} | " not in page] == []


def test_the_command_has_a_verb_for_all_upkeep() -> None:
    known = {verb.name for verb in command.VERBS}
    assert {"compact", "expire", "tag", "branch", "rollback", "orphans", "check", "status", "partitions"} <= known
    assert {"analyze", "consumers", "history", "all"} <= known
    assert {"sql", "tables", "describe", "head", "explain", "snapshots", "files", "create", "alter", "drop"} <= known


def test_the_default_verb_of_a_group_is_list(called: Called) -> None:
    called.text("create", "id INT", "--primary-key", "id")
    for group in ("tag", "branch", "consumers", "partitions"):
        assert called.text(group).startswith("db.t: ")
        assert called.json(group)["status"] == "done"


def test_the_module_and_its_file_run_the_command(tmp_path: Path) -> None:
    """The path of the file is that of docs/maintenance.md. It runs in a directory without lakelsm."""

    def run(*words: str) -> str:
        return subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    file = run("-c", "import lakelsm.__main__ as job; print(job.__file__)").strip()
    for words in (["-m", "lakelsm"], [file]):
        assert run(*words, "tables", "--warehouse", "wh") == "no tables\n"


#: Calls of the command, and the packages that each may load of those that take more than 0.05 s.
LOADED: Mapping[tuple[str, ...], set[str]] = {
    ("--help",): set(),
    ("vacuum",): set(),
    ("tables",): set(),
    ("describe", *NAMED_T): set(),
    ("describe", "--table", "db.missing"): set(),
    ("history", *NAMED_T): set(),
    ("snapshots", *NAMED_T): set(),
    ("status", *NAMED_T): set(),
    ("tag", *NAMED_T): set(),
    ("explain", *NAMED_T): set(),
    ("explain", *NAMED_T, "--where", "id = 1"): {"sqlglot"},
    ("expire", *NAMED_T, "--dry-run"): set(),
    ("compact", *NAMED_T, "--dry-run"): set(),
    # pyarrow loads pandas when it converts the values of numpy, which merges use.
    ("head", *NAMED_T): {"pandas"},
    ("sql", "SHOW TABLES IN db"): set(),
    ("sql", "DESCRIBE db.t"): set(),
    ("sql", "SELECT * FROM db.missing"): set(),
    ("sql", "SELECT 1"): {"sqlglot", "duckdb"},
    ("sql", "SELECT * FROM db.t"): {"sqlglot", "duckdb", "pandas"},
}
#: Runs each call in a process of its own, and prints the packages that it has loaded.
IN_NEW_PROCESSES = """
import json, os, sys
from lakelsm.cli.main import main
for words in json.loads(sys.argv[1]):
    if os.fork() == 0:
        report = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        try:
            main([*words, "--warehouse", sys.argv[2]] if words != ["--help"] else words)
        except SystemExit:
            pass
        known = {"pandas", "pyspark", "py4j", "sqlglot", "duckdb", "polars", "obstore"}
        os.write(report, json.dumps(sorted(known & {*sys.modules})).encode() + b"\\n")
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_verb_loads_the_packages_that_it_needs_only(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table(
        "db.t", "id INT", primary_key="id", options={"bucket": "1", "write-only": "true"}
    )
    for _ in range(2):
        table.write([{"id": 1}, {"id": 2}])
    command_line = [sys.executable, "-c", IN_NEW_PROCESSES, json.dumps(list(LOADED)), str(tmp_path)]
    ran = subprocess.run(command_line, capture_output=True, text=True, check=True)
    loaded = dict(zip(LOADED, map(set, map(json.loads, ran.stdout.splitlines())), strict=True))
    assert {words: found for words, found in loaded.items() if not found <= LOADED[words]} == {}
    assert loaded["sql", "SELECT 1"] == {"sqlglot", "duckdb"}


def leaves(verbs: Sequence[Verb | CatalogVerb | VerbGroup]) -> list[list[str]]:
    nested = [[verb.name, *leaf] for verb in verbs if isinstance(verb, VerbGroup) for leaf in leaves(verb.verbs)]
    return [*([verb.name] for verb in verbs if not isinstance(verb, VerbGroup)), *nested]


@pytest.mark.parametrize("names", leaves(command.VERBS), ids=" ".join)
def test_the_help_of_every_verb_has_the_table_the_report_and_the_exit_statuses(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_with([*names, "--help"]) == 0
    text = capsys.readouterr().out
    for part in ("--warehouse", "--database", "--storage-option", "--report", "--log-level", "exit status:", "\n  4  "):
        assert part in text or (part == "--database" and names in (["create"], ["query-service"], ["sql"]))
    assert ("--path" in text) == (names[0] not in ("sql", "tables", "create", "alter", "drop"))
