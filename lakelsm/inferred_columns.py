"""The columns of a new table, from a schema, a mapping of types, or the types of a frame."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.arguments import checked_text, wrong_argument
from lakelsm.errors import InvalidInputError, error_context
from lakelsm.local.arrow_input import ArrowInput, is_spark_frame
from lakelsm.local.arrow_values import plain_type, value_type
from lakelsm.local.inferred_values import check_one_kind, plain_values
from lakelsm.schema.schema_merge import inferred_type
from lakelsm.schema.table_schema import check_unique
from lakelsm.types import (
    MAX_DECIMAL_DIGITS,
    UNASSIGNED_ID,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    from_arrow,
    parse_type,
)

#: The columns that `lakelsm.schema.table_schema.create_schema` accepts.
_Columns: TypeAlias = "Sequence[DataField] | pa.Schema | str"

_KINDS = (
    "a DDL text such as 'id INT, v STRING', a mapping of names to types such as {'id': 'INT'}, a pyarrow or Spark "
    "schema, or a frame (pandas, Polars, pyarrow, Spark, a list of dicts, a dict of columns)"
)
_TYPES = (str, DataType, pa.DataType)
MICROS, NANOS = 6, 9


@dataclass(frozen=True)
class GivenColumns:
    """The columns of a new table, and the rows of the frame that they were inferred from (None for a schema)."""

    columns: _Columns
    rows: Any = None


def given_columns(given: Any) -> GivenColumns:
    """Return the columns of an argument. Raises InvalidInputError with the column for a type that Paimon does not have.

    A schema is returned unchanged. From a frame, all columns are nullable, timestamps have at least microseconds, and
    Python's decimals 38 digits, because later rows may differ from those of the frame.
    """
    if isinstance(given, (str, pa.Schema)):
        return GivenColumns(given)
    if type(given).__module__.startswith("pyspark.sql"):
        return _of_spark(given)
    if isinstance(given, Mapping) and (not given or any(isinstance(kind, _TYPES) for kind in given.values())):
        return GivenColumns(tuple(_of_type(name, kind) for name, kind in given.items()))
    if isinstance(given, Mapping) or _is_list_of_dicts(given):
        return _of_frame(_table_of(given), MICROS)
    if _is_frame(given):
        return _of_frame(given, MICROS if is_pandas(given) else NANOS)
    if isinstance(given, Sequence) and all(isinstance(column, DataField) for column in given):
        return GivenColumns(given)
    raise InvalidInputError(f"schema: expected {_KINDS}, got {type(given).__name__}.")


def _of_spark(given: Any) -> GivenColumns:
    from lakelsm.spark.spark_types import from_struct_type

    if not is_spark_frame(given):
        return GivenColumns(from_struct_type(given))
    from lakelsm.spark.session import checked_frame

    checked_frame(given)
    columns = from_struct_type(given.schema)
    return GivenColumns(tuple(replace(column, type=inferred_type(column.type)) for column in columns), given)


def _of_type(name: Any, kind: str | DataType | pa.DataType) -> DataField:
    if not isinstance(kind, _TYPES):
        raise wrong_argument(f"the type of column '{name}'", kind, "a text such as 'INT', or a type of pyarrow")
    with error_context(f"column '{name}'"):
        found = kind if isinstance(kind, DataType) else parse_type(kind) if isinstance(kind, str) else from_arrow(kind)
    return DataField(UNASSIGNED_ID, name, found)


def _is_frame(given: Any) -> bool:
    """Return whether `ArrowInput` accepts the value, or raises an error with a remedy."""
    package = type(given).__module__.split(".")[0]
    has_stream = not isinstance(given, type) and hasattr(given, "__arrow_c_stream__")
    return has_stream or package in ("pandas", "polars", "pyarrow", "pyspark")


def _is_list_of_dicts(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and bool(given) and all(isinstance(row, Mapping) for row in given)


def _table_of(given: Any) -> pa.Table:
    """Convert a dict of columns or a list of dicts (missing values are NULL) with the types that Arrow infers."""
    if not isinstance(given, Mapping):
        names = dict.fromkeys(name for row in given for name in row)
        given = {name: [row.get(name) for row in given] for name in names}
    columns = {checked_text("the name of a column", name, "a text"): natural_array(name, given[name]) for name in given}
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise InvalidInputError(f"schema: columns have different numbers of rows: {sizes}.")
    return pa.table(columns)


def natural_array(name: str, values: Any) -> pa.Array:
    """Convert a column of Python values with the type that Arrow infers; decimals have 38 digits."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise wrong_argument(f"column '{name}'", values, "a list of values, or the text of a type such as 'INT'")
    try:
        if isinstance(values, (list, tuple)) or _is_object(values):
            check_one_kind(values := plain_values(list(values)))
        found = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"column '{name}': its values have no common type ({error}). Pass its type.") from error
    if pa.types.is_decimal128(found.type):  # Arrow infers only the digits of these values.
        return found.cast(pa.decimal128(MAX_DECIMAL_DIGITS, found.type.scale))
    return found


