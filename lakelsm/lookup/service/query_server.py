"""One server of a query service: its caches (`ServedTable`), and its answers by Arrow Flight (`QueryServer`).

A lookup is a DoExchange call: its command is a `LookupRequest`, the client writes one batch of keys and reads batches
of rows, whose first column has the index of each row's key. The snapshot is the metadata of the first batch.
Action `open` returns the snapshot; action `refresh` refreshes to the newest snapshot first.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from pyarrow import flight

from lakelsm.errors import InvalidInputError, LakelsmError, LookupServiceError
from lakelsm.failures import logged_text, warn_and_log
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import CountedCache, FoundRows, LookupSpec, Opener
from lakelsm.lookup.service.open_calls import CALLS, OpenCalls, close_connections
from lakelsm.lookup.service.protocol import (
    MAX_KEYS,
    LookupRequest,
    TableIdentity,
    encoded_error,
    encoded_snapshot,
    key_schema,
)
from lakelsm.lookup.service.service_access import ServerAccess, ServerAddress
from lakelsm.snapshots.table_store import TableStore

_LOG = logging.getLogger(__name__)

#: Approximate bytes of rows that are written at a time.
_ANSWER_BYTES = 4 << 20
#: Seconds that a stopping server waits for running calls, and then for their threads.
_GRACE = 0.5
_LONGEST_END = 0.3
#: Maximum schemas of clients at a time. The least recently used one is dropped first.
_MAX_SCHEMAS = 4
#: Maximum columns and characters of their names in messages: the names may come from outside.
_MAX_LISTED = 100
_SHOWN = 1000


class _ServedCache(CountedCache):
    """The cache of one schema, with the columns that clients have requested."""

    def __init__(self, store: TableStore, columns: tuple[str, ...], opener: Opener) -> None:
        super().__init__(LookupSpec(store, tuple(store.schema.primary_keys), columns), opener)
        self.schema = store.schema
        self.columns = columns


class ServedTable:
    """The table of a server, with one cache for each schema that clients use.

    A cache has the columns that were requested so far. If more are requested, a cache with them replaces it.
    Several threads may use it.
    """

    def __init__(self, store: TableStore, opener: Opener) -> None:
        self.store = store
        self._opener = opener
        self._lock = threading.Lock()
        self._caches: OrderedDict[int, _ServedCache] = OrderedDict()
        self._closed = False

    def key_schema(self, schema: int) -> pa.Schema:
        """Return the key columns of clients with a schema. Raises InvalidInputError if the schema does not exist."""
        served = self._caches.get(schema)
        return key_schema(self._store_with(schema).schema if served is None else served.schema)

    def find(self, schema: int, columns: Sequence[str], keys: pa.Table) -> tuple[FoundRows, Snapshot | None]:
        """Find the rows of some keys of `key_schema`. Also return a snapshot: that of the rows, or an older one.

        Raises InvalidInputError for columns that the schema lacks.
        """
        with self._acquired(schema, columns) as served:
            snapshot = served.cache.snapshot
            found = served.cache.find(keys)
            return FoundRows(found.probes, found.rows.select(list(columns))), snapshot

    def snapshot(self, schema: int, columns: Sequence[str], *, refreshed: bool) -> Snapshot | None:
        """Return the snapshot that answers for these columns, after a refresh if ``refreshed``."""
        if refreshed:
            with self._acquired(schema, columns) as served:
                self._refresh(schema, served)
        with self._acquired(schema, columns) as served:
            return served.cache.snapshot

    def refresh(self) -> None:
        """Refresh every cache to the newest snapshot."""
        with self._lock:
            every = list(self._caches.items())
        for schema, served in every:
            if served.acquire():
                with served:
                    self._refresh(schema, served)

    def close(self) -> None:
        """Close every cache; those in use after their last lookup."""
        with self._lock:
            self._closed = True
            every = list(self._caches.values())
            self._caches.clear()
        for served in every:
            served.release()

    def _refresh(self, schema: int, served: _ServedCache) -> None:
        """Refresh one cache. If that fails because a column changed, drop the cache.

        The next request opens a cache without the changed column; a request for the column gets the error.
        """
        try:
            served.refresh()
        except InvalidInputError:
            with self._lock:
                if self._caches.get(schema) is not served:
                    return
                del self._caches[schema]
            served.release()

    @contextmanager
    def _acquired(self, schema: int, columns: Sequence[str]) -> Iterator[_ServedCache]:
        """Yield the cache of a schema with these columns; it is opened if there is none."""
        replaced = []
        with self._lock:
            served = self._caches.get(schema)
            if served is None or not set(columns) <= set(served.columns):
                replaced += [] if served is None else [served]
                served = self._opened(schema, () if served is None else served.columns, columns)
                self._caches[schema] = served
            self._caches.move_to_end(schema)
            served.acquire()
            if len(self._caches) > _MAX_SCHEMAS:
                replaced.append(self._caches.popitem(last=False)[1])
        with served:
            for each in replaced:
                each.release()
            yield served

    def _opened(self, schema_id: int, before: tuple[str, ...], columns: Sequence[str]) -> _ServedCache:
        if self._closed:
            raise LookupServiceError(f"Table {self.store.name}: the query service has ended. Start it again.")
        store = self._store_with(schema_id)
        known = store.schema.field_names
        for name in columns:
            if name not in known:
                raise InvalidInputError(f"Table {store.name}: schema {schema_id} has no column {name!r}.")
        return _ServedCache(store, tuple(name for name in known if name in {*before, *columns}), self._opener)

    def _store_with(self, schema_id: int) -> TableStore:
        if schema_id == self.store.schema.id:
            return self.store
        if schema_id not in self.store.schemas.ids():
            raise InvalidInputError(f"Table {self.store.name}: schema {schema_id} does not exist. Open the table again.")
        return self.store.with_schema(self.store.schemas.get(schema_id))


class QueryServer(flight.FlightServerBase):  # type: ignore[misc]
    """Server ``number`` of ``servers``. It answers from its creation until `stop`."""

    def __init__(
        self, served: ServedTable, *, number: int, servers: int, host: str, access: ServerAccess, refresh: float
    ) -> None:
        """``refresh``: seconds between checks for a newer snapshot. The system chooses a port of ``host``.

        Raises InvalidInputError if the server cannot listen at the host.
        """
        access.check_host(host)
        self._served = served
        self._identity = TableIdentity.of(served.store)
        self._number, self._servers = number, servers
        self._stopping = threading.Event()
        options = served.store.options
        self._max_bytes = options.lakelsm_lookup_service_max_request_size
        self._calls = OpenCalls(served.store.name, access, options)
        location = f"{access.scheme}://{ServerAddress(host, 0)}"
        try:
            super().__init__(location, middleware={CALLS: self._calls}, **access.server_options())
        except (pa.ArrowException, flight.FlightError, OSError) as error:
            raise InvalidInputError(
                f"host: no server can listen at {host!r}: {_first_line(error)}. Give an address of this machine, and a "
                "certificate and a key that belong together."
            ) from error
        self.address = ServerAddress(host, self.port)
        self._refresher = threading.Thread(target=self._keep_fresh, args=(refresh,), daemon=True)
        self._refresher.start()
        threading.Thread(target=self._close_overdue, daemon=True).start()

    def stop(self) -> bool:
        """Stop answering, and close the caches, within a second. Return False if a call or refresh is still running."""
        self._stopping.set()
        ending = threading.Thread(target=self.shutdown, daemon=True)  # `shutdown` waits for all calls.
        ending.start()
        ending.join(_GRACE)
        if ending.is_alive():
            close_connections(self.address.port)
            ending.join(_LONGEST_END)
        self._refresher.join(_LONGEST_END)
        self._served.close()
        return not (ending.is_alive() or self._refresher.is_alive())

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Answer a lookup."""
        call = context.get_middleware(CALLS)
        call.handled(context.peer())
        with _reported(self._served.store.name):
            request = self._request(descriptor.command or b"")
            wanted = self._served.key_schema(request.schema)
            with call.waiting():
                keys = _checked_batch(reader, wanted, self._max_bytes)
            found, snapshot = self._served.find(request.schema, request.columns, keys)
            batches = _answer(found, request.columns)
            first = next(batches)
            with call.waiting():
                writer.begin(first.schema)
                writer.write_with_metadata(first, encoded_snapshot(snapshot))
            for batch in batches:
                with call.waiting():
                    writer.write_batch(batch)

    def do_action(self, context: Any, action: Any) -> list[flight.Result]:
        """Return the snapshot that answers."""
        context.get_middleware(CALLS).handled(context.peer())
        with _reported(self._served.store.name):
            if action.type not in ("open", "refresh"):
                raise InvalidInputError(f"action {action.type!r} is not 'open' or 'refresh'.")
            request = self._request(action.body.to_pybytes())
            refreshed = action.type == "refresh"
            snapshot = self._served.snapshot(request.schema, request.columns, refreshed=refreshed)
            return [flight.Result(encoded_snapshot(snapshot))]

    def _request(self, data: bytes) -> LookupRequest:
        """Decode a request. Raises LookupServiceError if it is for another server."""
        request = LookupRequest.decoded(data)
        if request.table != self._identity:
            raise LookupServiceError(f"this server is for table {self._identity.path}, or for an older table there")
        if (request.server, request.servers) != (self._number, self._servers):
            raise LookupServiceError(
                f"this is server {self._number} of {self._servers}; the request is for server {request.server} of "
                f"{request.servers}"
            )
        return request

    def _close_overdue(self) -> None:
        idle, answered = self._calls.idle_seconds, 0
        while not self._stopping.wait(min(1.0, idle / 4)):
            if self._calls.started != answered and not len(self._calls):
                answered = self._calls.started
                _release_memory()
            with suppress(OSError):  # No descriptor is free to check the connections; disconnecting clients free some.
                closed = self._calls.close_overdue(self.address.port)
                if closed:
                    self._warn(
                        f"its query service closed {closed} connections: their clients sent no keys or read no rows for "
                        f"{idle:g} s ('lakelsm.lookup-service.idle-timeout')"
                    )

    def _keep_fresh(self, interval: float) -> None:
        while not self._stopping.wait(interval):
            try:
                self._served.refresh()
            except (LakelsmError, pa.ArrowException, OSError) as error:
                # The server continues with the older snapshot, whose age clients see, and tries again.
                self._warn(f"its query service could not refresh: {logged_text(error)}")

    def _warn(self, text: str) -> None:
        warn_and_log(_LOG, f"Table {self._served.store.name}: {text}")


