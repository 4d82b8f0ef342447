"""Which server answers for a key: the bucket of the key says it, by Paimon's rule (`ChannelComputer.select`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.row.bucket_hash import hash_rows, key_hashes
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField
from lakelsm.write.fixed_buckets import FixedBuckets

Numbers = npt.NDArray[np.int64]

#: A partition without columns, as BinaryRow has it.
_NO_PARTITION = pa.array([bytes(8)], pa.binary())


@dataclass(frozen=True)
class ServerChoice:
    """Chooses among ``servers``: buckets of a partition go round them, from one that the partition's hash says.

    Where buckets are dynamic, no hash says the bucket of a key; there the key's own hash stands for it, so that each key
    still has one server.
    """

    buckets: FixedBuckets | None
    keys: tuple[DataField, ...]
    partition: tuple[DataField, ...]
    servers: int

    @staticmethod
    def of(store: TableStore, servers: int) -> ServerChoice:
        """The choice for a table."""
        schema = store.schema
        return ServerChoice(
            buckets=FixedBuckets.of(schema, store.options) if store.options.bucket > 0 else None,
            keys=tuple(map(schema.field, schema.trimmed_primary_keys)),
            partition=tuple(schema.partition_fields),
            servers=servers,
        )

    def buckets_of(self, keys: pa.Table) -> Numbers | None:
        """The bucket of each key; None where buckets are dynamic."""
        return None if self.buckets is None else self.buckets.of_rows(keys).astype(np.int64)

    def servers_of(self, keys: pa.Table, buckets: Numbers | None) -> Numbers:
        """The number of the server of each key, with the buckets that `buckets_of` gave."""
        if self.servers == 1:
            return np.zeros(len(keys), np.int64)
        if buckets is None:
            buckets = np.abs(_hashes(keys, self.keys))
        numbers: Numbers = (self._starts(keys) + buckets) % self.servers
        return numbers

    def _starts(self, keys: pa.Table) -> Numbers:
        """The server of bucket 0 of each key's partition."""
        hashes = _hashes(keys, self.partition) if self.partition else hash_rows(_NO_PARTITION).astype(np.int64)
        least = np.iinfo(np.int32).min
        starts: Numbers = np.abs(np.where(hashes == least, np.iinfo(np.int32).max, hashes)) % self.servers
        return starts


def _hashes(keys: pa.Table, fields: tuple[DataField, ...]) -> Numbers:
    hashes = key_hashes([keys.column(field.name) for field in fields], [field.type for field in fields])
    return hashes.astype(np.int64)
