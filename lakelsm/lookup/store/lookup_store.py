"""The protocol of lookup stores: one file each, written once from sorted rows and then asked for keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from lakelsm.lookup.found_rows import FoundRows
from lakelsm.types import DataField


@dataclass(frozen=True)
class StoreLayout:
    """The columns of the rows of a store: those of the ``keys``, then the ``values``; no name is in both."""

    keys: tuple[DataField, ...]
    values: tuple[DataField, ...]


class LookupStore(Protocol):
    """An open store. Several threads may ask it."""

    @property
    def disk_bytes(self) -> int:
        """The size of its file."""

    def find(self, keys: pa.Table) -> FoundRows:
        """The rows of some keys, which have the layout's key columns and no NULLs, in any order, repeated or not.

        The rows have the layout's values. Raises CorruptStoreError for a damaged file; it never gives a wrong row.
        """

    def close(self) -> None:
        """Close the file; the file itself stays."""


class StoreFormat(Protocol):
    """A kind of store (`lookup.local-file-type`)."""

    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        """Write rows in the order of their keys, which are unique, to a new file, in one pass and bounded memory.

        They have the columns of the layout in stored types.
        """

    def open(self, path: Path, layout: StoreLayout) -> LookupStore:
        """Open a file. Raises CorruptStoreError for one that is damaged."""
