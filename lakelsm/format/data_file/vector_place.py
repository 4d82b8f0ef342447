"""Where the deletion vector of a data file lies, and how a reader of the file gets it (docs/format.md 10.2)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs as arrow_fs
from pyroaring import BitMap

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.deletion_vectors import AROUND, VERSION, decode_vector

#: A vector of a data file of 2^32 rows has at most this many bytes.
_MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class VectorPlace:
    """Where the vector of one data file lies. Pickled into tasks.

    ``index_size`` is the size of the index file in bytes; ``length`` is as the index manifest has it, which counts
    differently for the two layouts; ``cardinality`` is the number of masked rows (None: unknown).
    """

    index_path: str
    _: KW_ONLY
    index_size: int
    data_file: str
    offset: int
    length: int
    cardinality: int | None

    def read(self, filesystem: arrow_fs.FileSystem, row_count: int) -> BitMap:
        """The positions of the masked rows of the data file, which has ``row_count`` rows.

        Raises CorruptTableError, naming the index file and the data file, where the index file is missing, cut off or
        damaged, or where the vector masks rows that the data file has not.
        """
        try:
            with filesystem.open_input_file(self.index_path) as source:
                if source.size() != self.index_size:
                    raise self.wrong(f"the index file has {source.size()} bytes, but its manifest says {self.index_size}")
                version = source.read_at(1, 0)
                most = min(max(self.length, 0) + AROUND, _MAX_BYTES)
                data = source.read_at(most, self.offset) if 0 <= self.offset < self.index_size else b""
        except (OSError, pa.ArrowException) as error:
            reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
            raise self.wrong(f"the index file {reason}") from error
        if version != VERSION:
            raise self.wrong(f"the index file has version {version.hex() or 'none'}, and the only known one is 01")
        try:
            found = decode_vector(data, self.length)
        except ValueError as error:
            raise self.wrong(f"at byte {self.offset} of {self.index_size}, {error}") from error
        if found and found.max() >= row_count:
            raise self.wrong(f"it masks row {found.max()}, and the data file has {row_count} rows")
        if self.cardinality is not None and len(found) != self.cardinality:
            raise self.wrong(f"it masks {len(found)} rows, but the index manifest says {self.cardinality}")
        return found

    def masked_rows(self, filesystem: arrow_fs.FileSystem, row_count: int) -> int:
        """How many rows are masked. The index file is only read where its manifest does not say."""
        return len(self.read(filesystem, row_count)) if self.cardinality is None else self.cardinality

    def masks_as(self, other: VectorPlace, filesystem: arrow_fs.FileSystem, row_count: int) -> bool:
        """Whether another vector of the data file masks the same rows. Index files are only read where both may."""
        if (self.index_path, self.offset, self.length) == (other.index_path, other.offset, other.length):
            return True
        if None not in (self.cardinality, other.cardinality) and self.cardinality != other.cardinality:
            return False
        return self.read(filesystem, row_count) == other.read(filesystem, row_count)

    def positions(self, filesystem: arrow_fs.FileSystem, row_count: int) -> npt.NDArray[np.int64]:
        """The positions that `read` gives, ascending."""
        return np.frombuffer(self.read(filesystem, row_count).to_array(), np.uint32).astype(np.int64)

    def wrong(self, problem: str) -> CorruptTableError:
        """The error for a vector that cannot be believed."""
        return CorruptTableError(
            f"Deletion vector of data file {self.data_file} in index file {self.index_path}: {problem}. Restore the "
            "index file, or read a snapshot from before it."
        )
