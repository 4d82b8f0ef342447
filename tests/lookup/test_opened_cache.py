"""An open cache goes with its directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.opened_cache import OpenedCache


class _Failing:
    def close(self) -> None:
        raise OSError("stuck")


def test_a_private_directory_goes_even_where_the_cache_cannot_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    directory = CacheDirectory.private()
    with pytest.raises(OSError, match="stuck"):
        OpenedCache("full", _Failing(), directory).close()  # type: ignore[arg-type]
    assert not directory.path.exists()
