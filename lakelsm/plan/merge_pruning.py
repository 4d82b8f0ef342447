"""The values that the source of a merge has in columns of the key, in bounded memory: what the merge reads of its target.

For each column the summary has its smallest and largest value and, up to a number of them, all its values. A condition
made of them leaves out partitions, buckets, files and row groups, as the conditions of other reads do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.predicate.predicate import Compare, Constant, In, IsNull, Predicate, all_of, any_of
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import INTEGER_ROOTS, DataType, to_arrow

Numbers = npt.NDArray[np.int64]

#: Up to this number of values of a column, a read uses them; else the smallest and the largest one.
_MAX_VALUES = 1000
_TEXTS, _DATES = "VARCHAR", "DATE"


@dataclass
class ColumnValues:
    """The values of a column. ``values`` None: there are too many. ``is_known`` is False if they cannot be compared."""

    _: KW_ONLY
    low: Any = None
    high: Any = None
    has_null: bool = False
    values: set[Any] | None = field(default_factory=set)
    is_known: bool = True

    def add(self, array: pa.Array) -> None:
        """Add the values of an array."""
        self.has_null = self.has_null or array.null_count > 0
        if not self.is_known or array.null_count == len(array):
            return
        try:
            bounds = pc.min_max(array)
            self._widen(bounds["min"].as_py(), bounds["max"].as_py())
            if self.values is not None:
                found = array.unique().drop_null()
                self._include(None if len(found) > _MAX_VALUES else set(found.to_pylist()))
        except (OverflowError, ValueError):  # Python has only the years 1 to 9999.
            self.is_known = False

    def merge(self, other: ColumnValues) -> None:
        """Add the values of another part of the source."""
        self.has_null = self.has_null or other.has_null
        self.is_known = self.is_known and other.is_known
        if other.low is not None:
            self._widen(other.low, other.high)
        self._include(other.values)

    def condition(self, column: str, kind: DataType) -> Predicate:
        """Return a condition that each row of the target with one of the values meets."""
        if not self.is_known:
            return Constant(True)
        parts: list[Predicate] = [IsNull(column)] if self.has_null else []
        lowest, highest = _limits(kind)
        if self.values is not None:
            known = sorted(each for each in self.values if lowest is None or lowest <= each <= highest)
            parts += [In(column, tuple(known))] if known else []
        elif lowest is None or (self.low <= highest and self.high >= lowest):
            low = self.low if lowest is None else max(self.low, lowest)
            high = self.high if highest is None else min(self.high, highest)
            parts.append(all_of([Compare(column, ">=", low), Compare(column, "<=", high)]))
        return any_of(parts)

    def _widen(self, low: Any, high: Any) -> None:
        self.low = low if self.low is None or low < self.low else self.low
        self.high = high if self.high is None or high > self.high else self.high

    def _include(self, values: set[Any] | None) -> None:
        if self.values is not None:
            found = None if values is None else self.values | values
            self.values = None if found is None or len(found) > _MAX_VALUES else found


class SortedKeys:
    """The values of a column of integers or dates, up to a number of them."""

    #: 8 MiB.
    _MAX_KEYS = 1 << 20

    def __init__(self) -> None:
        self._parts: list[Numbers] | None = []
        self._count = 0

    def add(self, values: pa.Array) -> None:
        """Add the values of an array."""
        if self._parts is not None:
            self._append(_sorted(numbers_of(values.drop_null())))

    def merge(self, other: SortedKeys) -> None:
        """Add the values of another part of the source."""
        found = other.keys()
        if found is None:
            self._parts = None
        elif self._parts is not None:
            self._append(found)

    def keys(self) -> Numbers | None:
        """Return the different values in order; None if there are too many."""
        if self._parts is None:
            return None
        if len(self._parts) != 1:
            self._parts = [_sorted(np.concatenate([np.empty(0, np.int64), *self._parts]))]
        return self._parts[0]

    def _append(self, numbers: Numbers) -> None:
        assert self._parts is not None
        self._parts.append(numbers)
        self._count += len(numbers)
        if self._count > self._MAX_KEYS:
            self._parts = None


@dataclass
class SourceValues:
    """The values of a source in some of its columns, and the number of its rows. Parts of it can be pickled.

    ``keys`` are those of the columns of integers and dates.
    """

    columns: Mapping[str, ColumnValues]
    keys: Mapping[str, SortedKeys]
    rows: int = 0

    @staticmethod
    def of_columns(names: Mapping[str, bool]) -> SourceValues:
        """Return the values of a source without rows; True is for columns of integers and dates."""
        keys = {name: SortedKeys() for name, is_number in names.items() if is_number}
        return SourceValues({name: ColumnValues() for name in names}, keys)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows: their columns are those of the summary, in its order."""
        self.rows += len(batch)
        for (name, values), array in zip(self.columns.items(), batch.columns, strict=True):
            comparable = _comparable(array)
            values.add(comparable)
            if name in self.keys:
                self.keys[name].add(comparable)

    def merge(self, other: SourceValues) -> None:
        """Add another part of the source."""
        self.rows += other.rows
        for name, values in self.columns.items():
            values.merge(other.columns[name])
        for name, keys in self.keys.items():
            keys.merge(other.keys[name])

    def unique_columns(self) -> list[str]:
        """Return the columns that are known to have neither NULL nor a value twice."""
        found = {name: keys.keys() for name, keys in self.keys.items() if not self.columns[name].has_null}
        return [name for name, keys in found.items() if keys is not None and len(keys) == self.rows]

    def condition(self, schema: TableSchema, pairs: Mapping[str, str]) -> Predicate:
        """Return a condition that each row of the target meets whose columns equal those of a row of the source.

        ``pairs`` are columns of the source by columns of the target.
        """
        if not self.rows:
            return Constant(False)
        return all_of(
            self.columns[name].condition(column, schema.field(column).type) for column, name in pairs.items()
        )


def pruning_columns(schema: TableSchema, pairs: Mapping[str, str]) -> dict[str, bool]:
    """Return the columns of the source for `SourceValues.of_columns`, in the order of the pairs."""
    kinds = {name: schema.field(column).type.root for column, name in prunable_pairs(schema, pairs).items()}
    return {name: kind != _TEXTS for name, kind in kinds.items()}


def _sorted(numbers: Numbers) -> Numbers:
    """Return the different numbers in order: `np.unique` hashes them first, which takes ten times as long."""
    found = np.sort(numbers)
    return found[np.append(True, found[1:] != found[:-1])] if len(found) else found


def numbers_of(values: pa.Array) -> Numbers:
    """Return integers or dates without NULL as numbers."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.date32()).cast(pa.int32())
    numbers: Numbers = values.cast(pa.int64()).to_numpy()
    return numbers


def prunable_pairs(schema: TableSchema, pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the pairs whose values the summary can compare: integers, texts and dates."""
    known = (*INTEGER_ROOTS, _TEXTS, _DATES)
    return {column: name for column, name in pairs.items() if schema.field(column).type.root in known}


def _limits(kind: DataType) -> tuple[Any, Any]:
    """Return the smallest and the largest value of an integer type; None for other types."""
    if kind.root not in INTEGER_ROOTS:
        return None, None
    bits = to_arrow(kind).bit_width
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _comparable(array: pa.Array) -> pa.Array:
    """Return values in a type that Arrow compares, and that has the Python type of the table's values."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
    if pa.types.is_integer(array.type):
        return array
    return array.cast(pa.date32() if pa.types.is_date(array.type) else pa.large_string())
