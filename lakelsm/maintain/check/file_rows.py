"""Compares the rows of one data file with its manifest entry, batch by batch, and reports at the end."""

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
class RowExpectations:
    """Where the rows of a file belong. ``hashes`` are those of its HASH index, ascending; None without one.

    ``in_order``: by key, each once; the rows of a changelog file need not be.
    """

    function: BucketFunction
    hashes: npt.NDArray[np.int32] | None
    in_order: bool = True


@dataclass
class _Statistics:
    """The statistics of a column in an entry: bounds (None: unknown), and the number of NULLs (None: unknown)."""

    field: DataField
    _: KW_ONLY
    bounds: pa.Array | None
    nulls: int | None
    found_nulls: int = 0
    leaves_out: bool = False


class FileRows:
    """Judges the rows of a file of ``schema`` that come in batches; a rule is broken once, by the first rows."""

    def __init__(self, entry: ManifestEntry, schema: TableSchema, place: RowExpectations) -> None:
        self._entry = entry
        self._schema = schema
        self._place = place
        self._keys = [schema.field(name) for name in schema.trimmed_primary_keys]
        partition = decode_rows([entry.partition], [field.type for field in schema.partition_fields])
        self._partition = dict(zip(schema.partition_keys, partition))
        self._statistics = list(self._stated())
        self._ends: list[pa.Table] = []
        self._retractions = 0
        self._problems: dict[str, Problem] = {}

    def add(self, start: int, rows: pa.Table) -> None:
        """Look at the next rows, the first of which is at ``start``."""
        keys = rows.select(list(self._schema.trimmed_primary_keys))
        self._judge_order(start, keys)
        self._judge_kinds(rows.column(VALUE_KIND))
        file = self._entry.file
        found = pc.min_max(rows.column(SEQUENCE_NUMBER)).as_py()
        if found["min"] < file.min_sequence_number or found["max"] > file.max_sequence_number:
            said = f"and its entry says {file.min_sequence_number} to {file.max_sequence_number}"
            self._find(ROW_SEQUENCES, f"it has sequence numbers {found['min']} to {found['max']}, {said}")
        self._judge_bucket(rows, keys)
        for name, value in self._partition.items():
            column = contiguous(rows.column(name))
            if column.null_count == len(column) and value.null_count == 0:
                continue  # Writers may leave partition columns out.
            ranks = order_keys([pa.concat_arrays([value.cast(column.type), column])])
            if (ranks[1:] != ranks[0]).any():
                self._find(ROW_PARTITION, f"it has rows of another {name!r} than its partition has")
        for statistics in self._statistics:
            _judge_statistics(statistics, contiguous(rows.column(statistics.field.name)))

    def problems(self) -> Sequence[Problem]:
        """What is wrong with the rows, all of which have been seen."""
        file = self._entry.file
        if file.delete_row_count is not None and file.delete_row_count != self._retractions:
            self._find(ROW_KINDS, f"it has {self._retractions} retractions, and its entry says {file.delete_row_count}")
        if self._ends and self._place.in_order:
            stored = decode_rows([file.min_key, file.max_key], [field.type for field in self._keys])
            ends = pa.concat_tables([self._ends[0], self._ends[-1]])
            columns = [
                pa.concat_arrays([bounds.cast(column.type), column])
                for bounds, column in zip(stored, map(contiguous, ends.columns))
            ]
            ranks = order_keys(columns)
            if ranks[0] != ranks[2] or ranks[1] != ranks[3]:
                self._find(KEY_RANGE, "its first or last key is not the one that its entry says")
        for statistics in self._statistics:
            if statistics.leaves_out:
                self._find(STATISTICS, f"it has values of {statistics.field.name!r} beyond the bounds of its entry")
            elif statistics.nulls not in (None, statistics.found_nulls):
                found = f"it has {statistics.found_nulls} NULLs in {statistics.field.name!r}"
                self._find(STATISTICS, f"{found}, and its entry says {statistics.nulls}")
        return list(self._problems.values())

    def _judge_order(self, start: int, keys: pa.Table) -> None:
        before = self._ends[-1:]
        ranks = order_keys([contiguous(column) for column in pa.concat_tables([*before, keys]).columns])
        wrong = np.flatnonzero(ranks[1:] <= ranks[:-1])
        if len(wrong) and self._place.in_order:
            same = bool(ranks[wrong[0] + 1] == ranks[wrong[0]])
            at = start + int(wrong[0]) + 1 - len(before)
            self._find(ROW_ORDER, f"row {at} has {'the same key as' if same else 'a smaller key than'} the row before it")
        copies = pa.concat_tables([keys.slice(0, 1), keys.slice(len(keys) - 1)]).take(pa.array([0, 1]))
        first = self._ends[:1] or [copies.slice(0, 1)]
        self._ends = [*first, copies.slice(1, 1)]

    def _judge_kinds(self, kinds: pa.ChunkedArray) -> None:
        values = kinds.to_numpy()
        if ((values < 0) | (values >= len(KINDS))).any():
            self._find(ROW_KINDS, "it has rows of a kind that there is not")
        self._retractions += int(is_retract(kinds).sum())

    def _judge_bucket(self, rows: pa.Table, keys: pa.Table) -> None:
        total, bucket = self._entry.total_buckets, self._entry.bucket
        if total > 1:
            fields = [self._schema.field(name) for name in self._schema.bucket_keys]
            columns = [rows.column(field.name) for field in fields]
            found = bucket_ids(columns, [field.type for field in fields], total, self._place.function)
            if (found != bucket).any():
                other = int(found[found != bucket][0])
                self._find(ROW_BUCKET, f"it is in bucket {bucket}, and has keys of bucket {other} of {total}")
        elif self._place.hashes is not None:
            hashes = key_hashes(list(keys.columns), [field.type for field in self._keys])
            missing = int((~np.isin(hashes, self._place.hashes)).sum())
            if missing:
                self._find(HASH_INDEX_KEYS, f"{missing} of its keys have no hash in the HASH index of bucket {bucket}")

    def _stated(self) -> Iterator[_Statistics]:
        """The statistics of the entry, column by column."""
        file = self._entry.file
        covered = file.value_stats_cols
        values = [self._schema.field(name) for name in covered] if covered is not None else list(self._schema.fields)
        for fields, stats in ((self._keys, file.key_stats), (values, file.value_stats)):
            types = [field.type for field in fields]
            lows, highs = decode_rows([stats.min_values], types), decode_rows([stats.max_values], types)
            counts = stats.null_counts or ()
            for at, (field, low, high) in enumerate(zip(fields, lows, highs)):
                if not is_row_type(field.type):
                    continue
                has_bounds = low.null_count == 0 and high.null_count == 0
                bounds = pa.concat_arrays([low, high]) if has_bounds else None
                yield _Statistics(field, bounds=bounds, nulls=counts[at] if at < len(counts) else None)

    def _find(self, rule: Rule, problem: str) -> None:
        self._problems.setdefault(rule.name, (rule, problem))


def _judge_statistics(statistics: _Statistics, column: pa.Array) -> None:
    statistics.found_nulls += column.null_count
    if statistics.bounds is None or statistics.leaves_out or column.null_count == len(column):
        return
    known = column.drop_null() if column.null_count else column
    ranks = order_keys([pa.concat_arrays([statistics.bounds.cast(known.type), known])])
    statistics.leaves_out = bool((ranks[2:] < ranks[0]).any() or (ranks[2:] > ranks[1]).any())
