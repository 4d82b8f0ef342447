"""Texts of whole columns as Java Paimon's system tables have them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.partition_path import value_text
from lakelsm.types import BINARY_ROOTS, INTEGER_ROOTS, STRING_ROOTS, AtomicType, DataType

_NULL = "null"


def object_texts(column: pa.Array, data_type: DataType) -> pa.LargeStringArray:
    """What Java's toString gives of the values; NULL stays.

    Of bytes that is an address, so they are hexadecimal digits here; nested values, which have no bounds, are NULL.
    """
    return _texts(column, data_type, legacy=True)


def cast_texts(column: pa.Array, data_type: DataType) -> pa.LargeStringArray:
    """What Paimon's cast to a text gives of the values; NULL stays."""
    return _texts(column, data_type, legacy=False)


def joined(
    texts: Sequence[pa.LargeStringArray], count: int, around: str, names: Sequence[str] = ()
) -> pa.LargeStringArray:
    """The texts of each row between the two characters ``around``, with ', ' between them and NULL as 'null'.

    With ``names`` each has its name and '=' before it.
    """
    begin, end = (pa.array([character] * count, pa.large_string()) for character in around)
    if not texts:
        return pc.binary_join_element_wise(begin, end, pa.scalar("", pa.large_string()))
    heads = [f"{name}=" for name in names] or [""] * len(texts)
    parts = [
        pc.binary_join_element_wise(pa.scalar(head, pa.large_string()), text, pa.scalar("", pa.large_string()))
        for head, text in zip(heads, (pc.fill_null(text, _NULL) for text in texts))
    ]
    inner = pc.binary_join_element_wise(*parts, pa.scalar(", ", pa.large_string()))
    return pc.binary_join_element_wise(begin, inner, end, pa.scalar("", pa.large_string()))


def _texts(column: pa.Array, data_type: DataType, legacy: bool) -> pa.LargeStringArray:
    if not isinstance(data_type, AtomicType) or column.null_count == len(column):
        return pa.nulls(len(column), pa.large_string())
    root = data_type.root
    if root in STRING_ROOTS or root in INTEGER_ROOTS or root == "BOOLEAN":
        return column.cast(pa.large_string())
    if legacy and root in ("DATE", "TIME"):
        return column.cast(pa.int32()).cast(pa.large_string())
    # A distinct value is told once: Java's rules of digits are Python.
    if root in ("FLOAT", "DOUBLE"):
        bits = column.view(pa.int32() if root == "FLOAT" else pa.int64()).dictionary_encode()
        distinct, places = bits.dictionary.view(column.type), bits.indices
    else:
        coded = column.dictionary_encode()
        distinct, places = coded.dictionary, coded.indices
    if legacy and root in BINARY_ROOTS:
        texts = [value.hex() for value in distinct.to_pylist()]
    else:
        texts = [value_text(value, data_type, legacy) for value in distinct]
    return pa.array(texts, pa.large_string()).take(places)
