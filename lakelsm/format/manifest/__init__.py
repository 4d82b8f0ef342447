"""Manifests and their content: entries of data files, manifest lists, and their bytes (docs/format.md 5)."""

from lakelsm.format.manifest.data_file_meta import EMPTY_STATS, DataFileMeta, SimpleStats
from lakelsm.format.manifest.entry import EntryIdentity, FileKind, ManifestEntry
from lakelsm.format.manifest.manifest_file import decode_entries, decode_manifest, encode_entries, encode_manifest
from lakelsm.format.manifest.manifest_list import (
    ManifestFileMeta,
    decode_manifest_list,
    encode_manifest_list,
    summarize,
)

__all__ = [
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
