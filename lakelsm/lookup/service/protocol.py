"""The messages between clients and servers of a query service, and a client's connection to one server.

Requests and errors are JSON; keys and rows are Arrow. Each answer names its snapshot.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import flight

from lakelsm import errors
from lakelsm.errors import (
    CorruptTableError,
    InvalidInputError,
    LakelsmError,
    LookupServiceError,
    LookupServiceSetupError,
    error_context,
)
from lakelsm.format.snapshot import Snapshot
from lakelsm.json_document import parse_object
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.service.service_access import ClientAccess, ServerAddress
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import to_arrow

#: Clients and servers of different versions cannot communicate. Increase it with any change of the messages.
_VERSION = 1
#: Maximum keys of one request; a client sends more keys in several requests.
MAX_KEYS = 1 << 16
#: Maximum bytes of a request: enough for 10,000 column names.
_MAX_BYTES = 4 << 20
_MAX_SCHEMA_BYTES = 64 << 20
_SOURCE = "the request"
_REMEDY = "Look up again; if that does not help, start the query service again."
_INCOMPLETE = f"{_SOURCE} lacks a part, or has one of another kind"


@dataclass(frozen=True)
class TableIdentity:
    """The identity of a table: its directory, and a digest of its first schema, which differs for a later table there."""

    path: str
    digest: str

    @staticmethod
    def of(store: TableStore) -> TableIdentity:
        """Return the identity of a table."""
        path = store.paths.schema_file(0)
        try:
            data = store.file_io.read(path, _MAX_SCHEMA_BYTES)
        except FileNotFoundError:
            raise CorruptTableError(f"{path} is missing. Restore the file.") from None
        return TableIdentity(store.paths.branch_root, hashlib.sha256(data).hexdigest())


@dataclass(frozen=True, kw_only=True)
class LookupRequest:
    """A request for columns of a table to server ``server`` of ``servers``.

    ``schema``: the id of the client's schema, which defines the names of the columns.
    """

    table: TableIdentity
    server: int
    servers: int
    schema: int
    columns: tuple[str, ...]

    def encoded(self) -> bytes:
        """Return the request as bytes."""
        return json.dumps({"version": _VERSION, **asdict(self)}).encode()

    @staticmethod
    def decoded(data: bytes) -> LookupRequest:
        """Decode a request. Raises InvalidInputError for invalid bytes, and for another version."""
        if len(data) > _MAX_BYTES:
            raise InvalidInputError(f"{_SOURCE} has {len(data)} bytes; the maximum is {_MAX_BYTES}")
        try:
            values = parse_object(data, _SOURCE)
        except CorruptTableError as error:
            raise InvalidInputError(f"{_SOURCE} is damaged: {error}") from error
        if values.pop("version", None) != _VERSION:
            raise InvalidInputError(
                f"{_SOURCE} is not of version {_VERSION}. Use the same version of lakelsm for clients and servers"
            )
        table, columns = values.get("table"), values.get("columns")
        numbers: list[Any] = [values.get(name) for name in ("server", "servers", "schema")]
        if not isinstance(table, dict) or not isinstance(columns, list) or len(set(map(repr, columns))) < len(columns):
            raise InvalidInputError(_INCOMPLETE)
        texts = [table.get("path"), table.get("digest"), *columns]
        if not all(type(text) is str for text in texts) or not all(type(number) is int for number in numbers):
            raise InvalidInputError(_INCOMPLETE)
        server, servers, schema = numbers
        identity = TableIdentity(table["path"], table["digest"])
        return LookupRequest(table=identity, server=server, servers=servers, schema=schema, columns=tuple(columns))


def key_schema(schema: TableSchema) -> pa.Schema:
    """Return the columns of the keys of a request: those of the primary key, in order."""
    return row_schema(schema, schema.primary_keys)


def row_schema(schema: TableSchema, columns: Sequence[str]) -> pa.Schema:
    """Return columns of a table in stored types."""
    return pa.schema([pa.field(name, to_arrow(schema.field(name).type)) for name in columns])


def encoded_snapshot(snapshot: Snapshot | None) -> bytes:
    """Encode the snapshot of an answer; no bytes for an empty table."""
    return b"" if snapshot is None else snapshot.to_json().encode()


def decoded_snapshot(data: bytes) -> Snapshot | None:
    """Decode the snapshot of an answer."""
    return Snapshot.from_json(data, "the snapshot of an answer") if data else None


def encoded_error(error: LakelsmError) -> bytes:
    """Encode an error as a server sends it."""
    return json.dumps({"error": type(error).__name__, "message": str(error)}).encode()


def decoded_error(data: bytes | None) -> LakelsmError | None:
    """Decode the error that a server sent; None if it sent none, as servers of other kinds do."""
    try:
        values = parse_object(data or b"", "the error")
    except LakelsmError:
        return None
    kind, message = getattr(errors, str(values.get("error")), None), values.get("message")
    if not isinstance(message, str) or not isinstance(kind, type) or not issubclass(kind, LakelsmError):
        return None
    return LookupServiceError(message) if kind is LakelsmError else kind(message)


class ServerConnection:
    """A connection to one server. Several threads may use it at the same time.

    A missing answer raises a LookupServiceError with table, bucket and address. An error that the server reports about
    the table is raised with its own class.
    """

    def __init__(
        self, table: str, address: ServerAddress, request: LookupRequest, rows: pa.Schema, *, access: ClientAccess
    ) -> None:
        """``rows`` is the schema of the answers. The connection is opened by the first call."""
        self._table = table
        self._address = address
        self._request = request.encoded()
        self._rows = rows
        self._access = access
        self._lock = threading.Lock()
        self._client: flight.FlightClient | None = None
        #: Whether the server has answered, and the snapshot of its last answer (None: an empty table).
        self.answered = False
        self.snapshot: Snapshot | None = None

    def find(self, keys: pa.Table, bucket: int | None) -> FoundRows:
        """Find the rows of at most `MAX_KEYS` keys; ``bucket`` is the bucket of one of them, for errors."""
        with self._connected_errors(bucket) as client:
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
        """Run an action; return the snapshot that the server answers with."""
        with self._connected_errors(None) as client:
            results = list(client.do_action(flight.Action(action, self._request), self._access.call_options()))
            if len(results) != 1:
                raise LookupServiceError("the answer is empty")
            self._note(results[0].body)
        return self.snapshot

    def _note(self, named: pa.Buffer | None) -> None:
        self.snapshot = decoded_snapshot(b"" if named is None else named.to_pybytes())
        self.answered = True

    def _check(self, answer: pa.Table, keys: int) -> None:
        """Raise LookupServiceError for an answer that does not fit the keys."""
        types = [pa.int64(), *self._rows.types]
        if answer.schema.names != ["", *self._rows.names] or answer.schema.types != types:
            raise LookupServiceError("the answer has other columns")
        answer.validate(full=True)
        probes = answer.column(0)
        indexes = probes.to_numpy()
        within = not len(indexes) or (indexes[0] >= 0 and indexes[-1] < keys and bool((np.diff(indexes) > 0).all()))
        if probes.null_count or not within:
            raise LookupServiceError("the answer has rows of keys that were not requested")

    def _connected(self) -> flight.FlightClient:
        with self._lock:
            if self._client is None:
                options = {} if self._access.roots is None else {"tls_root_certs": self._access.roots}
                self._client = flight.FlightClient(f"{self._access.scheme}://{self._address}", **options)
            return self._client

    @contextmanager
    def _connected_errors(self, bucket: int | None) -> Iterator[flight.FlightClient]:
        where = "" if bucket is None else f", bucket {bucket}"
        server = f"Table {self._table}{where}: the server of its query service at {self._address}"
        try:
            yield self._connected()
        except LookupServiceError as error:
            raise LookupServiceError(f"{server} failed: {error}. {_REMEDY}") from error
        except flight.FlightUnauthenticatedError as error:
            raise LookupServiceSetupError(
                f"{server} refuses this client. Set 'lakelsm.lookup-service.token-file' to a file with its token."
            ) from error
        except flight.FlightTimedOutError as error:
            raise LookupServiceError(
                f"{server} has not answered in {self._access.timeout:g} s ('lakelsm.lookup-service.timeout'). {_REMEDY}"
            ) from error
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            sent = decoded_error(getattr(error, "extra_info", None))
            if sent is None or isinstance(sent, LookupServiceError):
                reason = str(sent or error).splitlines()[0][:300].rstrip(". ")
                raise LookupServiceError(f"{server} failed: {reason}. {_REMEDY}") from error
            with error_context(server):
                raise sent from error
