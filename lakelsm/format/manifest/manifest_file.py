"""Manifests: encode and decode lists of entries (docs/format.md 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakelsm.format.avro.container import write_container
from lakelsm.format.manifest.avro_schemas import MANIFEST_SCHEMA
from lakelsm.format.manifest.batch import open_manifests
from lakelsm.format.manifest.entry import ManifestEntry
from lakelsm.format.manifest.file_checksums import checksum_header
from lakelsm.format.manifest.record import entry_to_record


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
