"""NOT NULL within nested columns: Parquet allows no NULL there, not even below a NULL row.

Parquet stores no members of a NULL ROW, and Java writes none. Arrow has a value for each of them, and its Parquet writer
refuses a NULL there as a NULL in a required column.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError


def requires_parts(kind: pa.DataType) -> bool:
    """Return whether a type has a part that cannot be NULL. The keys of a map do not count: they are never NULL."""
    if pa.types.is_map(kind):
        return not kind.item_field.nullable or requires_parts(kind.key_type) or requires_parts(kind.item_type)
    return any(not part.nullable or requires_parts(part.type) for part in _parts(kind))


def filled_parts(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    """Return the column with values instead of NULLs in the required parts of NULL rows.

    Raises InvalidInputError, naming the path, for a NULL in a required part of a non-NULL row. Writes check their rows,
    but a row may be older than the NOT NULL constraint, and a merge may result in NULL.
    """
    _refuse(not field.nullable and column.null_count > 0, field.name)
    if not requires_parts(field.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_filled(chunk, field.type, field.name) for chunk in column.chunks], field.type)
    return _filled(column, field.type, field.name)


def _parts(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    return [kind.value_field] if pa.types.is_list(kind) else []


def _filled(array: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    if not requires_parts(kind):
        return array
    if pa.types.is_struct(kind):
        children = [_member(array, at, member, f"{path}.{member.name}") for at, member in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    validity, offsets = array.buffers()[:2]
    if pa.types.is_map(kind):
        entries = [array.keys, _element(array, array.items, kind.item_field, f"{path}.value")]
        child: pa.Array = pa.StructArray.from_arrays(entries, fields=[kind.key_field, kind.item_field])
    else:
        child = _element(array, array.values, kind.value_field, f"{path}.element")
    return pa.Array.from_buffers(kind, len(array), [validity, offsets], offset=array.offset, children=[child])


def _element(array: pa.Array, values: pa.Array, field: pa.Field, path: str) -> pa.Array:
    """Return the elements of lists or maps. ``values`` is the whole buffer, which includes other rows."""
    if not field.nullable and values.null_count:
        offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
        held = np.repeat(array.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets))
        absent = values.is_null().to_numpy(zero_copy_only=False)[offsets[0] : offsets[-1]]
        _refuse(bool((held & absent).any()), path)
    return _solid(_filled(values, field.type, path), field)


def _member(array: pa.StructArray, at: int, member: pa.Field, path: str) -> pa.Array:
    child = array.field(at)
    if not member.nullable and child.null_count:
        _refuse(bool(pc.any(pc.and_(array.is_valid(), child.is_null())).as_py()), path)
    return _solid(_filled(child, member.type, path), member)


def _refuse(violated: bool, path: str) -> None:
    if violated:
        raise InvalidInputError(
            f"column '{path}': it is NOT NULL, but a row of the table or a merge result has NULL. Make it nullable."
        )


def _solid(array: pa.Array, field: pa.Field) -> pa.Array:
    """Return the array without its NULLs, which no reader reads, if the field cannot be NULL."""
    if field.nullable or array.null_count == 0:
        return array
    kind = array.type
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([array.field(at) for at in range(kind.num_fields)], fields=list(kind))
    own = array.buffers()
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        entries = array.values
        return pa.Array.from_buffers(kind, len(array), [None, own[1]], 0, array.offset, [entries])
    return pa.Array.from_buffers(kind, len(array), [None, *own[1:]], 0, array.offset)
