"""Which files lie in the directories of a table, each directory listed once."""

from __future__ import annotations

from collections.abc import Mapping

from lakelsm.plan.bucket_files import BucketId
from lakelsm.snapshots.table_store import TableStore


class StoredFiles:
    """Sizes of files by directory and name."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._sizes: dict[str, Mapping[str, int]] = {}
        self._buckets: dict[BucketId, str] = {}

    def bucket_dir(self, partition: bytes, bucket: int) -> str:
        """The directory of a bucket. Raises as `TablePaths.bucket_dir`."""
        known = self._buckets.get((partition, bucket))
        if known is None:
            known = self._store.paths.bucket_dir(self._store.partition_text(partition), bucket)
            self._buckets[(partition, bucket)] = known
        return known

    def size(self, directory: str, name: str) -> int | None:
        """The size of a file in bytes; None where it is not there, or no regular file."""
        known = self._sizes.get(directory)
        if known is None:
            entries = self._store.file_io.entries(directory)
            known = self._sizes[directory] = {entry.name: entry.size for entry in entries if not entry.is_directory}
        return known.get(name)
