"""One line of a manifest: a data file added to or deleted from a bucket (docs/format.md 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from lakelsm.format.manifest.data_file_meta import DataFileMeta

#: The identity of a data file: partition, bucket, level, name, extra files, embedded index, external path
#: (docs/format.md 11.1). Entries with equal identities are of the same file.
EntryIdentity = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]


class FileKind(IntEnum):
    """The effect of an entry on its file. Persisted: do not change."""

    ADD = 0
    DELETE = 1


@dataclass(slots=True)
class ManifestEntry:
    """An addition (kind 0) or deletion (kind 1) of ``file`` in ``bucket`` of ``partition``.

    ``partition`` is the BinaryRow of the partition columns with its 4-byte arity (12 zero bytes if none).
    ``total_buckets`` is the table's bucket count when the file was written: -1 dynamic, -2 postponed.
    """

    kind: int
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> EntryIdentity:
        """The identity that a DELETE must repeat to cancel an ADD. It includes the file's level."""
        file = self.file
        return (
            self.partition,
            self.bucket,
            file.level,
            file.file_name,
            file.extra_files,
            file.embedded_index,
            file.external_path,
        )
