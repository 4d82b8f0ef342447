"""Python values as a column of a Paimon type, each if it fits: converted to Arrow by class, then cast by value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.local.arrow_casts import UnfitValueError, cast_values, first_failing, lists_of
from lakelsm.local.arrow_values import plain_array, value_type
from lakelsm.local.inferred_values import plain_values
from lakelsm.schema.identifiers import folded
from lakelsm.schema.row_rules import does_not_fit, entry_types, is_castable, shortened
from lakelsm.types import ArrayType, DataType, MapType, MultisetType, RowType, to_arrow

#: Errors of Arrow and Python for values that do not fit a type.
_FAULTS = (pa.ArrowException, TypeError, ValueError, OverflowError, InvalidInputError)
#: The Arrow types of classes; a subclass comes before its base class.
_SIMPLE: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    np.bool_: pa.bool_(),
    np.float16: pa.float32(),
    np.float32: pa.float32(),
    float: pa.float64(),
    np.floating: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    bytearray: pa.binary(),
    memoryview: pa.binary(),
}


@dataclass(frozen=True)
class _Form:
    """The conversion of values of some classes to the wanted type. Classes with one name are converted together."""

    name: str
    array: Callable[[Sequence[Any], DataType], pa.Array]


def column_of(values: Sequence[Any], target: DataType) -> pa.Array:
    """Return values, which may contain None, as a column: in `to_arrow` of its type.

    Raises UnfitValueError for the first value that does not fit.
    """
    values = plain_values(values)
    forms = {cls: _form(cls, target) for cls in set(map(type, values)) - {type(None)}}
    taken = {form.name: form for form in forms.values() if form is not None}
    if None not in forms.values() and len(taken) <= 1:
        form = next(iter(taken.values()), None)
        return pa.nulls(len(values), to_arrow(target)) if form is None else _converted(values, form, target)
    return _mixed(values, forms, target)


def _mixed(values: Sequence[Any], forms: Mapping[type, _Form | None], target: DataType) -> pa.Array:
    """Return a column of values with several forms."""
    names = [None if value is None else _name(forms[type(value)]) for value in values]
    arrays, indexes = [pa.nulls(1, to_arrow(target))], np.zeros(len(values), np.int64)
    unfit: list[tuple[int, str]] = []
    size = 1
    for form in dict.fromkeys(forms.values()):
        rows = [at for at, name in enumerate(names) if name is not None and name == _name(form)]
        part = [values[at] for at in rows]
        if form is None:
            unfit.append((rows[0], _fault(part[0], target)))
            continue
        try:
            arrays.append(_converted(part, form, target))
        except UnfitValueError as error:
            unfit.append((rows[error.row], error.fault))
        indexes[rows] = np.arange(size, size + len(rows))
        size += len(rows)
    if unfit:
        raise UnfitValueError(*min(unfit))
    return pa.concat_arrays(arrays).take(pa.array(indexes))


def _name(form: _Form | None) -> str:
    return "" if form is None else form.name


def _converted(values: Sequence[Any], form: _Form, target: DataType) -> pa.Array:
    try:
        return form.array(values, target)
    except UnfitValueError:
        raise
    except _FAULTS:
        row = first_failing(len(values), _FAULTS, lambda at, size: form.array(values[at : at + size], target))
        raise UnfitValueError(row, _fault(values[row], target)) from None


def _fault(value: Any, target: DataType) -> str:
    try:
        shown = repr(value) if isinstance(value, (str, bytes, list, tuple, dict)) else str(value)
    except Exception:  # noqa: BLE001  The repr of a user's class can raise anything.
        shown = f"a {type(value).__name__}"
    source = value_type(pa.string()) if isinstance(value, str) else target
    return shortened(shown) + does_not_fit(source, target)


def _form(cls: type, target: DataType) -> _Form | None:
    """Return the form of values of a class for a column; None if the column accepts none of them."""
    if isinstance(target, (ArrayType, RowType, MapType, MultisetType)):
        return _nested_form(cls, target)
    for base in cls.__mro__:
        if base in _SIMPLE:
            return _castable(_SIMPLE[base], target)
        if base in (int, np.integer):
            return _Form("int", _whole_numbers)
        if base is Decimal:
            return _Form("decimal", _decimals)
        if base is dt.time:
            return _Form("time", _clock_times)
        if base is dt.datetime:
            return _Form("datetime", _times)
        if base is dt.date:
            return _castable(pa.date32(), target)
        if base is np.datetime64:
            return _Form("datetime64", _numpy_times)
    return None


def _castable(kind: pa.DataType, target: DataType) -> _Form | None:
    """Return the form of values with an Arrow type; None if the column does not accept that type."""
    if not is_castable(value_type(kind), target):
        return None
    return _Form(str(kind), lambda values, wanted: _cast(pa.array(values, kind), wanted))


def _cast(array: pa.Array, target: DataType) -> pa.Array:
    """Return the array as the column's type. Raises InvalidInputError if the column does not accept its type."""
    array = plain_array(array)
    source = value_type(array.type)
    if not is_castable(source, target):
        raise InvalidInputError(f"{source} cannot be cast to {target}")
    return cast_values(array, source, target)


def _whole_numbers(values: Sequence[Any], target: DataType) -> pa.Array:
    try:
        array = pa.array(values, pa.int64())
    except OverflowError:
        array = pa.array([None if value is None else int(value) for value in values], pa.decimal128(38, 0))
    return _cast(array, target)


