"""The columns of a frame, compared with those of the table that it is written to (``merge_schema=True``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError, error_context
from lakelsm.inferred_columns import (
    MICROS,
    checked_times,
    coarsened,
    has_objects,
    is_coarser,
    is_pandas,
    is_polars,
    natural_array,
)
from lakelsm.local.arrow_casts import UnfitValueError
from lakelsm.local.arrow_input import ArrowInput, is_spark_frame
from lakelsm.local.arrow_values import plain_type, value_type
from lakelsm.local.python_input import python_columns, typed_input
from lakelsm.local.python_values import column_of
from lakelsm.schema.identifiers import folded, match
from lakelsm.schema.row_rules import is_assignable
from lakelsm.schema.schema_merge import FrameColumn, inferred_type
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import (
    INTEGER_ROOTS,
    MAX_DECIMAL_DIGITS,
    UNASSIGNED_ID,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    to_arrow,
)

_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")


@dataclass(frozen=True)
class FrameColumns:
    """A frame and its columns: `of_schema` returns them for a given schema of the table.

    Python values have no type: a column of them has the type of the table's column if each value fits it. Rows that are
    in memory (``is_in_memory``) can be read more than once.
    """

    of_schema: Callable[[TableSchema], list[FrameColumn]]
    is_in_memory: bool
    _take: Callable[[], Any]

    @staticmethod
    def of(frame: Any, *, by_value: bool = True) -> FrameColumns:
        """Return the columns of a frame that `Table.write` accepts. No Spark job runs.

        With ``by_value``, floats of pandas that are whole numbers are integers, because pandas turns integers into floats
        where a value is missing.
        """
        if is_spark_frame(frame):
            return FrameColumns(partial(_of_spark, frame), False, lambda: frame)
        python = python_columns(frame)
        if python is not None:
            return FrameColumns(partial(_of_python, python), True, lambda: frame)
        is_in_memory = is_pandas(frame) or is_polars(frame) or isinstance(frame, (pa.Table, pa.RecordBatch))
        rows = typed_input(frame)
        take = partial(typed_input, frame) if is_in_memory else lambda: rows
        return FrameColumns(partial(_of_arrow, frame, rows.schema, by_value), is_in_memory, take)

    def rows(self, new: Mapping[str, DataType]) -> Any:
        """Return the rows for `Engine.prepared`, for a table to which the ``new`` columns were added.

        A time that is finer than a new column is refused instead of being rounded down.
        """
        rows = self._take()
        if not isinstance(rows, ArrowInput):
            return rows
        kinds = {at: new[field.name] for at, field in enumerate(rows.schema) if field.name in new}
        coarser = {at: kind for at, kind in kinds.items() if is_coarser(kind, rows.schema.field(at).type)}
        return replace(rows, batches=(checked_times(batch, coarser) for batch in rows.batches)) if coarser else rows


def _of_spark(frame: Any, schema: TableSchema) -> list[FrameColumn]:
    from pyspark.sql.types import StructType

    from lakelsm.frames.prepare import value_type as spark_value_type
    from lakelsm.spark.spark_types import from_struct

    found = []
    for field in frame.schema.fields:
        try:
            kind = spark_value_type(field.dataType)
        except InvalidInputError:
            from_struct(StructType([field]))  # It raises an error with the column's name.
            raise
        found.append(FrameColumn(field.name, kind, field.metadata.get("comment")))
    return found


def _own(name: str, schema: TableSchema) -> DataType | None:
    """Return the type of the table's column of a name, or None if it is unknown."""
    known = match(name, schema.field_names)
    return None if known is None else schema.field(known).type


def _of_arrow(frame: Any, given: pa.Schema, by_value: bool, schema: TableSchema) -> list[FrameColumn]:
    found = []
    of_pandas = is_pandas(frame)
    for at, field in enumerate(given):
        own = _own(field.name, schema)
        with error_context(f"column '{field.name}'"):
            kind = value_type(plain_type(field.type))
        if of_pandas:
            kind = coarsened(kind, MICROS)
            kind = _of_decimals(kind, own) if has_objects(frame, at) else kind
            if by_value and _is_whole(frame.iloc[:, at], field.type, own):
                kind = own or kind
        found.append(FrameColumn(field.name, kind))
    return found


