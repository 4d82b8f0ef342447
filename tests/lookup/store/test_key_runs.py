"""Keys of a store that is written come out by length and in the order of their hashes, from scratch files too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lakelsm.errors import StorageError
from lakelsm.lookup.store import key_runs
from lakelsm.lookup.store.key_runs import KeyRuns


@pytest.mark.parametrize("held_bytes", [1, 3_000, 1 << 20])
@pytest.mark.parametrize("merged_bytes", [500, 1 << 20])
def test_entries_come_in_the_order_of_hashes(
    held_bytes: int, merged_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_runs, "_MERGED_BYTES", merged_bytes)
    chance = np.random.default_rng(7)
    given = {
        length: chance.integers(0, 2**32, (500, length + 2)).astype(np.uint64) for length in (1, 2, 5)
    }
    for entries in given.values():
        entries[::3, 0] = entries[0, 0]
        entries[1, 0], entries[2, 0] = 0, 2**32 - 1
    with KeyRuns(tmp_path / "store", held_bytes) as keys:
        for start in range(0, 500, 50):
            for entries in given.values():
                keys.add(entries[start : start + 50])
        assert keys.lengths() == [1, 2, 5]
        for length, entries in given.items():
            assert keys.count(length) == 500
            parts = list(keys.ordered(length))
            assert all(part.nbytes < 20 * merged_bytes for part in parts)
            found = np.concatenate(parts)
            assert found[:, 0].tolist() == sorted(entries[:, 0].tolist())
            assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, entries.tolist()))
    assert list(tmp_path.iterdir()) == []


def test_no_keys_have_no_lengths(tmp_path: Path) -> None:
    with KeyRuns(tmp_path / "store") as keys:
        assert keys.lengths() == []


def test_a_scratch_file_that_cannot_be_made_is_told_with_the_store(tmp_path: Path) -> None:
    with KeyRuns(tmp_path / "gone" / "store", 1) as keys, pytest.raises(StorageError) as raised:
        keys.add(np.zeros((1, 3), np.uint64))
    said = f"{tmp_path}/gone/store cannot be written: No such file or directory. The lookup store is not made."
    assert str(raised.value).startswith(said)
