"""Blocks of sort stores and pages of hash stores in memory, up to a bound: the one not used for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import numpy as np
import numpy.typing as npt

Block = npt.NDArray[np.uint8]


class BlockCache:
    """Plain, checked blocks by the store that they are of and their number in it. Threads may share it."""

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
