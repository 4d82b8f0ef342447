"""The task of a lookup join: batches of facts in, the same facts with the rows of their keys out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.lookup.cache import FoundRows, Longs, matched
from lakelsm.lookup.join.executor_lookups import LOOKUPS, SharedLookup
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataField, contiguous

#: Rows of a batch that is handed on: facts whose keys have many rows become many batches.
_HANDED_ROWS = 1 << 16


@dataclass(frozen=True)
class JoinTask:
    """Joins batches of facts with the rows of a ``lookup``. It pickles.

    ``keys`` are the places of the key's values in a batch. The columns of ``found``, those of the lookup, are added to
    it; ``fields`` are what they are in the table. A fact comes once for each row of its key; one without a row is left
    out (``inner``), or has NULL there. ``groups``: the last column of the facts is their bucket, of which only the
    table's that a group needs are opened.
    """

    lookup: SharedLookup
    fields: tuple[DataField, ...]
    keys: tuple[int, ...]
    found: pa.Schema
    _: KW_ONLY
    inner: bool
    groups: int | None = None

    def __call__(self, facts: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the joined rows, in the order of the facts of a group, which are looked up in one snapshot."""
        if self.groups is None:
            yield from self._joined(facts, self.lookup)
            return
        buckets = facts.column(facts.num_columns - 1)
        # NULL, the bucket of keys with a NULL, goes with those of another group: it opens nothing by itself.
        anywhere = pc.min(buckets).as_py() or 0
        groups = buckets.fill_null(anywhere).to_numpy() % self.groups
        for group in np.unique(groups).tolist():
            yield from self._joined(facts.take(pa.array(np.flatnonzero(groups == group))), self._of_group(group))

    def _of_group(self, group: int) -> SharedLookup:
        assert self.groups is not None
        buckets = range(group, self.lookup.store.options.bucket, self.groups)
        return replace(self.lookup, buckets=frozenset(buckets))

    def _joined(self, facts: pa.RecordBatch, lookup: SharedLookup) -> Iterator[pa.RecordBatch]:
        with LOOKUPS.current(lookup) as current:
            defined = current.defined
            self._check_types(defined.store.schema)
            keys = LookupKeys.of(defined.store.schema, defined.key)
            given = keys.many(pa.table([facts.column(at) for at in self.keys], keys.names))
            answer = current.find(given.stored)
        probes = answer.probes if given.places is None else given.places[answer.probes]
        yield from self._handed(facts, *matched(len(facts), probes, self.inner), answer)

    def _check_types(self, schema: TableSchema) -> None:
        """Raise InvalidInputError where a column's type is another than it was when the query was made."""
        for field in self.fields:
            now = schema.field(field.name).type
            if now.with_nullable(True) != field.type.with_nullable(True):
                raise InvalidInputError(
                    f"Column '{field.name}' of table {self.lookup.store.name} has become {now.sql()}, and was "
                    f"{field.type.sql()} when the join with it was made: start the query again."
                )

    def _handed(
        self, facts: pa.RecordBatch, places: Longs | None, rows: pa.Array | None, answer: FoundRows
    ) -> Iterator[pa.RecordBatch]:
        """The facts at some places, each beside one of the rows found; see `matched`."""
        columns = [cast_column(answer.rows.column(own.name), to.type) for own, to in zip(self.fields, self.found)]
        found = pa.table(columns, schema=self.found).combine_chunks()
        names = [*facts.schema.names, *self.found.names]
        for start in range(0, len(facts) if places is None else len(places), _HANDED_ROWS):
            part = slice(start, start + _HANDED_ROWS)
            own = facts.slice(start, _HANDED_ROWS) if places is None else facts.take(pa.array(places[part]))
            added = found.slice(start, _HANDED_ROWS) if rows is None else found.take(rows[part])
            yield pa.RecordBatch.from_arrays([*own.columns, *map(contiguous, added.columns)], names=names)
