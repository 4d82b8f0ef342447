"""Indexes of hashes: each hash has its rows, however the entries are parted, and damage is told before it is used."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.store import key_index
from lakelsm.lookup.store.key_entries import ENTRIES
from lakelsm.lookup.store.key_index import KeyIndex, write_index
from lakelsm.lookup.store.piece_file import PieceFile, PieceWriter


def _index(directory: Path, hashes: list[list[int]], threads: int = 1) -> KeyIndex:
    """An index of files of rows with these hashes."""
    sources, first = [], 0
    for number, each in enumerate(hashes):
        path = directory / f"entries-{number}"
        path.unlink(missing_ok=True)
        entries = np.array(each, dtype=np.uint64) << np.uint64(32) | np.arange(len(each), dtype=np.uint64)
        with PieceWriter(path) as file:
            for block in np.array_split(entries, 3):
                file.append(ENTRIES, block)
            file.finish({"rows": len(each)})
        sources.append((PieceFile(path), first))
        first += len(each)
    (directory / "index").unlink(missing_ok=True)
    with PieceWriter(directory / "index") as file:
        file.finish(write_index(file, sources, threads))
    index = PieceFile(directory / "index")
    return KeyIndex(index, index.facts)


_HASHES = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, 2**32 - 1])


@settings(deadline=None)
@given(st.lists(st.lists(_HASHES, max_size=60), max_size=3), st.lists(_HASHES, max_size=10), st.sampled_from([1, 4096]))
def test_each_hash_has_its_rows(hashes: list[list[int]], others: list[int], part: int) -> None:
    every = [each for file in hashes for each in file]
    asked = [*every, *others]
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as directory:
        patch.setattr(key_index, "_PART_ENTRIES", part)
        patch.setattr(key_index, "_BLOCK_ENTRIES", part)
        index = _index(Path(directory), hashes, threads=2)
    probes, rows = index.candidates(np.array(asked, dtype=np.uint32))
    expected = [(at, row) for at, wanted in enumerate(asked) for row, each in enumerate(every) if each == wanted]
    assert list(zip(probes.tolist(), rows.tolist(), strict=True)) == expected
    for wanted in every:
        assert index.may_have(wanted)
    for wanted in asked:
        assert index.rows_of(wanted) == [row for row, each in enumerate(every) if each == wanted]
    assert (index.rows, index.entries) == (len(every), len(every))


def test_parts_that_are_sorted_apart_make_the_index_of_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = [np.random.default_rng(number).integers(0, 2**32, 5000).tolist() for number in range(2)]
    whole = _index(tmp_path, hashes).file
    monkeypatch.setattr(key_index, "_PART_ENTRIES", 1 << 10)
    parted = _index(tmp_path, hashes, threads=2).file
    for section in ("directory", "index"):
        assert parted.section(section).whole(np.uint32).tolist() == whole.section(section).whole(np.uint32).tolist()


def test_damage_is_told_where_it_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "_PIECE_BYTES", 1 << 8)
    hashes = np.random.default_rng(3).integers(0, 2**32, 2000).tolist()
    path = _index(tmp_path, [hashes]).file.path
    whole, first, last = path.read_bytes(), min(hashes), max(hashes)
    for start in (0, whole.index((first << 32 | hashes.index(first)).to_bytes(8, "little"))):
        path.write_bytes(whole[:start] + b"\xff" + whole[start + 1 :])
        file = PieceFile(path)
        index = KeyIndex(file, file.facts)
        assert index.rows_of(last) == [hashes.index(last)]
        assert index.candidates(np.array([last], np.uint32))[1].tolist() == [hashes.index(last)]
        with pytest.raises(CorruptStoreError, match=f"{path} is damaged"):
            index.rows_of(first)
        with pytest.raises(CorruptStoreError, match=f"{path} is damaged"):
            index.candidates(np.array([first], np.uint32))


def test_a_filter_knows_most_hashes_that_no_row_has_and_is_made_of_whole_entries_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = np.random.default_rng(4).integers(0, 2**32, 4000)
    index = _index(tmp_path, [hashes[:2000].tolist()])
    others = [each for each in hashes[2000:].tolist() if each not in hashes[:2000]]
    assert sum(map(index.may_have, others)) < len(others) / 10
    path = index.file.path
    path.write_bytes(path.read_bytes()[:-1])
    assert not all(map(index.may_have, others)), "the file is not looked at any more"
    whole = _index(tmp_path, [hashes[:2000].tolist()]).file.path.read_bytes()
    entry = int(hashes[:2000].min()) << 32 | int(hashes[:2000].argmin())
    at = whole.index(entry.to_bytes(8, "little"))
    path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    file = PieceFile(path)
    with pytest.raises(CorruptStoreError, match=f"{path} is damaged"):
        KeyIndex(file, file.facts).may_have(5)
    monkeypatch.setattr(key_index, "_FILTERED_ENTRIES", 1999)
    path.write_bytes(whole)
    file = PieceFile(path)
    assert all(map(KeyIndex(file, file.facts).may_have, others))
    assert not _index(tmp_path, [[]]).may_have(0)
