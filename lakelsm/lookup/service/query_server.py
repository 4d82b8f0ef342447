"""One server of a query service: answers for the keys of its buckets by Arrow Flight.

A lookup is a DoExchange: the command is a `LookupRequest`, the client writes one batch of keys and reads batches of rows,
whose first column has the place of each row's key in the batch of keys. The first batch has the snapshot as metadata.
The action `open` answers with the snapshot alone, `refresh` goes on to the newest one first.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import flight

from lakelsm.errors import InvalidInputError, LakelsmError, LookupServiceError
from lakelsm.lookup.found_rows import FoundRows
from lakelsm.lookup.service.lookup_request import (
    MOST_KEYS,
    LookupRequest,
    TableIdentity,
    encoded_error,
    encoded_snapshot,
)
from lakelsm.lookup.service.served_table import ServedTable
from lakelsm.lookup.service.service_access import ServerAccess
from lakelsm.lookup.service.service_addresses import ServerAddress

#: Bytes of rows that are written at a time, about.
_ANSWER_BYTES = 4 << 20
#: Seconds that the end of a server waits for calls that are under way.
_LONGEST_END = 5.0


class QueryServer(flight.FlightServerBase):  # type: ignore[misc]
    """Server ``number`` of ``servers``. It answers from when it is made until `stop`."""

    def __init__(
        self, served: ServedTable, *, number: int, servers: int, host: str, access: ServerAccess, refresh: float
    ) -> None:
        """``refresh``: seconds between two looks for a newer snapshot. The system chooses a port of ``host``.

        Raises InvalidInputError for a host that cannot be bound.
        """
        access.check_host(host)
        self._served = served
        self._identity = TableIdentity.of(served.store)
        self._number, self._servers = number, servers
        self._stopping = threading.Event()
        location = f"{access.scheme}://{ServerAddress(host, 0)}"
        try:
            super().__init__(location, **access.server_options())
        except (pa.ArrowException, flight.FlightError, OSError) as error:
            raise InvalidInputError(
                f"No server can be started at {host}: {_first_line(error)}. Name an address of this machine as host, and "
                "certificate and key files that go together."
            ) from error
        self.address = ServerAddress(host, self.port)
        self._refresher = threading.Thread(target=self._keep_fresh, args=(refresh,), daemon=True)
        self._refresher.start()

    def stop(self) -> bool:
        """Answer no more, and close the caches; False where a client still holds on to a call after some seconds."""
        self._stopping.set()
        ending = threading.Thread(target=self.shutdown, daemon=True)  # It waits for all calls.
        ending.start()
        ending.join(_LONGEST_END)
        self._refresher.join(_LONGEST_END)
        self._served.close()
        return not ending.is_alive()

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """A lookup."""
        with _told():
            request = self._request(descriptor.command or b"")
            keys = _checked_batch(reader)
            found, snapshot = self._served.find(request.schema, request.columns, keys)
            batches = _answer(found, request.columns)
            first = next(batches)
            writer.begin(first.schema)
            writer.write_with_metadata(first, encoded_snapshot(snapshot))
            for batch in batches:
                writer.write_batch(batch)

    def do_action(self, context: Any, action: Any) -> list[flight.Result]:
        """The snapshot that answers."""
        with _told():
            if action.type not in ("open", "refresh"):
                raise InvalidInputError(f"Action {action.type!r} is none of 'open' and 'refresh'.")
            request = self._request(action.body.to_pybytes())
            refreshed = action.type == "refresh"
            snapshot = self._served.snapshot(request.schema, request.columns, refreshed=refreshed)
            return [flight.Result(encoded_snapshot(snapshot))]

    def _request(self, data: bytes) -> LookupRequest:
        """The request, if it is for this server. Raises LookupServiceError for one that is for another."""
        request = LookupRequest.decoded(data)
        if request.table != self._identity:
            raise LookupServiceError(f"This is a server of the table in {self._identity.path}, or of an older one there.")
        if (request.server, request.servers) != (self._number, self._servers):
            raise LookupServiceError(
                f"This is server {self._number} of {self._servers}, and server {request.server} of {request.servers} was "
                "asked."
            )
        return request

    def _keep_fresh(self, interval: float) -> None:
        while not self._stopping.wait(interval):
            try:
                self._served.refresh()
            except (LakelsmError, pa.ArrowException, OSError) as error:
                # It goes on to answer from the snapshot before, whose age clients see, and tries again.
                warnings.warn(f"Table {self._served.store.name}: no refresh of its query service: {error}", stacklevel=2)


@contextmanager
def _told() -> Iterator[None]:
    """Tell a client what went wrong; of errors that are not lakelsm's own, no more than their first line."""
    try:
        yield
    except flight.FlightError:
        raise
    except LakelsmError as error:
        raise flight.FlightServerError(str(error), extra_info=encoded_error(error)) from error
    except Exception as error:  # The border to other processes: its traceback is nobody's business there.
        raise flight.FlightServerError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no message'}"


def _checked_batch(reader: Any) -> pa.Table:
    """The keys of a call. Their buffers come from outside: each offset is looked at before anything follows it."""
    try:
        batch = reader.read_chunk().data
        if batch is None:
            raise InvalidInputError("The request has no keys.")
        if batch.num_rows > MOST_KEYS:
            raise InvalidInputError(f"The request has {batch.num_rows} keys, and {MOST_KEYS} are the most.")
        batch.validate(full=True)
    except (StopIteration, pa.ArrowException) as error:
        raise InvalidInputError(f"The request has no keys that can be read: {_first_line(error)}") from error
    return pa.Table.from_batches([batch])


def _answer(found: FoundRows, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """The rows with the places of their keys, at least one batch."""
    places = pa.array(found.probes, pa.int64())
    answer = pa.Table.from_arrays([places, *found.rows.columns], names=["", *columns])
    rows = max(1, answer.num_rows * _ANSWER_BYTES // max(answer.nbytes, 1))
    yield from answer.to_batches(max_chunksize=rows) or [_empty(answer.schema)]


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
