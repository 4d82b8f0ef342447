"""A column of an older schema as the newest schema has it, in Arrow: members of ROW by field id."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.types import ArrayType, DataType, MapType, MultisetType, RowType, same_layout, to_arrow

_UNITS = {"s": "second", "ms": "millisecond", "us": "microsecond"}


def cast_column(column: pa.Array | pa.ChunkedArray, target: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Cast to the wanted type: the same values in another layout, Paimon's widening, or coarser timestamps (floor).

    Raises pyarrow.ArrowInvalid for a timestamp that 64-bit nanoseconds cannot hold where they are wanted.
    """
    if column.type.equals(target):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([cast_column(chunk, target) for chunk in column.chunks], target)
    source = column.type
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        if target.unit in _UNITS:
            column = pc.floor_temporal(column, unit=_UNITS[target.unit])
        return column.cast(target)
    if pa.types.is_struct(source) and source.num_fields == target.num_fields:
        children = [cast_column(column.field(at), target.field(at).type) for at in range(source.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=column.is_null())
    if pa.types.is_map(source):
        return _with_parts(column, target, [column.keys, column.items])
    if pa.types.is_list(source):
        return _with_parts(column, target, [column.values])
    return column.cast(target, safe=False)


def evolve_array(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Return values of the file's type ``source`` as the table's type ``target``.

    A member of a ROW that the file does not have, by field id, is NULL; one that the table no longer has is left out.
    """
    if same_layout(source, target):
        return cast_column(array, to_arrow(target))
    if isinstance(source, RowType) and isinstance(target, RowType):
        return _evolve_row(array, source, target)
    if isinstance(source, (ArrayType, MultisetType)) and type(source) is type(target):
        assert isinstance(target, (ArrayType, MultisetType))
        return _evolve_nested(array, to_arrow(target), [(source.element, target.element)])
    if isinstance(source, MapType) and isinstance(target, MapType):
        return _evolve_nested(array, to_arrow(target), [(source.key, target.key), (source.value, target.value)])
    return cast_column(array, to_arrow(target))


def _evolve_row(array: pa.StructArray, source: RowType, target: RowType) -> pa.StructArray:
    wanted = to_arrow(target)
    places = {member.id: at for at, member in enumerate(source.fields)}
    children = []
    for member, field in zip(target.fields, wanted):
        at = places.get(member.id)
        if at is None:
            children.append(pa.nulls(len(array), field.type))
        else:
            child = array.field(source.fields[at].name)
            children.append(evolve_array(child, source.fields[at].type, member.type))
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())


def _evolve_nested(array: pa.Array, wanted: pa.DataType, parts: list[tuple[DataType, DataType]]) -> pa.Array:
    """Evolve what lists and maps hold, and the counts of multisets."""
    old = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    evolved = [evolve_array(values, *types) for values, types in zip(old, parts)]
    return _with_parts(array, wanted, [*evolved, *old[len(parts) :]])


def _with_parts(array: pa.Array, wanted: pa.DataType, parts: Sequence[pa.Array]) -> pa.Array:
    """The list or map with other values in it, cast to what is wanted; its validity and offsets stay."""
    if pa.types.is_map(wanted):
        fields = [wanted.key_field, wanted.item_field]
        columns = [cast_column(part, field.type) for part, field in zip(parts, fields)]
        child = pa.StructArray.from_arrays(columns, fields=fields)
    else:
        child = cast_column(parts[0], wanted.value_type)
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(wanted, len(array), [validity, offsets], offset=array.offset, children=[child])


__all__ = ["cast_column", "evolve_array"]
