"""Builds the indexes of a data file that is being written (Paimon's ``DataFileIndexWriter``)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakelsm.format.index.file_index.bitmap import BitmapBuilder
from lakelsm.format.index.file_index.bloom_filter import BloomFilter
from lakelsm.format.index.file_index.fast_hash import fast_hashes
from lakelsm.format.index.file_index.file_index_container import FileIndexContainer
from lakelsm.options.file_index_options import BLOOM_FILTER, ColumnIndex
from lakelsm.types import DataType


class FileIndexBuilder:
    """Builds the container of a file's indexes from its rows, in their order."""

    def __init__(self, indexes: Sequence[tuple[ColumnIndex, DataType]]) -> None:
        """``indexes`` are pairs of an index and the type of its column."""
        self._makers = [(index, _maker(index, data_type)) for index, data_type in indexes]

    def add(self, rows: pa.Table) -> None:
        """Add rows. Indexed columns have the types in which lakelsm keeps values."""
        for index, maker in self._makers:
            for values in rows.column(index.column).chunks:
                maker.add(values)

    def encode(self) -> bytes:
        """Return the bytes of the container."""
        bodies: dict[str, dict[str, bytes]] = {}
        for index, maker in self._makers:
            bodies.setdefault(index.column, {})[index.kind] = maker.encode()
        return FileIndexContainer(bodies).encode()


class _FilterMaker:
    """Builds a bloom filter of values. NULL is not added."""

    def __init__(self, index: ColumnIndex) -> None:
        self._filter = BloomFilter.sized(index.items, index.fpp)

    def add(self, values: pa.Array) -> None:
        self._filter.add(fast_hashes(values.drop_null()))

    def encode(self) -> bytes:
        return self._filter.encode()


def _maker(index: ColumnIndex, data_type: DataType) -> _FilterMaker | BitmapBuilder:
    if index.kind == BLOOM_FILTER:
        return _FilterMaker(index)
    return BitmapBuilder(data_type, index.version, index.block_bytes)
