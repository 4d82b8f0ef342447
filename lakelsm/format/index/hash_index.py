"""HASH index files: the key hashes of one dynamic bucket, 4 bytes big-endian each (docs/format.md 10.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lakelsm.errors import CorruptTableError

#: Persisted: do not change
_HASH_DTYPE = np.dtype(">i4")


def encode_hashes(hashes: npt.NDArray[np.int32]) -> bytes:
    """Return the index file of ``hashes`` (signed, distinct, in any order)."""
    return hashes.astype(_HASH_DTYPE).tobytes()


def decode_hashes(data: bytes, source: str = "the HASH index file") -> npt.NDArray[np.int32]:
    """Return the hashes of an index file, in file order; ``source`` names it in errors.

    Raises CorruptTableError unless the size is a multiple of 4.
    """
    if len(data) % _HASH_DTYPE.itemsize:
        raise CorruptTableError(f"{source} has {len(data)} bytes, which is not a multiple of 4.")
    return np.frombuffer(data, _HASH_DTYPE).astype(np.int32)
