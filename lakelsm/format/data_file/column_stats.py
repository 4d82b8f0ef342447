"""Statistics of a data file's columns: smallest and largest value and number of nulls (docs/format.md 7).

Bounds follow what Java Paimon takes from Parquet footers, so that every reader prunes alike: a column with a
NaN has no bounds, and a bound of zero is -0.0 below and 0.0 above. Binaries have no bounds: Java's filters compare
bounds as signed bytes, which is not the order of the values. Only TIMESTAMP(7..9) differs: Java has no bounds there,
lakelsm gives them rounded outwards to microseconds, which no coarser clock can misread.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError
from lakelsm.format.manifest.data_file_meta import EMPTY_STATS, SimpleStats
from lakelsm.format.row.binary_row import encode_rows, with_arity
from lakelsm.format.row.binary_row_slots import (
    TIMESTAMP_ROOTS,
    is_row_type,
    normalise,
    primitive_values,
    require_row_type,
)
from lakelsm.types import BINARY_ROOTS, STRING_ROOTS, AtomicType, DataField, DataType, to_arrow
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, nanos_of

_TRUNCATE = re.compile(r"TRUNCATE\((\d+)\)")
_MAX_CODE_POINT = 0x10FFFF
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF


@dataclass(frozen=True, slots=True)
class StatsMode:
    """What to keep of a column: nothing, the null count, or bounds too (cut to ``length`` units)."""

    counts: bool
    bounds: bool
    length: int | None = None

    @classmethod
    def parse(cls, text: str) -> StatsMode:
        """The mode of an option's value: none, counts, truncate(n) with n > 0, or full, in any case.

        Raises InvalidInputError for any other text.
        """
        upper = text.upper()
        if upper == "NONE":
            return NONE
        if upper == "COUNTS":
            return COUNTS
        if upper == "FULL":
            return FULL
        match = _TRUNCATE.fullmatch(upper)
        if match is None or int(match[1]) == 0:
            raise InvalidInputError(
                f"unknown statistics mode {text!r}; use none, counts, truncate(n) with n > 0, or full"
            )
        return cls(True, True, int(match[1]))


NONE = StatsMode(False, False)
COUNTS = StatsMode(True, False)
FULL = StatsMode(True, True)
KEY_MODE = StatsMode(True, True, 128)  # Persisted: do not change. Keys always have it.


def column_modes(
    columns: Sequence[str],
    default: str | StatsMode,
    field_options: Mapping[str, Mapping[str, str]] | None = None,
    keep_first_n: int = -1,
    thin_keys: Collection[str] = (),
) -> tuple[StatsMode, ...]:
    """The mode of each value column of a file, in schema order, as Java's StatsCollectorFactories decides.

    ``field_options[column]["stats-mode"]`` comes first. ``thin_keys`` (the trimmed primary key of a file
    without ``_KEY_`` columns) have :data:`KEY_MODE` and are not counted. Of the rest, those after the first
    ``keep_first_n`` columns have none (-1: no limit).
    """
    mode = StatsMode.parse(default) if isinstance(default, str) else default
    modes = []
    counted = 0
    for column in columns:
        own = (field_options or {}).get(column, {}).get("stats-mode")
        if own is None and column in thin_keys:
            modes.append(KEY_MODE)
            continue
        if own is not None:
            modes.append(StatsMode.parse(own))
        else:
            modes.append(NONE if 0 <= keep_first_n <= counted else mode)
        counted += 1
    return tuple(modes)


class StatsCollector:
    """Gathers the statistics of the rows that go into one file, batch by batch."""

    def __init__(self, fields: Sequence[DataField], modes: Sequence[StatsMode], dense: bool = True) -> None:
        """``modes``: one per field; ``dense``: leave columns without statistics out of the rows.

        Fields are looked up by name in each batch. Types that have no statistics (ARRAY ... BLOB) get none.
        """
        if len(fields) != len(modes):
            raise InvalidInputError(f"{len(modes)} statistics modes given for {len(fields)} columns")
        self._dense = dense
        self._columns = [_ColumnStats(field, mode) for field, mode in zip(fields, modes, strict=True)]

    @classmethod
    def for_keys(cls, fields: Sequence[DataField]) -> StatsCollector:
        """A collector of key statistics: :data:`KEY_MODE` for every field, one slot each."""
        return cls(fields, [KEY_MODE] * len(fields), dense=False)

    def update(self, batch: pa.Table | pa.RecordBatch) -> None:
        """Takes more rows into account. InvalidInputError when a column is missing or of another type."""
        for column in self._columns:
            if not column.mode.counts:
                continue
            index = batch.schema.get_field_index(column.name)
            if index < 0:
                raise InvalidInputError(
                    f"column '{column.name}' is missing, or there twice, in the rows to write"
                )
            column.update(batch.column(index))

    def finish(self) -> tuple[SimpleStats, tuple[str, ...] | None]:
        """The statistics of all rows so far, and the columns that they cover (None: all of them)."""
        return finish_all([self])[0]

    @property
    def _covered(self) -> list[_ColumnStats]:
        return [column for column in self._columns if column.mode.counts]

    @property
    def _kept(self) -> list[_ColumnStats]:
        """The columns that have a slot in the rows of bounds."""
        return self._covered if self._dense else self._columns

    @property
    def _names(self) -> tuple[str, ...] | None:
        covered = self._covered
        return None if len(covered) == len(self._columns) or not self._dense else tuple(c.name for c in covered)


def finish_all(collectors: Sequence[StatsCollector]) -> list[tuple[SimpleStats, tuple[str, ...] | None]]:
    """`StatsCollector.finish` of collectors that were made alike, one a file.

    Their bounds are encoded in one go: for a file of few rows that costs as much as the rest of its statistics.
    """
    slots = list(zip(*(collector._kept for collector in collectors)))
    if not slots:
        return [(EMPTY_STATS, collector._names) for collector in collectors]
    bounds = [slot[0].array_of([value for column in slot for value in column.bounds()]) for slot in slots]
    rows = with_arity(encode_rows(bounds, [slot[0].slot_type for slot in slots]), len(slots)).to_pylist()
    found = []
    for at, collector in enumerate(collectors):
        counts = tuple(column.null_count if column.mode.counts else None for column in collector._kept)
        found.append((SimpleStats(rows[2 * at], rows[2 * at + 1], counts), collector._names))
    return found


class _ColumnStats:
    """One column. Bounds are Python values that compare as the column sorts: numbers, or bytes for text."""

    def __init__(self, field: DataField, mode: StatsMode) -> None:
        self.name = field.name
        self.mode = _mode_of(field.type, mode)
        # A nested column's slot is always null, and then the slots of all types look alike.
        self.slot_type = require_row_type(field.type) if is_row_type(field.type) else AtomicType("BIGINT")
        self.null_count = 0
        self._low: Any = None
        self._high: Any = None
        self._unbounded = False

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        if len(chunks) > 1 and values.type == to_arrow(self.slot_type):
            chunks = [values]  # the usual layout: min_max takes all chunks in one go
        for chunk in chunks:
            self._update(chunk)

    def _update(self, chunk: pa.Array | pa.ChunkedArray) -> None:
        if pa.types.is_dictionary(chunk.type) and chunk.dictionary.null_count:
            chunk = chunk.cast(chunk.type.value_type)
        self.null_count += chunk.null_count
        plain = _distinct(chunk) if pa.types.is_dictionary(chunk.type) else chunk
        if isinstance(plain, pa.Array):
            plain = normalise(plain, self.slot_type)
        if not self.mode.bounds or self._unbounded or len(plain) == 0 or plain.null_count == len(plain):
            return
        if pa.types.is_floating(plain.type) and _has_nan(plain):
            self._unbounded = True
            return
        extremes = pc.min_max(plain)
        low, high = _comparable(extremes["min"]), _comparable(extremes["max"])
        self._low = low if self._low is None else min(self._low, low)
        self._high = high if self._high is None else max(self._high, high)

    def bounds(self) -> Sequence[Any]:
        """[smallest, largest], cut to the mode's length, as `array_of` takes them; None where unknown."""
        low, high = self._low, self._high
        if self._unbounded or low is None:
            return [None, None]
        root = self.slot_type.root
        if root in STRING_ROOTS:
            return self._cut(low, high)
        if root in ("FLOAT", "DOUBLE"):
            return [-0.0 if low == 0 else low, 0.0 if high == 0 else high]
        if root in TIMESTAMP_ROOTS:
            return _timestamp_bounds(low, high, self.slot_type)
        return [low, high]

    def array_of(self, bounds: Sequence[Any]) -> pa.Array:
        """Bounds of this column, of any files, ready for a BinaryRow."""
        root, arrow_type = self.slot_type.root, to_arrow(self.slot_type)
        if root in TIMESTAMP_ROOTS:
            unit = "ms" if _is_millis(self.slot_type) else "us"
            return pa.array(bounds, pa.int64()).view(pa.timestamp(unit))
        if root in ("DATE", "TIME"):
            return pa.array(bounds, pa.int32()).view(arrow_type)
        return pa.array(bounds, arrow_type)

    def _cut(self, low: bytes, high: bytes) -> list[Any]:
        try:
            return _cut_text(low.decode(), high.decode(), self.mode.length)
        except UnicodeDecodeError:  # not text: no statistics
            return [None, None]


