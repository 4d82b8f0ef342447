"""Names under which files are written before they are published. Those of a table's files are made in format/paths.py."""

from __future__ import annotations


def temporary_name(name: str, uuid: str) -> str:
    """Return the name under which ``name`` is written before it is published, in the same directory.

    It begins with a dot: Java Paimon 1.3 fails on any other stray name in ``snapshot/``.
    """
    return f".{name}.{uuid}.tmp"
