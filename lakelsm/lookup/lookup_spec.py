"""What a user wants to look up."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from lakelsm.predicate.predicate import Predicate, columns
from lakelsm.snapshots.table_store import TableStore


@dataclass(frozen=True)
class LookupSpec:
    """The columns of a table's rows that are found by a key. It pickles.

    ``store`` has the table's options with those of the call on top. ``key`` are the key's columns in the order in which
    values of a key are given, ``columns`` those of the rows that are found, as the table names them. ``predicate``
    (Paimon's cache row filter): only rows for which it is TRUE are found. ``buckets`` (None: all): rows of others need
    not be found.
    """

    store: TableStore
    key: tuple[str, ...]
    columns: tuple[str, ...]
    _: KW_ONLY
    predicate: Predicate | None = None
    buckets: frozenset[int] | None = None

    @property
    def read_columns(self) -> frozenset[str]:
        """The columns that rows must have to be found: those looked up, and those of the condition."""
        return frozenset(self.columns) | (frozenset() if self.predicate is None else columns(self.predicate))

    @property
    def by_primary_key(self) -> bool:
        """Whether a key has at most one row: its columns are those of the primary key, in any order.

        In a table whose primary key lacks a partition column each partition may have a row of a key.
        """
        schema = self.store.schema
        return set(self.key) == set(schema.primary_keys) and not schema.cross_partition

    @property
    def not_by_primary_key(self) -> str:
        """What an error says of a cache that needs a key with at most one row."""
        schema = self.store.schema
        keys = ", ".join(schema.primary_keys)
        if schema.cross_partition:
            why = f"needs one row for each key, and the primary key ({keys}) lacks a partition column"
        else:
            why = f"answers lookups by the whole primary key ({keys}), not by ({', '.join(self.key)})"
        return f"{why}: set 'lookup.cache' to 'full'."
