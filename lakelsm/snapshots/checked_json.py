"""Snapshot and schema files are published only if they read back as what they were made of."""

from __future__ import annotations

from lakelsm.errors import InvalidInputError, LakelsmError
from lakelsm.format.snapshot import Snapshot
from lakelsm.schema.table_schema import TableSchema


def checked_bytes(document: Snapshot | TableSchema, path: str, max_bytes: int) -> bytes:
    """Return the content of a file for ``document``: what its reader turns into the very same document.

    Raises InvalidInputError where some value of it cannot be written so; one such file would stop every reader.
    """
    try:
        data = document.to_json().encode("utf-8")
        same = type(document).from_json(data, path) == document
    except (TypeError, ValueError, LakelsmError) as error:
        raise InvalidInputError(
            f"{path} was not written: a value that it would hold cannot be read back ({error})"
        ) from error
    if not same:
        raise InvalidInputError(f"{path} was not written: a value that it would hold reads back as another one")
    if len(data) > max_bytes:
        raise InvalidInputError(f"{path} was not written: with {len(data)} bytes it is longer than readers take")
    return data
