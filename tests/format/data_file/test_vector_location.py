"""The deletion vector of a data file is read from its range of the index file, and damage is refused."""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem
from pyroaring import BitMap

from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.vector_location import VectorLocation, mask_same_rows, positions_within, read_vectors
from lakelsm.format.index.deletion_vector_file import encode_vectors


def written_vectors(path: Path, vectors: dict[str, BitMap], bitmap64: bool = False) -> dict[str, VectorLocation]:
    """Write an index file. Return the locations of its vectors."""
    data, ranges = encode_vectors(vectors, bitmap64)
    path.write_bytes(data)
    return {
        found.data_file_name: VectorLocation(
            str(path),
            index_size=len(data),
            data_file=found.data_file_name,
            offset=found.offset,
            length=found.length,
            cardinality=found.cardinality,
        )
        for found in ranges
    }


@pytest.mark.parametrize("bitmap64", [False, True])
def test_every_changed_byte_is_found(tmp_path: Path, bitmap64: bool) -> None:
    path = tmp_path / "index-1"
    location = written_vectors(path, {"data-1.parquet": BitMap([5, 7, 99])}, bitmap64)["data-1.parquet"]
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        with pytest.raises(CorruptTableError, match=r"data-1\.parquet in index file .*index-1"):
            location.read(LocalFileSystem(), 100)


@pytest.mark.parametrize("bitmap64", [False, True])
def test_every_cut_is_found(tmp_path: Path, bitmap64: bool) -> None:
    path = tmp_path / "index-1"
    location = written_vectors(path, {"data-1.parquet": BitMap([5, 7, 99])}, bitmap64)["data-1.parquet"]
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        for changed in (location, replace(location, index_size=size)):
            with pytest.raises(CorruptTableError, match=r"data-1\.parquet in index file .*index-1"):
                changed.read(LocalFileSystem(), 100)


@pytest.mark.parametrize("bitmap64", [False, True])
def test_another_index_file_with_a_vector_of_the_same_shape_is_refused_by_its_checksum(
    tmp_path: Path, bitmap64: bool
) -> None:
    path, older = tmp_path / "index-1", tmp_path / "index-0"
    location = written_vectors(path, {"d": BitMap([5, 7, 99])}, bitmap64)["d"]
    assert written_vectors(older, {"d": BitMap([5, 8, 99])}, bitmap64)["d"] == replace(location, index_path=str(older))
    known = replace(location, index_checksum=zlib.crc32(path.read_bytes()))
    assert known.read(LocalFileSystem(), 100) == BitMap([5, 7, 99])
    older.replace(path)
    with pytest.raises(CorruptTableError, match=r"of data file d in index file .*index-1: .* damaged or replaced"):
        known.read(LocalFileSystem(), 100)


def test_a_length_beyond_the_index_file_is_refused_without_allocating_it(tmp_path: Path) -> None:
    location = written_vectors(tmp_path / "index-1", {"d": BitMap([5])})["d"]
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(CorruptTableError, match="but the index manifest says 2147483647"):
        replace(location, length=2**31 - 1).read(LocalFileSystem(), 100)
    assert pa.default_memory_pool().max_memory() < before + (1 << 20)


def test_a_too_large_index_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    location = written_vectors(tmp_path / "index-1", {"d": BitMap([5])})["d"]
    os.truncate(tmp_path / "index-1", 1 << 42)
    with pytest.raises(CorruptTableError, match="4398046511104 bytes, more than 1073741824"):
        replace(location, index_size=1 << 42, index_checksum=5).read(LocalFileSystem(), 100)


def test_wrong_numbers_in_the_manifest_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "index-1"
    location = written_vectors(path, {"d": BitMap([5, 7, 99])})["d"]
    wrong = {
        "masks row 99, and the data file has 99 rows": (location, 99),
        "masks 3 rows, but the index manifest says 4": (replace(location, cardinality=4), 100),
        "has 26 bytes, but the index manifest says 27": (replace(location, length=27), 100),
        "the vector is missing": (replace(location, offset=10_000), 100),
        "the index file does not exist": (replace(location, index_path=str(tmp_path / "missing")), 100),
    }
    for message, (changed, rows) in wrong.items():
        with pytest.raises(CorruptTableError, match=message):
            changed.read(LocalFileSystem(), rows)
    with pytest.raises(CorruptTableError):
        replace(location, offset=-1).read(LocalFileSystem(), 100)
    assert replace(location, cardinality=None).read(LocalFileSystem(), 100) == BitMap([5, 7, 99])


