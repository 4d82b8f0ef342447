"""``lakelsm tables`` and ``lakelsm drop``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelsm import Catalog
from lakelsm.cli.main import main
from tests.cli.fake_table import last_object


@pytest.fixture
def warehouse(tmp_path: Path) -> list[str]:
    catalog = Catalog(str(tmp_path))
    for name in ("a.t", "a.u", "b.t"):
        catalog.create_table(name, "id INT", primary_key="id")
    return ["--warehouse", str(tmp_path)]


def test_tables_are_listed(warehouse: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", *warehouse]) == 0
    assert capsys.readouterr().out == "a.t\na.u\nb.t\n"
    assert main(["tables", *warehouse, "--database", "b", "--report", "json"]) == 0
    assert last_object(capsys.readouterr().out)["tables"] == ["b.t"]
    assert main(["tables", *warehouse, "--database", "none"]) == 0
    assert capsys.readouterr().out == "no tables\n"


def dropped(warehouse: list[str], *words: str) -> int:
    return main(["drop", *warehouse, *words, "--report", "json", "--distinct-exit-status"])


@pytest.mark.parametrize(
    ("words", "status", "left"),
    [
        (["--table", "a.t", "--dry-run"], 0, ["a.t", "a.u", "b.t"]),
        (["--table", "a.t", "--table", "b.t"], 0, ["a.u"]),
        (["--database", "a", "--force"], 0, ["b.t"]),
        (["--table", "a.no"], 1, ["a.t", "a.u", "b.t"]),
        (["--table", "a.no", "--dry-run"], 1, ["a.t", "a.u", "b.t"]),
        (["--table", "a.no", "--if-exists"], 3, ["a.t", "a.u", "b.t"]),
        (["--table", "a.t$branch_b"], 1, ["a.t", "a.u", "b.t"]),
    ],
)
def test_named_tables_are_dropped(warehouse: list[str], words: list[str], status: int, left: list[str]) -> None:
    assert dropped(warehouse, *words) == status
    assert Catalog(warehouse[1]).list_tables() == left


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--database", "a"], "--database needs --force"),
        ([], "name the table with --warehouse and --table or --database\n"),
        (["--force"], "name the table with"),
        (["--path", "/a"], "unrecognized arguments: --path /a"),
    ],
)
def test_tables_are_dropped_only_by_name_or_with_force(
    warehouse: list[str], words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        dropped(warehouse, *words)
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert message in output and output.startswith("usage: lakelsm drop ")
    assert len(Catalog(warehouse[1]).list_tables()) == 3


def test_a_dry_run_changes_nothing_and_is_reported(warehouse: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = {}
    for words in (["--dry-run"], []):
        assert dropped(warehouse, "--table", "a.t", *words) == 0
        found[str(words)] = last_object(capsys.readouterr().out)["status"]
    assert found == {"['--dry-run']": "planned", "[]": "done"}
