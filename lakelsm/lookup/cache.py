"""What every kind of cache answers (`Cache`), for which lookup (`LookupSpec`), and in which form (`FoundRows`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.shown_rows import shown_rows, shown_schema
from lakelsm.predicate.predicate import Predicate, columns
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, same_layout, to_arrow


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

    def on_newest_schema(self) -> LookupSpec:
        """The lookup on the newest schema of its table; options that it was opened with stay on top.

        Raises InvalidInputError where a column that it needs was dropped, renamed or got another type: the rows that it
        finds have one schema.
        """
        store = self.store
        newest = store.schemas.latest()
        if newest.id == store.schema.id:
            return self
        for problem in self._changed_columns(newest):
            raise InvalidInputError(
                f"Table {store.name}: schema {newest.id} {problem} since the lookup was opened: open another one."
            )
        own = store.schemas.get(store.schema.id).options
        overrides = {key: text for key, text in store.schema.options.items() if own.get(key) != text}
        schema = newest.with_options({**newest.options, **overrides}) if overrides else newest
        return replace(self, store=store.with_schema(schema))

    def _changed_columns(self, newest: TableSchema) -> Iterator[str]:
        schema, needed = self.store.schema, {*self.key, *self.read_columns}
        now = {field.id: field for field in newest.fields}
        for was in schema.fields:
            if was.name not in needed:
                continue
            field = now.get(was.id)
            if field is None:
                yield f"has no column {was.name!r} any more, which was there"
            elif field.name != was.name:
                yield f"calls column {was.name!r} {field.name!r}, which had its name"
            elif not same_layout(was.type, field.type):
                yield f"has column {was.name!r} as {field.type.sql()}, which was {was.type.sql()}"


@dataclass(frozen=True)
class FoundRows:
    """Rows that were found: ``probes[i]``, ascending, is the place of the key among those asked for that row i has."""

    probes: npt.NDArray[np.int64]
    rows: pa.Table

    @staticmethod
    def together(parts: Sequence[FoundRows]) -> FoundRows:
        """What one or more lookups found of the same keys. Rows of a key come in the order of the parts."""
        if len(parts) == 1:
            return parts[0]
        probes = np.concatenate([part.probes for part in parts])
        rows = pa.concat_tables([part.rows for part in parts]).combine_chunks()
        order = np.argsort(probes, kind="stable")
        return FoundRows(probes[order], rows.take(pa.array(order)))


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did: ``changed`` has the keys whose rows may be others now (None: any key's may).

    ``rebuilt`` says why the cache was loaded again (None: it was not).
    """

    snapshot: Snapshot | None
    _: KW_ONLY
    changed: pa.Table | None
    rebuilt: str | None = None


class Cache(Protocol):
    """Answers lookups of one `LookupSpec` as of one snapshot, until it is refreshed.

    Several threads may look up while one refreshes: each lookup sees one state.
    """

    #: 'full', 'partial' or 'remote'.
    kind: str

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that answers (None: an empty table)."""

    def find(self, keys: pa.Table) -> FoundRows:
        """The rows that `Table.read` shows, of each key.

        ``keys`` has the columns of ``spec.key`` in the table's stored types (`lakelsm.types.to_arrow`), no NULLs, in any
        order; a key may come twice. Rows have ``spec.columns`` in stored types.
        """

    def find_one(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows of one key as Python values as users get them; the key's are as `pa.Array.to_pylist` has them."""

    def refresh(self) -> Refreshed:
        """Take the table's newest snapshot."""

    def close(self) -> None:
        """Give memory and disk space back, the cache's directory included. It answers no more lookups."""


def key_row(key: Sequence[Any], fields: Sequence[DataField]) -> pa.Table:
    """A key of these columns, whose values are as `pa.Array.to_pylist` has stored ones, as a row of stored types."""
    values = [pa.array([value], to_arrow(field.type)) for value, field in zip(key, fields, strict=True)]
    return pa.Table.from_arrays(values, [field.name for field in fields])


def python_rows(rows: pa.Table, fields: Sequence[DataField]) -> list[tuple[Any, ...]]:
    """These columns of rows, as Python values as users get them.

    Raises UnsupportedFeatureError for a time that Python does not have.
    """
    if not fields:
        return [()] * len(rows)
    try:
        return list(zip(*(column.to_pylist() for column in shown_rows(rows, shown_schema(fields)).columns)))
    except (ValueError, OverflowError) as error:
        raise no_python_time(error) from error


def no_python_time(error: Exception) -> UnsupportedFeatureError:
    """The error for a row that Python cannot have."""
    return UnsupportedFeatureError(
        f"a row has a time that Python does not have ({error}): look its key up as one of many, in Arrow, or leave the "
        "column out."
    )
