"""Values of Arrow columns as text and as JSON, for every type."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelsm.cli.row_values import json_text, json_values, text_values

#: A column, its texts, and its values of JSON if they differ from the texts.
COLUMNS: dict[str, tuple[pa.Array, list[str | None], list[object] | None]] = {
    "null": (pa.nulls(2), [None, None], None),
    "boolean": (pa.array([True, None]), ["true", None], [True, None]),
    "integer": (pa.array([-(2**63), None]), [str(-(2**63)), None], [-(2**63), None]),
    "float": (pa.array([0.1, float("nan"), None], pa.float32()), ["0.1", "nan", None], [0.1, "nan", None]),
    "double": (pa.array([1e20, float("-inf")]), ["1e+20", "-inf"], [1e20, "-inf"]),
    "decimal": (
        pa.array([Decimal("1E-7"), Decimal("-12345678901234567890.5"), None], pa.decimal128(38, 8)),
        ["0.00000010", "-12345678901234567890.50000000", None], None,
    ),
    "text": (pa.array(["é\n", "", None]), ["é\n", "", None], None),
    "bytes": (pa.array([b"\x01\xff", b"", None]), ["01ff", "", None], None),
    "date": (pa.array([date(2024, 2, 29), None]), ["2024-02-29", None], None),
    "time": (pa.array([1, 1_000_000_000, None], pa.time64("ns")), ["00:00:00.000000001", "00:00:01", None], None),
    "timestamp": (
        pa.array([0, 1, 253402300800 * 10**6, None], pa.timestamp("us")),
        ["1970-01-01T00:00:00", "1970-01-01T00:00:00.000001", "10000-01-01T00:00:00", None], None,
    ),
    "nanoseconds": (pa.array([1], pa.timestamp("ns")), ["1970-01-01T00:00:00.000000001"], None),
    "instant": (pa.array([0, None], pa.timestamp("us", "Asia/Tokyo")), ["1970-01-01T00:00:00Z", None], None),
    "array": (
        pa.array([[Decimal("1.5"), None], [], None], pa.list_(pa.decimal128(3, 1))),
        ['["1.5",null]', "[]", None], [["1.5", None], [], None],
    ),
    "fixed array": (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), ["[1,2]", None], [[1, 2], None]),
    "map": (
        pa.array([[("k", b"\x01")], None, []], pa.map_(pa.string(), pa.binary())),
        ['{"k":"01"}', None, "{}"], [{"k": "01"}, None, {}],
    ),
    "map of numbers": (pa.array([[(1, 2)]], pa.map_(pa.int32(), pa.int32())), ['{"1":2}'], [{"1": 2}]),
    "row": (
        pa.array(
            [{"a": [{"é": 1}], "b": None}, None],
            pa.struct({"a": pa.list_(pa.struct({"é": pa.int8()})), "b": pa.date32()}),
        ),
        ['{"a":[{"é":1}],"b":null}', None], [{"a": [{"é": 1}], "b": None}, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_has_a_text_and_a_value_of_json(name: str) -> None:
    values, texts, plain = COLUMNS[name]
    assert text_values(values).to_pylist() == texts
    found = json_values(values)
    assert found == (texts if plain is None else plain)
    assert json.loads(json_text(found)) == found
    for start in range(len(values) + 1):
        part = values.slice(start)
        assert (text_values(part).to_pylist(), json_values(part)) == (texts[start:], found[start:])
