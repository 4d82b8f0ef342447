"""Arrow values cast to a column's type, each if it fits, by `lakelsm.schema.row_rules.is_castable`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.local.arrow_faults import entries
from lakelsm.local.time_texts import TimeTextError, times_of_text
from lakelsm.schema.row_rules import WHOLE_FLOATS, does_not_fit, entry_types, is_assignable, shortened
from lakelsm.types import (
    INTEGER_ROOTS,
    STRING_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    to_arrow,
)
from lakelsm.types.nano_timestamps import validity_buffer

#: A decimal type that holds every BIGINT.
_WHOLE = pa.decimal128(19, 0)
_LONG_LIMIT = 2.0**63


class UnfitValueError(Exception):
    """A value has no equal in the wanted type. ``row`` is its index; ``fault`` is its text and the rule."""

    def __init__(self, row: int, fault: str) -> None:
        super().__init__(row, fault)
        self.row = row
        self.fault = fault


class _InexactError(Exception):
    """A value has no equal in the wanted type."""


_FAULTS = (_InexactError, TimeTextError, pa.ArrowInvalid)


def cast_values(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return values of a plain type in `to_arrow` of their column's type.

    ``source`` is the Paimon type of the values, which `is_castable` to ``target``. Raises UnfitValueError for the first
    value that does not fit.
    """
    try:
        return _cast(values, source, target)
    except _FAULTS:
        row = first_failing(len(values), _FAULTS, lambda at, size: _cast(values.slice(at, size), source, target))
        raise UnfitValueError(row, shown_value(values.slice(row, 1)) + does_not_fit(source, target)) from None


def first_failing(rows: int, faults: tuple[type[Exception], ...], attempt: Callable[[int, int], object]) -> int:
    """Return the index of the first row that fails, by bisection; at least one row must fail.

    ``attempt`` gets an index and a number of rows to try from there; it raises one of ``faults``.
    """
    start, stop = 0, rows
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            attempt(start, middle - start)
        except faults:
            stop = middle
        else:
            start = middle
    return start


def shown_value(one: pa.Array) -> str:
    """Return the text of the only value of an array, for an error."""
    if pa.types.is_floating(one.type) or pa.types.is_timestamp(one.type):
        return str(one.cast(pa.string())[0])
    try:
        value = one[0].as_py()
    except (ValueError, OverflowError):  # Python has only the years 1 to 9999.
        return shortened(str(one))
    return shortened(repr(value) if isinstance(value, (str, bytes, list, dict)) else str(value))


def _cast(values: pa.Array, source: DataType, target: DataType) -> pa.Array:
    if is_assignable(source, target):
        return cast_column(values, to_arrow(target))
    if isinstance(source, RowType) and isinstance(target, RowType):
        pairs = zip(source.fields, target.fields)
        members = [_cast(part, a.type, b.type) for part, (a, b) in zip(values.flatten(), pairs)]
        return pa.StructArray.from_arrays(members, fields=list(to_arrow(target)), mask=values.is_null())
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _with_parts(values, to_arrow(target), _cast(values.flatten(), source.element, target.element))
    if isinstance(source, MapType) and isinstance(target, (MapType, MultisetType)):
        wanted, (key, value) = to_arrow(target), entry_types(target)
        keys, items = entries(values).flatten()
        parts = [_cast(keys, source.key, key), _cast(items, source.value, value)]
        pairs = pa.StructArray.from_arrays(parts, fields=[wanted.key_field, wanted.item_field])
        return _with_parts(values, wanted, pairs)
    assert isinstance(source, AtomicType) and isinstance(target, AtomicType)
    return _cast_atom(values, source, target)


def _with_parts(lists: pa.Array, wanted: pa.DataType, parts: pa.Array) -> pa.Array:
    """Return lists or maps with the lengths of ``lists``; ``parts`` has no values for NULL."""
    lengths = np.zeros(0, np.int64)
    if len(lists):
        offsets = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset : lists.offset + len(lists) + 1]
        lengths = np.where(lists.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets), 0)
    return lists_of(wanted, lengths, lists.is_valid(), parts)


def lists_of(wanted: pa.DataType, lengths: npt.NDArray[np.int64], validity: pa.Array, parts: pa.Array) -> pa.Array:
    """Return lists or maps of a type from the number of parts of each, their validity, and the parts of all."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    bits = validity_buffer(validity) if validity.false_count else None
    return pa.Array.from_buffers(wanted, len(lengths), [bits, pa.py_buffer(offsets)], children=[parts])


def _cast_atom(values: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    wanted = to_arrow(target)
    if source.root in STRING_ROOTS:
        return times_of_text(values, target)
    if target.root == "DATE":
        days = values.cast(wanted, safe=False)
        return _checked(days, pc.equal(days.cast(values.type), values))
    if target.root == "TIME":
        return values.cast(pa.int32()).cast(wanted)
    if target.root in ("FLOAT", "DOUBLE"):
        return _floats(values, source, wanted)
    if target.root == "DECIMAL" and source.root in WHOLE_FLOATS:
        decimals = values.cast(pa.string()).cast(wanted)  # Arrow casts some texts below 1e-30 to 0.
        same = pc.equal(decimals.cast(pa.string()).cast(values.type), values)
        return _checked(decimals, pc.and_(same, pc.less(pc.abs(values), float(WHOLE_FLOATS[source.root]))))
    if target.root == "DECIMAL" and source.root in INTEGER_ROOTS:
        return values.cast(_WHOLE).cast(wanted)
    return values.cast(wanted)


def _floats(values: pa.Array, source: AtomicType, wanted: pa.DataType) -> pa.Array:
    if source.root in INTEGER_ROOTS:
        floats = values.cast(wanted, safe=False)
        return _checked(floats, pa.array(_equal_integers(values, floats), mask=_mask(values)))
    if source.root == "DECIMAL":
        floats = values.cast(pa.string()).cast(wanted)
        return _checked(floats, pc.equal(floats.cast(pa.string()).cast(values.type), values))
    floats = values.cast(wanted)
    same = pc.or_(pc.equal(floats.cast(pa.float64()), values), pc.is_nan(values))
    if not _all(same):  # As a FLOAT, 0.1 is another number with the same decimal text.
        same = pc.or_(same, pc.equal(floats.cast(pa.string()).cast(pa.float64()), values))
    return _checked(floats, same)


def _equal_integers(values: pa.Array, floats: pa.Array) -> npt.NDArray[np.bool_]:
    """Return whether floats equal the whole numbers that they were cast from; arbitrary for NULL."""
    numbers: npt.NDArray[Any] = pc.fill_null(values, 0).cast(pa.int64()).to_numpy()
    found = pc.fill_null(floats, 0).to_numpy().astype(np.float64)
    below = found < _LONG_LIMIT
    same: npt.NDArray[np.bool_] = below & (np.where(below, found, 0).astype(np.int64) == numbers)
    return same


def _mask(values: pa.Array) -> npt.NDArray[np.bool_] | None:
    return values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None


def _checked(cast: pa.Array, same: pa.Array) -> pa.Array:
    """Return the cast values. Raises _InexactError if a value is not the ``same``; NULL always is."""
    if not _all(same):
        raise _InexactError
    return cast


def _all(flags: pa.Array) -> bool:
    return bool(pc.all(flags, skip_nulls=True, min_count=0).as_py())
