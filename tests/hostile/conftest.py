"""Fixtures of the hostile tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.hostile_table import HostileTable, hostile_table


@pytest.fixture(scope="session")
def _sound_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sound")


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory, _sound_table: Path) -> Callable[[], HostileTable]:
    """Return a function that copies a small table for tests to tamper with."""
    return lambda: hostile_table(tmp_path_factory.mktemp("hostile"), _sound_table)


@pytest.fixture(scope="session")
def make_masked(tmp_path_factory: pytest.TempPathFactory, _sound_table: Path) -> Callable[[], HostileTable]:
    """Return a function that copies a small table with deletion vectors."""
    return lambda: hostile_table(tmp_path_factory.mktemp("hostile"), _sound_table, masked=True)
