"""SQL text as messages show it."""

from __future__ import annotations

#: Characters of a text that messages show.
_SHOWN = 300


def shown_condition(sql: str) -> str:
    """A condition or an expression in quotes, cut where it is very long."""
    return repr(sql) if len(sql) <= _SHOWN else f"{sql[:_SHOWN]!r}... ({len(sql)} characters)"
