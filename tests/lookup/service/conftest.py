"""Servers of tests have the time to end that a loaded machine needs."""

from __future__ import annotations

import pytest

from lakelsm.lookup.service import query_server
from tests.processes import PATIENCE


@pytest.fixture(autouse=True)
def patient_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is stopped waits for its last calls and its refresh, and returns as soon as these have ended."""
    monkeypatch.setattr(query_server, "_LONGEST_END", PATIENCE)
