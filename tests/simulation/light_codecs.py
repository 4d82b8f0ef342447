"""Fast stand-ins for the codecs of metadata files. The simulation tests when files are written and read, not their bytes.

Most seeds run with them, every 50th with the real codecs. The content of a file is the number of a document in memory,
padded to the size of a real file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np

from lakelsm.commit import attempt_changes, manifest_writer
from lakelsm.errors import CorruptTableError
from lakelsm.format import snapshot as snapshot_format
from lakelsm.format.manifest import manifest_list
from lakelsm.format.manifest.manifest_file import EntryBatch, EntryList
from lakelsm.format.row.binary_row import decode_row
from lakelsm.format.snapshot import Snapshot
from lakelsm.plan import bucket_files
from lakelsm.snapshots import manifest_scan
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import AtomicType

_INT, _STRING = AtomicType("INT"), AtomicType("VARCHAR", length=2147483647)
#: The size in bytes of a file without entries, and of an entry.
_HEAD, _ENTRY = 100, 120


class _Documents:
    """The content of the metadata files of a run."""

    def __init__(self) -> None:
        self._known: dict[bytes, Sequence[Any]] = {}
        self._snapshots: dict[str | bytes, Snapshot] = {}

    def encode(self, entries: Sequence[Any], compression: str = "") -> bytes:
        data = str(len(self._known)).encode().ljust(_HEAD + _ENTRY * len(entries), b".")
        self._known[data] = list(entries)
        return data

    def decode(self, data: bytes, source: str) -> list[Any]:
        known = self._known.get(data)
        if known is None:
            raise CorruptTableError(f"{source} is not a file that was written")
        return list(known)

    def open_manifests(
        self, manifests: Iterable[tuple[bytes, str, int | None]], fields: frozenset[str] = frozenset()
    ) -> list[EntryBatch]:
        found: list[Any] = []
        for data, source, count in manifests:
            entries = self.decode(data, source)
            if count is not None and count != len(entries):
                raise CorruptTableError(f"{source} does not have the number of entries that the list says")
            found += entries
        return [EntryList(found)]

    def snapshot(self, data: str | bytes, source: str = "the snapshot") -> Snapshot:
        known = self._snapshots.get(data)
        if known is None:
            known = self._snapshots[data] = _parsed(data, source)
        return known


_parsed = Snapshot.from_json


@contextmanager
def light_codecs() -> Iterator[None]:
    """Replace the codecs of metadata files within the block."""
    documents = _Documents()
    stand_ins: list[tuple[object, str, Callable[..., object]]] = [
        (manifest_writer, "encode_manifest", documents.encode),
        (manifest_writer, "encode_manifest_list", documents.encode),
        (manifest_writer, "encode_index_manifest", documents.encode),
        (manifest_scan, "open_manifests", documents.open_manifests),
        (manifest_scan, "decode_manifest_list", documents.decode),
        (manifest_scan, "decode_index_manifest", documents.decode),
        (manifest_list, "partition_stats", lambda partitions, types: _partition_stats(tuple(partitions))),
        (snapshot_format, "_dump", _dump),
        (Snapshot, "from_json", documents.snapshot),
        (TableStore, "partition_text", lambda store, partition: _partition_text(partition)),
        (bucket_files, "rank_keys", _rank_keys),
        (attempt_changes, "rank_keys", _rank_keys),
    ]
    with ExitStack() as patches:
        for target, name, stand_in in stand_ins:
            patches.enter_context(patch.object(target, name, stand_in))
        yield


_real_partition_stats = manifest_list.partition_stats


@lru_cache(1024)
def _partition_stats(partitions: tuple[bytes, ...]) -> object:
    return _real_partition_stats(partitions, [_STRING])


@lru_cache(64)
def _partition_text(partition: bytes) -> list[tuple[str, str]]:
    return [("dt", str(decode_row(partition, [_STRING])[0]))]


@lru_cache(4096)
def _key(row: bytes) -> int:
    return int(decode_row(row, [_INT])[0])  # type: ignore[call-overload]


def _rank_keys(keys: Sequence[bytes], types: Sequence[object]) -> np.ndarray:
    return np.array([_key(key) for key in keys], np.int64)


def _dump(values: Mapping[str, object]) -> str:
    return json.dumps(values, separators=(",", ":"))
