"""Paths as Spark's readers take them."""

from __future__ import annotations

import pytest

from lakelsm.spark.paths import literal_path


@pytest.mark.parametrize(
    ("path", "literal"),
    [
        ("/wh/db.db/t/data-0.parquet", "file:/wh/db.db/t/data-0.parquet"),
        ("/a b/é/50%,x=1", "file:/a b/é/50%,x=1"),
        ("/[a-z]*/{b}?", r"file:/\[a-z\]\*/\{b\}\?"),
        ("/back\\slash", "file:/back\\\\slash"),
    ],
)
def test_characters_of_patterns_are_escaped_and_others_stay(path: str, literal: str) -> None:
    assert literal_path(path) == literal
