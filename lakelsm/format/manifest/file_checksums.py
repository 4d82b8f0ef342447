"""CRC-32 of the files that an Avro file's records name, stored in its header: Paimon's records have no field for it.

Manifest lists have the checksums of manifests, index manifests those of index files, and manifests those of the footers
of data files. Parquet pages have their own checksums.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import Container

#: Header key: eight hexadecimal digits or '-' for each record. Other readers ignore it.
#: Persisted: do not change
_KEY = "lakelsm.checksums"


def checksum_header(checksums: Sequence[int | None]) -> dict[str, str]:
    """Return the header of a file whose records name files with these checksums (None: unknown)."""
    return {_KEY: " ".join("-" if checksum is None else f"{checksum:08x}" for checksum in checksums)}


def checksums_of(container: Container, count: int) -> list[int | None]:
    """Return the checksum for each of ``count`` records. Raises CorruptTableError for a damaged header."""
    texts = container.metadata.get(_KEY, b"").decode("ascii", "replace").split()
    try:
        checksums = [None if text == "-" else int(text, 16) for text in texts]
    except ValueError as error:
        raise CorruptTableError(f"{container.source} has damaged checksums in its header. Restore the file.") from error
    if checksums and len(checksums) != count:
        raise CorruptTableError(
            f"{container.source} has {count} records, but {len(checksums)} checksums in its header. Restore the file."
        )
    return checksums or [None] * count
