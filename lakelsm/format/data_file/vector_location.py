"""The location of a data file's deletion vector, and how a reader gets it (docs/format.md 13.5)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs as arrow_fs
from pyroaring import BitMap

from lakelsm.errors import CorruptTableError, StorageError
from lakelsm.format.data_file.file_check import refused_read
from lakelsm.format.index.deletion_vector_file import FRAME_BYTES, VERSION, decode_vector

#: Maximum size of an index file that is read.
_MAX_BYTES = 1 << 30
#: Bytes of an index file that are in memory while its checksum is computed.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class VectorLocation:
    """The location of the deletion vector of one data file. Instances are pickled into tasks.

    ``index_size`` is the size of the index file in bytes, ``index_checksum`` its CRC-32. ``length`` is the value of the
    index manifest, which counts differently for the two layouts. ``cardinality`` is the number of masked rows. A
    cardinality or checksum of None is unknown.
    """

    index_path: str
    _: KW_ONLY
    index_size: int
    data_file: str
    offset: int
    length: int
    cardinality: int | None
    index_checksum: int | None = None

    def read(self, filesystem: arrow_fs.FileSystem, row_count: int) -> BitMap:
        """Return the row indexes of the masked rows of the data file, which has ``row_count`` rows.

        Raises CorruptTableError, naming the index file and the data file, if the index file is missing, truncated,
        damaged or another one, or if the vector masks rows beyond the end of the data file.
        """
        return next(read_vectors(filesystem, [(self, row_count)]))

    def recorded_cardinality(self, row_count: int) -> int | None:
        """Return the number of masked rows in the index manifest; None if it has none.

        Raises CorruptTableError if it exceeds the number of rows of the data file.
        """
        if self.cardinality is not None and self.cardinality > row_count:
            raise self.damaged(f"its manifest has {self.cardinality} masked rows, and the data file {row_count} rows")
        return self.cardinality

    def masked_row_count(self, filesystem: arrow_fs.FileSystem, row_count: int) -> int:
        """Return the number of masked rows. The index file is read only if its manifest lacks the number."""
        recorded = self.recorded_cardinality(row_count)
        return len(self.read(filesystem, row_count)) if recorded is None else recorded

    def may_mask_same_rows(self, other: VectorLocation) -> bool:
        """Return whether the manifests allow that another vector of the data file masks the same rows."""
        return None in (self.cardinality, other.cardinality) or self.cardinality == other.cardinality

    @property
    def byte_range(self) -> tuple[str, int, int]:
        """Index file, offset and length of the vector: equal vectors have equal ranges."""
        return self.index_path, self.offset, self.length

    def damaged(self, problem: str) -> CorruptTableError:
        """Return the error for an invalid vector; ``problem`` says what is wrong."""
        return CorruptTableError(
            f"Deletion vector of data file {self.data_file} in index file {self.index_path}: {problem}. Restore the "
            "index file, or read a snapshot from before it."
        )


def positions_within(masked: BitMap, start: int, stop: int) -> npt.NDArray[np.int64]:
    """Return the masked row indexes from ``start`` to before ``stop``, ascending."""
    return np.frombuffer((masked & BitMap(range(start, stop))).to_array(), np.uint32).astype(np.int64)


def read_vectors(filesystem: arrow_fs.FileSystem, wanted: Iterable[tuple[VectorLocation, int]]) -> Iterator[BitMap]:
    """Yield the masked row indexes of data files, given as pairs of a location and a row count.

    Raises as `VectorLocation.read`. An index file is opened once for consecutive vectors in it.
    """
    for _, group in groupby(wanted, key=lambda pair: (pair[0].index_path, pair[0].index_size)):
        files = list(group)
        for (location, row_count), data in zip(files, _stored(filesystem, [location for location, _ in files])):
            yield _decoded(location, data, row_count)


def mask_same_rows(
    filesystem: arrow_fs.FileSystem, pairs: Sequence[tuple[VectorLocation, VectorLocation, int]]
) -> list[bool]:
    """Return for each pair of vectors of one data file, with its row count, whether they mask the same rows.

    Index files are read only for pairs that the manifests do not decide, and once for all vectors of a file. Raises as
    `VectorLocation.read`.
    """
    alike = [one.byte_range == other.byte_range for one, other, _ in pairs]
    unsure = [at for at, (one, other, _) in enumerate(pairs) if not alike[at] and one.may_mask_same_rows(other)]
    unsure.sort(key=lambda at: (pairs[at][0].byte_range, pairs[at][1].byte_range))
    ones = read_vectors(filesystem, ((pairs[at][0], pairs[at][2]) for at in unsure))
    others = read_vectors(filesystem, ((pairs[at][1], pairs[at][2]) for at in unsure))
    for at, masked, known in zip(unsure, ones, others):
        alike[at] = masked == known
    return alike


def _stored(filesystem: arrow_fs.FileSystem, locations: Sequence[VectorLocation]) -> list[bytes]:
    """Return the bytes at the start of each vector. All vectors are in one index file."""
    first = locations[0]
    try:
        with filesystem.open_input_file(first.index_path) as source:
            if source.size() != first.index_size:
                raise first.damaged(f"the index file has {source.size()} bytes instead of {first.index_size}")
            if first.index_size > _MAX_BYTES:
                raise first.damaged(f"the index file has {first.index_size} bytes, more than {_MAX_BYTES}")
            version = source.read_at(1, 0)
            if version != VERSION:
                raise first.damaged(f"the index file has version {version.hex() or 'none'}, and lakelsm reads only 01")
            if first.index_checksum is not None and _checksum(source) != first.index_checksum:
                raise first.damaged("the index file is damaged or replaced: its checksum differs from the manifest's")
            return [
                source.read_at(
                    min(max(location.length, 0) + FRAME_BYTES, location.index_size - location.offset), location.offset
                )
                if 0 <= location.offset < location.index_size
                else b""
                for location in locations
            ]
    except StorageError:  # A failure of the store, not of the file.
        raise
    except (OSError, pa.ArrowException) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise refused_read("A file of deletion vectors", error) or first.damaged(f"the index file {reason}") from error


def _checksum(source: pa.NativeFile) -> int:
    """Return the CRC-32 of a whole file. The vectors of another index file have valid checksums of their own."""
    found = 0
    for start in range(0, source.size(), _CHUNK):
        found = zlib.crc32(source.read_at(_CHUNK, start), found)
    return found


def _decoded(location: VectorLocation, data: bytes, row_count: int) -> BitMap:
    try:
        found = decode_vector(data, location.length)
    except ValueError as error:
        raise location.damaged(f"at byte {location.offset} of {location.index_size}: {error}") from error
    if found and found.max() >= row_count:
        raise location.damaged(f"it masks row {found.max()}, and the data file has {row_count} rows")
    if location.cardinality is not None and len(found) != location.cardinality:
        raise location.damaged(f"it masks {len(found)} rows, but the index manifest says {location.cardinality}")
    return found
