"""The JSON files of a table: schemas, snapshots and tags, parsed within bounds that no genuine one reaches."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from lakelsm.errors import CorruptTableError

#: Objects and lists in each other. A ROW in a ROW is three deeper.
_MOST_DEPTH = 256
_LONG = 1 << 63


def parse_object(data: str | bytes, source: str) -> dict[str, Any]:
    """Parse the object that a file holds; ``source`` names the file in errors.

    Raises CorruptTableError where the file is no JSON object, is nested too deeply, or has a number beyond 64 bits or a
    text that is no Unicode.
    """
    try:
        document = json.loads(data, parse_constant=_refuse)
        if not isinstance(document, dict):
            raise CorruptTableError(f"{source} is no JSON object: restore the file.")
        _check(document)
    except (ValueError, RecursionError) as error:
        raise CorruptTableError(f"{source} is no JSON of a table: {error}. Restore the file.") from error
    return document


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _check(document: dict[str, Any]) -> None:
    """Raise ValueError on what later steps could not take. Walks without recursion."""
    level: list[Any] = [document]
    for _ in range(_MOST_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value)
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            elif isinstance(value, str):
                value.encode("utf-8")
            elif isinstance(value, (int, float)) and not -_LONG <= value < _LONG:
                raise ValueError("it has a number beyond 64 bits")
        level = below
        if not level:
            return
    raise ValueError(f"it is nested more than {_MOST_DEPTH} deep")