def _decimals(values: Sequence[Any], target: DataType) -> pa.Array:
    wanted = to_arrow(target)
    if pa.types.is_decimal(wanted):
        return pa.array(values, wanted)
    if not pa.types.is_floating(wanted):
        return _cast(pa.array(values, pa.decimal128(38, 0)), target)
    floats = pa.array([None if value is None else str(value) for value in values], pa.string()).cast(wanted)
    texts = floats.cast(pa.string()).to_pylist()
    if any(value is not None and Decimal(text) != value for text, value in zip(texts, values)):
        raise ValueError("a number has no equal float")
    return floats


def _clock_times(values: Sequence[Any], target: DataType) -> pa.Array:
    if any(value is not None and value.tzinfo is not None for value in values):
        raise ValueError("a time of day has a time zone")
    return _cast(pa.array(values, pa.time64("us")), target)


def _times(values: Sequence[Any], target: DataType) -> pa.Array:
    """Convert datetimes: those with a time zone are instants, and pandas' own have nanoseconds."""
    zoned = {value.tzinfo is not None for value in values if value is not None}
    if len(zoned) > 1:
        raise InvalidInputError("datetimes with and without a time zone are mixed")
    zone = "UTC" if True in zoned else None
    fine = any(getattr(value, "nanosecond", 0) for value in values)
    return _cast(pa.array(values, pa.timestamp("ns" if fine else "us", zone)), target)


def _numpy_times(values: Sequence[Any], target: DataType) -> pa.Array:
    finest = max((np.datetime_data(value.dtype)[0] for value in values if value is not None), key=_UNITS.index)
    unit = "ns" if finest in ("ns", "ps", "fs", "as") else "us"
    times = [np.datetime64("NaT") if value is None else value for value in values]
    return _cast(pa.array(np.array(times, f"datetime64[{unit}]")), target)


#: numpy's units of time, the coarsest first.
_UNITS = ("generic", "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")


# -- nested values ---------------------------------------------------------------------------------------------------


def _nested_form(cls: type, target: DataType) -> _Form | None:
    is_list = issubclass(cls, (list, tuple, np.ndarray))
    if isinstance(target, ArrayType):
        return _Form("list", _lists) if is_list else None
    if isinstance(target, RowType):
        return _Form("row", _rows) if issubclass(cls, Mapping) else None
    return _Form("map", _maps) if is_list or issubclass(cls, Mapping) else None


def _parts(
    values: Sequence[Any], parts: Sequence[Any], lengths: Sequence[int], kind: DataType, whole: DataType
) -> pa.Array:
    """Return the parts of values as a column; an error names the value whose part does not fit."""
    try:
        return column_of(parts, kind)
    except UnfitValueError as error:
        row = int(np.searchsorted(np.cumsum(lengths), error.row, side="right"))
        raise UnfitValueError(row, _fault(values[row], whole)) from None


def _lists(values: Sequence[Any], target: DataType) -> pa.Array:
    assert isinstance(target, ArrayType)
    lengths = [0 if value is None else len(value) for value in values]
    parts = list(chain.from_iterable(_valid(values)))
    elements = _parts(values, parts, lengths, target.element, target)
    return lists_of(to_arrow(target), np.array(lengths, np.int64), _validity(values), elements)


def _maps(values: Sequence[Any], target: DataType) -> pa.Array:
    """Convert dicts or lists of pairs to maps."""
    assert isinstance(target, (MapType, MultisetType))
    pairs = [None if value is None else list(value.items() if isinstance(value, Mapping) else value) for value in values]
    lengths = [0 if value is None else len(value) for value in pairs]
    entries = list(chain.from_iterable(_valid(pairs)))
    if any(isinstance(entry, (Mapping, str, bytes)) or len(entry) != 2 for entry in entries):
        raise ValueError("a map must be a dict or a list of pairs")
    key, item = entry_types(target)
    wanted = to_arrow(target)
    keys = _parts(values, [entry[0] for entry in entries], lengths, key, target)
    items = _parts(values, [entry[1] for entry in entries], lengths, item, target)
    child = pa.StructArray.from_arrays([keys, items], fields=[wanted.key_field, wanted.item_field])
    return lists_of(wanted, np.array(lengths, np.int64), _validity(values), child)


def _rows(values: Sequence[Any], target: DataType) -> pa.Array:
    """Convert dicts to rows. A missing member is NULL."""
    assert isinstance(target, RowType)
    names = set(chain.from_iterable(_valid(values)))
    if not all(isinstance(name, str) for name in names):
        raise ValueError("the name of a member must be a text")
    by_name = {folded(name): name for name in names}
    if len(by_name) < len(names) or by_name.keys() - {folded(member.name) for member in target.fields}:
        raise ValueError("a dict has a member that the type does not have")
    members = []
    for member in target.fields:
        name = by_name.get(folded(member.name))
        column = [None if value is None else value.get(name) for value in values]
        members.append(_parts(values, column, [1] * len(values), member.type, target))
    nulls = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(members, fields=list(to_arrow(target)), mask=nulls)


def _valid(values: Sequence[Any]) -> Iterable[Any]:
    return (value for value in values if value is not None)


def _validity(values: Sequence[Any]) -> pa.Array:
    return pa.array([value is not None for value in values], pa.bool_())
