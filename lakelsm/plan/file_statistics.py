"""Column statistics of many files, converted to the table's newest columns and types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.data_file.column_evolution import cast_column, comparable_values
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.predicate.statistics import ColumnBounds, StatsTable
from lakelsm.schema.table_schema import TableSchema, column_mapping
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import INTEGER_ROOTS, AtomicType, DataField, python_arrow

_EPOCH = date(1970, 1, 1)
_TICKS_OF_A_DAY = {"ms": 86_400_000, "us": 86_400_000_000}

_Layout = tuple[int, tuple[str, ...] | None]


def statistics_of(store: TableStore, entries: Sequence[ManifestEntry], wanted: Iterable[str]) -> StatsTable:
    """Return the value statistics of ``entries`` for the columns ``wanted`` (names of the table's newest schema).

    Files are matched by field id. A column that a file lacks reads as NULL. If the type of a column was changed to one
    with another order, its statistics are unknown.
    """
    rows = [entry.file.row_count for entry in entries]
    names = [name for name in store.schema.field_names if name in set(wanted)]
    mins: dict[str, list[Any]] = {name: [None] * len(entries) for name in names}
    maxs: dict[str, list[Any]] = {name: [None] * len(entries) for name in names}
    nulls: dict[str, list[int | None]] = {name: [None] * len(entries) for name in names}
    groups: dict[_Layout, list[int]] = {}
    for index, entry in enumerate(entries):
        groups.setdefault((entry.file.schema_id, entry.file.value_stats_cols), []).append(index)
    schemas = store.schemas_of(schema_id for schema_id, _ in groups)
    for (schema_id, covered), indexes in groups.items():
        file_schema = schemas[schema_id]
        slots = list(covered) if covered is not None else list(file_schema.field_names)
        types = [file_schema.field(name).type for name in slots]
        lows = decode_rows([entries[index].file.value_stats.min_values for index in indexes], types)
        highs = decode_rows([entries[index].file.value_stats.max_values for index in indexes], types)
        for column, source in _pairs(file_schema, store.schema, names):
            if source is None:
                for index in indexes:
                    nulls[column.name][index] = rows[index]
                continue
            if source.name not in slots or not _same_order(source, column):
                continue
            slot = slots.index(source.name)
            low, high = _values(lows[slot], column), _values(highs[slot], column)
            for index, low_value, high_value in zip(indexes, low, high):
                counts = entries[index].file.value_stats.null_counts
                mins[column.name][index] = low_value
                maxs[column.name][index] = high_value
                nulls[column.name][index] = counts[slot] if counts is not None and slot < len(counts) else None
    return StatsTable(rows, {name: ColumnBounds(mins[name], maxs[name], nulls[name]) for name in names})


def _pairs(
    file_schema: TableSchema, schema: TableSchema, names: Sequence[str]
) -> list[tuple[DataField, DataField | None]]:
    return [pair for pair in column_mapping(file_schema, schema) if pair[0].name in names]


def _same_order(source: DataField, column: DataField) -> bool:
    """Return whether a cast from the file's type keeps the order of values."""
    old, new = source.type, column.type
    if not (isinstance(old, AtomicType) and isinstance(new, AtomicType)):
        return False
    return old.root == new.root or (old.root in INTEGER_ROOTS and new.root in INTEGER_ROOTS)


def _values(bounds: pa.Array, column: DataField) -> list[Any]:
    """Return bounds as Python values; None for dates and times outside of Python's calendar."""
    values = cast_column(bounds, python_arrow(column.type))
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        per_day = _TICKS_OF_A_DAY[kind.unit] if pa.types.is_timestamp(kind) else 1
        ticks = values.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32())
        low, high = ((day - _EPOCH).days * per_day for day in (date.min, date.max))
        known = pc.and_(pc.greater_equal(ticks, low), pc.less(ticks, high + per_day))
        values = pc.if_else(known, values, None)
    return comparable_values(values, column.type)
