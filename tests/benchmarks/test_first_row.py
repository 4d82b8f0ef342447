"""The lane of fresh processes: the end of its timed region, and the end of its process."""

from __future__ import annotations

import ast
from pathlib import Path

from benchmarks import first_row, first_row_of
from benchmarks.first_row import first_row_contender
from benchmarks.timing import Turns, measure


def script(folder: Path, monkeypatch, text: str) -> None:  # type: ignore[no-untyped-def]
    path = folder / "engine.py"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(first_row, "_SCRIPT", path)


def test_the_timed_region_ends_with_the_row(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    script(
        tmp_path,
        monkeypatch,
        "import sys\nprint(tuple(range(10)), flush=True)\nassert sys.stdin.read() == ''\n",
    )
    contender = first_row_contender("x", "engine", "location")
    # The process runs until its input is closed, after the timed region.
    (result,) = measure("first-row", [contender], Turns(1, 60))
    assert result.error == "" and len(result.seconds) == 1


def test_a_process_without_a_row_is_a_failure(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    script(tmp_path, monkeypatch, "raise SystemExit('no engine')\n")
    (result,) = measure("first-row", [first_row_contender("x", "engine", "location")], Turns(1, 60))
    assert result.error.startswith("AssertionError: no row")


def test_the_script_itself_imports_no_large_package() -> None:
    tree = ast.parse(Path(first_row_of.__file__).read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert imported == {"json", "sys", "collections", "importlib", "typing"}
