"""Keys of hash stores are found in their own slots only, and are sorted by hash in bounded memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import StorageError
from lakelsm.lookup.store import hash_keys
from lakelsm.lookup.store.hash_keys import Entries, KeyRuns, filled_slots, home_count, homes_of, value_offsets

HASHES = st.integers(0, 50) | st.integers(2**32 - 50, 2**32 - 1) | st.integers(0, 2**32 - 1)
#: A hash and the two words of a key. Equal words always have equal hashes, because the hash is a part of them.
KEYS = st.tuples(HASHES, st.integers(0, 3), st.integers(0, 2**32 - 1)).map(lambda key: (*key[:2], key[2] << 32 | key[0]))


def entries_of(keys: dict[tuple[int, ...], int]) -> Entries:
    """Rows of hash, key of two words, and value offset."""
    return np.array([[*key, position] for key, position in sorted(keys.items())], np.uint64).reshape(-1, 4)


def table_of(entries: Entries, homes: int, cut: int) -> npt.NDArray[np.uint64]:
    parts = list(filled_slots([entries[:cut], entries[cut:]], homes))
    hashes = np.concatenate([hashes.view(np.uint32) for hashes, _ in parts])
    assert hashes.tolist() == entries[:, 0].tolist()
    return np.concatenate([slots for _, slots in parts])


def offsets_of(slots: npt.NDArray[np.uint64], searched: Entries, homes: int) -> list[int]:
    seen = np.zeros(len(slots), bool)

    def check(at: npt.NDArray[np.int64]) -> None:
        seen[at] = True

    hashes = searched[:, 0].astype(np.uint32).view(np.int32)
    found = value_offsets(slots, searched[:, 1:3], homes_of(hashes, homes), check).tolist()
    assert seen.any() == (len(searched) > 0)
    return found  # type: ignore[no-any-return]


TABLES = st.dictionaries(KEYS, st.integers(0, 2**48 - 2), min_size=1)


@given(TABLES, st.lists(KEYS), st.sampled_from([0.01, 0.75, 0.99]), st.data())
def test_a_slot_table_has_exactly_its_keys(
    keys: dict[tuple[int, ...], int], others: list[tuple[int, ...]], load_factor: float, data: st.DataObject
) -> None:
    homes = home_count(len(keys), load_factor)
    slots = table_of(entries_of(keys), homes, data.draw(st.integers(0, len(keys))))
    searched = [*keys, *others, *keys]
    expected = [keys.get(key, -1) for key in searched]
    assert offsets_of(slots, np.empty((0, 4), np.uint64), homes) == []
    assert offsets_of(slots, np.array([[*key, 0] for key in searched], np.uint64), homes) == expected


def test_a_key_far_from_its_home_is_found() -> None:
    rows = 65_700  # A slot records distances below 65,535.
    entries = np.zeros((rows, 3), np.uint64)
    entries[:, 1] = np.arange(rows)
    entries[:, 2] = np.arange(rows)
    slots = np.concatenate([slots for _, slots in filled_slots([entries], 10)])
    searched = [0, 3, rows - 1]
    keys = np.array([*searched, rows], np.uint64)[:, None]
    assert value_offsets(slots, keys, np.zeros(4, np.int64), lambda _: None).tolist() == [*searched, -1]


def test_a_slot_table_has_the_given_load_factor() -> None:
    assert home_count(750, 0.75) == 1000
    assert home_count(1, 0.99) == 1
    chance = np.random.default_rng(1)
    entries = np.sort(chance.integers(0, 2**32, 75_000).astype(np.uint64)).repeat(3).reshape(-1, 3)
    slots = np.concatenate([slots for _, slots in filled_slots([entries], 100_000)])
    assert 100_000 < len(slots) < 101_000
    homes = homes_of(entries[:, 0].astype(np.uint32).view(np.int32), 100_000)
    assert np.bincount(homes >> 10).std() < 60, "homes are distributed evenly"


@pytest.mark.parametrize("held_bytes", [1, 3_000, 1 << 20])
@pytest.mark.parametrize("merged_bytes", [500, 1 << 20])
def test_entries_are_in_the_order_of_hashes(
    held_bytes: int, merged_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hash_keys, "_MERGED_BYTES", merged_bytes)
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


def test_a_temporary_file_that_cannot_be_created_is_reported_with_the_store(tmp_path: Path) -> None:
    with KeyRuns(tmp_path / "gone" / "store", 1) as keys, pytest.raises(StorageError) as raised:
        keys.add(np.zeros((1, 3), np.uint64))
    said = f"{tmp_path}/gone/store cannot be written: No such file or directory. The lookup store is not built."
    assert str(raised.value).startswith(said)
