"""The DataFrame that a user passes, told from all that is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from lakelsm.errors import InvalidInputError
from lakelsm.spark.frames import checked_frame


def frame(module: str = "pyspark.sql.classic.dataframe", jsc: object = object(), streaming: bool = False) -> Any:
    """A DataFrame of a session without a JVM."""
    session = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=jsc))
    members = {"__module__": module, "sparkSession": session, "isStreaming": streaming}
    return object.__new__(type("DataFrame", (DataFrame,), {**members, "__init__": lambda self: None}))


def test_a_classic_frame_of_a_running_session_is_taken_as_it_is() -> None:
    given = frame()
    assert checked_frame(given) is given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(1, "a")], r"frame is a list; it must be a Spark DataFrame: write spark.createDataFrame\(rows, schema\)"),
        ("db.t", r"frame is a str; .*write spark.table\(frame\)"),
        (pd.DataFrame({"a": [1]}), r"write spark.createDataFrame\(frame\)"),
        (pa.table({"a": [1]}), r"write spark.createDataFrame\(frame\)"),
        (None, "frame is a NoneType"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_frame_is_refused_with_the_way_to_make_one(given: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        checked_frame(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (frame(module="pyspark.sql.connect.dataframe"), "Spark Connect, which lakelsm does not work with"),
        (frame(jsc=None), "session that has ended: make it again"),
        (frame(streaming=True), r"frame is a stream: .*foreachBatch\(.*batch_id=batch_id"),
    ],
    ids=["Spark Connect", "an ended session", "a stream"],
)
def test_a_frame_whose_rows_tasks_cannot_write_is_refused_with_the_remedy(given: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        checked_frame(given)
