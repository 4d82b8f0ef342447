"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.cli import verb
from tests.cli.called import Called
from tests.cli.fake_table import DONE, FakeTable


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    """A fake table that every verb opens instead of a real one."""
    fake = FakeTable(DONE)
    monkeypatch.setattr(verb, "open_table", lambda arguments: fake)
    return fake


@pytest.fixture
def called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Called:
    """Calls verbs on the table db.t of a warehouse, which the test creates."""
    return Called(tmp_path / "wh", capsys)
