"""Prepares a user's Arrow rows for a write: checked and cast rows, with row kind and input order.

The same as for Spark frames, by the same rules (`lakelsm.schema.row_rules`). Columns and types are checked immediately,
rows when their batch is read: before the commit, so that a write with a faulty row makes nothing visible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError, error_context
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.format.data_file.key_value_file import row_schema
from lakelsm.format.row_kinds import INSERT, ROW_KINDS
from lakelsm.local.arrow_casts import UnfitValueError, cast_values
from lakelsm.local.arrow_faults import check_values, refuse_any
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.local.arrow_values import plain_array, plain_type, value_type
from lakelsm.options import TableOptions
from lakelsm.schema.row_rules import (
    check_columns,
    is_assignable,
    is_castable,
    kind_column,
    longest_value,
    names_of_table,
    not_assignable,
    null_column,
    other_partition,
    refused_rows,
    too_long,
    unfit_value,
    unknown_row_kind,
    untouched_columns,
    wrong_row_kind_type,
)
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import STRING_ROOTS, DataField, DataType, output_arrow, python_arrow, to_arrow
from lakelsm.types.python_arrays import array_of

_KINDS = array_of(ROW_KINDS, pa.string())

#: Computes one column of the rows from an input batch.
_Column = Callable[[pa.RecordBatch], pa.Array]


def prepare_arrow(
    given: ArrowInput,
    schema: TableSchema,
    options: TableOptions,
    row_kind: str | None = None,
    *,
    fixed: Mapping[str, object] | None = None,
    stored: bool = False,
    safe_casts: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Return the rows to write: their numbers in input order, row kinds, and the table's columns in stored form.

    ``row_kind`` names a column of +I, -U, +U and -D that is not stored; without it the table's ``rowkind.field``
    decides, else every row is +I. ``fixed`` gives constant columns (a static partition) that the input may leave out.
    ``stored``: the rows are the table's own, whose keys are not changed, because they determine its bucket.
    ``safe_casts``: a column of another type is accepted if each of its values fits (`is_castable`). Raises
    InvalidInputError for wrong columns and types immediately, and for a row when its batch is read.

    With `partial-update` the input may leave out nullable columns: its rows do not change them.
    """
    names, row_kind = names_of_table(given.schema.names, schema, row_kind)
    constants = {**dict.fromkeys(untouched_columns(names, schema, options)), **(fixed or {})}
    check_columns(names, schema, row_kind, constants)
    indexes = {name: at for at, name in enumerate(names)}
    columns: list[_Column] = []
    for field in schema.fields:
        constant = _constant(field, constants[field.name]) if field.name in constants else None
        if field.name in indexes:
            of_given = given.schema.field(indexes[field.name])
            own = stored or of_given.name in given.fitted
            column = _GivenColumn.of(
                schema, field, indexes[field.name], of_given.type, constant, stored=stored, own_types=own,
                safe_casts=safe_casts,
            )  # fmt: skip
            columns.append(column if constant is None else _FixedColumn(field, column, constant, constants[field.name]))
        else:
            assert constant is not None
            columns.append(_ConstantColumn(constant))
    kinds = _kinds(given.schema, indexes, kind_column(options, row_kind))
    return _prepared(given.batches, row_schema(schema.fields), columns, kinds)


def _prepared(
    batches: Iterator[pa.RecordBatch],
    wanted: pa.Schema,
    columns: list[_Column],
    kinds: _Column,
) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in batches:
        numbers = pa.array(np.arange(start, start + len(batch)))
        start += len(batch)
        found = kinds(batch)
        try:
            values = [column(batch) for column in columns]
        except UnfitValueError:
            raise _first_unfit(batch, columns, start - len(batch)) from None
        if len(batch):
            yield pa.RecordBatch.from_arrays([numbers, found, *values], schema=wanted)


def _first_unfit(batch: pa.RecordBatch, columns: list[_Column], start: int) -> InvalidInputError:
    """Return the error for the first value of a batch that does not fit, by row and then by column."""
    unfit: list[tuple[int, str, str]] = []
    for column in columns:
        given = column.column if isinstance(column, _FixedColumn) else column
        if isinstance(given, _GivenColumn):
            with suppress(InvalidInputError):
                try:
                    given(batch)
                except UnfitValueError as error:
                    unfit.append((error.row, given.field.name, error.fault))
    row, name, fault = min(unfit, key=lambda each: each[0])
    return unfit_value(start + row + 1, name, fault)


def normalized_floats(values: pa.Array, zeros: bool) -> pa.Array:
    """Return floats with one bit pattern for each value, because buckets and partitions use the bits: one NaN, and 0.0
    for -0.0 unless ``zeros`` differ. Values of other types are unchanged.
    """
    if not pa.types.is_floating(values.type):
        return values
    numbers = pc.if_else(pc.is_nan(values), pa.scalar(math.nan, values.type), values)
    return numbers if zeros else pc.if_else(pc.equal(numbers, 0.0), pa.scalar(0.0, values.type), numbers)


