"""Rows of each accepted form become batches of bounded size; other values are refused with a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.local.arrow_input import ArrowInput, is_spark_frame

ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int32()), "v": ["a", None, "c"]})


class Stream:
    """An object with only the Arrow C stream interface, such as a Polars or DuckDB result."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def taken(frame: object) -> pa.Table:
    given = ArrowInput.of(frame)
    return pa.Table.from_batches(given.batches, given.schema)


FORMS: dict[str, Callable[[], object]] = {
    "table": lambda: ROWS,
    "batch": lambda: ROWS.to_batches()[0],
    "reader": ROWS.to_reader,
    "stream": lambda: Stream(ROWS),
    "dataset": lambda: ds.dataset(ROWS),
    "scanner": lambda: ds.dataset(ROWS).scanner(),
    "pandas": ROWS.to_pandas,
    "pandas with Arrow's types": lambda: ROWS.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with an index": lambda: ROWS.to_pandas().set_axis(["x", "y", "z"], axis=0),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_rows_is_accepted(form: str) -> None:
    assert taken(FORMS[form]()).cast(ROWS.schema).equals(ROWS)


def test_a_dataset_of_files_is_read_when_its_batches_are(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    assert taken(ds.dataset(tmp_path)).equals(ROWS)


def test_batches_are_split_by_rows_and_by_bytes() -> None:
    many = pa.table({"k": np.arange(200_000)})
    assert max(map(len, ArrowInput.of(many).batches)) == 1 << 16
    assert taken(many)["k"].to_pylist() == list(range(200_000))
    wide = pa.table({"v": pa.array([b"x" * (1 << 20)] * 50)})
    sizes = [batch.nbytes for batch in ArrowInput.of(wide).batches]
    assert len(sizes) > 1 and max(sizes) <= 17 << 20
    assert max(map(len, ArrowInput.of(pd.DataFrame({"k": np.arange(200_000)})).batches)) == 1 << 16


def test_missing_values_of_pandas_are_null() -> None:
    frame = pd.DataFrame({"f": [1.5, np.nan], "s": ["a", None], "t": [pd.Timestamp(2020, 1, 1), pd.NaT], 5: [1, 2]})
    assert taken(frame).to_pylist()[1] == {"f": None, "s": None, "t": None, "5": 2}


def test_an_empty_input_keeps_its_columns() -> None:
    assert taken(ROWS.slice(0, 0)).schema == ROWS.schema
    assert taken(pd.DataFrame({"k": np.empty(0, np.int32)})).schema == pa.schema([("k", pa.int32())])


@pytest.mark.parametrize(
    ("frame", "remedy"),
    [
        ([1], r"got \[1\]\. Write pyarrow.Table.from_pylist"),
        ({"k": [1]}, r"got .*\. Write pyarrow.table\(frame\)"),
        ("/data/x.parquet", r"got '/data/x.parquet'\. Write spark.table\(frame\), or pyarrow.dataset.dataset"),
        (None, "got None"),
        (Stream, "got an object of type type"),
        (pd.Series([1]), r"Series\. Write frame.to_frame\(\)"),
        (pa.array([1]), "rows in memory .* or a Spark DataFrame, got .*Int64Array"),
        (Stream(pa.chunked_array([[1]])), "expected rows with columns, got .* Make it a table"),
    ],
)
def test_other_values_are_refused_with_the_remedy(frame: object, remedy: str) -> None:
    with pytest.raises(InvalidInputError, match=remedy):
        ArrowInput.of(frame)


def test_a_pandas_column_of_many_types_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="column 'v' of the DataFrame has no Arrow type"):
        ArrowInput.of(pd.DataFrame({"k": [1, 2], "v": ["a", 3]}))


def test_a_frame_with_duplicate_columns_keeps_their_names() -> None:
    assert ArrowInput.of(pd.DataFrame([[1, 2]], columns=["a", "a"])).schema.names == ["a", "a"]


def test_an_error_of_the_users_reader_is_unchanged_and_arrows_is_converted() -> None:
    def failing(error: Exception) -> Iterator[pa.RecordBatch]:
        yield ROWS.to_batches()[0]
        raise error

    for error, message in ((KeyError("mine"), KeyError), (pa.ArrowInvalid("broken"), InvalidInputError)):
        with pytest.raises(message, match=r"mine|cannot be read to the end: broken"):
            list(ArrowInput.of(pa.RecordBatchReader.from_batches(ROWS.schema, failing(error))).batches)


def test_a_spark_frame_is_recognised_by_its_class() -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    assert is_spark_frame(frame)
    assert not any(is_spark_frame(make()) for make in FORMS.values())
