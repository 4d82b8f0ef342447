"""CRC-32 of the files that the records of an Avro file name, in its header: Paimon's records have no field for them.

Manifest lists have those of manifests, index manifests those of index files, and manifests those of the footers of data
files, whose pages have their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import Container

#: Key in the header: for each record eight hexadecimal digits, or '-'. Other readers pass over it.
#: Persisted: do not change
_KEY = "lakelsm.checksums"


def checksum_header(checksums: Sequence[int | None]) -> dict[str, str]:
    """The header of a file whose records name files with these checksums (None: unknown)."""
    return {_KEY: " ".join("-" if checksum is None else f"{checksum:08x}" for checksum in checksums)}


def checksums_of(container: Container, count: int) -> list[int | None]:
    """The checksum of the file of each of the ``count`` records. Raises CorruptTableError where the header is damaged."""
    texts = container.metadata.get(_KEY, b"").decode("ascii", "replace").split()
    try:
        checksums = [None if text == "-" else int(text, 16) for text in texts]
    except ValueError as error:
        raise CorruptTableError(f"{container.source} has damaged checksums in its header: restore the file.") from error
    if checksums and len(checksums) != count:
        raise CorruptTableError(
            f"{container.source} has {count} records, but {len(checksums)} checksums in its header: restore the file."
        )
    return checksums or [None] * count
