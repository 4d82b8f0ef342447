"""Fixtures of the command line's tests."""

from __future__ import annotations

import pytest

from lakelsm.cli import verb
from tests.cli.fake_table import DONE, FakeTable


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    """What a verb opens in place of a table, wherever it is."""
    fake = FakeTable(DONE)
    monkeypatch.setattr(verb, "open_table", lambda arguments: fake)
    return fake
