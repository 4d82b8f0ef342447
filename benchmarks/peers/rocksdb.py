"""RocksDB in Python, through rocksdict: one store of the base's rows, with keys of eight bytes and undecoded values."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.config import KEY, LOOKUP_BATCH, LOOKUP_COLUMNS, LOOKUP_HITS, BenchConfig
from benchmarks.lookup_keys import check_found, keys_of
from benchmarks.names import ROCKSDB
from benchmarks.timing import Contender
from benchmarks.workspace import build

_BATCH_ROWS = 100_000

#: The default of lakelsm's lookups.
_CACHE_BYTES = 256 << 20


class RocksdbPeer:
    """One open store."""

    def __init__(self, config: BenchConfig) -> None:
        self.config = config
        self.path = config.shape / "rocksdb"
        self.rocksdict: Any = importlib.import_module("rocksdict")
        self.store: Any = None

    def prepare(self) -> None:
        """Write the rows once for each shape of the data, compact them, and open the store."""
        build(self.path, self._load)
        self.store = self._opened(self.path)

    def _opened(self, path: Path) -> Any:
        options = self.rocksdict.Options(raw_mode=True)
        options.increase_parallelism(self.config.cores)
        blocks = self.rocksdict.BlockBasedOptions()
        blocks.set_block_cache(self.rocksdict.Cache(_CACHE_BYTES))
        blocks.set_bloom_filter(10, False)
        options.set_block_based_table_factory(blocks)
        return self.rocksdict.Rdict(str(path), options)

    def _load(self, target: Path) -> None:
        store = self._opened(target)
        for part in sorted(self.config.data("base").glob("*.parquet")):
            for batch in pq.ParquetFile(part).iter_batches(_BATCH_ROWS, columns=[KEY, *LOOKUP_COLUMNS]):
                writes = self.rocksdict.WriteBatch(raw_mode=True)
                values = (column.to_pylist() for column in batch.select(LOOKUP_COLUMNS).columns)
                for key, quantity, status in zip(_bytes_of(batch.column(KEY).to_numpy()), *values, strict=True):
                    writes.put(key, quantity.to_bytes(4, "big", signed=True) + status.encode())
                store.write(writes)
        store.compact_range(None, None)
        store.close()

    def contenders(self, operation: str) -> list[Contender]:
        """Return batches and single lookups. The load of the store has no equal in lakelsm's caches, and is left out."""
        if operation not in LOOKUP_HITS:
            return []
        keys = keys_of(self.config, operation)

        def batches() -> int:
            found = 0
            for at in range(0, len(keys), LOOKUP_BATCH):
                values = self.store.get(_bytes_of(keys[at : at + LOOKUP_BATCH]))
                found += len(values) - values.count(None)
            return found

        def gets() -> int:
            return sum(self.store.get(key.to_bytes(8, "big")) is not None for key in keys.tolist())

        run = gets if operation.startswith("lookup-get") else batches
        return [Contender(ROCKSDB, run, check=lambda found: check_found(self.config, operation, found))]


def _bytes_of(keys: Any) -> list[bytes]:
    """Return the keys as bytes in RocksDB's order."""
    data = keys.astype(">i8").tobytes()
    return [data[at : at + 8] for at in range(0, len(data), 8)]


def open_peer(config: BenchConfig) -> RocksdbPeer:
    """Return the peer for :mod:`benchmarks.peer_runner`."""
    return RocksdbPeer(config)
