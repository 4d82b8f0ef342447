"""The compressions that lakelsm writes, and those of Paimon that it does not write. Reads do not depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import TableOptions
from lakelsm.options.layout_options import FILE_CODECS, MANIFEST_CODECS

#: The compressions that lakelsm writes, by option.
CODECS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "changelog-file.compression": FILE_CODECS,
        "file.compression": FILE_CODECS,
        "manifest.compression": MANIFEST_CODECS,
    }
)

#: Further compressions of Paimon's formats (Parquet, ORC, Avro and text).
_PAIMON_CODECS = frozenset(
    ["brotli", "bzip2", "deflate", "gzip", "lz4", "lz4_raw", "lzma", "lzo", "null", "snappy", "xz", "zlib", "zstandard"]
)


def check_codec(key: str, text: str) -> None:
    """Check the text of one of the options of `CODECS`.

    Raises UnsupportedFeatureError for a compression of Paimon that lakelsm does not write with this option, and
    InvalidInputError for an unknown compression.
    """
    written = CODECS[key]
    codec = text.strip().lower()
    if codec in written:
        return
    if codec in _PAIMON_CODECS:
        raise UnsupportedFeatureError(
            f"option '{key}': lakelsm does not write the compression {text!r}. Use one of {', '.join(written)}."
        )
    raise InvalidInputError(f"option '{key}': {text!r} is not one of {', '.join(written)}.")


def check_codecs(options: TableOptions) -> None:
    """Check the compressions of a table before a write. Raises like `check_codec`."""
    found = {
        "changelog-file.compression": options.changelog_file_compression,
        "file.compression": options.file_compression,
        "manifest.compression": options.manifest_compression,
    }
    for key, codec in found.items():
        if codec is not None:
            check_codec(key, codec)
