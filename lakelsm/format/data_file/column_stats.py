"""Statistics of a data file's columns: minimum, maximum and number of nulls (docs/format.md 7).

Bounds are those that Java Paimon reads from Parquet footers, so that all readers prune alike: a column with a NaN has
no bounds, and a bound of zero is -0.0 below and 0.0 above. Binaries have no bounds, because Java's filters compare
bounds as signed bytes, which is not the order of the values. TIMESTAMP(7..9) differs: Java has no bounds for it, and
lakelsm rounds them outwards to microseconds, so that readers with coarser clocks cannot misread them.
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
    """The kind of statistics of a column: none, the null count, or also bounds (of at most ``length`` characters)."""

    counts: bool
    bounds: bool
    length: int | None = None

    @classmethod
    def parse(cls, text: str) -> StatsMode:
        """Return the mode of an option's value: none, counts, truncate(n) with n > 0, or full, in any case.

        Raises InvalidInputError for other text.
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
                f"statistics mode {text!r} is unknown. Use none, counts, truncate(n) with n > 0, or full."
            )
        return cls(True, True, int(match[1]))


NONE = StatsMode(False, False)
COUNTS = StatsMode(True, False)
FULL = StatsMode(True, True)
KEY_MODE = StatsMode(True, True, 128)  # The mode of key columns. Persisted: do not change.


def column_modes(
    columns: Sequence[str],
    default: str | StatsMode,
    field_options: Mapping[str, Mapping[str, str]] | None = None,
    keep_first_n: int = -1,
    thin_keys: Collection[str] = (),
) -> tuple[StatsMode, ...]:
    """Return the mode of each value column, in schema order, by the rules of Java's StatsCollectorFactories.

    ``field_options[column]["stats-mode"]`` has priority. ``thin_keys`` (the trimmed primary key of a file
    without ``_KEY_`` columns) have :data:`KEY_MODE` and are not counted. Of the other columns, only the first
    ``keep_first_n`` have statistics (-1: no limit).
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
    """Collects the statistics of the rows of one file, batch by batch."""

    def __init__(self, fields: Sequence[DataField], modes: Sequence[StatsMode], dense: bool = True) -> None:
        """``modes`` has one mode for each field. With ``dense``, columns without statistics have no slot in the rows.

        Fields are found by name in each batch. Types that cannot have statistics (ARRAY … BLOB) have none.
        """
        if len(fields) != len(modes):
            raise InvalidInputError(f"{len(fields)} columns have {len(modes)} statistics modes. Pass one for each.")
        self._dense = dense
        self._columns = [_ColumnStats(field, mode) for field, mode in zip(fields, modes, strict=True)]

    @classmethod
    def for_keys(cls, fields: Sequence[DataField]) -> StatsCollector:
        """Return a collector of key statistics: :data:`KEY_MODE` and one slot for every field."""
        return cls(fields, [KEY_MODE] * len(fields), dense=False)

    def update(self, batch: pa.Table | pa.RecordBatch) -> None:
        """Add rows. Raises InvalidInputError if a column is missing or has another type."""
        for column in self._columns:
            if not column.mode.counts:
                continue
            index = batch.schema.get_field_index(column.name)
            if index < 0:
                raise InvalidInputError(f"column '{column.name}' is missing, or exists twice, in the rows to write")
            column.update(batch.column(index))

    def finish(self) -> tuple[SimpleStats, tuple[str, ...] | None]:
        """Return the statistics of all rows so far, and the columns that they cover (None: all columns)."""
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
    """Return `StatsCollector.finish` of many collectors of equal fields and modes, one for each file.

    The bounds are encoded together: for a file of few rows, encoding them costs as much as all its other statistics.
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
    """Statistics of one column. Bounds are Python values in the column's sort order: numbers, or bytes for text."""

    def __init__(self, field: DataField, mode: StatsMode) -> None:
        self.name = field.name
        self.mode = _mode_of(field.type, mode)
        # The slot of a nested column is always null, and a null slot is the same for all types.
        self.slot_type = require_row_type(field.type) if is_row_type(field.type) else AtomicType("BIGINT")
        self.null_count = 0
        self._low: Any = None
        self._high: Any = None
        self._unbounded = False

    def update(self, values: pa.Array | pa.ChunkedArray) -> None:
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        if len(chunks) > 1 and values.type == to_arrow(self.slot_type):
            chunks = [values]  # The usual layout: min_max takes all chunks together.
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
        """Return [minimum, maximum], cut to the mode's length, in the form that `array_of` takes; None if unknown."""
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
        """Return bounds of this column, from any number of files, as an array for a BinaryRow."""
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
        except UnicodeDecodeError:  # Values that are not text have no bounds.
            return [None, None]


def _mode_of(data_type: DataType, mode: StatsMode) -> StatsMode:
    """Return the statistics that a column has if its options request ``mode``: its type may allow fewer."""
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
    """Return the distinct non-null values of a dictionary array."""
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
    """Convert bounds from nanoseconds to the stored unit, floored; see the module's docstring for precisions 7 to 9."""
    per_unit = 1_000_000 if _is_millis(data_type) else 1_000
    low_units, high_units = low // per_unit, high // per_unit
    if (data_type.precision or 0) > 6:
        high_units = -(-high // per_unit)
    return [low_units, high_units]


def _cut_text(low: str, high: str, length: int | None) -> list[str | None]:
    """Cut bounds to ``length`` code points. Both are None if the cut upper bound cannot be increased."""
    if length is None or len(high) <= length:
        return [low if length is None else low[:length], high]
    for last in range(length - 1, -1, -1):
        following = ord(high[last]) + 1
        if _FIRST_SURROGATE <= following <= _LAST_SURROGATE:
            following = _LAST_SURROGATE + 1  # Surrogates have no UTF-8 form.
        if following <= _MAX_CODE_POINT:
            return [low[:length], high[:last] + chr(following)]
    return [None, None]
