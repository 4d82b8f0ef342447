"""Indexes of hashes: each hash has its rows, in any division of the entries, and damage is reported before use."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm.errors import CorruptStoreError, InvalidInputError
from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.lookup.store import key_index, store_file
from lakelsm.lookup.store.key_index import MAX_ROWS, KeyIndex, check_rows, hashes_of, key_entries, write_index
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter
from tests.lookup.store.keyed_tables import fields_of


def _index(directory: Path, hashes: list[list[int]], threads: int = 1) -> KeyIndex:
    """An index of files of rows with these hashes."""
    sources, first = [], 0
    for number, each in enumerate(hashes):
        path = directory / f"entries-{number}"
        path.unlink(missing_ok=True)
        entries = np.array(each, dtype=np.uint64) << np.uint64(32) | np.arange(len(each), dtype=np.uint64)
        with StoreFileWriter(path) as file:
            for block in np.array_split(entries, 3):
                file.append("entries", block)
            file.finish({"rows": len(each)})
        sources.append((StoreFile(path), first))
        first += len(each)
    (directory / "index").unlink(missing_ok=True)
    with StoreFileWriter(directory / "index") as file:
        file.finish(write_index(file, sources, threads))
    index = StoreFile(directory / "index")
    return KeyIndex(index, index.facts)


_HASHES = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, 2**32 - 1])


@settings(deadline=None)
@given(st.lists(st.lists(_HASHES, max_size=60), max_size=3), st.lists(_HASHES, max_size=10), st.sampled_from([1, 4096]))
def test_each_hash_has_its_rows(hashes: list[list[int]], others: list[int], part: int) -> None:
    every = [each for file in hashes for each in file]
    searched = [*every, *others]
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as directory:
        patch.setattr(key_index, "_PART_ENTRIES", part)
        patch.setattr(key_index, "_BLOCK_ENTRIES", part)
        index = _index(Path(directory), hashes, threads=2)
    probes, rows = index.candidates(np.array(searched, dtype=np.uint32))
    expected = [(at, row) for at, wanted in enumerate(searched) for row, each in enumerate(every) if each == wanted]
    assert list(zip(probes.tolist(), rows.tolist(), strict=True)) == expected
    for wanted in every:
        assert index.may_have(wanted)
    for wanted in searched:
        assert index.rows_of(wanted) == [row for row, each in enumerate(every) if each == wanted]
    assert (index.rows, index.entries) == (len(every), len(every))


def test_parts_that_are_sorted_separately_give_the_same_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = [np.random.default_rng(number).integers(0, 2**32, 5000).tolist() for number in range(2)]
    whole = _index(tmp_path, hashes).file
    monkeypatch.setattr(key_index, "_PART_ENTRIES", 1 << 10)
    parted = _index(tmp_path, hashes, threads=2).file
    for section in ("directory", "index"):
        assert parted.section(section).array(np.uint32).tolist() == whole.section(section).array(np.uint32).tolist()


def test_damage_is_reported_when_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_file, "_BLOCK_BITS", 8)
    monkeypatch.setattr(store_file, "_BLOCK_BYTES", 1 << 8)
    hashes = np.random.default_rng(3).integers(0, 2**32, 2000).tolist()
    path = _index(tmp_path, [hashes]).file.path
    whole, first, last = path.read_bytes(), min(hashes), sorted(hashes)[1500]
    for start in (0, whole.index((first << 32 | hashes.index(first)).to_bytes(8, "little"))):
        path.write_bytes(whole[:start] + b"\xff" + whole[start + 1 :])
        file = StoreFile(path)
        index = KeyIndex(file, file.facts)
        assert index.rows_of(last) == [hashes.index(last)]
        assert index.candidates(np.array([last], np.uint32))[1].tolist() == [hashes.index(last)]
        with pytest.raises(CorruptStoreError, match=f"{path} is damaged"):
            index.rows_of(first)
        with pytest.raises(CorruptStoreError, match=f"{path} is damaged"):
            index.candidates(np.array([first], np.uint32))


def test_a_filter_excludes_most_missing_hashes_and_is_made_of_undamaged_entries_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = np.random.default_rng(4).integers(0, 2**32, 4000)
    index = _index(tmp_path, [hashes[:2000].tolist()])
    others = [each for each in hashes[2000:].tolist() if each not in hashes[:2000]]
    assert sum(map(index.may_have, others)) < len(others) / 10
    path = index.file.path
    path.write_bytes(path.read_bytes()[:-1])
    assert not all(map(index.may_have, others)), "the file is not read any more"
    whole = _index(tmp_path, [hashes[:2000].tolist()]).file.path.read_bytes()
    entry = int(hashes[:2000].min()) << 32 | int(hashes[:2000].argmin())
    at = whole.index(entry.to_bytes(8, "little"))
    path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    file = StoreFile(path)
    with pytest.raises(CorruptStoreError, match=f"{path} is damaged"):
        KeyIndex(file, file.facts).may_have(5)
    monkeypatch.setattr(key_index, "_FILTERED_ENTRIES", 1999)
    path.write_bytes(whole)
    file = StoreFile(path)
    assert all(map(KeyIndex(file, file.facts).may_have, others))
    assert not _index(tmp_path, [[]]).may_have(0)


def test_an_entry_is_the_hash_and_the_row_index() -> None:
    fields = fields_of(["INT", "STRING"])
    rows = pa.table({"k1": ["a", "b"], "k0": pa.array([1, 2], pa.int32())})
    hashes = key_hashes([rows.column("k0"), rows.column("k1")], [field.type for field in fields])
    expected = [(int(hash_) & 0xFFFFFFFF) << 32 | row for row, hash_ in enumerate(hashes.tolist(), 70)]
    assert key_entries(70, rows, fields).tolist() == expected


def test_rows_with_a_null_in_their_key_have_no_entry() -> None:
    fields = fields_of(["INT", "STRING"])
    rows = pa.table({"k0": pa.array([1, None, 3, None], pa.int32()), "k1": ["a", "b", None, None]})
    assert [entry & 0xFFFFFFFF for entry in key_entries(5, rows, fields).tolist()] == [5]


@pytest.mark.parametrize(("kind", "code"), [("FLOAT", "<f"), ("DOUBLE", "<d")])
def test_zeros_have_one_hash_and_so_have_nans(kind: str, code: str) -> None:
    fields = fields_of([kind])
    (other_nan,) = struct.unpack(code, b"\1" + struct.pack(code, -math.nan)[1:])
    column = pa.array([0.0, -0.0, math.nan, other_nan], pa.float32() if kind == "FLOAT" else pa.float64())
    zero, minus, nan, other = hashes_of(pa.table({"k0": column}), fields).tolist()
    assert zero == minus and nan == other and zero != nan


def test_more_rows_than_an_index_can_have_are_refused() -> None:
    check_rows(MAX_ROWS)
    with pytest.raises(InvalidInputError, match=f"a cache of {MAX_ROWS + 1} rows is too large"):
        check_rows(MAX_ROWS + 1)
