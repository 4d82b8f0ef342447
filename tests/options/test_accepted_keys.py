"""Keys of other engines are accepted with values that these engines can read."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options.accepted_keys import ACCEPTED_KEYS, check_accepted_value
from lakelsm.options.option import TEXT


@pytest.mark.parametrize("key", [key for key, kind in ACCEPTED_KEYS.items() if kind is not TEXT])
def test_a_text_that_no_engine_can_read_is_refused_by_key_and_value(key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"option '{key}': 'x' is not "):
        check_accepted_value(key, "x")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("consumer.mode", "AT-LEAST-ONCE"),
        ("commit.force-compact", "TRUE"),
        ("local-merge-buffer-size", "5m"),
        ("sort-compaction.range-strategy", "QUANTITY"),
        ("streaming.read.snapshot.delay", "10 min"),
        ("compaction.delete-ratio-threshold", "0.5"),
        ("owner", "anyone"),
        ("my.own.key", "x"),
    ],
)
def test_valid_texts_and_unknown_keys_are_accepted(key: str, text: str) -> None:
    check_accepted_value(key, text)
