"""A simple store for tests of code that uses stores: an Arrow file that is searched with a dict."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.types import arrow_field


class DictStore:
    def __init__(self, path: Path, layout: StoreLayout, on_find: Callable[[], None] | None = None) -> None:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise CorruptStoreError(f"{path} cannot be read: {error}") from error
        if len(data) < 20 or data[:16] != layout.digest or zlib.crc32(data[20:]).to_bytes(4, "big") != data[16:20]:
            raise CorruptStoreError(f"{path} is damaged")
        rows = pa.ipc.open_stream(data[20:]).read_all()
        self.disk_bytes = len(data)
        self.closed = False
        self._on_find = on_find
        self._keys = [field.name for field in layout.keys]
        self._values = rows.select([field.name for field in layout.values])
        self._indexes = {key: at for at, key in enumerate(_keys(rows.select(self._keys)))}

    def find(self, keys: pa.Table) -> FoundRows:
        if self._on_find is not None:
            self._on_find()
        assert not self.closed
        wanted = enumerate(_keys(keys.select(self._keys)))
        found = [(at, self._indexes[key]) for at, key in wanted if key in self._indexes]
        probes = np.array([at for at, _ in found], np.int64)
        return FoundRows(probes, self._values.take(pa.array([index for _, index in found], pa.int64())))

    def find_plain(self, key: Any) -> None:
        return None

    def close(self) -> None:
        self.closed = True


class DictFormat:
    """Makes dict stores, and counts them."""

    copied_blocks = None

    def __init__(self) -> None:
        self.written = 0
        self.on_find: Callable[[], None] | None = None

    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        self.written += 1
        schema = pa.schema([arrow_field(field) for field in (*layout.keys, *layout.values)])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            for table in rows:
                writer.write_table(table.cast(schema))
        data = sink.getvalue().to_pybytes()
        path.write_bytes(layout.digest + zlib.crc32(data).to_bytes(4, "big") + data)

    def open(self, path: Path, layout: StoreLayout) -> DictStore:
        return DictStore(path, layout, self.on_find)


def _keys(rows: pa.Table) -> list[tuple[Any, ...]]:
    columns = ([one if one == one else "NaN" for one in column.to_pylist()] for column in rows.columns)
    return list(zip(*columns))
