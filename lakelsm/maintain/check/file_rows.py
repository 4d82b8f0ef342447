"""Compares the rows of one data file with its manifest entry, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row.binary_row_decode import decode_rows
from lakelsm.format.row.binary_row_slots import is_row_type
from lakelsm.format.row.bucket_hash import BucketFunction, bucket_ids, key_hashes
from lakelsm.format.row_kinds import ROW_KINDS as KINDS
from lakelsm.format.row_kinds import is_retract
from lakelsm.maintain.check.rules import (
    HASH_INDEX_KEYS,
    KEY_RANGE,
    ROW_BUCKET,
    ROW_KINDS,
    ROW_ORDER,
    ROW_PARTITION,
    ROW_SEQUENCES,
    STATISTICS,
    Rule,
)
from lakelsm.merge.key_order import order_keys
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataField, contiguous

Problem: TypeAlias = tuple[Rule, str]


@dataclass(frozen=True)
class ExpectedRows:
    """The rules that the rows of a file must match beside its entry.

    ``function`` computes their bucket. ``hashes``: those of the bucket's HASH index, ascending; None without one.
    ``in_order``: the rows ascend by key, and no key occurs twice. This does not hold for a changelog file.
    """

    function: BucketFunction
    hashes: npt.NDArray[np.int32] | None
    in_order: bool = True


@dataclass
class _Statistics:
    """The statistics of a column in an entry: bounds and the number of NULLs (both None if unknown)."""

    field: DataField
    _: KW_ONLY
    bounds: pa.Array | None
    nulls: int | None
    found_nulls: int = 0
    is_exceeded: bool = False


class FileRows:
    """Checks the rows of a file with ``schema``, in batches. Each broken rule is reported once, for the first rows."""

    def __init__(self, entry: ManifestEntry, schema: TableSchema, expected: ExpectedRows) -> None:
        self._entry = entry
        self._schema = schema
        self._expected = expected
        self._keys = [schema.field(name) for name in schema.trimmed_primary_keys]
        partition = decode_rows([entry.partition], [field.type for field in schema.partition_fields])
        self._partition = dict(zip(schema.partition_keys, partition))
        self._statistics = list(self._entry_statistics())
        #: The first row and the last row so far.
        self._ends: list[pa.Table] = []
        self._retractions = 0
        self._problems: dict[str, Problem] = {}

    def add(self, start: int, rows: pa.Table) -> None:
        """Check the next rows. ``start`` is the row index of the first."""
        keys = rows.select(list(self._schema.trimmed_primary_keys))
        self._check_order(start, keys)
        self._check_kinds(rows.column(VALUE_KIND))
        file = self._entry.file
        found = pc.min_max(rows.column(SEQUENCE_NUMBER)).as_py()
        if found["min"] < file.min_sequence_number or found["max"] > file.max_sequence_number:
            recorded = f"but its entry says {file.min_sequence_number} to {file.max_sequence_number}"
            self._add(ROW_SEQUENCES, f"it has sequence numbers {found['min']} to {found['max']}, {recorded}")
        self._check_bucket(rows, keys)
        for name, value in self._partition.items():
            column = contiguous(rows.column(name))
            if column.null_count == len(column) and value.null_count == 0:
                continue  # Writers may leave partition columns out.
            ranks = order_keys([pa.concat_arrays([value.cast(column.type), column])])
            if (ranks[1:] != ranks[0]).any():
                self._add(ROW_PARTITION, f"it has rows with another {name!r} than its partition")
        for statistics in self._statistics:
            _check_statistics(statistics, contiguous(rows.column(statistics.field.name)))

    def problems(self) -> Sequence[Problem]:
        """Return the broken rules. Call it after the last batch."""
        file = self._entry.file
        if file.delete_row_count is not None and file.delete_row_count != self._retractions:
            self._add(ROW_KINDS, f"it has {self._retractions} retractions, but its entry says {file.delete_row_count}")
        if self._ends and self._expected.in_order:
            stored = decode_rows([file.min_key, file.max_key], [field.type for field in self._keys])
            ends = pa.concat_tables([self._ends[0], self._ends[-1]])
            columns = [
                pa.concat_arrays([bounds.cast(column.type), column])
                for bounds, column in zip(stored, map(contiguous, ends.columns))
            ]
            ranks = order_keys(columns)
            if ranks[0] != ranks[2] or ranks[1] != ranks[3]:
                self._add(KEY_RANGE, "its first or last key differs from its entry")
        for statistics in self._statistics:
            if statistics.is_exceeded:
                self._add(STATISTICS, f"it has values of {statistics.field.name!r} beyond the bounds of its entry")
            elif statistics.nulls not in (None, statistics.found_nulls):
                found = f"it has {statistics.found_nulls} NULLs in {statistics.field.name!r}"
                self._add(STATISTICS, f"{found}, but its entry says {statistics.nulls}")
        return list(self._problems.values())

    def _check_order(self, start: int, keys: pa.Table) -> None:
        before = self._ends[-1:]
        ranks = order_keys([contiguous(column) for column in pa.concat_tables([*before, keys]).columns])
        wrong = np.flatnonzero(ranks[1:] <= ranks[:-1])
        if len(wrong) and self._expected.in_order:
            same = bool(ranks[wrong[0] + 1] == ranks[wrong[0]])
            row = start + int(wrong[0]) + 1 - len(before)
            self._add(ROW_ORDER, f"row {row} has {'the same key as' if same else 'a smaller key than'} the row before it")
        copies = pa.concat_tables([keys.slice(0, 1), keys.slice(len(keys) - 1)]).take(pa.array([0, 1]))
        first = self._ends[:1] or [copies.slice(0, 1)]
        self._ends = [*first, copies.slice(1, 1)]

    def _check_kinds(self, kinds: pa.ChunkedArray) -> None:
        values = kinds.to_numpy()
        if ((values < 0) | (values >= len(KINDS))).any():
            self._add(ROW_KINDS, "it has rows with an unknown row kind")
        self._retractions += int(is_retract(kinds).sum())

    def _check_bucket(self, rows: pa.Table, keys: pa.Table) -> None:
        total, bucket = self._entry.total_buckets, self._entry.bucket
        if total > 1:
            fields = [self._schema.field(name) for name in self._schema.bucket_keys]
            columns = [rows.column(field.name) for field in fields]
            found = bucket_ids(columns, [field.type for field in fields], total, self._expected.function)
            if (found != bucket).any():
                other = int(found[found != bucket][0])
                self._add(ROW_BUCKET, f"it is in bucket {bucket}, but has keys of bucket {other} of {total}")
        elif self._expected.hashes is not None:
            hashes = key_hashes(list(keys.columns), [field.type for field in self._keys])
            missing = int((~np.isin(hashes, self._expected.hashes)).sum())
            if missing:
                self._add(HASH_INDEX_KEYS, f"{missing} of its keys have no hash in the HASH index of bucket {bucket}")

    def _entry_statistics(self) -> Iterator[_Statistics]:
        """Yield the statistics of the entry, column by column."""
        file = self._entry.file
        covered = file.value_stats_cols
        values = [self._schema.field(name) for name in covered] if covered is not None else list(self._schema.fields)
        for fields, stats in ((self._keys, file.key_stats), (values, file.value_stats)):
            types = [field.type for field in fields]
            lows, highs = decode_rows([stats.min_values], types), decode_rows([stats.max_values], types)
            counts = stats.null_counts or ()
            for slot, (field, low, high) in enumerate(zip(fields, lows, highs)):
                if not is_row_type(field.type):
                    continue
                has_bounds = low.null_count == 0 and high.null_count == 0
                bounds = pa.concat_arrays([low, high]) if has_bounds else None
                yield _Statistics(field, bounds=bounds, nulls=counts[slot] if slot < len(counts) else None)

    def _add(self, rule: Rule, problem: str) -> None:
        self._problems.setdefault(rule.name, (rule, problem))


def _check_statistics(statistics: _Statistics, column: pa.Array) -> None:
    statistics.found_nulls += column.null_count
    if statistics.bounds is None or statistics.is_exceeded or column.null_count == len(column):
        return
    known = column.drop_null() if column.null_count else column
    ranks = order_keys([pa.concat_arrays([statistics.bounds.cast(known.type), known])])
    statistics.is_exceeded = bool((ranks[2:] < ranks[0]).any() or (ranks[2:] > ranks[1]).any())
