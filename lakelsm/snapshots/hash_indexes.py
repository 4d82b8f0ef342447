"""The HASH index files of a snapshot's dynamic buckets, checked before a writer uses them (docs/format.md 10.1).

A writer would take a hash that a damaged index lacks for a new key, and the key would have rows in two buckets.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lakelsm.errors import CorruptTableError
from lakelsm.format.file_names import refuse_external_path
from lakelsm.format.index.hash_index import decode_hashes
from lakelsm.format.index.index_manifest import HASH_INDEX, IndexManifestEntry
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.manifest_scan import read_index_entries, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO

#: The highest bucket number of a partition. Persisted: do not change
MAX_BUCKETS = 32767

#: The maximum size of a HASH index file in bytes: 268 million keys in one bucket.
_MAX_BYTES = 1 << 30

_REMEDY = "Restore the file, or overwrite the partition, which assigns its keys to buckets again."

#: The HASH index files of a table by partition (BinaryRow with arity) and bucket.
HashIndexes: TypeAlias = dict[tuple[bytes, int], "HashIndex"]


@dataclass(frozen=True)
class HashIndex:
    """One HASH index file of the index manifest. ``bucket`` is the name of its bucket in errors. Pickled into tasks."""

    path: str
    bucket: str
    file_size: int
    row_count: int
    _: KW_ONLY
    checksum: int | None = None

    def read(self, file_io: FileIO) -> npt.NDArray[np.int32]:
        """Return the hashes. Raises CorruptTableError if the file is missing or does not match the index manifest."""
        try:
            data = file_io.read(self.path, _MAX_BYTES)
        except FileNotFoundError as error:
            raise CorruptTableError(f"HASH index file {self.path} of {self.bucket} is missing. {_REMEDY}") from error
        hashes = decode_hashes(data, f"HASH index file {self.path} of {self.bucket}")
        if len(data) != self.file_size or len(hashes) != self.row_count:
            raise CorruptTableError(
                f"HASH index file {self.path} of {self.bucket} has {len(hashes)} hashes in {len(data)} bytes instead of "
                f"{self.row_count} hashes in {self.file_size} bytes. {_REMEDY}"
            )
        if self.checksum is not None and zlib.crc32(data) != self.checksum:
            raise CorruptTableError(
                f"HASH index file {self.path} of {self.bucket} is damaged: its checksum differs from the index manifest. "
                f"{_REMEDY}"
            )
        return hashes


def hash_indexes(store: TableStore, base: Snapshot | None) -> HashIndexes:
    """Return the HASH index files of a snapshot (None: of an empty table).

    Raises CorruptTableError if the snapshot has rows and no index, or two index files of one bucket.
    """
    if base is None:
        return {}
    entries = [e for e in read_index_entries(store.file_io, store.paths, base) if e.file.index_type == HASH_INDEX]
    if not entries:
        _refuse_rows_without_index(store, base)
    found: HashIndexes = {}
    for entry in entries:
        bucket = entry.partition, entry.bucket
        if not 0 <= entry.bucket <= MAX_BUCKETS or bucket in found:
            problem = "has two HASH index files" if bucket in found else f"is not a number from 0 to {MAX_BUCKETS}"
            raise CorruptTableError(
                f"Index manifest {base.index_manifest}: {_bucket(store, entry)} {problem} ({entry.file.file_name}). "
                "Overwrite the partition, which assigns its keys to buckets again."
            )
        refuse_external_path(entry.file.external_path, entry.file.file_name)
        path = store.paths.index(entry.file.file_name)
        file = entry.file
        found[bucket] = HashIndex(path, _bucket(store, entry), file.file_size, file.row_count, checksum=file.checksum)
    return found


def check_one_bucket_per_hash(hashes: int, distinct: int, indexes: Collection[HashIndex]) -> None:
    """Raise CorruptTableError if a hash occurs more than once in a partition: ``hashes`` and ``distinct`` are counts."""
    if hashes != distinct:
        files = ", ".join(index.path for index in indexes)
        raise CorruptTableError(
            f"HASH index files of the partition of {next(iter(indexes)).bucket}: {hashes - distinct} key hashes occur "
            f"more than once, so their bucket is unknown ({files}). {_REMEDY}"
        )


def _refuse_rows_without_index(store: TableStore, base: Snapshot) -> None:
    """Refuse a snapshot that has rows and no index. Without rows there is no index, as after Java's overwrite."""
    live = read_live_entries(store.file_io, store.paths, base, stats=False)
    if live:
        raise CorruptTableError(
            f"Table {store.name}: snapshot {base.id} has {len(live)} data files in dynamic buckets and no HASH index of "
            "their keys (its key indexManifest). Restore the snapshot file, roll back, or overwrite the table, which "
            "assigns its keys to buckets again."
        )


def _bucket(store: TableStore, entry: IndexManifestEntry) -> str:
    values = ", ".join(f"{name}={value}" for name, value in store.partition_values(entry.partition).items())
    return f"table {store.name}, {f'partition {values}, ' if values else ''}bucket {entry.bucket}"
