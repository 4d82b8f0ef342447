"""Java's modified UTF-8."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.index.file_index.modified_utf8 import decode_modified_utf8, encode_modified_utf8


@pytest.mark.parametrize(
    ("text", "data"),
    [("v", "76"), ("é", "c3a9"), ("中", "e4b8ad"), ("a\0b", "61c08062"), ("😀", "eda0bdedb880"), ("", "")],
)
def test_texts_have_the_bytes_that_java_writes(text: str, data: str) -> None:
    assert encode_modified_utf8(text).hex() == data
    assert decode_modified_utf8(bytes.fromhex(data)) == text


@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    assert decode_modified_utf8(encode_modified_utf8(text)) == text


@pytest.mark.parametrize("data", [b"\xff", b"\xe4\xb8", b"\xed\xa0\xbd"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        decode_modified_utf8(data)
