"""Limits for a writer's Avro schema, so that decoding takes no more steps than there are bytes.

A schema is a part of the file, and a decoder follows it. A recursive type exhausts the decoder's stack. An array of
values without bytes has any number of items. Types that name each other twice double the work with each level.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PRIMITIVES = frozenset(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
#: Maximum fields, branches and items of a schema with all names resolved. A manifest's schema has 100.
_MAX_NODES = 5_000
_MAX_DEPTH = 24


def check_decodable(schema: Any) -> None:
    """Raise ValueError for a schema that no manifest has and that a decoder could not process."""
    _Walk().visit(schema, 0)


class _Walk:
    """Counts the nodes of a schema while `visit` walks over it."""

    def __init__(self) -> None:
        # For each type name (without its namespace): its nodes, and whether a value may have no bytes.
        self._known: dict[str, tuple[int, bool]] = {}
        self._open: set[str] = set()
        self._nodes = 0

    def visit(self, schema: Any, depth: int) -> bool:
        """Count a type. Return whether a value of it may have no bytes."""
        self._count(1)
        if depth > _MAX_DEPTH:
            raise ValueError("its schema is nested too deeply")
        if isinstance(schema, str):
            return self._named(schema)
        if isinstance(schema, list):
            for branch in schema:
                self.visit(branch, depth + 1)
            return False
        if not isinstance(schema, Mapping):
            raise ValueError(f"its schema has {schema!r} instead of a type")
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, depth)
        if kind in ("array", "map"):
            if self.visit(schema["items" if kind == "array" else "values"], depth + 1):
                raise ValueError(f"its schema has an {kind} of values without bytes")
            return False
        if kind in ("enum", "fixed"):
            empty = kind == "fixed" and int(schema["size"]) <= 0
            self._known[_simple(schema["name"])] = (1, empty)
            return empty
        return self.visit(kind, depth + 1)

    def _record(self, schema: Mapping[str, Any], depth: int) -> bool:
        name, before = _simple(schema["name"]), self._nodes
        self._open.add(name)
        members = [self.visit(field["type"], depth + 1) for field in schema["fields"]]
        empty = all(members)
        self._open.discard(name)
        self._known[name] = (self._nodes - before, empty)
        return empty

    def _named(self, name: str) -> bool:
        if name in _PRIMITIVES:
            return name == "null"
        simple = _simple(name)
        if simple in self._open:
            raise ValueError(f"its schema has a type {simple} that contains itself")
        if simple not in self._known:
            raise ValueError(f"its schema does not define the type {simple}")
        nodes, empty = self._known[simple]
        self._count(nodes)
        return empty

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > _MAX_NODES:
            raise ValueError(f"its schema has more than {_MAX_NODES} fields")


def _simple(name: str) -> str:
    return name.rpartition(".")[2]
