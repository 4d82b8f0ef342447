"""Options of file indexes."""

from __future__ import annotations

import re

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions
from lakelsm.options.file_index_options import (
    BITMAP,
    BLOOM_FILTER,
    ColumnIndex,
    filter_bits,
    split_index_key,
)
from lakelsm.options.other_keys import check_new_keys


def test_indexes_are_parsed_with_their_options() -> None:
    options = TableOptions.parse(
        {
            "file-index.bloom-filter.columns": "a, b",
            "file-index.bloom-filter.b.items": "100",
            "file-index.bloom-filter.b.fpp": "0.01",
            "file-index.bitmap.columns": "a",
            "file-index.bitmap.a.version": "1",
            "file-index.bitmap.a.index-block-size": "1 kb",
            "file-index.in-manifest-threshold": "1 kb",
        }
    )
    assert options.file_indexes == (
        ColumnIndex(BLOOM_FILTER, "a", items=1_000_000, fpp=0.1),
        ColumnIndex(BLOOM_FILTER, "b", items=100, fpp=0.01),
        ColumnIndex(BITMAP, "a", version=1, block_bytes=1024),
    )
    assert options.file_index_in_manifest_threshold == 1024
    default = TableOptions.parse({})
    assert (default.file_indexes, default.file_index_in_manifest_threshold, default.file_index_read_enabled) == (
        (),
        500,
        True,
    )


@pytest.mark.parametrize(
    ("key", "split"),
    [
        ("file-index.bloom-filter.columns", (BLOOM_FILTER, "", "columns")),
        ("file-index.bitmap.a.version", (BITMAP, "a", "version")),
        ("file-index.bitmap.a.b.version", (BITMAP, "a.b", "version")),
        ("file-index.range-bitmap.columns", None),
        ("file-index.read.enabled", None),
        ("fields.bitmap.columns", None),
    ],
)
def test_a_key_is_split_into_type_column_and_option(key: str, split: tuple[str, str, str] | None) -> None:
    assert split_index_key(key) == split


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bloom-filter.columns": "a,,b"}, "option 'file-index.bloom-filter.columns': 'a,,b' has an empty column name"),
        ({"bloom-filter.a.items": "5"}, "column 'a' has no such index. Add the column to 'file-index.bloom-filter.c"),
        (
            {"bitmap.columns": "a", "bitmap.a.version": "3"},
            "option 'file-index.bitmap.a.version': '3' is more than 2",
        ),
        *(
            ({"bloom-filter.columns": "a", f"bloom-filter.a.{name}": text}, f"{name}': '{text}' is ")
            for name, texts in {"items": ("0", "x"), "fpp": ("0", "1", "nan", "-0.1")}.items()
            for text in texts
        ),
        (
            {"bloom-filter.columns": "a", "bloom-filter.a.items": "2000000000", "bloom-filter.a.fpp": "0.01"},
            "options 'file-index.bloom-filter.a.…': .* for 2000000000 items .* more than 256 MB. Decrease 'items'",
        ),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        TableOptions.parse({f"file-index.{key}": text for key, text in options.items()})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("file-index.bloom-filter.a.itmes", "a.itmes': 'itmes' is not an option .* Use 'items'"),
        ("file-index.bitmap.a.items", "'items' is not an option of file indexes. Use one of version, index-block-size"),
        ("file-index.bitmap.column", "'column' is not an option of file indexes. Use 'columns'"),
        ("file-index.bloom.columns", "option 'file-index.bloom.columns' = '1' is unknown"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_one(key: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_new_keys({key: "1"})


@pytest.mark.parametrize(
    ("items", "fpp", "bits"), [(10, 0.1, 48), (1_000_000, 0.1, 4_792_536), (1, 0.99, 8), (20, 0.1, 96)]
)
def test_a_filter_has_as_many_bits_as_in_java(items: int, fpp: float, bits: int) -> None:
    assert filter_bits(items, fpp) == bits


def test_an_index_on_a_key_of_a_map_is_recognized() -> None:
    raw = {"file-index.bitmap.columns": "m[k]", "file-index.bitmap.m.version": "1"}
    assert re.fullmatch(r"m\[k\]", TableOptions.parse(raw).file_indexes[0].column)
    assert TableOptions.parse(raw).file_indexes[0].is_nested
