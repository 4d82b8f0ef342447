"""Index files of deletion vectors have Java's bytes in both layouts, and damage is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from lakelsm.format.index.deletion_vector_file import decode_vector, encode_vectors

#: Complete files that Java wrote, by layout: rows 5, 7 and 99 are masked.
JAVA = {
    False: "010000001a5e43f2d03a300000010000000000020010000000050007006300d4c6888b",
    True: "0100000026d1d339640100000000000000000000003a3000000100000000000200100000000500070063007dca4459",
}

positions = st.sets(st.integers(0, 200_000), max_size=300)


@pytest.mark.parametrize("bitmap64", [False, True])
def test_the_bytes_are_those_that_java_writes(bitmap64: bool) -> None:
    data, (found,) = encode_vectors({"data-1.parquet": BitMap([5, 7, 99])}, bitmap64)
    assert data.hex() == JAVA[bitmap64]
    assert (found.data_file_name, found.offset, found.length, found.cardinality) == (
        "data-1.parquet",
        1,
        46 if bitmap64 else 26,
        3,
    )


@pytest.mark.parametrize(
    ("masked", "bitmap64", "vector"),
    [
        (
            [1, 3, 5, 7, 100_000],
            False,
            "000000265e43f2d03a30000002000000000003000100000018000000200000000100030005000700a086fb113fb1",
        ),
        (range(100), False, "000000135e43f2d03b30000001000063000100000063007d77c5d7"),
    ],
)
def test_several_containers_and_runs_have_javas_bytes(masked: object, bitmap64: bool, vector: str) -> None:
    assert encode_vectors({"a": BitMap(masked)}, bitmap64)[0].hex() == "01" + vector


@settings(max_examples=60)
@given(st.dictionaries(st.text(min_size=1, max_size=8), positions, min_size=1, max_size=4), st.booleans())
def test_vectors_are_read_back(vectors: dict[str, set[int]], bitmap64: bool) -> None:
    data, ranges = encode_vectors({name: BitMap(rows) for name, rows in vectors.items()}, bitmap64)
    found = {entry.data_file_name: set(decode_vector(data[entry.offset :], entry.length)) for entry in ranges}
    assert found == vectors
    assert {entry.data_file_name: entry.cardinality for entry in ranges} == {n: len(rows) for n, rows in vectors.items()}
