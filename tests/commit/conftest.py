"""The table fixture of tests of commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commit.commit_table import CommitTable


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path / "t")
