"""How the columns of a data file are encoded in Parquet, so that every reader takes them (docs/format.md 6.4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa

from lakelsm.format.data_file.int96_timestamps import INT96

#: Bytes of a dictionary page beyond which a column is written plainly. Arrow's own limit is 1 MB: a column of many
#: distinct values then spends half of its writing time on a dictionary that is given up.
DICTIONARY_BYTES = 1 << 17


def encoding_options(schema: pa.Schema, ascending: Collection[str], dictionary: bool = True) -> dict[str, Any]:
    """Return pyarrow's writer options for files of ``schema``; without ``dictionary`` all columns are written plainly.

    ``ascending`` names columns whose values rise or nearly do (keys, sequence numbers): those that Parquet keeps as
    integers are written plainly, as no dictionary helps them. Deltas would be smaller and faster still, but Paimon
    reads them only from 1.0.1 on. INT96 columns have no statistics, as their bytes do not compare as times; nor have
    floats, where a NaN would be in no range, though it is the greatest number to Spark.
    """
    leaves = {field.name: list(_leaves(field.name, field.type)) for field in schema}
    plain = [name for name in ascending if _is_integer(schema.field(name).type)]
    others = [path for name, paths in leaves.items() if name not in plain for path, _ in paths]
    counted = [
        path for paths in leaves.values() for path, kind in paths if kind != INT96 and not pa.types.is_floating(kind)
    ]
    return {
        "use_dictionary": others if others and dictionary else False,
        "dictionary_pagesize_limit": DICTIONARY_BYTES,
        "write_statistics": counted,
    }


def _is_integer(kind: pa.DataType) -> bool:
    """Whether Parquet has the values as INT32 or INT64."""
    if pa.types.is_timestamp(kind):
        return True
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= 18)
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_time32(kind))


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Paths and types of the Parquet columns of an Arrow column."""
    if pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for member in kind:
            yield from _leaves(f"{path}.{member.name}", member.type)
    else:
        yield path, kind
