"""A column of an older schema as the newest one has it: members of rows by id, at any depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelsm.spark.column_evolution import evolved
from lakelsm.spark.spark_types import to_spark
from lakelsm.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INT, BIGINT, STRING = AtomicType("INT"), AtomicType("BIGINT"), AtomicType("VARCHAR", length=2147483647)


def row(*members: tuple[int, str, DataType]) -> RowType:
    return RowType(tuple(DataField(number, name, kind) for number, name, kind in members))


OLD = row((1, "a", INT), (2, "b", STRING))
#: `b` was dropped and added again, `a` renamed and widened.
NEW = row((3, "b", STRING), (1, "c", BIGINT))
CASES: list[tuple[DataType, DataType, Any, Any]] = [
    (INT, BIGINT, 7, 7),
    (OLD, NEW, (1, "x"), (None, 1)),
    (OLD, NEW, None, None),
    (ArrayType(OLD), ArrayType(NEW), [(1, "x"), None], [(None, 1), None]),
    (MapType(INT, OLD), MapType(BIGINT, NEW), {5: (1, "x")}, {5: (None, 1)}),
    (row((1, "r", OLD)), row((1, "s", NEW), (9, "t", INT)), ((1, "x"),), ((None, 1), None)),
]


def test_members_are_found_by_id_and_null_stays_null(spark: SparkSession) -> None:
    struct = T.StructType([T.StructField(f"c{at}", to_spark(old)) for at, (old, _, _, _) in enumerate(CASES)])
    frame = spark.createDataFrame([tuple(value for _, _, value, _ in CASES)], struct)
    changed = frame.select(*(evolved(F.col(f"c{at}"), old, new) for at, (old, new, _, _) in enumerate(CASES)))
    assert tuple(changed.collect()[0]) == tuple(expected for _, _, _, expected in CASES)
    for (_, new, _, _), field in zip(CASES, changed.schema):
        assert field.dataType.simpleString() == to_spark(new).simpleString()


@pytest.mark.parametrize("kind", [INT, OLD, ArrayType(OLD)], ids=lambda kind: kind.sql())
def test_a_column_of_the_same_layout_is_handed_on_as_it_is(spark: SparkSession, kind: DataType) -> None:
    column = F.col("c")
    assert evolved(column, kind, kind.with_nullable(False)) is column
