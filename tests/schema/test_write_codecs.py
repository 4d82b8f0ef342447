"""Supported, unsupported and unknown compressions."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import TableOptions
from lakelsm.schema.write_codecs import CODECS, check_codec, check_codecs


@pytest.mark.parametrize("key", CODECS)
def test_each_supported_codec_is_accepted_in_any_case(key: str) -> None:
    for codec in CODECS[key]:
        check_codec(key, f" {codec.upper()} ")
        check_codecs(TableOptions.parse({key: codec.upper()}))


@pytest.mark.parametrize(
    ("key", "text", "error"),
    [
        ("file.compression", "lz4_raw", UnsupportedFeatureError),
        ("file.compression", "LZO", UnsupportedFeatureError),
        ("changelog-file.compression", "zlib", UnsupportedFeatureError),
        ("manifest.compression", "gzip", UnsupportedFeatureError),
        ("file.compression", "zsdt", InvalidInputError),
        ("manifest.compression", "", InvalidInputError),
    ],
)
def test_another_codec_is_refused_with_the_supported_ones(key: str, text: str, error: type[Exception]) -> None:
    for judge in (lambda: check_codec(key, text), lambda: check_codecs(TableOptions.parse({key: text}))):
        with pytest.raises(error, match=f"'{key}'.*one of {', '.join(CODECS[key])}"):
            judge()