def _mode_of(data_type: DataType, mode: StatsMode) -> StatsMode:
    """The mode of a column whose options ask for ``mode``: what its type allows of it."""
    if not is_row_type(data_type):
        return NONE
    return COUNTS if data_type.root in BINARY_ROOTS and mode.bounds else mode


def _has_nan(values: pa.Array | pa.ChunkedArray) -> bool:
    if isinstance(values, pa.ChunkedArray):
        return any(map(_has_nan, values.chunks))
    if values.null_count:
        return bool(pc.any(pc.is_nan(values)).as_py())
    return len(values) > 0 and bool(np.isnan(primitive_values(values).max()))


def _distinct(chunk: pa.DictionaryArray) -> pa.Array:
    """The values that occur in a dictionary array, once each, without null."""
    return chunk.dictionary.take(chunk.indices.unique().drop_null())


def _comparable(scalar: pa.Scalar) -> Any:
    if pa.types.is_timestamp(scalar.type) or scalar.type == NANO_TIMESTAMP:
        return nanos_of(scalar)
    if pa.types.is_date(scalar.type) or pa.types.is_time(scalar.type):
        return scalar.value
    if isinstance(scalar, pa.BinaryScalar):
        return scalar.as_buffer().to_pybytes()
    return scalar.as_py()


def _is_millis(data_type: AtomicType) -> bool:
    return (data_type.precision or 0) <= 3


def _timestamp_bounds(low: int, high: int, data_type: AtomicType) -> list[int]:
    """Bounds (in nanoseconds) in the unit that values are stored in, floored; see the module for 7 to 9."""
    per_unit = 1_000_000 if _is_millis(data_type) else 1_000
    low_units, high_units = low // per_unit, high // per_unit
    if (data_type.precision or 0) > 6:
        high_units = -(-high // per_unit)
    return [low_units, high_units]


def _cut_text(low: str, high: str, length: int | None) -> list[str | None]:
    """Bounds of at most ``length`` code points; None for both when the cut upper one cannot be raised."""
    if length is None or len(high) <= length:
        return [low if length is None else low[:length], high]
    for last in range(length - 1, -1, -1):
        following = ord(high[last]) + 1
        if _FIRST_SURROGATE <= following <= _LAST_SURROGATE:
            following = _LAST_SURROGATE + 1  # surrogates have no UTF-8 form
        if following <= _MAX_CODE_POINT:
            return [low[:length], high[:last] + chr(following)]
    return [None, None]
