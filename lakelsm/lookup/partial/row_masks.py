"""Bitmaps of the rows that deletion vectors mask. Vectors are read when they are first needed."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from lakelsm.format.data_file.vector_location import VectorLocation, read_vectors
from lakelsm.merge.grouped_rows import Mask
from lakelsm.merge.merge_unit import RunFile
from lakelsm.storage import FileIO


class RowMasks:
    """The most recently used masks of data files, one bit for each row, up to ``memory_bytes``. Thread-safe."""

    def __init__(self, file_io: FileIO, *, memory_bytes: int) -> None:
        self._file_io = file_io
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._bits: OrderedDict[tuple[str, int, int], npt.NDArray[np.uint8]] = OrderedDict()

    def masked(self, file: RunFile, positions: npt.NDArray[np.int64]) -> Mask | None:
        """Return which of the rows at ``positions`` are masked; None if none is."""
        if file.vector is None or not len(positions):
            return None
        bits = self._of(file.vector, file.row_count)
        masked: Mask = (bits[positions >> 3] >> (positions & 7).astype(np.uint8) & 1).astype(np.bool_)
        return masked if masked.any() else None

    def _of(self, vector: VectorLocation, row_count: int) -> npt.NDArray[np.uint8]:
        with self._lock:
            if vector.byte_range in self._bits:
                self._bits.move_to_end(vector.byte_range)
                return self._bits[vector.byte_range]
        (masked,) = read_vectors(self._file_io.filesystem(), [(vector, row_count)])
        rows = np.zeros(row_count, np.bool_)
        rows[np.frombuffer(masked.to_array(), np.uint32)] = True
        bits = np.packbits(rows, bitorder="little")
        with self._lock:
            self._bits[vector.byte_range] = bits
            while len(self._bits) > 1 and sum(len(one) for one in self._bits.values()) > self._memory_bytes:
                self._bits.popitem(last=False)
        return bits
