"""Rows in the order of one integer or one text are found without an index, and rows in any other order with one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.store import arrow_segment, ordered_rows
from lakelsm.lookup.store.arrow_segment import RowsByBatch
from lakelsm.lookup.store.arrow_store import ArrowStore, ArrowStoreFormat
from lakelsm.lookup.store.keyed_rows import KeyedRows
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.lookup.store.ordered_rows import OrderedRows, OrderedTexts, key_words
from lakelsm.types import DataField, parse_type
from tests.lookup.store.keyed_tables import column_of, fields_of

_VALUE = DataField(9, "v", parse_type("BIGINT"))
_BEGINNINGS = st.sampled_from(["", "a", "customer-", "customer-00"])
_TEXTS = st.builds(str.__add__, _BEGINNINGS, st.text("\0abé\U0001f600", max_size=10))


def _store(path: Path, keys: list[Any], kind: str = "INT") -> ArrowStore:
    """A store of rows with a key of one column, seven rows in each record batch."""
    layout = StoreLayout(fields_of([kind]), (_VALUE,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_segment, "CHUNK_ROWS", 7)
        rows = pa.table({"k0": column_of(layout.keys[0], keys), "v": pa.array(range(len(keys)), pa.int64())})
        ArrowStoreFormat().write(path, layout, [rows])
    return ArrowStoreFormat().open(path, layout)


def _check(store: ArrowStore, keys: list[Any], searched: list[Any], kind: str = "INT") -> None:
    """Batches and single keys find the rows that a list of the keys has."""
    found = store.find(pa.table({"k0": column_of(fields_of([kind])[0], searched)}))
    expected = [(at, row) for at, key in enumerate(searched) for row, stored in enumerate(keys) if stored == key]
    assert list(zip(found.probes.tolist(), found.rows.column("v").to_pylist(), strict=True)) == expected
    for key in searched:
        assert store.find_plain((key,)) == [(row,) for row, stored in enumerate(keys) if stored == key]


@pytest.mark.parametrize("kind", ["TINYINT", "SMALLINT", "INT", "BIGINT"])
def test_ordered_integers_are_found_in_and_between_record_batches(kind: str, tmp_path: Path) -> None:
    keys = list(range(-30, 90, 3))
    store = _store(tmp_path / "store", keys, kind)
    assert type(store._rows) is OrderedRows
    drawn = np.random.default_rng(3).integers(-40, 100, 500).tolist()
    for searched in ([*range(-40, 100)], drawn, [87, -30, 87], [-31], [88], []):
        _check(store, keys, searched, kind)


@pytest.mark.parametrize("kind", ["STRING", "BYTES"])
@settings(deadline=None)
@given(st.sets(_TEXTS, max_size=40), st.lists(_TEXTS, max_size=20))
def test_ordered_texts_are_found_and_others_are_not(kind: str, texts: set[str], others: list[str]) -> None:
    keys: list[Any] = sorted(text.encode() for text in texts)
    searched: list[Any] = [*keys[::-1], *(text.encode() for text in others), *keys]
    if kind == "STRING":
        keys, searched = [key.decode() for key in keys], [key.decode() for key in searched]
    with TemporaryDirectory() as directory:
        store = _store(Path(directory) / "store", keys, kind)
        assert type(store._rows) is OrderedTexts
        _check(store, keys, searched, kind)
        store.close()


def test_texts_with_the_same_word_are_distinguished_and_too_many_of_them_get_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_rows, "_MAX_ROWS_PER_WORD", 5)
    for count, kind in ((5, OrderedTexts), (6, KeyedRows)):
        keys = ["a", *("customer" + "x" * at for at in range(count)), "d"]
        store = _store(tmp_path / str(count), keys, "STRING")
        assert type(store._rows) is kind
        _check(store, keys, [*keys[::-1], "customex", "customer" + "y", "custom", "e" * 9], "STRING")


@pytest.mark.parametrize("keys", [[1, 2, 9, 3], [*range(7), 6, *range(8, 20)], [None, 1, 2], [2, 2, 3]])
@pytest.mark.parametrize("kind", ["INT", "STRING"])
def test_rows_in_another_order_or_with_nulls_or_twice_get_an_index(
    keys: list[int | None], kind: str, tmp_path: Path
) -> None:
    texts = [key if kind == "INT" or key is None else f"{key:02}" for key in keys]
    store = _store(tmp_path / "store", texts, kind)
    assert type(store._rows) is KeyedRows
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    _check(store, texts, [key for key in texts if key is not None], kind)


def test_texts_with_a_long_first_text_get_an_index(tmp_path: Path) -> None:
    keys = ["x" * 2000, "y"]
    store = _store(tmp_path / "store", keys, "STRING")
    assert type(store._rows) is KeyedRows
    _check(store, keys, keys, "STRING")


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_words_are_the_bytes_after_the_skipped_ones(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_rows, "_BLOCK", block)
    for values in (["zz", "customer-1", "customer-12345678", "customer-123456789", "customer", ""], ["", "a", "b"]):
        texts = pa.array(values).slice(1)
        for skipped in (0, 1, 9, 12, 40):
            cut = [text.encode()[skipped : skipped + 8].ljust(8, b"\0") for text in values[1:]]
            expected = [int.from_bytes(each, "big") for each in cut]
            assert key_words(texts, skipped).tolist() == expected
            assert key_words(texts, skipped, np.array([1, 0])).tolist() == [expected[1], expected[0]]


def test_a_file_with_a_flipped_byte_or_other_counts_is_damaged(tmp_path: Path) -> None:
    keys = [f"customer {number:03}" for number in range(0, 90, 3)]
    store = _store(tmp_path / "store", keys, "STRING")
    rows, key = store._rows.rows, fields_of(["STRING"])[0]
    with pytest.raises(CorruptStoreError, match="first keys of 1 record batches"):
        OrderedRows(rows, key, [1])
    texts = store._file.facts["texts"]
    store._file._sections["words"] = (0, 8)
    with pytest.raises(CorruptStoreError, match="words of 1 keys instead of 30"):
        OrderedTexts(rows, key, texts)
    store = _store(tmp_path / "other", keys, "STRING")
    data = bytearray((tmp_path / "other").read_bytes())
    data[store._file._sections["words"][0] + 3] ^= 1
    (tmp_path / "other").write_bytes(data)
    calls: list[Callable[[], object]] = [
        lambda: store.find(pa.table({"k0": [keys[0]]})),
        lambda: store.find_plain((keys[0],)),
    ]
    for call in calls:
        with pytest.raises(CorruptStoreError, match="checksum of bytes"):
            call()


def test_answers_too_large_for_one_array_are_concatenated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _store(tmp_path / "store", [*range(50)])
    take = RowsByBatch.take

    def refusing(self: RowsByBatch, names: list[str]) -> pa.Table:
        if len(self._local) > 4:
            raise pa.ArrowInvalid("offset overflow")
        return take(self, names)

    monkeypatch.setattr(RowsByBatch, "take", refusing)
    found = store.find(pa.table({"k0": pa.array(range(49, -10, -1), pa.int32())}))
    assert found.probes.tolist() == list(range(50))
    assert found.rows.column("v").to_pylist() == list(range(49, -1, -1))
