"""Where the deletion vector of a data file lies, and how a reader of the file gets it (docs/format.md 13.5)."""

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

#: Size of the largest index file that is read.
_MAX_BYTES = 1 << 30
#: How much of an index file is held at once while its checksum is found.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class VectorLocation:
    """Where the vector of one data file lies. Pickled into tasks.

    ``index_size`` is the size of the index file in bytes, and ``index_checksum`` its CRC-32; ``length`` is as the index
    manifest has it, which counts differently for the two layouts; ``cardinality`` is the number of masked rows (None,
    for it and the checksum: unknown).
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
        """The positions of the masked rows of the data file, which has ``row_count`` rows.

        Raises CorruptTableError, naming the index file and the data file, where the index file is missing, cut off,
        damaged or another, or where the vector masks rows that the data file has not.
        """
        return next(read_vectors(filesystem, [(self, row_count)]))

    def recorded_cardinality(self, row_count: int) -> int | None:
        """The number of masked rows in the index manifest, None if it lacks it.

        Raises CorruptTableError where they are more than the data file has.
        """
        if self.cardinality is not None and self.cardinality > row_count:
            raise self.wrong(f"the index manifest says {self.cardinality} masked rows, and the data file has {row_count}")
        return self.cardinality

    def masked_row_count(self, filesystem: arrow_fs.FileSystem, row_count: int) -> int:
        """The number of masked rows. The index file is read only if its manifest lacks it."""
        said = self.recorded_cardinality(row_count)
        return len(self.read(filesystem, row_count)) if said is None else said

    def may_mask_same_rows(self, other: VectorLocation) -> bool:
        """Whether another vector of the data file may mask the same rows, according to manifests."""
        return None in (self.cardinality, other.cardinality) or self.cardinality == other.cardinality

    @property
    def byte_range(self) -> tuple[str, int, int]:
        """Where its bytes are: vectors with the same ones are one."""
        return self.index_path, self.offset, self.length

    def wrong(self, problem: str) -> CorruptTableError:
        """The error for a vector that cannot be believed."""
        return CorruptTableError(
            f"Deletion vector of data file {self.data_file} in index file {self.index_path}: {problem}. Restore the "
            "index file, or read a snapshot from before it."
        )


def positions_within(masked: BitMap, start: int, stop: int) -> npt.NDArray[np.int64]:
    """The positions of a vector from ``start`` to before ``stop``, ascending."""
    return np.frombuffer((masked & BitMap(range(start, stop))).to_array(), np.uint32).astype(np.int64)


def read_vectors(filesystem: arrow_fs.FileSystem, wanted: Iterable[tuple[VectorLocation, int]]) -> Iterator[BitMap]:
    """The masked positions of data files, given by the ranges of their vectors and their row counts.

    Raises as `VectorLocation.read`. An index file is opened once for all of its vectors that come one after the other.
    """
    for _, group in groupby(wanted, key=lambda pair: (pair[0].index_path, pair[0].index_size)):
        files = list(group)
        for (place, row_count), data in zip(files, _stored(filesystem, [place for place, _ in files])):
            yield _decoded(place, data, row_count)


def mask_same_rows(
    filesystem: arrow_fs.FileSystem, pairs: Sequence[tuple[VectorLocation, VectorLocation, int]]
) -> list[bool]:
    """For each pair of vectors of one data file, with its row count, whether they mask the same rows.

    Index files are only read for pairs that manifests do not decide, each once for all of its vectors. Raises as
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


def _stored(filesystem: arrow_fs.FileSystem, places: Sequence[VectorLocation]) -> list[bytes]:
    """The bytes that begin with each of the vectors, all of one index file."""
    first = places[0]
    try:
        with filesystem.open_input_file(first.index_path) as source:
            if source.size() != first.index_size:
                raise first.wrong(f"the index file has {source.size()} bytes, but its manifest says {first.index_size}")
            if first.index_size > _MAX_BYTES:
                raise first.wrong(f"the index file has {first.index_size} bytes, and one has {_MAX_BYTES} at most")
            version = source.read_at(1, 0)
            if version != VERSION:
                raise first.wrong(f"the index file has version {version.hex() or 'none'}, and the only known one is 01")
            if first.index_checksum is not None and _checksum(source) != first.index_checksum:
                raise first.wrong("the index file is damaged or is another one: it does not have its manifest's checksum")
            return [
                source.read_at(min(max(place.length, 0) + FRAME_BYTES, place.index_size - place.offset), place.offset)
                if 0 <= place.offset < place.index_size
                else b""
                for place in places
            ]
    except StorageError:  # A fault of the store, not of the file.
        raise
    except (OSError, pa.ArrowException) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise refused_read("A file of deletion vectors", error) or first.wrong(f"the index file {reason}") from error


def _checksum(source: pa.NativeFile) -> int:
    """The CRC-32 of a whole file, as the vectors of another index file have right checksums of their own."""
    found = 0
    for start in range(0, source.size(), _CHUNK):
        found = zlib.crc32(source.read_at(_CHUNK, start), found)
    return found


def _decoded(place: VectorLocation, data: bytes, row_count: int) -> BitMap:
    try:
        found = decode_vector(data, place.length)
    except ValueError as error:
        raise place.wrong(f"at byte {place.offset} of {place.index_size}, {error}") from error
    if found and found.max() >= row_count:
        raise place.wrong(f"it masks row {found.max()}, and the data file has {row_count} rows")
    if place.cardinality is not None and len(found) != place.cardinality:
        raise place.wrong(f"it masks {len(found)} rows, but the index manifest says {place.cardinality}")
    return found
