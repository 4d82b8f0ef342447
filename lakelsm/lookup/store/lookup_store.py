"""The protocol of lookup stores: one file each, written once from sorted rows, then searched by key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.lookup.cache import FoundRows
from lakelsm.types import DataField

Block = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class StoreLayout:
    """The columns of the rows of a store: those of the ``keys``, then the ``values``. No name is in both.

    ``rows_of`` identifies the rows, for example by the name of a data file: a file of other rows is not opened.
    """

    keys: tuple[DataField, ...]
    values: tuple[DataField, ...]
    _: KW_ONLY
    rows_of: str = ""

    @property
    def digest(self) -> bytes:
        """A digest of 16 bytes that a file of the store contains. It differs for other rows or columns."""
        columns = [[(field.name, field.type.sql()) for field in fields] for fields in (self.keys, self.values)]
        return blake2b(repr((columns, self.rows_of)).encode(), digest_size=16).digest()


class LookupStore(Protocol):
    """An open store. Several threads may search it."""

    @property
    def disk_bytes(self) -> int:
        """The size of its file, in bytes."""

    def find(self, keys: pa.Table) -> FoundRows:
        """Find the rows of some keys. ``keys`` has the layout's key columns without NULLs, in any order, repeated or not.

        Floats are equal as in merges (docs/keys.md): 0.0 equals -0.0, NaN equals NaN. The rows have the layout's value
        columns. Raises CorruptStoreError for a damaged file; it never returns a wrong row.
        """

    def find_plain(self, key: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """Return the value columns, for the user, of the rows of one key, given as `pa.Array.to_pylist` returns it.

        Return None if only `find` can search the store. Errors are those of `find`.
        """
        return None

    def close(self) -> None:
        """Close the file, without deleting it. A store without references is closed too."""


class StoreFormat(Protocol):
    """A kind of store (`lookup.local-file-type`)."""

    @property
    def copied_blocks(self) -> BlockCache | None:
        """The cache for blocks of copied lookup files of Paimon; None if Paimon does not write files of this format."""
        return None

    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        """Write rows in the order of their keys, which are unique, to a new file, in one pass and bounded memory.

        The rows have the columns of the layout in stored types.
        """

    def open(self, path: Path, layout: StoreLayout) -> LookupStore:
        """Open a file. Raises CorruptStoreError for a damaged one."""


class BlockCache:
    """The most recently used blocks of sort stores and pages of hash stores, unpacked and checked, up to ``max_bytes``.
    They are identified by store and number. Several threads may use it.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._blocks: OrderedDict[tuple[int, int], Block] = OrderedDict()
        self._lock = Lock()
        self._stores = 0

    def new_store(self) -> int:
        """Return a new number for a store."""
        with self._lock:
            self._stores += 1
            return self._stores

    def get(self, store: int, number: int) -> Block | None:
        """Return a block, or None if it is not cached."""
        with self._lock:
            block = self._blocks.get((store, number))
            if block is not None:
                self._blocks.move_to_end((store, number))
            return block

    def put(self, store: int, number: int, block: Block) -> None:
        """Cache a block, and drop the least recently used ones beyond the limit. Ignore a block larger than the limit."""
        if len(block) > self.max_bytes:
            return
        with self._lock:
            before = self._blocks.pop((store, number), None)
            self.bytes += len(block) - (0 if before is None else len(before))
            self._blocks[store, number] = block
            while self.bytes > self.max_bytes:
                _, oldest = self._blocks.popitem(last=False)
                self.bytes -= len(oldest)

    def drop(self, store: int) -> None:
        """Drop the blocks of a store."""
        with self._lock:
            for key in [key for key in self._blocks if key[0] == store]:
                self.bytes -= len(self._blocks.pop(key))
