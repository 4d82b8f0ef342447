"""HASH index files: hashes as Java writes them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.hash_index import decode_hashes, encode_hashes


def test_hashes_are_big_endian_as_java_writes_them() -> None:
    hashes = np.array([1465514398, -300363099, 1340390384], np.int32)
    assert encode_hashes(hashes).hex() == "5759f99eee18d2a54fe4bbf0"
    decoded = decode_hashes(bytes.fromhex("5759f99eee18d2a54fe4bbf0"))
    assert decoded.dtype == np.int32
    assert decoded.tolist() == hashes.tolist()
    assert len(decode_hashes(b"")) == 0


def test_a_truncated_hash_index_is_named() -> None:
    with pytest.raises(CorruptTableError, match="index-7 has 5 bytes"):
        decode_hashes(bytes(5), "index-7")


@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1)))
def test_hashes_of_any_value_are_read_back_in_order(values: list[int]) -> None:
    data = encode_hashes(np.array(values, np.int32))
    assert len(data) == 4 * len(values)
    assert decode_hashes(data).tolist() == values
