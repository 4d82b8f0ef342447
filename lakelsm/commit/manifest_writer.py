"""Writes the metadata files of one commit under new names, and deletes the unused ones."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from lakelsm.commit.attempt_files import delete_unpublished
from lakelsm.format.file_names import CommitFileNames
from lakelsm.format.index.index_manifest import IndexManifestEntry, encode_index_manifest
from lakelsm.format.manifest import (
    ManifestEntry,
    ManifestFileMeta,
    encode_manifest,
    encode_manifest_list,
    summarize,
)
from lakelsm.snapshots.table_store import TableStore

#: The number of entries that are encoded to estimate the size of all.
_SAMPLE = 2000


class ManifestFiles:
    """Writes the metadata files of one commit and remembers their names, which contain ``uuid``."""

    def __init__(self, store: TableStore, uuid: str) -> None:
        self._store = store
        self._compression = store.options.manifest_compression
        self._names = CommitFileNames(uuid)
        self._created: list[str] = []
        self._checksums: dict[str, int] = {}

    def write_manifests(self, entries: Sequence[ManifestEntry]) -> list[ManifestFileMeta]:
        """Write entries, in order, to manifests. All but the last reach the target size."""

        def encode(part: Sequence[ManifestEntry]) -> bytes:
            return encode_manifest(part, self._compression)

        metas = []
        for part, data in rolled(entries, encode, self._store.options.manifest_target_file_size):
            name = self._write(self._names.manifest(), data)
            meta = summarize(name, len(data), part, self._store.partition_types)
            metas.append(replace(meta, checksum=self._checksums[name]))
        return metas

    def write_list(self, metas: Sequence[ManifestFileMeta]) -> tuple[str, int]:
        """Write a manifest list and return its name and size."""
        data = encode_manifest_list(metas, self._compression)
        return self._write(self._names.manifest_list(), data), len(data)

    def write_index(self, entries: Sequence[IndexManifestEntry]) -> str:
        """Write an index manifest and return its name."""
        data = encode_index_manifest(entries, self._compression)
        return self._write(self._names.index_manifest(), data)

    def checksum(self, name: str) -> int | None:
        """Return the CRC-32 of a file of this commit; None for another file."""
        return self._checksums.get(name)

    def delete_except(self, used: Iterable[str | None] = ()) -> None:
        """Delete the written files whose names are not in ``used``. Raises nothing.

        REQUIRES: it is certain that no snapshot names them.
        """
        kept = set(used)
        unused = [self._store.paths.manifest(name) for name in self._created if name not in kept]
        delete_unpublished(self._store.file_io, unused)
        self._created = [name for name in self._created if name in kept]

    def _write(self, name: str, data: bytes) -> str:
        self._created.append(name)
        self._checksums[name] = zlib.crc32(data)
        self._store.file_io.write(self._store.paths.manifest(name), data)
        return name


def rolled(
    entries: Sequence[ManifestEntry], encode: Callable[[Sequence[ManifestEntry]], bytes], target_size: int
) -> Iterator[tuple[Sequence[ManifestEntry], bytes]]:
    """Yield parts of the entries and their encoded bytes; all but the last reach ``target_size`` bytes.

    A smaller part would be merged again by later commits.
    """
    if not entries:
        return
    sample = entries[:_SAMPLE]
    data = encode(sample)
    per_entry = len(data) / len(sample)
    if per_entry * len(entries) < 2 * target_size:
        data = data if len(sample) == len(entries) else encode(entries)
        if len(data) < 2 * target_size:
            # Not enough for two full parts: one part of up to twice the target is better than a small rest.
            yield entries, data
            return
    start = 0
    while start < len(entries):
        end = start + max(1, math.ceil(target_size * 1.02 / per_entry))
        data = encode(entries[start:end])
        while len(data) < target_size and end < len(entries):
            end += max(1, math.ceil((target_size - len(data)) * 1.1 / per_entry))
            data = encode(entries[start:end])
        yield entries[start:end], data
        start = end
