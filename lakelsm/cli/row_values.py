"""Values of Arrow columns as text and as JSON, for every type.

Both forms have the same texts: times in ISO 8601 with a 'Z' for instants, decimals in full without an exponent, bytes
as hexadecimal digits, NaN and infinity as 'nan' and 'inf'.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def text_values(values: pa.Array) -> pa.Array:
    """Return the values of a column as texts; NULL stays NULL, and a nested value is the text of its JSON."""
    kind = values.type
    if pa.types.is_null(kind):
        return pa.nulls(len(values), pa.large_string())
    if pa.types.is_nested(kind):
        return _texts(None if value is None else json_text(value) for value in json_values(values))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _texts(None if value is None else value.hex() for value in values.to_pylist())
    if pa.types.is_decimal(kind):
        return _texts(None if value is None else f"{value:f}" for value in values.to_pylist())
    if pa.types.is_timestamp(kind):
        return _times(values)
    if pa.types.is_time(kind):
        return _without_zeros(values.cast(pa.string()))
    return values.cast(pa.large_string())


def json_values(values: pa.Array) -> list[Any]:
    """Return the values of a column as values of JSON. Decimals and times are texts, and a map is an object.

    A key of a map that is not a text is the JSON of the key.
    """
    kind = values.type
    if pa.types.is_struct(kind):
        return _objects(values)
    if pa.types.is_map(kind):
        return _maps(values)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(values)
    if pa.types.is_floating(kind):
        return [_number(text) for text in values.cast(pa.string()).to_pylist()]
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        plain: list[Any] = values.to_pylist()
        return plain
    texts: list[Any] = text_values(values).to_pylist()
    return texts


def json_text(value: Any) -> str:
    """Return a value of JSON as text, in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _texts(texts: Any) -> pa.Array:
    return pa.array(texts, pa.large_string())


def _times(values: pa.Array) -> pa.Array:
    """Return timestamps as ISO 8601; those with a zone are instants, in UTC."""
    if values.type.tz is not None:
        values = values.cast(pa.timestamp(values.type.unit, "UTC"))
    return pc.replace_substring(_without_zeros(values.cast(pa.string())), " ", "T", max_replacements=1)


def _without_zeros(texts: pa.Array) -> pa.Array:
    """Remove a fraction of a second that is zero."""
    return pc.replace_substring_regex(texts, r"\.0+(Z?)$", r"\1").cast(pa.large_string())


def _number(text: str | None) -> float | str | None:
    """Return a number; JSON has neither NaN nor infinity, so these are texts."""
    if text is None:
        return None
    number = float(text)
    return number if number - number == 0 else text


def _objects(values: pa.StructArray) -> list[Any]:
    names = [field.name for field in values.type]
    members = [json_values(each) for each in values.flatten()]
    rows = zip(*members) if members else iter([()] * len(values))
    return [dict(zip(names, row)) if valid.as_py() else None for valid, row in zip(values.is_valid(), rows)]


def _maps(values: pa.MapArray) -> list[Any]:
    offsets = values.offsets.to_pylist()
    first, length = offsets[0], offsets[-1] - offsets[0]
    keys = [key if isinstance(key, str) else json_text(key) for key in json_values(values.keys.slice(first, length))]
    items = json_values(values.items.slice(first, length))
    return [
        dict(zip(keys[start - first : end - first], items[start - first : end - first])) if valid.as_py() else None
        for valid, start, end in zip(values.is_valid(), offsets, offsets[1:])
    ]


def _lists(values: pa.Array) -> list[Any]:
    if pa.types.is_fixed_size_list(values.type):
        values = values.cast(pa.list_(values.type.value_type))
    offsets = values.offsets.to_pylist()
    first = offsets[0]
    items = json_values(values.values.slice(first, offsets[-1] - first))
    return [
        items[start - first : end - first] if valid.as_py() else None
        for valid, start, end in zip(values.is_valid(), offsets, offsets[1:])
    ]
