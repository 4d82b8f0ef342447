"""SQL text as messages show it."""

from __future__ import annotations

import re

from lakelsm.secret_values import shown_uri

#: A part of a condition that may be an address.
_WORD = re.compile(r"[^\s'\"]+")
#: Characters of a text that messages show.
_SHOWN = 300


def shown_condition(sql: str) -> str:
    """A condition or an expression in quotes, cut where it is very long, without credentials of addresses."""
    if "://" in sql:
        sql = _WORD.sub(lambda found: shown_uri(found[0]), sql)
    return repr(sql) if len(sql) <= _SHOWN else f"{sql[:_SHOWN]!r}... ({len(sql)} characters)"