def _constant(field: DataField, value: object) -> pa.Scalar:
    """Return a Python value in the column's type."""
    return cast_column(pa.array([value], python_arrow(field.type)), to_arrow(field.type))[0]


@dataclass(frozen=True)
class _ConstantColumn:
    value: pa.Scalar

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        return pa.repeat(self.value, len(batch))


@dataclass(frozen=True)
class _GivenColumn:
    """Converts a column of the input to the table's form.

    ``source`` is the type of its values; with ``is_exact`` each of them is also a value of the column's type. Raises
    InvalidInputError for a value that the column cannot have, UnfitValueError for one that a cast would change.
    """

    field: DataField
    index: int
    source: DataType
    _: KW_ONLY
    is_exact: bool
    null_fault: str | None
    keyed: bool
    zeros: bool

    @staticmethod
    def of(
        schema: TableSchema,
        field: DataField,
        index: int,
        kind: pa.DataType,
        constant: pa.Scalar | None,
        *,
        stored: bool,
        own_types: bool,
        safe_casts: bool,
    ) -> _GivenColumn:
        """Return the column at an index. With ``own_types`` it may have the table column's `to_arrow` type.

        Raises InvalidInputError if the table's column does not accept its type.
        """
        is_own_type = own_types and kind == to_arrow(field.type)
        with error_context(f"column '{field.name}'"):
            source = field.type if is_own_type else value_type(plain_type(kind))
        is_exact = is_assignable(source, field.type)
        if not is_exact and not (safe_casts and is_castable(source, field.type)):
            raise not_assignable(field, str(kind), str(output_arrow(field.type)), _remedy(kind, field))
        is_partition = field.name in schema.partition_keys
        keyed = not stored and (is_partition or field.name in schema.primary_keys)
        may_be_null = field.type.nullable or constant is not None
        null_fault = None if may_be_null else null_column(field.name, schema)
        return _GivenColumn(
            field, index, source, is_exact=is_exact, null_fault=null_fault, keyed=keyed, zeros=is_partition
        )

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        field, given = self.field, batch.column(self.index)
        values = self._cast(given)
        if self.null_fault is not None and values.null_count:
            raise refused_rows(self.null_fault)
        check_values(values, field.type, field.name)
        limit = longest_value(field.type)
        if limit is not None:
            sizes = pc.utf8_length(values) if field.type.root in STRING_ROOTS else pc.binary_length(values)
            refuse_any(pc.greater(sizes, limit), too_long(field))
        return normalized_floats(values, zeros=self.zeros) if self.keyed else values

    def _cast(self, given: pa.Array) -> pa.Array:
        field = self.field
        try:
            given.validate(full=True)
            with error_context(f"column '{field.name}'"):
                values = plain_array(given)
                if not self.is_exact:
                    return cast_values(values, self.source, field.type)
                return cast_column(values, to_arrow(field.type))
        except pa.ArrowException as error:
            reason = " ".join(str(error).split())
            raise refused_rows(f"column '{field.name}': a value is not a valid {field.type.sql()} ({reason})") from error


@dataclass(frozen=True)
class _FixedColumn:
    """A column of the input whose values must all equal the value of the overwritten partition."""

    field: DataField
    column: _GivenColumn
    value: pa.Scalar
    shown: object

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        found = self.column(batch)
        same = pc.fill_null(pc.equal(found, self.value), False) if self.value.is_valid else found.is_null()
        if pa.types.is_floating(found.type) and self.value.is_valid and np.isnan(self.value.as_py()):
            same = pc.fill_null(pc.is_nan(found), False)
        refuse_any(pc.invert(same), other_partition(self.field.name, self.shown))
        return pa.repeat(self.value, len(batch))


def _remedy(kind: pa.DataType, field: DataField) -> str | None:
    """Return the remedy for a column of another type; None for the general one."""
    if pa.types.is_timestamp(kind) and kind.tz is not None and field.type.root == "TIMESTAMP":
        return (
            "Paimon's TIMESTAMP has no time zone, and Arrow's timestamp with a zone is TIMESTAMP_LTZ: declare the "
            "column so, or cast it to a timestamp without a zone before the write"
        )
    return None


def _kinds(schema: pa.Schema, indexes: Mapping[str, int], name: str | None) -> _Column:
    """Return the column of the row kinds' codes."""
    if name is None:
        return _ConstantColumn(pa.scalar(INSERT, pa.int8()))
    kind = plain_type(schema.field(indexes[name]).type) if name in indexes else pa.null()
    if not pa.types.is_string(kind):
        raise wrong_row_kind_type(name)

    def codes(batch: pa.RecordBatch) -> pa.Array:
        texts = plain_array(batch.column(indexes[name]))
        found = pc.index_in(texts, _KINDS)
        if found.null_count:
            wrong = texts.filter(found.is_null())[0].as_py()
            raise refused_rows(unknown_row_kind(name) + ("NULL" if wrong is None else wrong))
        return found.cast(pa.int8())

    return codes
