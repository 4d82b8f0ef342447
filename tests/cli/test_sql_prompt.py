"""The prompt of ``lakelsm sql``."""

from __future__ import annotations

import builtins
import os
import pty
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.cli.sql_prompt import Completion, history_file, run_prompt


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path / "wh"))
    catalog.create_table("shop.orders", "id INT, `order date` DATE, Value INT", primary_key="id")
    catalog.create_table("default.orders2", "other INT", primary_key="other")
    return catalog


def run_lines(catalog: Catalog, lines: Sequence[object], history: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run the prompt on lines and exceptions, and return its statements, or the text of a prompt before Ctrl-C."""
    left, found = list(lines), []

    def read(prompt: str) -> object:
        line = left.pop(0) if left else EOFError()
        if isinstance(line, BaseException):
            found.append(prompt)
            raise line
        return line

    monkeypatch.setattr(builtins, "input", read)
    run_prompt(catalog, found.append, str(history))
    return found


def test_semicolons_end_statements_of_several_lines(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["SELECT 1;", "", "-- c", ";", "SELECT", "2", "; SELECT 'a;", "b'; SELECT 4;", "left"]
    found = run_lines(catalog, lines, tmp_path / "h", monkeypatch)
    assert found == ["SELECT 1", "SELECT\n2", "SELECT 'a;\nb'", "SELECT 4", "      -> "]


@pytest.mark.parametrize("word", ["quit", "EXIT;", " exit ; "])
def test_an_interrupt_discards_lines_and_quit_ends(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    lines = ["SELECT 1", KeyboardInterrupt(), "SELECT 2;", word, "SELECT 3;"]
    assert run_lines(catalog, lines, tmp_path / "h", monkeypatch) == ["      -> ", "SELECT 2"]


def test_names_and_keywords_are_completed(catalog: Catalog) -> None:
    completion = Completion(catalog)
    assert completion.candidates("sho", "SELECT * FROM sho") == ["shop.", "shop.orders", "show"]
    assert completion.candidates("SHOP.O", "SELECT * FROM SHOP.O") == ["shop.orders"]
    assert completion.candidates("ord", "SELECT ord") == ["orders2", "order"]
    completion.pending = "SELECT * FROM `shop`.Orders o\n"
    assert completion.candidates("i", "WHERE i") == ["id", "in", "inner", "insert", "intersect", "into", "is"]
    assert completion.candidates("o.", "WHERE o.") == ["o.Value", "o.`order date`", "o.id"]
    assert completion.candidates("VAL", "WHERE VAL") == ["Value", "VALUES"]
    assert {"id", "shop.orders"} <= set(completion.candidates("", "WHERE "))
    catalog.create_table("shop.more", "id INT", primary_key="id")
    assert completion.candidates("shop.m", "") == []
    completion.forget()
    assert completion.candidates("shop.m", "") == ["shop.more"]


def test_a_warehouse_that_cannot_be_read_has_no_names(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Catalog, "list_tables", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Completion(catalog).candidates("sel", "sel")

    def fail(self: Catalog) -> list[str]:
        raise OSError("no")

    monkeypatch.setattr(Catalog, "list_tables", fail)
    assert Completion(catalog).candidates("sel", "sel") == ["select"]


def test_the_history_is_in_the_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "lakelsm" / "sql_history"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert history_file() == Path.home() / ".local" / "state" / "lakelsm" / "sql_history"


class Terminal:
    """``lakelsm sql`` on a terminal."""

    def __init__(self, *arguments: str) -> None:
        self.process, self.file = pty.fork()
        if self.process == 0:
            words = [sys.executable, "-m", "lakelsm", "sql", *arguments]
            os.execve(sys.executable, words, {**os.environ, "TERM": "dumb"})

    def output(self, end: str) -> str:
        """Return the output up to a text."""
        found, deadline = b"", time.monotonic() + 60
        while not found.endswith(end.encode()) and time.monotonic() < deadline:
            if select.select([self.file], [], [], 1)[0]:
                found += os.read(self.file, 65536)
        return found.decode().replace("\r", "")

    def type(self, text: str, end: str = "lakelsm> ") -> str:
        """Type a text, and return the output up to the next prompt."""
        os.write(self.file, text.encode())
        return self.output(end)


def test_a_terminal_has_a_prompt_that_continues_after_an_error(catalog: Catalog, tmp_path: Path) -> None:
    history = tmp_path / "state" / "history"
    terminal = Terminal("--warehouse", str(tmp_path / "wh"), "--history", str(history))
    assert terminal.output("lakelsm> ").endswith("lakelsm> ")
    assert "found 'SELEC'" in terminal.type("SELEC 1;\n")
    assert "does not exist" in terminal.type("SELECT * FROM shop.no;\n")
    terminal.type("SELECT 1 AS a,\n", "      -> ")
    assert "a  b\n1  2\n(1 row)\n" in terminal.type("2 AS b;\n")
    assert "id  order date  Value\n(no rows)\n" in terminal.type("SELECT * FROM shop.or\t;\n")
    os.write(terminal.file, b"\x04")
    assert os.waitstatus_to_exitcode(os.waitpid(terminal.process, 0)[1]) == 0
    assert "2 AS b;" in history.read_text(encoding="utf-8")
    assert history.stat().st_mode & 0o077 == 0
