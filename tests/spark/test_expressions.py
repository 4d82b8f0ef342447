"""Columns by exact name, conditions as predicates and filters, and columns of older schemas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelsm.errors import InvalidInputError, SparkUnavailableError
from lakelsm.predicate.predicate import Compare
from lakelsm.spark.expressions import evolved, filtered, predicate_of, quoted, quoted_all
from lakelsm.spark.spark_types import to_spark
from lakelsm.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType, parse_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NAMES = ("a.b", "`tick`", "a", "${x}", "*", "sp ace")


@pytest.mark.usefixtures("classic_functions")
def test_dots_and_backticks_are_part_of_a_name(spark: SparkSession) -> None:
    frame = spark.createDataFrame([tuple(range(len(NAMES)))], list(NAMES))
    assert frame.select(*quoted_all(NAMES)).columns == list(NAMES)
    assert frame.select(quoted("a.b") + quoted("`tick`")).collect()[0][0] == 1


class Frame:
    """A frame that accepts filters, or fails as Spark does."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.conditions: list[Any] = []
        self.failure = failure

    def where(self, condition: Any) -> Frame:
        if self.failure is not None:
            raise self.failure
        self.conditions.append(condition)
        return self


def test_a_condition_is_passed_to_spark_unchanged() -> None:
    frame = Frame()
    assert filtered(frame, "a = 1 AND b > 2") is frame  # type: ignore[arg-type]
    assert frame.conditions == ["a = 1 AND b > 2"]


def test_a_condition_with_very_many_ands_is_one_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(F, "expr", lambda text: SimpleNamespace(eqNullSafe=lambda value: (text, value)))
    long = " and ".join(["a = 1"] * 600)
    frame = Frame()
    filtered(frame, long)  # type: ignore[arg-type]
    assert frame.conditions == [(long, True)]


def test_a_condition_that_spark_cannot_analyse_is_an_error_of_one_line() -> None:
    failing = Frame(AnalysisException("[UNRESOLVED_COLUMN] no column `x`\n'Filter ('x = 1)\n+- Relation"))
    with pytest.raises(InvalidInputError) as raised:
        filtered(failing, "x = 1")  # type: ignore[arg-type]
    assert str(raised.value) == "condition 'x = 1' is not valid: [UNRESOLVED_COLUMN] no column `x`"


def test_a_server_that_is_lost_during_the_analysis_is_not_an_error_of_the_condition() -> None:
    with pytest.raises(SparkUnavailableError, match="The Spark Connect server does not answer"):
        filtered(Frame(SparkConnectGrpcException("status = StatusCode.UNAVAILABLE")), "x = 1")  # type: ignore[arg-type]


def test_texts_of_times_in_a_predicate_are_in_the_sessions_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = parse_columns("d INT")
    session: Any = SimpleNamespace(conf=SimpleNamespace(get={"spark.sql.session.timeZone": "Asia/Tokyo"}.__getitem__))
    assert predicate_of(session, fields, "d = 1") == Compare("d", "=", 1)
    monkeypatch.setattr("lakelsm.spark.expressions.parse_where", lambda *given: given)
    assert predicate_of(session, fields, "d = 1") == ("d = 1", fields, "Asia/Tokyo")


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


@pytest.mark.usefixtures("classic_functions")
def test_members_are_matched_by_id_and_null_stays_null(spark: SparkSession) -> None:
    struct = T.StructType([T.StructField(f"c{at}", to_spark(old)) for at, (old, _, _, _) in enumerate(CASES)])
    frame = spark.createDataFrame([tuple(value for _, _, value, _ in CASES)], struct)
    changed = frame.select(*(evolved(F.col(f"c{at}"), old, new) for at, (old, new, _, _) in enumerate(CASES)))
    assert tuple(changed.collect()[0]) == tuple(expected for _, _, _, expected in CASES)
    for (_, new, _, _), field in zip(CASES, changed.schema):
        assert field.dataType.simpleString() == to_spark(new).simpleString()


@pytest.mark.usefixtures("classic_functions")
@pytest.mark.parametrize("kind", [INT, OLD, ArrayType(OLD)], ids=lambda kind: kind.sql())
def test_a_column_of_the_same_layout_is_returned_unchanged(spark: SparkSession, kind: DataType) -> None:
    column = F.col("c")
    assert evolved(column, kind, kind.with_nullable(False)) is column
