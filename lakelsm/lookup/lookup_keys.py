"""Keys of the user, converted to stored values. A value that no row can have is not an error: it finds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.arguments import wrong_argument
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError, error_context
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.local.arrow_rows import normalized_floats
from lakelsm.local.arrow_values import plain_array, plain_type, value_type
from lakelsm.local.inferred_values import check_one_kind
from lakelsm.local.python_input import column_values, is_column
from lakelsm.schema.identifiers import folded
from lakelsm.schema.row_rules import OnlyNull, is_comparable
from lakelsm.schema.table_schema import TableSchema
from lakelsm.text_table import amount
from lakelsm.types import INTEGER_BITS, DataField, DataType, output_arrow, python_arrow, to_arrow

#: A type for all integers and decimals of columns, whose absolute values are below `_ALL_DIGITS`.
_WHOLE = pa.decimal256(76, 38)
_ALL_DIGITS = 10**38


@dataclass(frozen=True)
class GivenKeys:
    """Keys as the user gave them: ``rows`` with columns in the order of the key. ``stored`` are the keys that rows of the
    table can have, ``indexes`` their indexes in ``rows`` (None: all).
    """

    rows: pa.Table
    stored: pa.Table
    indexes: npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class LookupKeys:
    """The key of a lookup: ``fields`` are its columns in order, ``partitioned`` the names of the partition columns."""

    fields: tuple[DataField, ...]
    partitioned: frozenset[str]

    @staticmethod
    def of(schema: TableSchema, names: Sequence[str]) -> LookupKeys:
        """Return the key of some columns. Raises InvalidInputError for nested columns, which cannot be compared."""
        fields = tuple(map(schema.field, names))
        nested = next((field for field in fields if pa.types.is_nested(to_arrow(field.type))), None)
        if nested is not None:
            raise InvalidInputError(
                f"key column '{nested.name}' has type {nested.type.sql()}. Look rows up by columns that are not nested."
            )
        return LookupKeys(fields, frozenset(schema.partition_keys))

    @property
    def names(self) -> list[str]:
        """The names of the columns, as in the table."""
        return [field.name for field in self.fields]

    @property
    def text(self) -> str:
        """The names of the columns, for messages."""
        return ", ".join(self.names)

    def single(self) -> Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[Any, ...] | None]:
        """Return a function from the values of one key, by position or name, to stored ones (None: no row has it)."""
        converters = [_converter(field, field.name in self.partitioned) for field in self.fields]

        def stored(values: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...] | None:
            given = values if len(values) == len(converters) and not named else self._ordered(values, named)
            found = tuple([convert(value) for convert, value in zip(converters, given)])
            return None if None in found else found

        return stored

    def _ordered(self, values: tuple[Any, ...], named: Mapping[str, Any]) -> Sequence[Any]:
        """Return the values in the order of the key. Raises InvalidInputError for missing and unknown columns."""
        known = {folded(name): name for name in self.names}
        given = dict(zip(self.names, values))
        for name, value in named.items():
            column = known.get(folded(name))
            if column is None:
                raise InvalidInputError(f"column '{name}' is not in the lookup's key ({self.text}).")
            if column in given:
                raise InvalidInputError(f"key column '{column}' is given twice. Give it once, by position or by name.")
            given[column] = value
        missing = [name for name in self.names if name not in given]
        if missing or len(values) > len(self.fields):
            raise InvalidInputError(
                f"column {_quoted(missing)} of the lookup's key ({self.text}) is missing."
                if missing
                else f"key: expected {amount(len(self.fields), 'value')} ({self.text}), got {len(values)}."
            )
        return [given[name] for name in self.names]

    def many(self, keys: object) -> GivenKeys:
        """Convert rows in any form that a write accepts (except Spark's), or a list of values, tuples or dicts.

        Raises InvalidInputError for columns other than the key's, and for types that cannot have their values.
        """
        if isinstance(keys, (set, frozenset)):
            keys = list(keys)
        if isinstance(keys, (list, tuple, range)):
            rows = self._listed(keys)
        elif isinstance(keys, Mapping) or (is_column(keys) and len(self.names) == 1):
            rows = self._columns(keys if isinstance(keys, Mapping) else {self.names[0]: keys})
        else:
            given = ArrowInput.of(keys, "keys")
            rows = pa.Table.from_batches(given.batches, given.schema).select(self._positions(given.schema.names))
        stored = [self._stored(field, column) for field, column in zip(self.fields, rows.columns)]
        table = pa.Table.from_arrays(stored, self.names)
        if not any(column.null_count for column in stored):
            return GivenKeys(rows, table, None)
        known = np.ones(len(table), np.bool_)
        for column in stored:
            known &= column.is_valid().to_numpy()
        return GivenKeys(rows, table.filter(pa.array(known)), np.flatnonzero(known))

    def _listed(self, keys: Sequence[Any]) -> pa.Table:
        """Convert a list: of values if the key has one column, of tuples in the order of its columns, or of dicts."""
        kinds, names = set(map(type, keys)), self.names
        columns: list[Sequence[Any]]
        if kinds and all(issubclass(kind, Mapping) for kind in kinds):
            names = list(dict.fromkeys(chain.from_iterable(keys)))
            if not all(isinstance(name, str) for name in names):
                raise wrong_argument("keys", keys, f"a list of dicts by the names of columns ({self.text})")
            positions = self._positions(names)
            names = [names[position] for position in positions]
            missing = next((name for name in names if not all(name in key for key in keys)), None)
            if missing is not None:
                raise InvalidInputError(f"keys: a dict has no '{missing}'. Each dict needs all columns of ({self.text}).")
            columns = [list(map(itemgetter(name), keys)) for name in names]
        elif kinds and all(issubclass(kind, (tuple, list)) for kind in kinds) and {*map(len, keys)} == {len(names)}:
            columns = list(zip(*keys))
        elif len(names) == 1 or not keys:
            columns = [keys for _ in names]
        else:
            raise wrong_argument("keys", keys, f"a list of tuples of {len(names)} values ({self.text}), or of dicts")
        return pa.Table.from_arrays([_arrow_values(field, values) for field, values in zip(self.fields, columns)], names)

    def _columns(self, columns: Mapping[Any, Any]) -> pa.Table:
        """Convert a dict of columns."""
        if not all(isinstance(name, str) for name in columns):
            raise wrong_argument("keys", columns, f"a dict of the columns {self.text}")
        names = [list(columns)[position] for position in self._positions(list(columns))]
        found = []
        for field, name in zip(self.fields, names):
            values = column_values(columns[name], name, "keys")
            found.append(values if isinstance(values, pa.ChunkedArray) else _arrow_values(field, list(values)))
        if len(set(map(len, found))) > 1:
            raise InvalidInputError(f"keys: the columns {self.text} differ in length. Give each of them as many values.")
        return pa.Table.from_arrays(found, names)

    def _positions(self, given: Sequence[str]) -> list[int]:
        """Return the positions of the key's columns among the ``given`` ones, whose case may differ."""
        counts = Counter(map(folded, given))
        twice = sorted({name for name in given if counts[folded(name)] > 1})
        if twice:
            raise InvalidInputError(f"keys: column {_quoted(twice)} occurs more than once. Rename or drop one.")
        at = {folded(name): position for position, name in enumerate(given)}
        missing = [name for name in self.names if folded(name) not in at]
        if missing:
            raise InvalidInputError(
                f"keys: column {_quoted(missing)} of the lookup's key ({self.text}) is missing. "
                f"Columns: {', '.join(given) or 'none'}."
            )
        wanted = {folded(name) for name in self.names}
        others = [name for name in given if folded(name) not in wanted]
        if others:
            raise InvalidInputError(
                f"keys: column {_quoted(others)} is not in the lookup's key ({self.text}). "
                f"keys.select({self.names}) leaves it out."
            )
        return [at[folded(name)] for name in self.names]

    def _stored(self, field: DataField, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Convert a column of keys to the table's stored type, with NULL for values that no row can have."""
        wanted = to_arrow(field.type)
        with error_context(f"key column '{field.name}'"):
            source = value_type(plain_type(column.type))
        zeros = field.name in self.partitioned
        if not is_comparable(source, field.type):
            target = output_arrow(field.type)
            raise InvalidInputError(
                f"key column '{field.name}': the keys have {column.type}, the table has {target} ({field.type.sql()}). "
                f"Cast the keys to {target}."
            )
        try:
            chunks = [normalized_floats(_as_stored(chunk, source, field.type), zeros) for chunk in column.chunks]
        except pa.ArrowException as error:
            what = f"key column '{field.name}': a value does not fit {field.type.sql()}"
            raise InvalidInputError(f"{what}: {' '.join(str(error).split())}") from error
        return pa.chunked_array(chunks, wanted)


def _as_stored(given: pa.Array, source: DataType, target: DataType) -> pa.Array:
    given.validate(full=True)
    values, wanted = plain_array(given), to_arrow(target)
    if values.type.equals(wanted):
        return values
    if isinstance(source, OnlyNull):
        return pa.nulls(len(values), wanted)
    if pa.types.is_decimal(values.type) or pa.types.is_decimal(wanted):
        return _equal_decimals(values, wanted)
    try:
        stored = cast_column(values, wanted)
    except UnsupportedFeatureError:  # A time outside the range of columns.
        return pa.nulls(len(values), wanted)
    is_whole = pa.types.is_integer(values.type) and pa.types.is_integer(wanted)
    is_finer = pa.types.is_timestamp(values.type) and pa.types.is_timestamp(wanted)
    if is_whole or is_finer or pa.types.is_time64(values.type):
        return _where_equal(stored, stored.cast(values.type, safe=False), values)
    return stored


def _where_equal(stored: pa.Array, back: pa.Array, values: pa.Array) -> pa.Array:
    """Return the stored values, with NULL where converting them back gives another value."""
    same = pc.equal(back, values)
    return stored if same.false_count == 0 else pc.if_else(same, stored, pa.scalar(None, stored.type))


def _equal_decimals(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert integers and decimals to another numeric type, with NULL for numbers that it cannot have."""
    numbers = inside = values.cast(_WHOLE)
    is_integer = pa.types.is_integer(wanted)
    end = 1 << wanted.bit_width - 1 if is_integer else 10 ** (wanted.precision - wanted.scale)
    if end < _ALL_DIGITS:
        before = pa.scalar(-end - is_integer, _WHOLE)
        fits = pc.and_(pc.greater(numbers, before), pc.less(numbers, pa.scalar(end, _WHOLE)))
        inside = pc.if_else(fits, numbers, pa.scalar(None, _WHOLE))
    stored = inside.cast(wanted, safe=False)
    return _where_equal(stored, stored.cast(_WHOLE), numbers)


def _converter(field: DataField, zeros: bool) -> Callable[[Any], Any]:
    """Return a function from one value to its stored form, as of `pa.Array.to_pylist` (None: no row can have it)."""
    plain, bits = _PLAIN.get(field.type.root), INTEGER_BITS.get(field.type.root)
    end = 1 << bits - 1 if bits else 0

    def stored(value: Any) -> Any:
        kind = type(value)
        if kind is int and end:
            return value if -end <= value < end else None
        if kind is plain and (kind is not str or value.isascii()):
            return value
        return _stored_value(field, value, zeros)

    return stored


#: Values of these types are stored unchanged.
_PLAIN: dict[str, type] = {
    "BOOLEAN": bool,
    "CHAR": str,
    "VARCHAR": str,
    "BINARY": bytes,
    "VARBINARY": bytes,
    "DATE": date,
}


def _stored_value(field: DataField, value: Any, zeros: bool) -> Any:
    """Return a Python value in its stored form. Raises InvalidInputError for NULL and for a value of another type."""
    wanted = f"a value of {field.type.sql()} ({output_arrow(field.type)})"
    argument = f"key column '{field.name}'"
    if hasattr(type(value), "__iter__") and not isinstance(value, (str, bytes, bytearray)):
        raise wrong_argument(argument, value, wanted)
    if type(value) is int and abs(value) >= _ALL_DIGITS:
        return None
    given = pa.repeat(value, 1) if isinstance(value, pa.Scalar) else _arrow_values(field, [value])
    if given.null_count:
        raise wrong_argument(argument, None, wanted, "NULL is equal to no value; get_many finds no row for it.")
    with error_context(argument):
        source = value_type(plain_type(given.type))
    if not is_comparable(source, field.type):
        raise wrong_argument(argument, value, wanted)
    try:
        stored = normalized_floats(_as_stored(given, source, field.type), zeros)
    except pa.ArrowException as error:
        raise wrong_argument(argument, value, wanted) from error
    try:
        found = stored[0].as_py()
        if found is not None and pa.types.is_time(stored.type) and pa.scalar(found, stored.type) != stored[0]:
            raise ValueError("it is not between 00:00 and 24:00")
        return found
    except (ValueError, OverflowError) as error:
        raise UnsupportedFeatureError(
            f"{argument}: Python cannot represent this time ({error}). Use get_many with keys in Arrow."
        ) from error


def _arrow_values(field: DataField, values: Sequence[Any]) -> pa.Array:
    """Convert values of Python or numpy to Arrow, unchanged. Raises InvalidInputError if Arrow cannot."""
    root = field.type.root
    try:
        if root in ("FLOAT", "DOUBLE"):
            return pa.array(values, python_arrow(field.type))
        fine = next((value for value in values if getattr(value, "nanosecond", 0)), None) if "TIME" in root else None
        if fine is not None:  # A time of pandas, whose nanoseconds Arrow would drop.
            return pa.array(values, pa.timestamp("ns", None if fine.tzinfo is None else "UTC"))
        check_one_kind(values)
        try:
            found = pa.array(values)
        except (pa.ArrowException, OverflowError):  # Integers beyond 64 bits, or mixed with decimals.
            found = pa.array([Decimal(value) if type(value) is int else value for value in values])
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        wanted = f"a value of {field.type.sql()} ({output_arrow(field.type)})"
        raise wrong_argument(f"key column '{field.name}'", values[0] if len(values) == 1 else values, wanted) from error
    return found.cast(output_arrow(field.type)) if pa.types.is_null(found.type) else found


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
