"""The HASH index files of a snapshot's dynamic buckets, checked before a writer believes them (docs/format.md 10.1).

A hash that a damaged index lacks would be taken for a new key: it would get a second bucket and stay doubled.
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

#: Highest number of buckets of a partition. Persisted: do not change
MAX_BUCKETS = 32767

#: A size that no HASH index file has: 268 million keys in one bucket.
_MAX_BYTES = 1 << 30

_REMEDY = "restore the file, or overwrite the partition, which gives its keys their buckets anew."

#: The HASH index files of a table by partition (BinaryRow with arity) and bucket.
HashIndexes: TypeAlias = dict[tuple[bytes, int], "HashIndex"]


@dataclass(frozen=True)
class HashIndex:
    """One HASH index file of the index manifest. ``bucket`` names its bucket in errors. Pickled into tasks."""

    path: str
    bucket: str
    file_size: int
    row_count: int
    _: KW_ONLY
    checksum: int | None = None

    def read(self, file_io: FileIO) -> npt.NDArray[np.int32]:
        """Return the hashes. Raises CorruptTableError unless the file exists and matches the manifest."""
        try:
            data = file_io.read(self.path, _MAX_BYTES)
        except FileNotFoundError as error:
            raise CorruptTableError(f"HASH index file {self.path} of {self.bucket} does not exist: {_REMEDY}") from error
        hashes = decode_hashes(data, f"HASH index file {self.path} of {self.bucket}")
        if len(data) != self.file_size or len(hashes) != self.row_count:
            raise CorruptTableError(
                f"HASH index file {self.path} of {self.bucket} has {len(hashes)} hashes in {len(data)} bytes, but the "
                f"index manifest says {self.row_count} in {self.file_size}: {_REMEDY}"
            )
        if self.checksum is not None and zlib.crc32(data) != self.checksum:
            raise CorruptTableError(
                f"HASH index file {self.path} of {self.bucket} does not have the checksum that the index manifest says: "
                f"{_REMEDY}"
            )
        return hashes


def hash_indexes(store: TableStore, base: Snapshot | None) -> HashIndexes:
    """Return the HASH index files of a snapshot (None: of an empty table).

    Raises CorruptTableError where the snapshot has rows and no index, or an index that names a bucket twice.
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
            problem = "a second index file" if bucket in found else f"no possible number (0 to {MAX_BUCKETS})"
            raise CorruptTableError(
                f"Index manifest {base.index_manifest} of {_bucket(store, entry)} names {entry.file.file_name}, "
                f"but the bucket has {problem}: overwrite the partition, which gives its keys their buckets anew."
            )
        refuse_external_path(entry.file.external_path, entry.file.file_name)
        path = store.paths.index(entry.file.file_name)
        file = entry.file
        found[bucket] = HashIndex(path, _bucket(store, entry), file.file_size, file.row_count, checksum=file.checksum)
    return found


def check_one_bucket_per_hash(hashes: int, distinct: int, indexes: Collection[HashIndex]) -> None:
    """Raise CorruptTableError where the files of a partition have ``hashes`` that are not all ``distinct``."""
    if hashes != distinct:
        files = ", ".join(index.path for index in indexes)
        raise CorruptTableError(
            f"HASH index files name {hashes - distinct} key hashes more than once, of {next(iter(indexes)).bucket} or "
            f"another bucket of its partition, so it is not known which bucket these keys are in ({files}): {_REMEDY}"
        )


def _refuse_rows_without_index(store: TableStore, base: Snapshot) -> None:
    """An overwrite that leaves no rows leaves no index either, as in Java; but rows never go without."""
    live = read_live_entries(store.file_io, store.paths, base, stats=False)
    if live:
        raise CorruptTableError(
            f"Snapshot {base.id} of table {store.name} has {len(live)} data files in dynamic buckets, but no HASH index "
            "of their keys (its key indexManifest), so a write would give known keys a second bucket: restore the "
            "snapshot file or roll back, or overwrite the table, which gives its keys their buckets anew."
        )


def _bucket(store: TableStore, entry: IndexManifestEntry) -> str:
    values = ", ".join(f"{name}={value}" for name, value in store.partition_values(entry.partition).items())
    return f"table {store.name}, {f'partition {values}, ' if values else ''}bucket {entry.bucket}"
