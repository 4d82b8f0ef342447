"""Streams of a query with numbered columns."""

from __future__ import annotations

from datetime import time

import pyarrow as pa

from lakelsm.sql.pushdown import Need
from lakelsm.sql.query_source import FrameSource, numbered_stream, stream_type
from lakelsm.types import parse_type


def test_streams_have_numbers_for_names_and_the_types_of_expressions() -> None:
    rows = pa.table({"a": pa.array([1], pa.int32()), "t": pa.array([time(0, 0, 1)], pa.time32("ms")), "b": ["x"]})
    stream = numbered_stream(FrameSource("f", rows), Need(["t", "b"], None))
    assert stream.read_all().to_pydict() == {"1": [1000], "2": ["x"]}
    assert str(stream_type(parse_type("TIMESTAMP(9)"))) == "timestamp[ns]"
