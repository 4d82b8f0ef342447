"""Lookups that servers of a table's query service answer. This process keeps nothing of the table."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lakelsm.errors import InvalidInputError, LookupServiceError, LookupServiceSetupError
from lakelsm.failures import logged_text
from lakelsm.format.row.bucket_hash import hash_rows, key_hashes
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import Cache, FoundRows, Longs, LookupSpec, Refreshed
from lakelsm.lookup.service.protocol import (
    MAX_KEYS,
    LookupRequest,
    ServerConnection,
    TableIdentity,
    key_schema,
    row_schema,
)
from lakelsm.lookup.service.service_access import ClientAccess, published_addresses
from lakelsm.predicate.evaluation import matching
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField
from lakelsm.write.fixed_buckets import FixedBuckets

Answer = TypeVar("Answer")

_LOG = logging.getLogger(__name__)

#: A partition without columns, as a BinaryRow.
_NO_PARTITION = pa.array([bytes(8)], pa.binary())

#: Maximum servers that are called at a time.
_MAX_REQUESTED = 16
#: Maximum bytes of keys in a request: servers write as much of an answer at a time.
_REQUEST_BYTES = 4 << 20


@dataclass(frozen=True)
class ServerChoice:
    """The choice of one of ``servers`` for a key, by the bucket of the key (Paimon's `ChannelComputer.select`).

    Buckets of a partition are assigned to the servers in turn, from one that the partition's hash determines. With
    dynamic buckets, a key does not determine its bucket; the hash of the key is used instead, so each key has one server.
    """

    store: TableStore
    servers: int

    def buckets_of(self, keys: pa.Table) -> Longs | None:
        """Return the bucket of each key; None if buckets are dynamic."""
        if self.store.options.bucket <= 0:
            return None
        return FixedBuckets.of(self.store.schema, self.store.options).of_rows(keys).astype(np.int64)

    def servers_of(self, keys: pa.Table, buckets: Longs | None) -> Longs:
        """Return the number of each key's server, from the buckets of `buckets_of`."""
        schema, integers = self.store.schema, np.iinfo(np.int32)
        if buckets is None:
            buckets = np.abs(_hashes(keys, [schema.field(name) for name in schema.trimmed_primary_keys]))
        partition = schema.partition_fields
        hashes = _hashes(keys, partition) if partition else hash_rows(_NO_PARTITION).astype(np.int64)
        first = np.abs(np.where(hashes == integers.min, integers.max, hashes)) % self.servers
        numbers: Longs = (first + buckets) % self.servers
        return numbers


def _hashes(keys: pa.Table, fields: Sequence[DataField]) -> Longs:
    hashes = key_hashes([keys.column(field.name) for field in fields], [field.type for field in fields])
    return hashes.astype(np.int64)


@dataclass(frozen=True)
class _Servers:
    """The servers of the table's file: one connection for each, in the order of their numbers."""

    connections: tuple[ServerConnection, ...]
    choice: ServerChoice


class RemoteCache(Cache):
    """Answers lookups by the whole primary key. Each server answers from its own snapshot, as recent as its refresh
    interval allows; `snapshot` is the oldest of them.

    A call that a server does not answer is repeated once, with addresses that are read again.
    """

    kind = "remote"

    def __init__(self, spec: LookupSpec, access: ClientAccess) -> None:
        self.spec = spec
        self._access = access
        self._identity = TableIdentity.of(spec.store)
        self._needed = (*spec.columns, *sorted(spec.read_columns.difference(spec.columns)))
        self._key_schema = key_schema(spec.store.schema)
        self._row_schema = row_schema(spec.store.schema, self._needed)
        self._closed = False
        self._lock = threading.Lock()
        self._servers = self._connected()
        self._pool = ThreadPoolExecutor(_MAX_REQUESTED, "lookup")

    @staticmethod
    def open(spec: LookupSpec) -> RemoteCache:
        """Connect to the servers of a table. Raises LookupServiceError if there are none or if they do not answer."""
        if not spec.by_primary_key:
            raise InvalidInputError(f"Table {spec.store.name}: a query service {spec.not_by_primary_key}")
        cache = RemoteCache(spec, ClientAccess.of(spec.store.options))
        try:
            cache._run_action("open")
        except BaseException:
            cache.close()
            raise
        return cache

    @property
    def snapshot(self) -> Snapshot | None:
        """The oldest of the last snapshots of the servers (None: that of an empty table)."""
        return _oldest([one.snapshot for one in self._servers.connections if one.answered])

    def find(self, keys: pa.Table) -> FoundRows:
        slices = list(_slices(keys.select(self._key_schema.names)))
        starts = accumulate((len(part) for part in slices), initial=0)
        parts = [self._called(partial(self._requested, part)) for part in slices]
        probes = np.concatenate([part.probes + start for part, start in zip(parts, starts)])
        rows = pa.concat_tables([part.rows for part in parts])
        if self.spec.predicate is not None:
            mask = matching(self.spec.predicate, rows)
            probes = probes[mask.to_numpy(zero_copy_only=False)]
            rows = rows.filter(mask).select(list(self.spec.columns))
        return FoundRows(probes, rows)

    def refresh(self) -> Refreshed:
        """See `Cache.refresh`: all servers refresh to the newest snapshot."""
        before = [one.snapshot for one in self._servers.connections]
        after = self._run_action("refresh")
        same = [_id(snapshot) for snapshot in before] == [_id(snapshot) for snapshot in after]
        keys = self._key_schema.empty_table().select(list(self.spec.key))
        return Refreshed(_oldest(after), changed=keys if same else None)

    def close(self) -> None:
        self._closed = True
        self._pool.shutdown()

    def _requested(self, keys: pa.Table, servers: _Servers) -> FoundRows:
        """Request the rows of each key from its server, from all servers in parallel."""
        buckets = servers.choice.buckets_of(keys)
        if len(servers.connections) == 1:
            return servers.connections[0].find(keys, _bucket(buckets, 0))
        numbers = servers.choice.servers_of(keys, buckets)
        order = np.argsort(numbers, kind="stable")
        called, starts = np.unique(numbers[order], return_index=True)
        if not len(called):
            return FoundRows(np.empty(0, np.int64), self._row_schema.empty_table())
        parts = list(zip(called.tolist(), np.split(order, starts[1:])))
        answers = self._in_parallel([
            partial(servers.connections[number].find, keys.take(pa.array(at)), _bucket(buckets, int(at[0])))
            for number, at in parts
        ])
        together = [FoundRows(at[answer.probes], answer.rows) for (_, at), answer in zip(parts, answers)]
        return FoundRows.combined(together)

    def _run_action(self, action: str) -> list[Snapshot | None]:
        """Run an action on all servers; return their answers."""
        return self._called(lambda servers: self._in_parallel([partial(one.act, action) for one in servers.connections]))

    def _called(self, call: Callable[[_Servers], Answer]) -> Answer:
        """Call; if a server does not answer, read the addresses again and repeat the call once."""
        if self._closed:
            name = self.spec.store.name
            raise InvalidInputError(f"Table {name}: the lookup is closed. Open another one with Table.lookup.")
        servers = self._servers
        try:
            return call(servers)
        except LookupServiceError as error:
            name = self.spec.store.name
            _LOG.debug("Table %s: the addresses of its servers are read again: %s", name, logged_text(error))
            with self._lock:
                if self._servers is servers:  # Otherwise another thread has read them again.
                    self._servers = self._connected()
                servers = self._servers
            return call(servers)

    def _in_parallel(self, calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
        """Run calls in parallel; return their results in order. After a failure start no more, and raise its error."""
        if len(calls) == 1:
            return [calls[0]()]
        waiting = [self._pool.submit(call) for call in calls]
        _, others = wait(waiting, return_when=FIRST_EXCEPTION)
        started = [future for future in waiting if future not in others or not future.cancel()]
        for error in [future.exception() for future in started]:
            if error is not None:
                raise error
        return [future.result() for future in waiting]

    def _connected(self) -> _Servers:
        store = self.spec.store
        addresses = published_addresses(store)
        if addresses is None:
            raise LookupServiceSetupError(
                f"Table {store.name}: no query service exists ({store.paths.lookup_service} is missing). Start one with "
                "'lakelsm query-service', or set 'lookup.cache' = 'partial' or 'full'."
            )
        request = LookupRequest(
            table=self._identity, server=0, servers=len(addresses), schema=store.schema.id, columns=self._needed
        )
        connections = [
            ServerConnection(store.name, address, replace(request, server=number), self._row_schema, access=self._access)
            for number, address in enumerate(addresses)
        ]
        return _Servers(tuple(connections), ServerChoice(store, len(addresses)))


def _slices(keys: pa.Table) -> Iterator[pa.Table]:
    """Yield the keys in parts for requests: at most `MAX_KEYS`, and at most `_REQUEST_BYTES` except for a single key."""
    for start in range(0, max(len(keys), 1), MAX_KEYS):
        yield from _halved(keys.slice(start, MAX_KEYS))


def _halved(keys: pa.Table) -> Iterator[pa.Table]:
    if len(keys) > 1 and keys.nbytes > _REQUEST_BYTES:
        yield from _halved(keys.slice(0, len(keys) // 2))
        yield from _halved(keys.slice(len(keys) // 2))
    else:
        yield keys


def _bucket(buckets: Longs | None, at: int) -> int | None:
    """Return the bucket of a key; None if it is unknown."""
    return None if buckets is None or at >= len(buckets) else int(buckets[at])


def _id(snapshot: Snapshot | None) -> int:
    return 0 if snapshot is None else snapshot.id


def _oldest(snapshots: Sequence[Snapshot | None]) -> Snapshot | None:
    return min(snapshots, key=_id, default=None)
