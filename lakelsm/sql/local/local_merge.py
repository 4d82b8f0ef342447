"""A merge in this process: its query on DuckDB, and the checks of its expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.aggregate_functions import AGGREGATES
from lakelsm.expressions.tokens import Token, TokenKind, has_query, tokenize
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_merge import merged
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.local.key_set import rows_with
from lakelsm.plan.merge_plan import MergePlan
from lakelsm.plan.merge_pruning import Numbers, SourceValues, prunable_pairs, pruning_columns
from lakelsm.plan.merge_query import KNOWN, SOURCE, TARGET
from lakelsm.plan.merge_request import MergeRequest
from lakelsm.predicate.predicate import Predicate
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX
from lakelsm.snapshots.table_store import TableStore
from lakelsm.sql.local.local_query import local_query
from lakelsm.sql.merge_condition import with_equal_columns
from lakelsm.sql.pushdown import Need
from lakelsm.sql.query_source import QuerySource
from lakelsm.sql.syntax.query_text import QueryText
from lakelsm.types import DataField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AGGREGATES = frozenset([*AGGREGATES, "first", "last"])


def checked_request(request: MergeRequest) -> MergeRequest:
    """Return a request with the columns that its condition compares.

    Raises an error unless each condition and value is one expression, without queries.
    """
    for text in _texts(request):
        _check_expression(text)
    return with_equal_columns(request)


def _texts(request: MergeRequest) -> list[str]:
    found = [request.on]
    for each in request.clauses:
        found += [text for text in (each.condition, *(each.values or {}).values()) if text is not None]
    return found


def _check_expression(text: str) -> None:
    """Raise an error unless a text is within its parentheses, without queries: it becomes a part of a query."""
    depth, tokens = 0, tokenize(text)
    if has_query(tokens):
        raise UnsupportedFeatureError(f"merge: a query within {text[:100]!r} is not supported.")
    for before, token, after in zip([tokens[-1], *tokens], tokens, [*tokens[1:], tokens[-1]]):
        if token.kind is TokenKind.HINT:
            raise UnsupportedFeatureError(f"merge: a hint within {text[:100]!r} is not supported.")
        if _is_of_many_rows(before, token, after):
            word = token.text.upper()
            raise InvalidInputError(f"merge: {word} in {text[:100]!r} needs other rows. Compute it in the source.")
        if token.text.strip("`").upper().startswith(KEY_FIELD_PREFIX):
            raise InvalidInputError(f"merge: column {token.text[:100]!r} does not exist.")
        depth += token.is_word("(") - token.is_word(")")
        if depth < 0 or token.is_word(";"):
            raise InvalidInputError(f"merge: {text[:100]!r} is not one expression.")
    if depth:
        raise InvalidInputError(f"merge: {text[:100]!r} is not one expression.")


def _is_of_many_rows(before: Token, token: Token, after: Token) -> bool:
    """Return whether a token belongs to a window or an aggregate function, which would see the rows that are read."""
    if token.is_word("OVER"):
        return before.is_word(")") or before.is_word("NULLS")
    is_call = after.is_word("(") and not any(map(before.is_word, (".", "LIKE", "ILIKE")))
    return is_call and token.text.lower() in _AGGREGATES


@dataclass(frozen=True)
class _TargetRows:
    """The rows of the target at a snapshot (None: an empty table), with those that other reads may not show yet.

    They have the columns ``names``. ``predicate`` is a condition of the rows that the merge needs, ``sorted_keys`` are
    a column with all values that they have in it.
    """

    store: TableStore
    snapshot: Snapshot | None
    names: Sequence[str]
    _: KW_ONLY
    predicate: Predicate | None = None
    sorted_keys: tuple[str, Numbers] | None = None

    @property
    def fields(self) -> Sequence[DataField]:
        """The columns."""
        return [self.store.schema.field(name) for name in self.names]

    @property
    def applies_conditions(self) -> bool:
        """See `QuerySource.applies_conditions`."""
        return False

    def reader(self, need: Need) -> pa.RecordBatchReader:
        """See `QuerySource.reader`."""
        names = self.names if need.columns is None else need.columns
        scan = replace(self._scan, names=tuple(names))
        rows = scan.reader(LocalRunner())
        if self.sorted_keys is None or self.sorted_keys[0] not in names:
            return rows
        column, keys = self.sorted_keys
        return pa.RecordBatchReader.from_batches(rows.schema, (rows_with(keys, column, batch) for batch in rows))

    @cached_property
    def _scan(self) -> ArrowScan:
        """The scan, planned once: DuckDB opens a stream also for its schema."""
        return ArrowScan.of(self.store, self.snapshot, self.names, self.predicate, fresh=True)

    def plan(self, need: Need) -> str:
        """See `QuerySource.plan`."""
        return f"table {self.store.name}"

    def frame(self, spark: SparkSession, need: Need) -> DataFrame:
        """Raise NotImplementedError: on Spark the scan of the target is a DataFrame already."""
        raise NotImplementedError


@dataclass(frozen=True)
class LocalMerge:
    """A merge in this process: computes its rows from a snapshot."""

    store: TableStore
    plan: MergePlan
    source: QuerySource

    def __call__(self, snapshot: Snapshot | None) -> Iterator[pa.RecordBatch]:
        """Return the prepared rows of a merge with a snapshot of the table (None: an empty table)."""
        keys = self.store.schema.primary_keys
        sources = {
            TARGET: self._target(snapshot, self.plan.target, self.plan.pairs),
            KNOWN: self._target(snapshot, keys, self.plan.known_pairs),
            SOURCE: self.source,
        }
        pruned = prunable_pairs(self.store.schema, self.plan.pairs)
        query = QueryText.of(self.plan.text(() if snapshot is None or not pruned else self._values.unique_columns()))
        found = local_query(query, {each.start: sources[each.name[-1]] for each in query.references})
        return merged(self.store, self.plan, found.to_reader())

    def _target(self, snapshot: Snapshot | None, names: Sequence[str], pairs: Mapping[str, str]) -> QuerySource:
        schema = self.store.schema
        pairs = prunable_pairs(schema, pairs)
        if not pairs or snapshot is None:
            return _TargetRows(self.store, snapshot, names)
        # Files are in the order of the key without the columns of the partition.
        first = next(name for name in schema.primary_keys if name not in schema.partition_keys)
        known = self._values.keys.get(pairs.get(first, ""))
        found = None if known is None else known.keys()
        sorted_keys = None if found is None else (first, found)
        condition = self._values.condition(schema, pairs)
        return _TargetRows(self.store, snapshot, names, predicate=condition, sorted_keys=sorted_keys)

    @cached_property
    def _values(self) -> SourceValues:
        """The source's values in the columns that the target's keys equal. They are read once."""
        known = pruning_columns(self.store.schema, {**self.plan.pairs, **self.plan.known_pairs})
        names = [field.name for field in self.source.fields if field.name in known]
        values = SourceValues.of_columns({name: known[name] for name in names})
        for batch in self.source.reader(Need(names, None)):
            values.add(batch)
        return values
