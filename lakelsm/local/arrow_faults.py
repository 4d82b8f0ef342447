"""Faults in values at any depth: NULL in a part that is NOT NULL, or a number that is not a time of day."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.schema.row_rules import DAY_MILLIS, invalid_time_of_day, null_part, refused_rows
from lakelsm.types import ArrayType, AtomicType, DataType, MapType, MultisetType, RowType

_COUNT = AtomicType("INT", nullable=False)


def refuse_any(faulty: pa.Array, fault: str) -> None:
    """Raise the fault if a value of the Boolean array is true."""
    if faulty.true_count:
        raise refused_rows(fault)


def check_values(values: pa.Array, kind: DataType, path: str) -> None:
    """Raise InvalidInputError for the first fault found in values of a type, in `to_arrow` of it.

    ``path`` names the values; parts are ``r.x``, ``a.element``, ``m.value``. The caller checks whether the values
    themselves may be NULL. Parts of a row that is NULL are not checked.
    """
    if isinstance(kind, RowType):
        for member, part in zip(kind.fields, values.flatten()):
            where = f"{path}.{member.name}"
            if not member.type.nullable and part.null_count:
                refuse_any(pc.and_(part.is_null(), values.is_valid()), null_part(where))
            check_values(part, member.type, where)
    elif isinstance(kind, ArrayType):
        _check_parts(values.flatten(), kind.element, f"{path}.element")
    elif isinstance(kind, (MapType, MultisetType)):
        key, value = (kind.key, kind.value) if isinstance(kind, MapType) else (kind.element, _COUNT)
        keys, items = entries(values).flatten()
        _check_parts(keys, key.with_nullable(False), f"{path}.key")
        _check_parts(items, value, f"{path}.value")
    elif kind.root == "TIME":
        millis = values.cast(pa.int32())
        outside = pc.or_(pc.less(millis, 0), pc.greater_equal(millis, DAY_MILLIS))
        refuse_any(outside, invalid_time_of_day(path, kind))


def entries(maps: pa.MapArray) -> pa.StructArray:
    """Return the entries of all maps as rows, one map after the other."""
    pairs = pa.StructArray.from_arrays([maps.keys, maps.items], names=["key", "value"])
    validity, offsets = maps.buffers()[:2]
    lists = pa.Array.from_buffers(
        pa.list_(pairs.type), len(maps), [validity, offsets], offset=maps.offset, children=[pairs]
    )
    return lists.flatten()


def _check_parts(parts: pa.Array, kind: DataType, path: str) -> None:
    if not kind.nullable and parts.null_count:
        raise refused_rows(null_part(path))
    check_values(parts, kind, path)
