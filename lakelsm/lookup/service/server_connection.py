"""The connection to one server: what it is asked, what it answers, and what it is to be blamed for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from pyarrow import flight

from lakelsm.errors import LookupServiceError, LookupServiceSetupError, told_of
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.service.lookup_request import LookupRequest, decoded_error, decoded_snapshot
from lakelsm.lookup.service.service_access import ClientAccess
from lakelsm.lookup.service.service_addresses import ServerAddress


class ServerConnection:
    """Asks one server. Several threads may, at the same time.

    Whatever keeps an answer away is a LookupServiceError that names table, bucket and address; an error that the server
    tells of the table is raised as the same error.
    """

    def __init__(
        self, table: str, address: ServerAddress, request: LookupRequest, rows: pa.Schema, *, access: ClientAccess
    ) -> None:
        """``rows`` is the schema of the answers. Nothing is asked yet."""
        self._table = table
        self._address = address
        self._request = request.encoded()
        self._rows = rows
        self._access = access
        self._lock = threading.Lock()
        self._client: flight.FlightClient | None = None
        self._named: tuple[bytes, Snapshot | None] | None = None

    @property
    def answered(self) -> bool:
        """Whether the server has given an answer yet."""
        return self._named is not None

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot of the last answer; None: that of an empty table, or there was no answer."""
        return None if self._named is None else self._named[1]

    def find(self, keys: pa.Table, bucket: int | None) -> FoundRows:
        """The rows of some keys, `MOST_KEYS` at most; ``bucket`` is that of one of them, for errors."""
        with self._blamed(bucket) as client:
            descriptor = flight.FlightDescriptor.for_command(self._request)
            writer, reader = client.do_exchange(descriptor, self._access.call_options())
            with writer:
                writer.begin(keys.schema)
                batches = keys.combine_chunks().to_batches()
                writer.write_batch(batches[0] if batches else pa.RecordBatch.from_pylist([], keys.schema))
                writer.done_writing()
                chunks = list(reader)
            if not chunks:
                raise LookupServiceError("the answer is empty")
            answer = pa.Table.from_batches([chunk.data for chunk in chunks])
            self._check(answer, len(keys))
            self._note(chunks[0].app_metadata)
        probes = answer.column(0).to_numpy()
        return FoundRows(probes, pa.Table.from_arrays(answer.columns[1:], schema=self._rows))

    def act(self, action: str) -> Snapshot | None:
        """The snapshot that the server names in answer to an action."""
        with self._blamed(None) as client:
            results = list(client.do_action(flight.Action(action, self._request), self._access.call_options()))
            if len(results) != 1:
                raise LookupServiceError("the answer is empty")
            self._note(results[0].body)
        return self.snapshot

    def _note(self, named: pa.Buffer | None) -> None:
        data = b"" if named is None else named.to_pybytes()
        if self._named is None or data != self._named[0]:
            self._named = (data, decoded_snapshot(data))

    def _check(self, answer: pa.Table, keys: int) -> None:
        """Raise LookupServiceError for an answer that cannot be one to the keys."""
        types = [pa.int64(), *self._rows.types]
        if answer.schema.names != ["", *self._rows.names] or answer.schema.types != types:
            raise LookupServiceError("the answer has other columns")
        answer.validate(full=True)
        probes = answer.column(0)
        places = probes.to_numpy()
        within = not len(places) or (places[0] >= 0 and places[-1] < keys and bool((np.diff(places) > 0).all()))
        if probes.null_count or not within:
            raise LookupServiceError("the answer has rows of keys that were not asked for")

    def _connected(self) -> flight.FlightClient:
        with self._lock:
            if self._client is None:
                options = {} if self._access.roots is None else {"tls_root_certs": self._access.roots}
                self._client = flight.FlightClient(f"{self._access.scheme}://{self._address}", **options)
            return self._client

    @contextmanager
    def _blamed(self, bucket: int | None) -> Iterator[flight.FlightClient]:
        where = "" if bucket is None else f", bucket {bucket}"
        server = f"Table {self._table}{where}: the server of its query service at {self._address}"
        try:
            yield self._connected()
        except LookupServiceError as error:
            raise LookupServiceError(f"{server} fails: {error}. {_REMEDY}") from error
        except flight.FlightUnauthenticatedError as error:
            raise LookupServiceSetupError(
                f"{server} does not let this client in: set 'lakelsm.lookup-service.token-file' to a file with its token."
            ) from error
        except flight.FlightTimedOutError as error:
            raise LookupServiceError(
                f"{server} has not answered for {self._access.timeout:g} s ('lakelsm.lookup-service.timeout'). {_REMEDY}"
            ) from error
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            told = decoded_error(getattr(error, "extra_info", None))
            if told is None or isinstance(told, LookupServiceError):
                reason = str(told or error).splitlines()[0][:300].rstrip(". ")
                raise LookupServiceError(f"{server} fails: {reason}. {_REMEDY}") from error
            with told_of(server):
                raise told from error


_REMEDY = "Look up again; if that does not help, start the query service again."
