"""Streams of a query with numbered columns."""

from __future__ import annotations

from datetime import time
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.sql.pushdown import Need
from lakelsm.sql.query_source import FrameSource, numbered_schema, numbered_stream, stream_type
from lakelsm.types import parse_type


def test_streams_have_numbers_for_names_and_the_types_of_expressions() -> None:
    rows = pa.table({"a": pa.array([1], pa.int32()), "t": pa.array([time(0, 0, 1)], pa.time32("ms")), "b": ["x"]})
    stream = numbered_stream(FrameSource("f", rows), Need(["t", "b"], None))
    assert stream.read_all().to_pydict() == {"1": [1000], "2": ["x"]}
    assert str(stream_type(parse_type("TIMESTAMP(9)"))) == "timestamp[ns]"


class _Counted(FrameSource):
    """A frame that knows the number of its rows, and is not read for it."""

    def reader(self, need: Need) -> pa.RecordBatchReader:
        raise AssertionError("rows are read")

    def count(self, where: str | None) -> int:
        assert where == "TRUE"
        return self.rows.num_rows


@pytest.mark.parametrize("kind", [FrameSource, _Counted])
def test_rows_of_which_only_the_number_is_needed_have_a_column_of_nulls(kind: type[FrameSource]) -> None:
    source, need = kind("f", pa.table({"a": [1, 2, 3]})), Need([], "TRUE")
    stream = numbered_stream(source, need)
    assert stream.schema == numbered_schema(source, need)
    assert stream.read_all().to_pydict() == {"rows": [None] * 3}


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.nulls(2), [None, None]),
        (pa.array(["a", None]).dictionary_encode(), ["a", None]),
        (pa.array(["a"], pa.string_view()), ["a"]),
        (pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (pa.array([86_400_000], pa.date64()), [86_400_000 // 86_400_000]),
        (pa.array([1, None], pa.time32("s")), [1000, None]),
        (pa.array([2_000_000], pa.time64("ns")), [2]),
        (pa.array([Decimal("1.50")], pa.decimal256(20, 2)), [Decimal("1.50")]),
        (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), [[1, 2]]),
        (pa.array([], pa.int32()), []),
    ],
)
def test_columns_of_frames_have_the_types_of_columns_of_tables(column: pa.Array, expected: list[Any]) -> None:
    stream = numbered_stream(FrameSource("f", pa.table({"k": column})), Need(None, None)).read_all()
    found = stream.column(0)
    assert (found.cast(pa.int32()) if pa.types.is_date(found.type) else found).to_pylist() == expected


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (pa.table({"k": pa.array([1], pa.uint8())}), "f: column 'k': Arrow type uint8 has no Paimon type"),
        (pa.table({"k": pa.array([1], pa.duration("s"))}), "f: column 'k': Arrow type duration"),
        (pa.table({"k": pa.array([Decimal(1)], pa.decimal256(50, 2))}), "f: column 'k': precision 50"),
        (pa.table({"k": pa.array([1], pa.time64("ns"))}), "f: column 'k' of type time64"),
        (pa.table({"k": pa.RunEndEncodedArray.from_arrays([1], ["a"])}), "f: column 'k' of type run_end_encoded"),
        (pa.table({}), "f: the frame has no columns"),
        (pd.DataFrame(index=[0, 1]), "f: the frame has no columns"),
        (pd.DataFrame([[1, 2]], columns=["k", "k"]), "f: more than one column has the name 'k'"),
        (pd.DataFrame({"k": [1, "a"]}), "column 'k' of the DataFrame has no Arrow type"),
    ],
)
def test_a_frame_that_no_table_could_have_is_refused_by_name(frame: Any, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        numbered_stream(FrameSource("f", frame), Need(None, None)).read_all()
