"""An expression of the local engine has its value and type in Spark's ANSI mode, and fails where Spark fails.

Constants that Spark folds before it reads a row may differ: there 0 / 0 fails also in a branch that no row needs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, LakelsmError
from lakelsm.predicate.expression import Expression, Value
from lakelsm.predicate.expression_evaluation import evaluated
from lakelsm.predicate.parser import parse_expression
from tests.predicate.expressions import FIELDS, ROWS, Drawn, batch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

DRAWN = 1500
#: The number of failing expressions that are run on Spark, one query each.
FAILING = 25
FIXED = [
    *("n / 0", "1 / (n - n)", "n + 1", "-b", "i8 + i8", "i8 * 100Y", "w * w", "w / e", "e / w", "w % d", "x % 2"),
    *("n % -1", "coalesce(n, 1 / 0)", "-2147483648", "-9223372036854775808"),
    *("CAST(x AS DECIMAL(38, 20))", "CAST(r AS DECIMAL(20, 18))", "CAST(e AS INT)", "CAST(-2.5 AS DECIMAL(3, 0))"),
    *("CAST(9223372036854775807D AS BIGINT)", "CAST(2147483647.5D AS INT)", "CAST(b AS FLOAT)", "CAST(w AS FLOAT)"),
    *("CASE WHEN m <> 0 THEN n / m ELSE 0 END", "m <> 0 AND n / m > 1", "m IS NULL OR n / (m - 1) > 0"),
    *("x + 1 / i8", "m / (n - 3)", "CAST(ok AS INT) + 1", "'a' 'b'", "u || \"'\" || v"),
    *("9223372036854775808", "0.05 * 3", "d * 1000", "1000 * d", "d + 1", "d + 1L", "coalesce(e, w)", "nullif(d, n)"),
    *("coalesce(NULL, NULL)", "NULL + NULL", "NULL || 'a'", "0.0 * 1", ".5 + 1.", "1e-7D * 1", "x", "n % 2 = 1", "d = n"),
]


def fate(expression: Expression, rows: pa.RecordBatch) -> list[Any] | None:
    """Return the values; None if a row fails."""
    try:
        return evaluated(expression, rows).to_pylist()
    except InvalidInputError:
        return None


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal. Zeros are, because Spark loses their sign when it folds constants."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)
    return bool(one == other) and type(one) is type(other)


@pytest.fixture
def frame(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """The rows in a file, as in a table: Spark evaluates constants in another way."""
    from pyspark.sql import functions as F

    from lakelsm.spark.spark_types import to_struct

    rows = spark.createDataFrame([(at, *row) for at, row in enumerate(ROWS)], "at INT, " + ", ".join(
        f"{field.name} {kind.dataType.simpleString()}" for field, kind in zip(FIELDS, to_struct(FIELDS))
    ))
    rows.coalesce(1).write.parquet(str(tmp_path / "rows"))
    return spark.read.parquet(str(tmp_path / "rows")).orderBy(F.col("at"))


def test_spark_returns_the_same_value_and_type_or_also_fails(spark: SparkSession, frame: DataFrame) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    from lakelsm.frames.prepare import value_type

    rows, draw = batch(), Drawn(1)
    texts = [*FIXED, *(draw.expression() for _ in range(DRAWN))]
    parsed: dict[str, Expression] = {}
    for text in texts:
        try:
            parsed[text] = parse_expression(text, FIELDS, "UTC")
        except LakelsmError as error:
            assert "cannot evaluate" in str(error), (text, error)
    assert len(parsed) > 0.9 * len(set(texts))
    found = {text: fate(expression, rows) for text, expression in parsed.items()}
    sound = [text for text, values in found.items() if values is not None]
    assert len(sound) > 0.4 * len(parsed)
    wrong: list[Any] = []
    for start in range(0, len(sound), 150):
        part = sound[start : start + 150]
        selected = frame.select(*(F.expr(text).alias(f"c{at}") for at, text in enumerate(part)))
        kinds = [value_type(field.dataType) for field in selected.schema.fields]
        wrong += [
            (text, parsed[text].type, kind)
            for text, kind in zip(part, kinds)
            if kind != parsed[text].type and not isinstance(parsed[text], Value)
        ]
        for at, values in enumerate(zip(*(tuple(row) for row in selected.collect()))):
            mine = found[part[at]]
            assert mine is not None
            if not all(map(same, mine, values)):
                wrong.append((part[at], mine, values))
    failing = [text for text, values in found.items() if values is None]
    for text in failing[:FAILING]:
        with suppress(PySparkException):
            wrong.append((text, "fails here", frame.select(F.expr(text)).collect()))
    assert not wrong, "\n".join(map(str, wrong[:40]))
