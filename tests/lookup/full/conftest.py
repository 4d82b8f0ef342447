"""Fixtures of the tests of full caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.lookup.cache_directory import CacheDirectory


@pytest.fixture
def directory(tmp_path: Path) -> CacheDirectory:
    """A shared directory of a cache."""
    return CacheDirectory.shared(tmp_path / "cache")