def _is_object(values: Any) -> bool:
    """Return whether a column of numpy or pandas has Python objects."""
    dtype = getattr(values, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.hasobject


def is_pandas(frame: Any) -> bool:
    """Return whether a frame is a pandas DataFrame, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(frame, pandas.DataFrame)


def is_polars(frame: Any) -> bool:
    """Return whether a frame is a Polars DataFrame, without importing Polars."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(frame, polars.DataFrame)


def _of_frame(frame: Any, finest: int) -> GivenColumns:
    """Return the columns of a frame; times in nanoseconds get the precision ``finest``."""
    rows = ArrowInput.of(frame, "schema")
    check_unique(rows.schema.names, "column")
    found: list[DataField] = []
    coarser: dict[int, DataType] = {}
    for at, column in enumerate(rows.schema):
        with error_context(f"column '{column.name}'"):
            kind = inferred_type(coarsened(value_type(plain_type(column.type)), finest))
        if isinstance(kind, AtomicType) and kind.root == "DECIMAL" and has_objects(frame, at):
            kind = replace(kind, precision=MAX_DECIMAL_DIGITS)
        found.append(DataField(UNASSIGNED_ID, column.name, kind))
        if is_coarser(kind, column.type):
            coarser[at] = kind
    batches = (checked_times(batch, coarser) for batch in rows.batches)
    return GivenColumns(tuple(found), pa.RecordBatchReader.from_batches(rows.schema, batches))


def has_objects(frame: Any, at: int) -> bool:
    """Return whether a column of a pandas DataFrame has Python objects, so that Arrow infers its type from the values."""
    return is_pandas(frame) and isinstance(frame.dtypes.iloc[at], np.dtype) and frame.dtypes.iloc[at].hasobject


def coarsened(kind: DataType, finest: int) -> DataType:
    """Return a type in which times in nanoseconds have the precision ``finest``."""
    if isinstance(kind, ArrayType):
        return replace(kind, element=coarsened(kind.element, finest))
    if isinstance(kind, MapType):
        return replace(kind, key=coarsened(kind.key, finest), value=coarsened(kind.value, finest))
    if isinstance(kind, RowType):
        return replace(kind, fields=tuple(replace(each, type=coarsened(each.type, finest)) for each in kind.fields))
    if isinstance(kind, AtomicType) and kind.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and kind.precision == NANOS:
        return replace(kind, precision=finest)
    return kind


def is_coarser(kind: DataType, given: pa.DataType) -> bool:
    """Return whether the type of a column has fewer digits of times than the frame."""
    if not isinstance(kind, AtomicType) or not (pa.types.is_timestamp(given) or pa.types.is_time64(given)):
        return False
    return {"us": 6, "ns": 9}.get(given.unit, 0) > (kind.precision or 0)


def checked_times(batch: pa.RecordBatch, coarser: Mapping[int, DataType]) -> pa.RecordBatch:
    """Return the batch. Raises InvalidInputError if a write would cut digits of a time."""
    for at, kind in coarser.items():
        given = batch.column(at)
        unit = pa.timestamp("us", given.type.tz) if pa.types.is_timestamp(given.type) else pa.time32("ms")
        cut = pc.not_equal(given, given.cast(unit, safe=False).cast(given.type))
        if pc.any(cut).as_py():
            value = given.filter(cut)[0]
            raise InvalidInputError(
                f"column '{batch.schema.names[at]}': {value} is finer than the inferred type {kind.sql()}. Round it, or "
                "pass the types of the columns."
            )
    return batch
