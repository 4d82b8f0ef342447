"""A user's condition, as a predicate and as Spark's filter."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from lakelsm.errors import InvalidInputError
from lakelsm.predicate.predicate import Compare
from lakelsm.spark.conditions import filtered, predicate_of
from lakelsm.types import parse_columns


class Frame:
    """A frame that takes its filters down, or fails as Spark does."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.asked: list[Any] = []
        self.failure = failure

    def where(self, condition: Any) -> Frame:
        if self.failure is not None:
            raise self.failure
        self.asked.append(condition)
        return self


def test_a_condition_goes_to_spark_as_it_is() -> None:
    frame = Frame()
    assert filtered(frame, "a = 1 AND b > 2") is frame  # type: ignore[arg-type]
    assert frame.asked == ["a = 1 AND b > 2"]


def test_a_condition_of_very_many_ands_is_one_expression_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(F, "expr", lambda text: SimpleNamespace(eqNullSafe=lambda value: (text, value)))
    long = " and ".join(["a = 1"] * 600)
    frame = Frame()
    filtered(frame, long)  # type: ignore[arg-type]
    assert frame.asked == [(long, True)]


def test_a_condition_that_spark_does_not_understand_is_told_in_one_line() -> None:
    failing = Frame(AnalysisException("[UNRESOLVED_COLUMN] no column `x`\n'Filter ('x = 1)\n+- Relation"))
    with pytest.raises(InvalidInputError) as raised:
        filtered(failing, "x = 1")  # type: ignore[arg-type]
    assert str(raised.value) == "Condition 'x = 1' is wrong: [UNRESOLVED_COLUMN] no column `x`"


def test_a_predicate_reads_texts_of_times_in_the_sessions_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = parse_columns("d INT")
    session: Any = SimpleNamespace(conf=SimpleNamespace(get={"spark.sql.session.timeZone": "Asia/Tokyo"}.__getitem__))
    assert predicate_of(session, fields, "d = 1") == Compare("d", "=", 1)
    monkeypatch.setattr("lakelsm.spark.conditions.parse_where", lambda *given: given)
    assert predicate_of(session, fields, "d = 1") == ("d = 1", fields, "Asia/Tokyo")
