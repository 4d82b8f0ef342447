"""Keys that a user passes, and the rows of a table that have one of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.bucket_hash import Hashes, key_hashes
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.local.arrow_rows import normalized_floats, prepare_arrow
from lakelsm.merge.key_order import order_keys
from lakelsm.options import TableOptions
from lakelsm.plan.merge_pruning import Numbers, numbers_of
from lakelsm.predicate.predicate import Constant, In, IsNull, Predicate, all_of, any_of
from lakelsm.schema.row_rules import key_schema
from lakelsm.schema.table_schema import TableSchema

#: Up to this number of values of a key column, a read uses them to leave out files.
_MAX_VALUES = 1000
_LISTED_ROOTS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "VARCHAR", "DATE")


@dataclass(frozen=True)
class KeySet:
    """Keys of a table, in memory: ``keys`` have the primary key's columns, ordered by the ``hashes`` of the keys."""

    schema: TableSchema
    keys: pa.Table
    hashes: Hashes

    @staticmethod
    def of(given: ArrowInput, schema: TableSchema, options: TableOptions) -> KeySet:
        """Check the keys that a user passes. Raises InvalidInputError for NULL and for columns outside the key."""
        of_keys = key_schema(schema, given.schema.names)
        batches, size = [], 0
        for batch in prepare_arrow(given, of_keys, TableOptions.parse({})):
            batches.append(batch.select(list(schema.primary_keys)))
            size += batches[-1].nbytes
            if size > options.write_buffer_size:
                raise InvalidInputError(
                    f"keys: they need more memory than 'write-buffer-size' ({options.write_buffer_size} bytes). Delete "
                    "them in several calls, or raise the option."
                )
        columns = [field.type for field in map(schema.field, schema.primary_keys)]
        if not batches:
            return KeySet(schema, pa.table({name: [] for name in schema.primary_keys}), np.empty(0, np.int32))
        keys = pa.Table.from_batches(batches).combine_chunks()
        hashes = key_hashes(keys.columns, columns)
        order = np.argsort(hashes, kind="stable")
        return KeySet(schema, keys.take(pa.array(order)), hashes[order])

    @property
    def condition(self) -> Predicate:
        """A condition that every row with one of the keys meets."""
        if not len(self.keys):
            return Constant(False)
        parts = []
        for name in self.schema.primary_keys:
            if self.schema.field(name).type.root in _LISTED_ROOTS:
                values = self.keys.column(name).unique()
                if len(values) <= _MAX_VALUES:
                    with suppress(OverflowError, ValueError):  # Python has only the years 1 to 9999.
                        parts.append(_one_of(name, values))
        return all_of(parts)

    def rows_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that have one of the keys."""
        names = self.schema.primary_keys
        kinds = [self.schema.field(name).type for name in names]
        columns = [
            normalized_floats(rows.column(name), zeros=name in self.schema.partition_keys) for name in names
        ]
        hashes = key_hashes(columns, kinds)
        first = np.searchsorted(self.hashes, hashes, side="left")
        candidates = np.flatnonzero(np.searchsorted(self.hashes, hashes, side="right") > first)
        if not len(candidates):
            return rows.slice(0, 0)
        wanted = self.keys.filter(pa.array(np.isin(self.hashes, hashes[candidates])))
        taken = [column.take(pa.array(candidates)) for column in columns]
        both = [pa.chunked_array([own, *wanted.column(name).chunks]) for name, own in zip(names, taken)]
        keys = order_keys(both, signed_zeros=True)
        found = np.isin(keys[: len(candidates)], keys[len(candidates) :])
        return rows.take(pa.array(candidates[found]))


def _one_of(name: str, values: pa.ChunkedArray) -> Predicate:
    """Return the condition that a column has one of some values; NULL may be one of them."""
    known = tuple(sorted(values.drop_null().to_pylist()))
    return any_of([*([In(name, known)] if known else []), *([IsNull(name)] if values.null_count else [])])


def rows_with(keys: Numbers, column: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that have one of the ``keys``, which are in order, or NULL. Rows in the order of the column cost
    least: each key is searched in the rows, not each row in the keys.
    """
    values = rows.column(column)
    if values.null_count or not len(rows):
        return rows
    numbers = numbers_of(values)
    before, after = numbers[:-1], numbers[1:]
    repeats = not bool(np.all(before < after))
    if repeats and not bool(np.all(before <= after)):
        found = np.searchsorted(keys, numbers)
        return rows.filter(pa.array(keys[np.minimum(found, len(keys) - 1)] == numbers)) if len(keys) else rows.slice(0, 0)
    near = keys[np.searchsorted(keys, numbers[0]) : np.searchsorted(keys, numbers[-1], side="right")]
    first = np.searchsorted(numbers, near)
    first = first[numbers[first] == near]
    if not repeats:
        return rows.take(pa.array(first))
    counts = np.searchsorted(numbers, numbers[first], side="right") - first
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows.take(pa.array(np.repeat(first, counts) + within))
