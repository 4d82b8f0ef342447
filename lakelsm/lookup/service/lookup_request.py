"""What a client tells a server beside its keys, and how an error of a server's becomes the client's.

Requests and errors are JSON, keys and rows are Arrow. Each answer names the snapshot that it is of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from lakelsm import errors
from lakelsm.errors import CorruptTableError, InvalidInputError, LakelsmError, LookupServiceError
from lakelsm.format.snapshot import Snapshot
from lakelsm.json_document import parse_object
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import to_arrow

#: Clients and servers of other versions do not understand each other. Raise it with any change of what is spoken.
_VERSION = 1
#: Keys of one request; a client asks for more in turns.
MOST_KEYS = 1 << 16
#: What a request is at most: 10,000 names of columns and more.
_MAX_BYTES = 4 << 20
_MAX_SCHEMA_BYTES = 64 << 20
_SOURCE = "the request"
_INCOMPLETE = f"{_SOURCE} lacks a part, or has one of another kind"


@dataclass(frozen=True)
class TableIdentity:
    """Which table is meant: its directory, and a digest of its first schema, which a table made anew there has not."""

    path: str
    digest: str

    @staticmethod
    def of(store: TableStore) -> TableIdentity:
        """The identity of a table."""
        path = store.paths.schema_file(0)
        try:
            data = store.file_io.read(path, _MAX_SCHEMA_BYTES)
        except FileNotFoundError:
            raise CorruptTableError(f"{path} is missing: restore the file.") from None
        return TableIdentity(store.paths.branch_root, hashlib.sha256(data).hexdigest())


@dataclass(frozen=True, kw_only=True)
class LookupRequest:
    """Rows of which table, from which of how many servers, with which columns of which schema.

    ``schema``: names of columns mean what they mean in the client's schema, whatever the table's newest one is.
    """

    table: TableIdentity
    server: int
    servers: int
    schema: int
    columns: tuple[str, ...]

    def encoded(self) -> bytes:
        """The request as bytes."""
        return json.dumps({"version": _VERSION, **asdict(self)}).encode()

    @staticmethod
    def decoded(data: bytes) -> LookupRequest:
        """The request of bytes. Raises InvalidInputError where they are none, or one of another version."""
        if len(data) > _MAX_BYTES:
            raise InvalidInputError(f"{_SOURCE} has {len(data)} bytes, and {_MAX_BYTES} are the most")
        try:
            values = parse_object(data, _SOURCE)
        except CorruptTableError as error:
            raise InvalidInputError(f"{_SOURCE} is damaged: {error}") from error
        if values.pop("version", None) != _VERSION:
            raise InvalidInputError(
                f"{_SOURCE} is not of version {_VERSION}: run the same version of lakelsm at both ends"
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
    """The columns of the keys of a request: those of the primary key, in its order."""
    return row_schema(schema, schema.primary_keys)


def row_schema(schema: TableSchema, columns: Sequence[str]) -> pa.Schema:
    """Columns of a table in stored types."""
    return pa.schema([pa.field(name, to_arrow(schema.field(name).type)) for name in columns])


def encoded_snapshot(snapshot: Snapshot | None) -> bytes:
    """The snapshot that an answer is of; no bytes for that of an empty table."""
    return b"" if snapshot is None else snapshot.to_json().encode()


def decoded_snapshot(data: bytes) -> Snapshot | None:
    """The snapshot of an answer."""
    return Snapshot.from_json(data, "the snapshot of an answer") if data else None


def encoded_error(error: LakelsmError) -> bytes:
    """An error as a server tells it."""
    return json.dumps({"error": type(error).__name__, "message": str(error)}).encode()


def decoded_error(data: bytes | None) -> LakelsmError | None:
    """The error that a server told; None where it told none, as a server of another kind does."""
    try:
        values = parse_object(data or b"", "the error")
    except LakelsmError:
        return None
    kind, message = getattr(errors, str(values.get("error")), None), values.get("message")
    if not isinstance(message, str) or not isinstance(kind, type) or not issubclass(kind, LakelsmError):
        return None
    return LookupServiceError(message) if kind is LakelsmError else kind(message)
