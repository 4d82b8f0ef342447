"""Manifests: encode and decode lists of entries (format.md 6.2). Its parts are importable from here too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakelsm.format.avro_container import write_container
from lakelsm.format.data_file_meta import EMPTY_ROW, EMPTY_STATS, DataFileMeta, SimpleStats
from lakelsm.format.file_checksums import checksum_header
from lakelsm.format.manifest_batch import open_manifests
from lakelsm.format.manifest_entry import EntryIdentity, FileKind, ManifestEntry
from lakelsm.format.manifest_list import (
    ManifestFileMeta,
    decode_manifest_list,
    encode_manifest_list,
    summarize,
)
from lakelsm.format.manifest_record import entry_to_record
from lakelsm.format.manifest_schema import MANIFEST_SCHEMA

__all__ = [
    "EMPTY_ROW",
    "EMPTY_STATS",
    "DataFileMeta",
    "EntryIdentity",
    "FileKind",
    "ManifestEntry",
    "ManifestFileMeta",
    "SimpleStats",
    "decode_entries",
    "decode_manifest",
    "decode_manifest_list",
    "encode_entries",
    "encode_manifest",
    "encode_manifest_list",
    "summarize",
]


def encode_manifest(entries: Sequence[ManifestEntry], compression: str = "zstandard") -> bytes:
    """Encode ``entries``, in order, into the bytes of a manifest file."""
    header = checksum_header([entry.file.footer_checksum for entry in entries])
    return write_container(MANIFEST_SCHEMA, [entry_to_record(entry) for entry in entries], compression, metadata=header)


def decode_manifest(data: bytes, source: str) -> list[ManifestEntry]:
    """Decode a manifest file into its entries, in order; ``source`` names it in errors.

    Raises CorruptTableError on damaged bytes and UnsupportedFeatureError on another ``_VERSION``.
    """
    batches = open_manifests([(data, source, None)])
    return [entry for batch in batches for entry in batch.entries(np.arange(batch.count))]


def encode_entries(entries: Sequence[ManifestEntry]) -> bytes:
    """Encode entries as a message between a Spark task and the driver. Not a stored form."""
    return encode_manifest(entries)


def decode_entries(data: bytes) -> list[ManifestEntry]:
    """Decode what encode_entries made."""
    return decode_manifest(data, "a task's result")
