"""Rows as Python values (a list of dicts, a dict of columns, a list of keys) in the types of a table's columns.

Python values have no column types. Therefore each value is converted separately and accepted if it fits the column
(`lakelsm.schema.row_rules.is_castable`), beside values of other classes: text and dates may share a DATE column.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lakelsm.arguments import wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.local.arrow_casts import UnfitValueError
from lakelsm.local.arrow_input import BATCH_ROWS, ArrowInput
from lakelsm.local.inferred_values import check_one_kind, plain_values
from lakelsm.local.python_values import column_of
from lakelsm.schema.identifiers import match
from lakelsm.schema.row_rules import unfit_value
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataType, contiguous, to_arrow

#: Returns values of a column: arguments are the first index and the number of values.
_Part: TypeAlias = Callable[[int, int], Sequence[Any]]

_COLUMN_FORMS = "a list, a numpy array of one dimension, or an Arrow, pandas or Polars column"


def rows_input(data: object, schema: TableSchema) -> ArrowInput:
    """Return the rows that a user passes: a list of dicts, a dict of columns, or the forms of `ArrowInput.of`.

    An empty list has all columns of the table. A dict without a column that another dict has is NULL there. Raises
    InvalidInputError for any other value, and, when the batch is read, for a value that does not fit.
    """
    if isinstance(data, Mapping):
        return _input_of_columns(data, schema, "frame")
    if isinstance(data, (list, tuple)):
        return _input_of_rows(data, schema, schema.field_names, "frame")
    return data if isinstance(data, ArrowInput) else typed_input(data)


def typed_input(data: object) -> ArrowInput:
    """Return `ArrowInput.of` the rows. Its error also names the forms of Python values."""
    return ArrowInput.of(data, more_forms="a list of dicts, a dict of columns, ")


def python_columns(data: object) -> dict[str, pa.ChunkedArray | Sequence[Any]] | None:
    """Return the columns of rows in Python values by name, typed ones as Arrow; None for rows of another form.

    Raises InvalidInputError for an invalid row, column or name.
    """
    if isinstance(data, Mapping):
        return {_checked_name(name, "frame"): column_values(data[name], name, "frame") for name in data}
    if isinstance(data, (list, tuple)):
        return {name: _part_of_rows(data, name, 0, len(data)) for name in _names_of_rows(data, (), "frame")}
    return None


def is_column(data: object) -> bool:
    """Return whether a user passes a column of values: of numpy, Arrow, pandas or Polars."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    return (
        isinstance(data, (np.ndarray, pa.Array, pa.ChunkedArray))
        or (pandas is not None and isinstance(data, (pandas.Series, pandas.Index)))
        or (polars is not None and isinstance(data, polars.Series))
    )


def keys_input(data: object, schema: TableSchema) -> ArrowInput:
    """Return the keys that a user passes: a list or column of values, or, for a key of several columns, a list of tuples
    in the order of the primary key, or the forms of `rows_input`.
    """
    names = schema.primary_keys
    if is_column(data) and len(names) == 1:
        data = {names[0]: data}
    if isinstance(data, Mapping):
        return _input_of_columns(data, schema, "keys")
    if not isinstance(data, (list, range, set, frozenset)):
        return ArrowInput.of(data, "keys", more_forms="a list of key values, ")
    keys = list(data)
    if not keys or isinstance(keys[0], Mapping):
        return _input_of_rows(keys, schema, names, "keys")
    if len(names) == 1:
        return _input_of_columns({names[0]: keys}, schema, "keys")
    for row, key in enumerate(keys, 1):
        if not isinstance(key, (tuple, list)) or len(key) != len(names):
                        wanted = f"a tuple of {len(names)} values, those of the primary key {', '.join(names)}"
                        raise wrong_argument(f"keys, row {row}", key, wanted)
    return _input_of_columns(dict(zip(names, map(list, zip(*keys)))), schema, "keys")


def _input_of_rows(rows: Sequence[Any], schema: TableSchema, empty: Sequence[str], argument: str) -> ArrowInput:
    """Return rows as dicts as an input; ``empty`` are the columns if there are none."""
    names = _names_of_rows(rows, empty, argument)
    return _input({name: partial(_part_of_rows, rows, name) for name in names}, {}, len(rows), schema, argument)


def _names_of_rows(rows: Sequence[Any], empty: Sequence[str], argument: str) -> list[str]:
    for row, given in enumerate(rows, 1):
        if not isinstance(given, Mapping):
                        remedy = "Pass a list of dicts, or a dict of columns."
                        raise wrong_argument(f"{argument}, row {row}", given, "a dict", remedy)
    names = dict.fromkeys(chain.from_iterable(rows)) if rows else empty
    return [_checked_name(name, argument) for name in names]


