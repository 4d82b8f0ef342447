"""Columns of the data source in Spark's types."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from lakelsm.data_source.spark_rows import arrow_form, source_struct
from lakelsm.errors import InvalidInputError
from lakelsm.schema.table_schema import TableSchema, create_schema


def schema() -> TableSchema:
    return create_schema("id INT NOT NULL, s TIMESTAMP_LTZ(9)", primary_key=("id",))


def test_columns_are_nullable_and_named_as_the_user_writes_them() -> None:
    assert source_struct(schema(), None) == T.StructType().add("id", T.IntegerType()).add("s", T.TimestampType())
    assert source_struct(schema(), ("S",)) == T.StructType().add("S", T.TimestampType())


def test_a_column_that_is_missing_or_named_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'x' does not exist"):
        source_struct(schema(), ("x",))
    with pytest.raises(InvalidInputError, match="named twice"):
        source_struct(schema(), ("s", "S"))


def test_times_with_a_zone_are_passed_to_spark_in_utc() -> None:
    assert arrow_form(source_struct(schema(), ("s",))) == pa.schema([("s", pa.timestamp("us", "UTC"))])
