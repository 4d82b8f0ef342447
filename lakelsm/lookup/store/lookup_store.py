"""The protocol of lookup stores: one file each, written once from sorted rows and then asked for keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from lakelsm.lookup.cache import FoundRows
from lakelsm.types import DataField


@dataclass(frozen=True)
class StoreLayout:
    """The columns of the rows of a store: those of the ``keys``, then the ``values``, some of each; no name is in both.

    ``rows_of`` says which rows they are (the name of a data file, say): a file of other rows is not opened.
    """

    keys: tuple[DataField, ...]
    values: tuple[DataField, ...]
    _: KW_ONLY
    rows_of: str = ""

    @property
    def mark(self) -> bytes:
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

    def find_one(self, key: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """The layout's values, as users get them, of the rows of one key, which is as `pa.Array.to_pylist` has it.

        None where the store can only be asked by `find`. Errors are those of `find`.
        """
        return None

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
