"""SQL text for messages."""

from __future__ import annotations

import re

from lakelsm.secret_values import shown_uri

#: A part of a condition that may be a URI.
_WORD = re.compile(r"[^\s'\"]+")
#: The maximum number of characters of a text in a message.
_SHOWN = 300


def shown_condition(sql: str) -> str:
    """Return a condition or an expression in quotes: a long one is cut, and URIs have no credentials."""
    if "://" in sql:
        sql = _WORD.sub(lambda found: shown_uri(found[0]), sql)
    return repr(sql) if len(sql) <= _SHOWN else f"{sql[:_SHOWN]!r}... ({len(sql)} characters)"
