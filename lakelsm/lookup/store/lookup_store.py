"""What kinds of lookup stores have in common: one file each, written once from sorted rows and then searched by key."""

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
    """The columns of the rows of a store: those of the ``keys``, then the ``values``, some of each; no name is in both.

    ``rows_of`` identifies the rows (for example the name of a data file): a file of other rows is not opened.
    """

    keys: tuple[DataField, ...]
    values: tuple[DataField, ...]
    _: KW_ONLY
    rows_of: str = ""

    @property
    def digest(self) -> bytes:
        """16 bytes that a file of the store has, and files of other rows or columns have not."""
        columns = [[(field.name, field.type.sql()) for field in fields] for fields in (self.keys, self.values)]
        return blake2b(repr((columns, self.rows_of)).encode(), digest_size=16).digest()


class LookupStore(Protocol):
    """An open store. Several threads may ask it."""

    @property
    def disk_bytes(self) -> int:
        """The size of its file."""

    def find(self, keys: pa.Table) -> FoundRows:
        """The rows of some keys, which have the layout's key columns and no NULLs, in any order, repeated or not.

        Floats are one key as in merges (docs/keys.md): 0.0 and -0.0 are, and all NaNs are. The rows have the layout's
        values. Raises CorruptStoreError for a damaged file; it never gives a wrong row.
        """

    def find_plain(self, key: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """The layout's values, as users get them, of the rows of one key, with values as those of `pa.Array.to_pylist`.

        None if only `find` can search the store. Errors are those of `find`.
        """
        return None

    def close(self) -> None:
        """Close the file; the file itself stays. A store that nothing refers to any more is closed, too."""


class StoreFormat(Protocol):
    """A kind of store (`lookup.local-file-type`)."""

    @property
    def copied_blocks(self) -> BlockCache | None:
        """Where lookup files that Paimon wrote have the format: the cache for blocks of copies of these. Else None."""
        return None

    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        """Write rows in the order of their keys, which are unique, to a new file, in one pass and bounded memory.

        They have the columns of the layout in stored types.
        """

    def open(self, path: Path, layout: StoreLayout) -> LookupStore:
        """Open a file. Raises CorruptStoreError for one that is damaged."""


class BlockCache:
    """Blocks of sort stores and pages of hash stores, plain and checked, by store and number: those used last, up to
    ``max_bytes``. Threads may share it.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._blocks: OrderedDict[tuple[int, int], Block] = OrderedDict()
        self._lock = Lock()
        self._stores = 0

    def new_store(self) -> int:
        """The number of a store that no other has."""
        with self._lock:
            self._stores += 1
            return self._stores

    def get(self, store: int, number: int) -> Block | None:
        """A block, if it is here."""
        with self._lock:
            block = self._blocks.get((store, number))
            if block is not None:
                self._blocks.move_to_end((store, number))
            return block

    def put(self, store: int, number: int, block: Block) -> None:
        """Keep a block, and let go of others where there are too many. One beyond the bound is not kept."""
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
        """Let go of a store's blocks."""
        with self._lock:
            for key in [key for key in self._blocks if key[0] == store]:
                self.bytes -= len(self._blocks.pop(key))
