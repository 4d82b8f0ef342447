"""Streams of a query with numbered columns."""

from __future__ import annotations

from datetime import time

import pyarrow as pa
import pytest

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
