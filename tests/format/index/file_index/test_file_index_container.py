"""The container of a file's indexes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.index.file_index.file_index_container import (
    FileIndexContainer,
    check_seal,
    decode_modified_utf8,
    encode_modified_utf8,
    sealed,
)
from tests.format.index.file_index.java_container import JAVA

#: A container that Java wrote: column v with a bloom filter of 'a' and 'b'.
WORKED = (
    "00054e4ed01a35ae000000010000003500000001000176000000010"
    "00c626c6f6f6d2d66696c746572000000350000000a0000000000000003082000700200"
)
BODIES = {"v": {"bloom-filter": bytes.fromhex("00000003082000700200")}}


def test_a_container_has_the_bytes_that_java_writes() -> None:
    assert FileIndexContainer(BODIES).encode().hex() == WORKED
    assert FileIndexContainer.decode(bytes.fromhex(WORKED), "x").bodies == BODIES


def test_a_container_of_javas_with_many_indexes_is_read_and_written_again_byte_for_byte() -> None:
    found = FileIndexContainer.decode(JAVA, "x")
    assert sum(map(len, found.bodies.values())) == 42
    assert FileIndexContainer(found.bodies).encode() == JAVA


@given(
    st.dictionaries(
        st.text(max_size=9), st.dictionaries(st.text(max_size=9), st.binary(max_size=9), max_size=3), max_size=3
    )
)
def test_all_indexes_are_read_back(bodies: dict[str, dict[str, bytes]]) -> None:
    assert FileIndexContainer.decode(FileIndexContainer(bodies).encode(), "x").bodies == bodies


def test_empty_indexes_and_additions_of_later_versions_are_ignored() -> None:
    data = bytearray(FileIndexContainer({"v": {"bitmap": b"xy"}}).encode())
    start = data.index(b"bitmap") + 6
    data[start : start + 8] = bytes.fromhex("ffffffff00000000")
    assert FileIndexContainer.decode(bytes(data), "x").bodies == {"v": {}}
    longer = bytearray(FileIndexContainer({}).encode())
    longer[12:16], longer[-4:] = (27).to_bytes(4, "big"), b"\0\0\0\3abc"
    assert FileIndexContainer.decode(bytes(longer), "x").bodies == {}


@pytest.mark.parametrize("size", range(0, len(WORKED) // 2))
def test_a_truncated_container_is_refused_by_name(size: int) -> None:
    with pytest.raises(CorruptTableError, match=r"^File index i of data file d "):
        FileIndexContainer.decode(bytes.fromhex(WORKED)[:size], "File index i of data file d")


def test_another_version_and_another_kind_of_file_are_refused() -> None:
    data = bytes.fromhex(WORKED)
    with pytest.raises(UnsupportedFeatureError, match="has version 2; lakelsm reads only version 1"):
        FileIndexContainer.decode(data[:8] + b"\0\0\0\2" + data[12:], "x")
    with pytest.raises(CorruptTableError, match="magic number"):
        FileIndexContainer.decode(b"PAR1" + data[4:], "x")


@given(st.data())
def test_any_damage_is_an_error_or_a_container(data: st.DataObject) -> None:
    damaged = bytearray(JAVA)
    for at in data.draw(st.lists(st.integers(0, 1500), min_size=1, max_size=4)):
        damaged[at] ^= data.draw(st.integers(1, 255))
    with suppress(CorruptTableError, UnsupportedFeatureError):
        FileIndexContainer.decode(bytes(damaged), "x")


def test_a_sealed_container_must_be_complete_and_of_its_data_file() -> None:
    data = sealed(JAVA, "data-1.parquet")
    assert FileIndexContainer.decode(data, "x") == FileIndexContainer.decode(JAVA, "x")
    check_seal(data, "data-1.parquet", "x", needed=True)
    check_seal(JAVA, "data-1.parquet", "x", needed=False)  # Another writer's container has no checksum.
    check_seal(b"", "data-1.parquet", "x", needed=False)
    wrong = [(data, "data-2.parquet", False), (data[:100] + b"\x01" + data[101:], "data-1.parquet", False)]
    wrong += [(JAVA, "data-1.parquet", True), (b"", "data-1.parquet", True), (data + b"\0", "data-1.parquet", True)]
    for bad, name, needed in wrong:
        with pytest.raises(CorruptTableError, match="x is damaged, or belongs to another data file"):
            check_seal(bad, name, "x", needed=needed)


@pytest.mark.parametrize(
    ("text", "data"),
    [("v", "76"), ("é", "c3a9"), ("中", "e4b8ad"), ("a\0b", "61c08062"), ("😀", "eda0bdedb880"), ("", "")],
)
def test_texts_have_the_bytes_that_java_writes(text: str, data: str) -> None:
    assert encode_modified_utf8(text).hex() == data
    assert decode_modified_utf8(bytes.fromhex(data)) == text


@given(st.text())
def test_every_text_is_read_back(text: str) -> None:
    assert decode_modified_utf8(encode_modified_utf8(text)) == text


@pytest.mark.parametrize("data", [b"\xff", b"\xe4\xb8", b"\xed\xa0\xbd"])
def test_bytes_that_are_not_text_are_refused(data: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        decode_modified_utf8(data)