def _checked_name(name: object, argument: str) -> str:
    if not isinstance(name, str):
        raise wrong_argument(f"a column's name in {argument}", name, "a text")
    return name


def _part_of_rows(rows: Sequence[Any], name: str, start: int, size: int) -> list[Any]:
    return [row.get(name) for row in rows[start : start + size]]


def _part_of_column(values: Sequence[Any], start: int, size: int) -> Sequence[Any]:
    return values[start : start + size]


def _input_of_columns(columns: Mapping[Any, Any], schema: TableSchema, argument: str) -> ArrowInput:
    typed: dict[str, pa.ChunkedArray] = {}
    parts: dict[str, _Part] = {}
    sizes: dict[str, int] = {}
    for name, given in columns.items():
        values = column_values(given, _checked_name(name, argument), argument)
        sizes[name] = len(values)
        if isinstance(values, pa.ChunkedArray):
            typed[name] = values
        else:
            parts[name] = partial(_part_of_column, values)
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"'{name}' has {size}" for name, size in sizes.items())
        raise InvalidInputError(
            f"{argument}: its columns differ in length ({shown}). Give each the same number of values."
        )
    return _input(parts, typed, next(iter(sizes.values()), 0), schema, argument)


def column_values(values: Any, name: object, argument: str) -> pa.ChunkedArray | Sequence[Any]:
    """Return a column of a dict: an Arrow column if its values have a type, else a sequence of Python values."""
    if isinstance(values, (list, tuple, range)):
        return values
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(values, polars.Series) and values.dtype == polars.Object:
        return list(values)  # Arrow would get their memory addresses.
    what = f"column '{name}' of {argument}"
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidInputError(f"{what}: expected {_COLUMN_FORMS}, got an array of {values.ndim} dimensions.")
        if values.dtype.hasobject:
            return list(values)
        if not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
    is_array = isinstance(values, (pa.Array, pa.ChunkedArray, np.ndarray)) or hasattr(values, "__arrow_c_stream__")
    if not is_array and not hasattr(values, "__arrow_c_array__") and not hasattr(values, "__array__"):
        raise wrong_argument(what, values, _COLUMN_FORMS)
    try:
        if isinstance(values, pa.ChunkedArray):
            return values
        if not isinstance(values, (pa.Array, np.ndarray)) and hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        found = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"{what} has no Arrow type ({error}). Give its values one type.") from error
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _input(
    parts: Mapping[str, _Part], typed: Mapping[str, pa.ChunkedArray], rows: int, schema: TableSchema, argument: str
) -> ArrowInput:
    """Return the input of typed columns and of columns of Python values. The latter get the type of the table's column,
    or an inferred type if the table has no such column.
    """
    kinds: dict[str, DataType] = {}
    whole = dict(typed)
    for name, part in parts.items():
        own = match(name, schema.field_names)
        if own is not None:
            kinds[name] = schema.field(own).type
        else:
            whole[name] = pa.chunked_array([_inferred_column(part(0, rows), name, argument)])
    fields = [(name, to_arrow(kinds[name]) if name in kinds else whole[name].type) for name in (*typed, *parts)]

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, BATCH_ROWS):
            size = min(BATCH_ROWS, rows - start)
            values = {name: contiguous(column.slice(start, size)) for name, column in whole.items()}
            values.update(_typed_columns({name: parts[name](start, size) for name in kinds}, kinds, start))
            yield pa.RecordBatch.from_arrays([values[name] for name, _ in fields], schema=pa.schema(fields))

    reader = pa.RecordBatchReader.from_batches(pa.schema(fields), batches())
    return ArrowInput.of(reader, argument, fitted=frozenset(kinds))


def _typed_columns(values: Mapping[str, Sequence[Any]], kinds: Mapping[str, DataType], start: int) -> dict[str, pa.Array]:
    """Return the columns in their types. Raises InvalidInputError for the first row with a value that does not fit."""
    arrays: dict[str, pa.Array] = {}
    unfit: list[tuple[int, str, str]] = []
    for name, column in values.items():
        try:
            arrays[name] = column_of(column, kinds[name])
        except UnfitValueError as error:
            unfit.append((error.row, name, error.fault))
    if unfit:
        row, name, fault = min(unfit, key=lambda each: each[0])
        raise unfit_value(start + row + 1, name, fault)
    return arrays


def _inferred_column(values: Sequence[Any], name: str, argument: str) -> pa.Array:
    """Return a column that the table does not have, with an inferred type."""
    try:
        check_one_kind(values := plain_values(values))
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        what = f"column '{name}' of {argument}"
        raise InvalidInputError(f"{what} has no Arrow type ({error}). Give its values one type.") from error
