"""Servers in tests have enough time to end on a loaded machine."""

from __future__ import annotations

import pytest

from lakelsm.lookup.service import query_server
from tests.processes import PATIENCE


@pytest.fixture(autouse=True)
def patient_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped server waits for its last calls and its refresh, and returns when these have ended."""
    monkeypatch.setattr(query_server, "_LONGEST_END", PATIENCE)
