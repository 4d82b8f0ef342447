"""Unions of bitmaps and sketches, in the bytes that Java writes (all bytes here are those of Paimon 1.4.2)."""

from __future__ import annotations

import hashlib

import pytest
from pyroaring import BitMap, BitMap64

from lakelsm.errors import InvalidInputError
from lakelsm.format.index.roaring64 import decode_roaring64, encode_roaring64
from tests.merge.one_key import GROUP, INSERT, function, merged


def united(name: str, *values: bytes | None) -> bytes | None:
    """Return the aggregation of these values of one key."""
    found: bytes | None = merged("BYTES", function(name), *((INSERT, value) for value in values))
    return found


def sketch(name: str, numbers: range) -> bytes:
    """Return a sketch of some numbers with the defaults of DataSketches."""
    library = pytest.importorskip("datasketches")
    hll = name == "hll_sketch"
    made = library.hll_sketch(12, library.tgt_hll_type.HLL_4) if hll else library.update_theta_sketch(12)
    for number in numbers:
        made.update(number)
    return bytes(made.serialize_compact() if hll else made.compact().serialize())


def estimate(name: str, data: bytes | None) -> float:
    library = pytest.importorskip("datasketches")
    kind = library.hll_sketch if name == "hll_sketch" else library.compact_theta_sketch
    return float(kind.deserialize(data).get_estimate())


def test_theta_sketches_are_united_to_the_bytes_that_java_writes() -> None:
    pytest.importorskip("datasketches")
    empty = bytes.fromhex("01030300001E0000")
    first = bytes.fromhex("01030300003ACC9315F97DCBBD86A105")
    second = bytes.fromhex("01030300003ACC93C397FC1281709D1E")
    both = bytes.fromhex("02030300001ACC93020000000000803F15F97DCBBD86A105C397FC1281709D1E")
    assert united("theta_sketch", first, second) == both
    assert united("theta_sketch", first, None, first) == first
    assert united("theta_sketch", empty, first) == first
    assert united("theta_sketch", empty, empty) == empty
    assert united("theta_sketch", None, None) is None


def test_hll_sketches_are_united_to_the_bytes_that_java_writes() -> None:
    first, second = (sketch("hll_sketch", numbers) for numbers in (range(3), range(1, 5)))
    both = bytes.fromhex("0201070C030805002BF2FB06862FF90D7581660781BC5D06CBD7C204")
    assert united("hll_sketch", first, second) == both
    assert united("hll_sketch", None, first, None) == first
    assert united("hll_sketch", None, None) is None


def test_an_older_row_of_a_sequence_group_is_united_in_the_order_of_java() -> None:
    def grouped(*values: tuple[int, bytes | None]) -> object:
        options = {**GROUP, **function("hll_sketch")}
        return merged("BYTES", options, *((INSERT, value, sequence) for sequence, value in values))

    first, second, third = (sketch("hll_sketch", numbers) for numbers in (range(3), range(1, 5), range(8, 10)))
    older_last = bytes.fromhex("0201070C03080500CBD7C2042BF2FB06862FF90D7581660781BC5D06")
    assert grouped((2, first), (1, second)) == older_last
    every = bytes.fromhex("0201070C030807002BF2FB06862FF90D7581660781BC5D06CBD7C204D216730734A2610E")
    assert grouped((2, first), (1, second), (0, third), (3, second)) == every
    assert grouped((2, None), (1, second)) == second


@pytest.mark.parametrize(
    ("name", "first", "second", "digest"),
    [
        # All numbers are stored, then a sample of them; a list of coupons, then registers.
        ("theta_sketch", range(100), range(50, 400), "94f4072d86852523392efa3370079c48c6ac36f5302ac1a1274926c5bf643449"),
        (
            "theta_sketch",
            range(20_000),
            range(10_000, 60_000),
            "15faa2e85929e2897eb64136fdaf383ec1051bc79a2aba85b181279a90377b39",
        ),
        ("hll_sketch", range(100), range(50, 400), "70a494638cd7e90661138ca6415836aa1e53d55700372648cea2e1e0c3ed07cc"),
        (
            "hll_sketch",
            range(20_000),
            range(10_000, 60_000),
            "7b1a527b17d08dd2cf0e105fb75244930f7fada1488aa0538a031385bf840e54",
        ),
    ],
)
def test_large_sketches_count_the_union_and_have_the_bytes_that_java_writes(
    name: str, first: range, second: range, digest: str
) -> None:
    both = united(name, sketch(name, first), sketch(name, second))
    assert estimate(name, both) == pytest.approx(second.stop, rel=0.05)
    assert hashlib.sha256(both or b"").hexdigest() == digest


def test_a_union_of_bitmaps_has_the_values_of_all_of_them() -> None:
    sets = [{1, 2**31}, set(range(100, 9000)), set(), {2, 2**32 - 1}]
    small = united("rbm32", *(bytes(BitMap(numbers).serialize()) for numbers in sets), None)
    assert set(BitMap.deserialize(small)) == set.union(*sets)
    sets += [{2**64 - 1, 2**40}]
    large = united("rbm64", *(encode_roaring64(BitMap64(numbers)) for numbers in sets), None)
    assert large is not None
    assert set(decode_roaring64(large)) == set.union(*sets)
    assert united("rbm64", None, None) is None


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("rbm32", "Write 32-bit Roaring bitmaps in the portable format"),
        ("rbm64", "Write 64-bit Roaring bitmaps as Java's Roaring64Bitmap serializes them"),
        ("theta_sketch", "Write compact theta sketches"),
        ("hll_sketch", "Write HLL sketches"),
    ],
)
def test_bytes_that_are_not_a_value_of_the_function_are_refused_with_the_column(name: str, remedy: str) -> None:
    if name.endswith("sketch"):
        pytest.importorskip("datasketches")
    with pytest.raises(InvalidInputError, match=f"column 'v'.*{name}.*{remedy}"):
        united(name, b"\x01\x02", b"nonsense")
