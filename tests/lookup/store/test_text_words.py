"""Rows in the order of a text are found by a word of each: whatever texts have in common, however short they are."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.store import arrow_segment
from lakelsm.lookup.store.arrow_store import ArrowStore, ArrowStoreFormat
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.lookup.store.text_words import TextBytes, TextRows, TextWords
from tests.lookup.store.keyed_tables import fields_of

_VALUE = fields_of(["STRING", "INT"])[1:]
_BEGINNINGS = st.sampled_from(["", "a", "customer-", "customer-00"])
_TEXTS = st.builds(str.__add__, _BEGINNINGS, st.text("\0abé\U0001f600", max_size=10))


def _store(directory: Path, kind: str, keys: list[Any]) -> ArrowStore:
    layout = StoreLayout(fields_of([kind]), _VALUE)
    rows = pa.table({"k0": pa.array(keys, _kind(kind)), "k1": pa.array(range(len(keys)), pa.int32())})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_segment, "CHUNK_ROWS", 7)
        ArrowStoreFormat().write(directory / "store", layout, [rows])
    return ArrowStoreFormat().open(directory / "store", layout)


def _kind(kind: str) -> pa.DataType:
    return pa.string() if kind == "STRING" else pa.binary()


def _check(store: ArrowStore, kind: str, keys: list[Any], asked: list[Any]) -> None:
    found = store.find(pa.table({"k0": pa.array(asked, _kind(kind))}))
    expected = [(at, row) for at, key in enumerate(asked) for row, stored in enumerate(keys) if stored == key]
    assert list(zip(found.probes.tolist(), found.rows.column("k1").to_pylist(), strict=True)) == expected
    for key in asked:
        assert store.find_one((key,)) == [(row,) for row, stored in enumerate(keys) if stored == key]


@pytest.mark.parametrize("kind", ["STRING", "BYTES"])
@given(st.sets(_TEXTS, max_size=40), st.lists(_TEXTS, max_size=20))
def test_texts_are_found_and_others_are_not(kind: str, texts: set[str], others: list[str]) -> None:
    keys: list[Any] = sorted(text.encode() for text in texts)
    asked: list[Any] = [*keys[::-1], *(text.encode() for text in others), *keys]
    if kind == "STRING":
        keys, asked = [key.decode() for key in keys], [key.decode() for key in asked]
    with tempfile.TemporaryDirectory() as directory:
        store = _store(Path(directory), kind, keys)
        assert isinstance(store._rows, TextRows)
        _check(store, kind, keys, asked)
        store.close()


def test_rows_with_the_same_word_are_told_apart_and_too_many_get_an_index(tmp_path: Path) -> None:
    for number, (count, has_words) in enumerate(((5, True), (6, False))):
        keys = ["a", *("customer" + "x" * at for at in range(count)), "d"]
        (tmp_path / str(number)).mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lakelsm.lookup.store.text_words._MOST_ALIKE", 5)
            store = _store(tmp_path / str(number), "STRING", keys)
        assert isinstance(store._rows, TextRows) == has_words
        _check(store, "STRING", keys, [*keys[::-1], "customex", "customer" + "y", "custom"])


@pytest.mark.parametrize("keys", [["b", "a"], ["a", "a"], [None, "a"], [*"abcdefg", "a"], ["x" * 2000, "y"]])
def test_rows_in_another_order_or_with_nulls_or_long_keys_get_an_index(keys: list[str | None], tmp_path: Path) -> None:
    store = _store(tmp_path, "STRING", keys)
    assert not isinstance(store._rows, TextRows)
    _check(store, "STRING", keys, [key for key in keys if key is not None])


def test_words_are_the_bytes_behind_what_is_skipped() -> None:
    texts = pa.array(["zz", "customer-1", "customer-12345678", "customer-123456789", "customer"]).slice(1)
    words = TextBytes(texts).words(9)
    expected = [b"1", b"12345678", b"12345678", b""]
    assert words.tolist() == [int.from_bytes(each.ljust(8, b"\0"), "big") for each in expected]
    assert TextBytes(texts).words(9, np.array([2, 0])).tolist() == [words[2], words[0]]


def test_texts_of_one_length_have_the_words_that_others_have() -> None:
    texts = pa.array(["begin", *(f"customer-{number:010}" for number in range(50)), "end"]).slice(1, 50)
    some = TextBytes(pa.concat_arrays([texts, pa.array(["longer than those before"])]))
    for skipped in (0, 9, 11, 12, 15, 18, 19):
        assert TextBytes(texts).words(skipped).tolist() == some.words(skipped).tolist()[:50]


def test_keys_of_one_text_have_words() -> None:
    fitting = [TextWords.fits(fields_of(types)) for types in (["STRING"], ["BYTES"], ["STRING", "INT"], ["INT"])]
    assert fitting == [True, True, False, False]


def test_words_of_other_record_batches_are_told(tmp_path: Path) -> None:
    rows = _store(tmp_path, "STRING", [*"abcdefghij"])._rows
    assert isinstance(rows, TextRows)
    with pytest.raises(CorruptStoreError, match="first keys of 1 record batches"):
        TextRows(rows.rows, fields_of(["STRING"])[0], [("61", 0)])


def test_a_flipped_byte_of_words_is_told(tmp_path: Path) -> None:
    store = _store(tmp_path, "STRING", [f"customer {number:03}" for number in range(0, 90, 3)])
    data = bytearray((tmp_path / "store").read_bytes())
    (start, _, _), *_ = store._file.section("words").pieces
    data[start + 3] ^= 1
    (tmp_path / "store").write_bytes(data)
    for ask in (lambda: store.find(pa.table({"k0": ["customer 003"]})), lambda: store.find_one(("customer 003",))):
        with pytest.raises(CorruptStoreError, match="another checksum"):
            ask()
