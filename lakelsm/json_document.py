"""The JSON files of a table: schemas, snapshots and tags, parsed within bounds that no genuine one reaches."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from lakelsm.errors import CorruptTableError

#: Objects and lists in each other. A ROW in a ROW is three deeper.
_MAX_DEPTH = 256
_LONG = 1 << 63


def parse_object(data: str | bytes, source: str) -> dict[str, Any]:
    """Parse the object that a file holds; ``source`` names the file in errors.

    Raises CorruptTableError where the file is no JSON object, is nested too deeply, or has a value that other tools
    cannot hold: a number beyond 64 bits, or a text with half of a surrogate pair.
    """
    document = _parse(data, source)
    if not isinstance(document, dict):
        raise CorruptTableError(f"{source} is no JSON object: restore the file.")
    _check(document, source)
    return document


def parse_texts(data: str | bytes, source: str) -> list[str]:
    """Parse the list of texts that a file holds. Raises CorruptTableError for anything else."""
    document = _parse(data, source)
    if not isinstance(document, list) or not all(isinstance(item, str) and _fits(item) for item in document):
        raise CorruptTableError(f"{source} is no JSON list of texts: restore the file.")
    return document


def _parse(data: str | bytes, source: str) -> Any:
    try:
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise CorruptTableError(f"{source} is no JSON: {error}. Restore the file.") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _check(document: dict[str, Any], source: str) -> None:
    """Walk a document without recursion, level by level; values in lists go by the key of the list."""
    level: list[tuple[str, Any]] = [("", document)]
    for _ in range(_MAX_DEPTH):
        below: list[tuple[str, Any]] = []
        for key, value in level:
            if isinstance(value, dict):
                below.extend((inner, inner) for inner in value)
                below.extend(value.items())
            elif isinstance(value, list):
                below.extend((key, item) for item in value)
            elif not _fits(value):
                raise CorruptTableError(
                    f"{source} has {value!a} under {key.encode('utf-8', 'replace').decode()}, which other tools "
                    "cannot hold: restore the file."
                )
        level = below
        if not level:
            return
    raise CorruptTableError(f"{source} is nested more than {_MAX_DEPTH} deep: restore the file.")


def _fits(value: object) -> bool:
    if isinstance(value, (int, float)):
        return -_LONG <= value < _LONG
    return not isinstance(value, str) or value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
