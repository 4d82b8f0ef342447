"""Lookup joins: the user's arguments, and the task that adds the rows of their keys to facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.arguments import checked_flag, checked_name, checked_names, wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.lookup.cache import FoundRows, Longs, matched
from lakelsm.lookup.join.executor_lookups import LOOKUPS, SharedLookup
from lakelsm.lookup.lookup import opened_cache
from lakelsm.lookup.lookup_definition import checked_inner, checked_lookup
from lakelsm.lookup.lookup_keys import LookupKeys
from lakelsm.schema.identifiers import folded
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, contiguous
from lakelsm.write.fixed_buckets import FixedBuckets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows of a result batch: facts whose keys have many rows become many batches.
_HANDED_ROWS = 1 << 16
_ON = "a fact column, a list of them, or a mapping to columns of the table, such as {'customer_id': 'id'}"
_COLUMNS = "a list of columns of the table, or a mapping to their names in the result, such as {'name': 'customer_name'}"


@dataclass(frozen=True)
class JoinColumns:
    """The table's columns of a join: ``keys`` by the fact column that is compared with each, and ``added`` by the name in
    the result.
    """

    keys: Mapping[str, DataField]
    added: Mapping[str, DataField]

    @staticmethod
    def of(
        schema: TableSchema,
        on: Mapping[str, str] | Sequence[str] | str,
        columns: Mapping[str, str] | Sequence[str] | None,
    ) -> JoinColumns:
        """Resolve the columns that arguments name, in any case. By default all columns except the key's are added.

        Raises InvalidInputError for invalid arguments and unknown columns.
        """
        names = _mapping("on", [on] if isinstance(on, str) else on, _ON)
        keys = {fact: schema.field(schema.column_name(name)) for fact, name in names.items()}
        of_key = {field.name for field in keys.values()}
        if len(of_key) < len(keys):
            raise wrong_argument("on", on, f"{_ON}, each of the table's columns once")
        if columns is None:
            added = {field.name: field for field in schema.fields if field.name not in of_key}
            if not added:
                raise InvalidInputError(
                    "columns: the table has no columns except those of the key. Name one, such as "
                    f"columns={{'{next(iter(keys.values())).name}': 'found'}}."
                )
            return JoinColumns(keys, added)
        wanted = _mapping("columns", columns, _COLUMNS)
        chosen = [schema.field(schema.column_name(name)) for name in wanted]
        results = list(wanted.values()) if isinstance(columns, Mapping) else [field.name for field in chosen]
        if len(set(map(folded, results))) < len(results) or len({field.name for field in chosen}) < len(chosen):
            raise wrong_argument("columns", columns, f"{_COLUMNS}, each name once (Spark ignores case)")
        return JoinColumns(keys, dict(zip(results, chosen)))

    def buckets_of(self, store: TableStore) -> FixedBuckets:
        """Return the buckets of a table, for facts that are shuffled by them.

        Raises InvalidInputError if the key does not determine the bucket of its rows.
        """
        if store.options.bucket <= 0:
            raise InvalidInputError(
                f"by_bucket: table {store.name} has 'bucket' = '{store.options.bucket}', not a fixed number. "
                "Leave by_bucket out."
            )
        known = {field.name for field in self.keys.values()}
        missing = [name for name in store.schema.bucket_keys if name not in known]
        if missing:
            raise InvalidInputError(
                f"by_bucket: on lacks {', '.join(missing)} of the bucket key of table {store.name} "
                f"({', '.join(store.schema.bucket_keys)}). Add it to on, or leave by_bucket out."
            )
        return FixedBuckets.of(store.schema, store.options)


def _mapping(argument: str, value: object, wanted: str) -> dict[str, str]:
    """Return names by names; the names of a list are mapped to themselves."""
    if not isinstance(value, Mapping):
        names = checked_names(argument, value)
        if not names or len(set(names)) < len(names):
            raise wrong_argument(argument, value, f"{wanted}, each once")
        return dict(zip(names, names))
    if not value:
        raise wrong_argument(argument, value, wanted)
    return {checked_name(argument, key, wanted): checked_name(argument, name, wanted) for key, name in value.items()}


@dataclass(frozen=True)
class JoinTask:
    """Joins batches of facts with the rows of a ``lookup``. It can be pickled.

    ``keys`` are the positions of the key's columns in a batch. The columns ``found`` of the lookup are added; ``fields``
    describe them in the table. A fact is repeated for each row of its key; without a row it is left out (``inner``) or
    gets NULLs. ``groups``: the last column of the facts is their bucket, and each group of buckets has a cache of only
    the table's buckets that it needs.
    """

    lookup: SharedLookup
    fields: tuple[DataField, ...]
    keys: tuple[int, ...]
    found: pa.Schema
    _: KW_ONLY
    inner: bool
    groups: int | None = None

    def __call__(self, facts: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the joined rows, in the order of the facts within a group. A group reads one snapshot."""
        if self.groups is None:
            yield from self._joined(facts, self.lookup)
            return
        buckets = facts.column(facts.num_columns - 1)
        # Keys with a NULL have the bucket NULL. They join any group, because they open no file.
        anywhere = pc.min(buckets).as_py() or 0
        groups = buckets.fill_null(anywhere).to_numpy() % self.groups
        for group in np.unique(groups).tolist():
            opened = frozenset(range(group, self.lookup.store.options.bucket, self.groups))
            own = facts.take(pa.array(np.flatnonzero(groups == group)))
            yield from self._joined(own, replace(self.lookup, buckets=opened))

    def _joined(self, facts: pa.RecordBatch, lookup: SharedLookup) -> Iterator[pa.RecordBatch]:
        with LOOKUPS.current(lookup) as current:
            self._check_types(current.defined.store.schema)
            given = current.keys.many(pa.table([facts.column(at) for at in self.keys], current.keys.names))
            answer = current.find(given.stored)
        probes = answer.probes if given.indexes is None else given.indexes[answer.probes]
        yield from self._joined_batches(facts, *matched(len(facts), probes, self.inner), answer)

    def _check_types(self, schema: TableSchema) -> None:
        """Raise InvalidInputError if the type of a column has changed since the query was built."""
        for field in self.fields:
            now = schema.field(field.name).type
            if now.with_nullable(True) != field.type.with_nullable(True):
                raise InvalidInputError(
                    f"Table {self.lookup.store.name}: column '{field.name}' has changed from {field.type.sql()} to "
                    f"{now.sql()} since the join was built. Start the query again."
                )

    def _joined_batches(
        self, facts: pa.RecordBatch, fact_indexes: Longs | None, rows: pa.Array | None, answer: FoundRows
    ) -> Iterator[pa.RecordBatch]:
        """Yield the facts at some indexes, each with one of the found rows; see `matched`."""
        columns = [cast_column(answer.rows.column(own.name), to.type) for own, to in zip(self.fields, self.found)]
        found = pa.table(columns, schema=self.found).combine_chunks()
        names = [*facts.schema.names, *self.found.names]
        for start in range(0, len(facts) if fact_indexes is None else len(fact_indexes), _HANDED_ROWS):
            part = slice(start, start + _HANDED_ROWS)
            own = facts.slice(start, _HANDED_ROWS) if fact_indexes is None else facts.take(pa.array(fact_indexes[part]))
            added = found.slice(start, _HANDED_ROWS) if rows is None else found.take(rows[part])
            yield pa.RecordBatch.from_arrays([*own.columns, *map(contiguous, added.columns)], names=names)


