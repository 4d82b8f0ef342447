"""Compressions that lakelsm writes, and those of Paimon's that it does not: only writes depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import TableOptions
from lakelsm.options.layout_options import FILE_CODECS, MANIFEST_CODECS

#: What lakelsm writes, by the option that chooses it.
CODECS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "changelog-file.compression": FILE_CODECS,
        "file.compression": FILE_CODECS,
        "manifest.compression": MANIFEST_CODECS,
    }
)

#: Names of compressions that Paimon's formats (Parquet, ORC, Avro and text) have beside those.
_PAIMON_CODECS = frozenset(
    ["brotli", "bzip2", "deflate", "gzip", "lz4", "lz4_raw", "lzma", "lzo", "null", "snappy", "xz", "zlib", "zstandard"]
)


def check_codec(key: str, text: str) -> None:
    """Judge the text of one of the options of `CODECS`.

    Raises UnsupportedFeatureError for a compression that Paimon has and lakelsm does not write with this option,
    InvalidInputError for an unknown compression.
    """
    written = CODECS[key]
    codec = text.strip().lower()
    if codec in written:
        return
    if codec in _PAIMON_CODECS:
        raise UnsupportedFeatureError(
            f"option '{key}' = '{text}': lakelsm does not write this compression; set one of {', '.join(written)}"
        )
    raise InvalidInputError(f"option '{key}' cannot be '{text}': it must be one of {', '.join(written)}")


def check_codecs(options: TableOptions) -> None:
    """Judge the compressions of a table that is written to. Errors as in `check_codec`."""
    found = {
        "changelog-file.compression": options.changelog_file_compression,
        "file.compression": options.file_compression,
        "manifest.compression": options.manifest_compression,
    }
    for key, codec in found.items():
        if codec is not None:
            check_codec(key, codec)
