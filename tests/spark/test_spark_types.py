"""The mapping between Paimon's and Spark's types, without a JVM."""

from __future__ import annotations

from pyspark.sql import types as T

from lakelsm.spark.spark_types import to_struct
from lakelsm.types import parse_columns


def test_nested_parts_are_nullable_for_spark_and_columns_as_declared() -> None:
    struct = to_struct(
        parse_columns(
            "k INT NOT NULL, r ROW<x INT NOT NULL COMMENT 'an x', q ROW<z INT NOT NULL> NOT NULL>, "
            "a ARRAY<INT NOT NULL> NOT NULL, m MAP<INT, INT NOT NULL>, c MULTISET<INT>"
        )
    )
    assert [field.nullable for field in struct.fields] == [False, True, False, True, True]
    inner = T.StructType([T.StructField("z", T.IntegerType(), True)])
    row = struct["r"].dataType
    assert isinstance(row, T.StructType)
    assert row == T.StructType(
        [T.StructField("x", T.IntegerType(), True, {"comment": "an x"}), T.StructField("q", inner, True)]
    )
    assert struct["a"].dataType == T.ArrayType(T.IntegerType(), True)
    assert struct["m"].dataType == struct["c"].dataType == T.MapType(T.IntegerType(), T.IntegerType(), True)


def test_columns_have_the_types_of_paimons_own_connector() -> None:
    columns = "CHAR(5)", "VARCHAR(7)", "TIME", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "MULTISET<STRING>", "BINARY(3)"
    struct = to_struct(parse_columns(", ".join(f"c{at} {kind}" for at, kind in enumerate(columns))))
    found = [field.dataType.simpleString() for field in struct.fields]
    assert found == ["string", "string", "int", "timestamp_ntz", "timestamp", "map<string,int>", "binary"]