def lookup_join(
    store: TableStore,
    *,
    on: Mapping[str, str] | Sequence[str] | str,
    columns: Mapping[str, str] | Sequence[str] | None,
    how: str,
    where: str | None,
    refresh: object,
    cache: str | None,
    options: object,
    by_bucket: bool,
) -> Callable[[DataFrame], DataFrame]:
    """See `lakelsm.table.Table.lookup_join`."""
    from lakelsm.frames.lookup_join_frame import FrameJoin

    is_inner = checked_inner(how)
    named = JoinColumns.of(store.schema, on, columns)
    key, found = (tuple(field.name for field in part.values()) for part in (named.keys, named.added))
    LookupKeys.of(store.schema, key)
    definition, policy = checked_lookup(
        store, found, key, where=where, refresh=refresh, cache=cache, options=options
    )
    if policy.interval is None:
        # Without an interval, the cache of another query would answer, and processes would have different snapshots.
        raise wrong_argument("refresh", refresh, "seconds or a duration such as '10 s'", "Joins share caches.")
    lookup = SharedLookup(store, definition, policy, opens=opened_cache)
    buckets = named.buckets_of(store) if checked_flag("by_bucket", by_bucket) else None
    task = partial(JoinTask, lookup, tuple(named.added.values()), inner=is_inner)
    return FrameJoin(store.name, store.schema, keys=named.keys, columns=named.added, task=task, buckets=buckets)