def test_rows_from_2_to_the_32_on_are_refused(tmp_path: Path) -> None:
    two_parts = "00000048d1d33964020000000000000000000000" + "3a3000000200000000000300010000001800000020000000"
    two_parts += "0100030005000700a086" + "010000003a300000010000000000000010000000" + "0200" + "207a78e5"
    data = bytes.fromhex("01" + two_parts)
    (tmp_path / "index-1").write_bytes(data)
    location = VectorLocation(
        str(tmp_path / "index-1"), index_size=len(data), data_file="d", offset=1, length=len(data) - 1, cardinality=6
    )
    with pytest.raises(CorruptTableError, match="from 2\\^32 on"):
        location.read(LocalFileSystem(), 200_000)


class CountingFileSystem:
    """Counts the files that are opened."""

    opened = 0

    def open_input_file(self, path: str) -> Any:
        self.opened += 1
        return LocalFileSystem().open_input_file(path)


def test_an_index_file_is_opened_once_for_all_of_its_vectors(tmp_path: Path) -> None:
    vectors = {f"data-{number}": BitMap(range(number, 50, 7)) for number in range(20)}
    first = written_vectors(tmp_path / "index-1", vectors)
    second = written_vectors(tmp_path / "index-2", {"other": BitMap([3])}, bitmap64=True)
    filesystem = CountingFileSystem()
    wanted = [(location, 50) for location in (*first.values(), *second.values())]
    found = list(read_vectors(filesystem, wanted))  # type: ignore[arg-type]
    assert found == [*vectors.values(), BitMap([3])]
    assert filesystem.opened == 2


def test_positions_of_a_range_are_those_of_the_vector() -> None:
    masked = BitMap([0, 5, 99, 100, 65_536])
    assert positions_within(masked, 5, 100).tolist() == [5, 99]
    assert positions_within(masked, 65_536, 70_000).tolist() == [65_536]
    assert positions_within(masked, 6, 99).tolist() == []


def test_rows_of_two_vectors_are_compared_only_if_they_may_be_equal(tmp_path: Path) -> None:
    one = written_vectors(tmp_path / "index-1", {"d": BitMap([1, 2])})["d"]
    moved = written_vectors(tmp_path / "index-2", {"a": BitMap([9]), "d": BitMap([1, 2])})["d"]
    other = written_vectors(tmp_path / "index-3", {"d": BitMap([1, 3])}, bitmap64=True)["d"]
    more = written_vectors(tmp_path / "index-4", {"d": BitMap([1, 2, 3])})["d"]
    filesystem = CountingFileSystem()
    for against, same, opened in ((one, True, 0), (more, False, 0), (moved, True, 2), (other, False, 4)):
        assert mask_same_rows(filesystem, [(one, against, 50)]) == [same]  # type: ignore[arg-type]
        assert filesystem.opened == opened
    uncounted = replace(more, cardinality=None)
    assert mask_same_rows(filesystem, [(one, uncounted, 50)]) == [False]  # type: ignore[arg-type]
    assert uncounted.masked_row_count(filesystem, 50) == 3  # type: ignore[arg-type]


def test_vectors_of_many_files_are_compared_with_their_index_files_opened_once(tmp_path: Path) -> None:
    vectors = {f"data-{number}": BitMap([number, number + 1]) for number in range(20)}
    before = written_vectors(tmp_path / "index-1", vectors)
    after = written_vectors(tmp_path / "index-2", {**vectors, "data-7": BitMap([1, 40])})
    filesystem = CountingFileSystem()
    pairs = [(before[name], after[name], 50) for name in sorted(vectors)]
    assert mask_same_rows(filesystem, pairs) == [name != "data-7" for name in sorted(vectors)]  # type: ignore[arg-type]
    assert filesystem.opened == 2