def _release_memory() -> None:
    """Return the memory of large requests and answers to the system."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # For the memory of gRPC; only glibc keeps it.
    if trim is not None:
        trim(0)


@contextmanager
def _reported(table: str) -> Iterator[None]:
    """Log an error, and send it to the client; only the first line if it is not an error of lakelsm."""
    try:
        yield
    except flight.FlightError as error:  # The client disconnected, or its connection was closed.
        _LOG.debug("Table %s: a call of its query service ended: %s", table, logged_text(error))
        raise
    except Exception as error:
        _LOG.warning("Table %s: a request to its query service failed: %s", table, logged_text(error))
        raise _sent(error) from error


def _sent(error: Exception) -> flight.FlightServerError:
    """Return an error in the form for the client. The traceback of a foreign error stays in this process."""
    if isinstance(error, LakelsmError):
        return flight.FlightServerError(str(error), extra_info=encoded_error(error))
    return flight.FlightServerError(_first_line(error))


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no message'}"


def _checked_batch(reader: Any, wanted: pa.Schema, max_bytes: int) -> pa.Table:
    """Read the keys of a call. They come from outside: a batch of another schema is not read, and all offsets are checked
    before they are used.
    """
    try:
        given = reader.schema
        if given.names != wanted.names or given.types != wanted.types:
            raise InvalidInputError(
                f"the keys have the columns {_listed(given)} instead of {_listed(wanted)}."
            )
        batch = reader.read_chunk().data
        if batch is None:
            raise InvalidInputError("the request has no keys.")
        if batch.num_rows > MAX_KEYS:
            raise InvalidInputError(f"the request has {batch.num_rows} keys; the maximum is {MAX_KEYS}.")
        size = batch.get_total_buffer_size()
        if size > max_bytes:
            raise InvalidInputError(
                f"the request has keys of {size} bytes; the maximum is {max_bytes} "
                "('lakelsm.lookup-service.max-request-size'). Look up shorter keys, or raise the option and restart the "
                "service."
            )
        batch.validate(full=True)
    except (StopIteration, pa.ArrowException, flight.FlightError, OSError) as error:
        raise InvalidInputError(f"the keys of the request cannot be read: {_first_line(error)}") from error
    for name, column in zip(wanted.names, batch.columns):
        if column.null_count:
            raise InvalidInputError(f"key column {name!r}: NULL is not allowed.")
    return pa.Table.from_batches([batch])


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in list(schema)[:_MAX_LISTED])[:_SHOWN]


def _answer(found: FoundRows, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the rows with the indexes of their keys, at least one batch."""
    indexes = pa.array(found.probes, pa.int64())
    answer = pa.Table.from_arrays([indexes, *found.rows.columns], names=["", *columns])
    rows = max(1, answer.num_rows * _ANSWER_BYTES // max(answer.nbytes, 1))
    yield from answer.to_batches(max_chunksize=rows) or [pa.RecordBatch.from_pylist([], answer.schema)]
