"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.cli import verb
from tests.cli.called import Called
from tests.cli.fake_table import DONE, FakeTable


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    """What a verb opens in place of a table, wherever it is."""
    fake = FakeTable(DONE)
    monkeypatch.setattr(verb, "open_table", lambda arguments: fake)
    return fake


@pytest.fixture
def called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Called:
    """What calls verbs on the table db.t of a warehouse that the test fills."""
    return Called(tmp_path / "wh", capsys)
