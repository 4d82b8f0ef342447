"""The parser of a table's JSON files (schemas, snapshots, tags). Its limits are far above those of valid files."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from lakelsm.errors import CorruptTableError

#: The maximum nesting of objects and lists. A ROW within a ROW adds three levels.
_MAX_DEPTH = 256
_LONG = 1 << 63


def parse_object(data: str | bytes, source: str) -> dict[str, Any]:
    """Parse a file with a JSON object; ``source`` names the file in errors.

    Raises CorruptTableError if the file is not a JSON object, is nested too deeply, or has a value that other tools
    cannot represent: a number of more than 64 bits, or a text with half of a surrogate pair.
    """
    document = _parse(data, source)
    if not isinstance(document, dict):
        raise CorruptTableError(f"{source} is damaged: it is not a JSON object. Restore the file.")
    _check(document, source)
    return document


def parse_texts(data: str | bytes, source: str) -> list[str]:
    """Parse a file with a JSON list of texts. Raises CorruptTableError for other content."""
    document = _parse(data, source)
    if not isinstance(document, list) or not all(isinstance(item, str) and _fits(item) for item in document):
        raise CorruptTableError(f"{source} is damaged: it is not a JSON list of texts. Restore the file.")
    return document


def _parse(data: str | bytes, source: str) -> Any:
    try:
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise CorruptTableError(f"{source} is damaged: it is not JSON ({error}). Restore the file.") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _check(document: dict[str, Any], source: str) -> None:
    """Check all values of a document, level by level without recursion. An error names the key of a value or its list."""
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
                    f"{source} is damaged: {key.encode('utf-8', 'replace').decode()} is {value!a}, which other tools "
                    "cannot represent. Restore the file."
                )
        level = below
        if not level:
            return
    raise CorruptTableError(f"{source} is damaged: it has more than {_MAX_DEPTH} levels. Restore the file.")


def _fits(value: object) -> bool:
    if isinstance(value, (int, float)):
        return -_LONG <= value < _LONG
    return not isinstance(value, str) or value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
