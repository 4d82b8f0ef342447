"""Sketches are those of Apache DataSketches, byte for byte where Java's are deterministic."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.merge.kernel import MergeSpec, merge_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.options import TableOptions
from lakelsm.schema import create_schema


def merged(function: str, *values: bytes | None) -> bytes | None:
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": function}
    schema = create_schema("id INT, v BYTES", ["id"], [], options)
    rows = pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array(range(len(values)), pa.int64()),
            "_VALUE_KIND": pa.array([0] * len(values), pa.int8()),
            "id": pa.array([1] * len(values), pa.int32()),
            "v": pa.array(values, pa.binary()),
        }
    )
    spec = MergeSpec.of(schema, TableOptions.parse(schema.options))
    found: bytes | None = merge_rows(rows, order_keys([rows.column("id")]), spec).column("v")[0].as_py()
    return found


def test_theta_sketches_are_united_to_the_bytes_that_java_writes() -> None:
    pytest.importorskip("datasketches")
    first = bytes.fromhex("01030300003ACC9315F97DCBBD86A105")
    second = bytes.fromhex("01030300003ACC93C397FC1281709D1E")
    both = bytes.fromhex("02030300001ACC93020000000000803F15F97DCBBD86A105C397FC1281709D1E")
    assert merged("theta_sketch", first, second) == both
    assert merged("theta_sketch", first, None, first) == first
    assert merged("theta_sketch", None, None) is None


def test_hll_sketches_count_what_both_saw() -> None:
    sketches = pytest.importorskip("datasketches")
    made = []
    for numbers in (range(1000), range(500, 2000)):
        sketch = sketches.hll_sketch(12)
        for number in numbers:
            sketch.update(number)
        made.append(bytes(sketch.serialize_compact()))
    united = merged("hll_sketch", *made)
    assert united is not None
    assert sketches.hll_sketch.deserialize(united).get_estimate() == pytest.approx(2000, rel=0.05)


@pytest.mark.parametrize("function", ["rbm32", "theta_sketch", "hll_sketch"])
def test_bytes_that_are_no_sketch_are_refused_naming_the_column(function: str) -> None:
    if function != "rbm32":
        pytest.importorskip("datasketches")
    with pytest.raises(InvalidInputError, match=f"column 'v'.*{function}"):
        merged(function, b"\x01\x02", b"nonsense")