def _is_whole(column: Any, kind: pa.DataType, own: DataType | None) -> bool:
    """Return whether a pandas column has floats for an integer column, each missing or a value of that type."""
    if own is None or own.root not in INTEGER_ROOTS or not pa.types.is_floating(kind):
        return False
    values, limit = column.to_numpy(dtype=np.float64, na_value=np.nan), 2.0 ** (to_arrow(own).bit_width - 1)
    return bool(np.all(np.isnan(values) | ((np.floor(values) == values) & (values >= -limit) & (values < limit))))


def _of_decimals(kind: DataType, own: DataType | None) -> DataType:
    """Return the type for Python's decimals, for which Arrow infers only the digits of the values."""
    is_decimal = isinstance(kind, AtomicType) and kind.root == "DECIMAL"
    if not is_decimal or (own is not None and is_assignable(kind, own)):
        return kind
    return replace(kind, precision=MAX_DECIMAL_DIGITS)  # type: ignore[type-var]


# -- Python values ---------------------------------------------------------------------------------------------------


def _of_python(
    columns: Mapping[str, pa.ChunkedArray | Sequence[Any]], schema: TableSchema
) -> list[FrameColumn]:
    return [FrameColumn(name, _of_values(name, values, _own(name, schema))) for name, values in columns.items()]


def _of_values(name: str, values: pa.ChunkedArray | Sequence[Any], own: DataType | None) -> DataType:
    if isinstance(values, pa.ChunkedArray) or own is None:
        return _typed(name, values, is_new=own is None)
    try:
        return _type_for(name, values, own)
    except InvalidInputError:  # The values have no common type: the write names the one that does not fit.
        return own


def _typed(name: str, values: pa.ChunkedArray | Sequence[Any], is_new: bool) -> DataType:
    """Return the inferred type of a column. Raises InvalidInputError if a new column would lose digits of times."""
    with error_context(f"column '{name}'"):
        array = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([natural_array(name, values)])
        kind = coarsened(value_type(plain_type(array.type)), MICROS)
    if is_new and is_coarser(kind, array.type):
        for chunk in array.chunks:
            checked_times(pa.RecordBatch.from_arrays([chunk], [name]), {0: inferred_type(kind)})
    return kind


def _fits(values: Sequence[Any], own: DataType) -> bool:
    """Return whether a type can hold all values with all digits of times."""
    try:
        return not _is_finer(values, own, column_of(values, own))
    except UnfitValueError:
        return False


def _is_finer(values: Sequence[Any], own: DataType, stored: pa.Array) -> bool:
    if not isinstance(own, AtomicType) or own.root not in _TIMES or (own.precision or 0) >= MICROS:
        return False
    exact = column_of(values, replace(own, precision=MICROS))
    return bool(pc.any(pc.not_equal(exact, stored.cast(exact.type)), min_count=0).as_py())


def _type_for(name: str, values: Sequence[Any], own: DataType) -> DataType:
    """Return the type of values for a column of type ``own``: ``own`` for parts that fit it, else the inferred type."""
    if _fits(values, own):
        return own
    known = [value for value in values if value is not None]
    if isinstance(own, RowType) and all(isinstance(value, Mapping) for value in known):
        return _row_type_for(name, known, own)
    if isinstance(own, ArrayType) and all(isinstance(value, (list, tuple, np.ndarray)) for value in known):
        return ArrayType(_type_for(name, list(chain.from_iterable(known)), own.element))
    if isinstance(own, MapType) and all(isinstance(value, Mapping) for value in known):
        keys, items = (list(chain.from_iterable(part)) for part in (known, (value.values() for value in known)))
        return MapType(_type_for(name, keys, own.key), _type_for(name, items, own.value))
    return _typed(name, values, is_new=False)


def _row_type_for(name: str, values: Sequence[Mapping[Any, Any]], own: RowType) -> RowType:
    """Return the members of the type, then the new ones. Names of members are compared without case."""
    given = dict.fromkeys(chain.from_iterable(values))
    by_name = {folded(each): each for each in given if isinstance(each, str)}
    if len(by_name) < len(given):
        raise InvalidInputError(f"column '{name}': names of members must be texts that differ in more than case.")
    members = []
    for member in own.fields:
        key = by_name.pop(folded(member.name), None)
        part = [value.get(key) for value in values]
        members.append(replace(member, type=_type_for(f"{name}.{member.name}", part, member.type)))
    for key in by_name.values():
        kind = _typed(f"{name}.{key}", [value.get(key) for value in values], is_new=True)
        members.append(DataField(UNASSIGNED_ID, key, kind))
    return RowType(tuple(members))
