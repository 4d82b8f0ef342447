"""Random expressions of all types: in this process each gives Spark's rows, an error, or is refused by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.frames.sql_frame import frame_of_rows
from lakelsm.sql.local.local_query import local_query
from lakelsm.sql.query_source import FrameSource
from lakelsm.sql.syntax.query_text import QueryText
from lakelsm.text_table import shown_values
from tests.chance import seeds
from tests.sql.random_expressions import HOSTILE, MILD, random_expression

ROWS = {"hostile": HOSTILE, "mild": MILD}
#: Expressions of a run. `--hypothesis-profile=fuzz` has 20 times as many, of other seeds.
COUNT = 120
Outcome = tuple[str, Any]


def here(text: str, rows: pa.Table) -> Outcome:
    query = QueryText.of(f"SELECT {text} AS v FROM t ORDER BY row")
    try:
        found = local_query(query, {each.start: FrameSource("t", rows) for each in query.references})
        return "rows", _values(found.to_arrow().column(0))
    except UnsupportedFeatureError:
        return "refused", None
    except InvalidInputError as error:
        return "error", str(error)


def on_spark(spark: SparkSession, table: str, texts: Sequence[str]) -> list[Outcome]:
    """Return the values of expressions; a batch with an error is cut in half until it is one expression."""
    try:
        items = ", ".join(f"{text} AS v{at}" for at, text in enumerate(texts))
        rows = spark.sql(f"SELECT {items} FROM {table} ORDER BY row").toArrow()
        return [("rows", _values(column)) for column in rows.columns]
    except PySparkException as error:
        if len(texts) == 1:
            return [("error", str(error))]
        half = len(texts) // 2
        return [*on_spark(spark, table, texts[:half]), *on_spark(spark, table, texts[half:])]


def _values(column: pa.ChunkedArray) -> tuple[str, list[object]]:
    """Return the type, where it is not nested, and the values."""
    kind = "nested" if pa.types.is_nested(column.type) else str(column.type)
    return kind, [_plain(value) for value in shown_values(column)]


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


@pytest.mark.spark
@pytest.mark.parametrize("table", ROWS)
def test_random_expressions_give_spark_s_rows_or_are_refused(interpreted: SparkSession, table: str) -> None:
    spark = interpreted
    texts = [random_expression(seed) for seed in seeds(COUNT) if seed % len(ROWS) == list(ROWS).index(table)]
    frame_of_rows(spark, ROWS[table]).coalesce(1).createOrReplaceTempView(table)
    found = {text: here(text, ROWS[table]) for text in texts}
    evaluated = [text for text, (kind, _) in found.items() if kind != "refused"]
    expected: dict[str, Outcome] = {}
    for start in range(0, len(evaluated), 40):
        part = evaluated[start : start + 40]
        expected.update(zip(part, on_spark(spark, table, part)))
    different = {
        text: (found[text], expected[text])
        for text in evaluated
        if found[text][0] == "rows" and found[text] != expected[text]
    }
    assert different == {}
    kinds = [kind for kind, _ in found.values()]
    assert kinds.count("rows") > 0.7 * len(kinds), "few expressions are evaluated, so the test shows little"
    assert [expected[text][0] for text in evaluated].count("rows") > 0.7 * len(evaluated)
