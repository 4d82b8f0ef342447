"""A predicate has the result of Spark for the same text, with and without ANSI mode."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import is_exact, unknown_part
from lakelsm.types import AtomicType, DataField, to_arrow
from tests.predicate.evaluation import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN, INF = float("nan"), float("inf")
# column: (Spark type, Paimon type, values, literals)
COLUMNS: dict[str, tuple[str, AtomicType, list[Any], list[str]]] = {
    "i": (
        "int",
        AtomicType("INT"),
        [None, -3, 0, 1, 2, 5, 16777217, 2147483647],
        [
            "5",
            "-3",
            "5.0",
            "1.5",
            "2e0",
            "16777217.0",
            "3000000000",
            "-99999999999999999999",
            "5L",
            "1.5D",
            "2BD",
        ],
    ),
    "l": (
        "bigint",
        AtomicType("BIGINT"),
        [None, -3, 0, 5, 2**53 + 1, 2**63 - 1],
        ["9007199254740993", "9007199254740993.0", "9007199254740992.5", "1e3", "99999999999999999999"],
    ),
    "f": (
        "float",
        AtomicType("FLOAT"),
        [None, 0.10000000149011612, 0.5, -0.0, NAN, 16777216.0, INF],
        ["0.1", "0.5", "0", "16777217", "0.1D", "0.1F", "-0.0"],
    ),
    "d": (
        "double",
        AtomicType("DOUBLE"),
        [None, 0.1, 0.5, -0.0, NAN, 1e3, -INF],
        ["0.1", "0.5", "0", "1e3", "0.1F", "0.10000000000000000000001"],
    ),
    "p": (
        "decimal(10,2)",
        AtomicType("DECIMAL", precision=10, scale=2),
        [None, Decimal("1.25"), Decimal("0.00"), Decimal("-3.10"), Decimal("99999999.99")],
        ["1.25", "1.250", "1", "1.255", "1e0", "123456789012", "-3.1"],
    ),
    "t": (
        "string",
        AtomicType("VARCHAR", length=99),
        [None, "", "a", "ab", "abc", "b", "é", "Ab", "a%"],
        ["'a'", "'ab'", "''", "'é'", '"ab"', "'a%'"],
    ),
    "b": ("boolean", AtomicType("BOOLEAN"), [None, True, False], ["true", "FALSE"]),
    "r": (
        "binary",
        AtomicType("VARBINARY", length=9),
        [None, b"", b"\x01", b"\x01\xff"],
        ["X'01'", "x'01FF'"],
    ),
    "day": (
        "date",
        AtomicType("DATE"),
        [None, date(2020, 1, 1), date(2020, 1, 2), date(1, 1, 1), date(9999, 12, 31)],
        ["'2020-01-01'", "DATE '2020-01-01'", "'2020-1-1'", "TIMESTAMP '2020-01-01 00:00:00'"],
    ),
    "ts": (
        "timestamp_ntz",
        AtomicType("TIMESTAMP"),
        [None, datetime(2020, 1, 1), datetime(2020, 3, 29, 2, 30), datetime(2020, 3, 29, 3, 10)],
        [
            "'2020-01-01'",
            "TIMESTAMP '2020-03-29 03:15:00'",
            "TIMESTAMP_NTZ '2020-03-29 03:10:00'",
            "DATE '2020-01-01'",
        ],
    ),
}
SHAPES = ("{c} = {x}", "{c} != {x}", "{c} < {x}", "{x} <= {c}", "{c} > {x}", "{x} >= {c}", "{c} <=> {x}")
SHAPES += ("{c} IN ({x})", "{c} IN ({x}, NULL)", "{c} NOT IN ({x})", "NOT ({c} <=> {x})", "NOT ({c} < {x})")
PAIRS = (
    "{c} BETWEEN {x} AND {y}",
    "{c} NOT BETWEEN {x} AND {y}",
    "{c} IN ({x}, {y})",
    "{c} NOT IN ({x}, {y})",
)
OTHERS = (
    *(
        "t LIKE 'a%'",
        "t LIKE 'ab'",
        "t LIKE 'a_c'",
        "t LIKE '%'",
        "t LIKE 'a%c'",
        "t NOT LIKE 'a%'",
        "t LIKE ''",
    ),
    *("b", "NOT b", "b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "b IS NOT FALSE", "startswith(t, 'a')"),
    *("(i > 1) IS TRUE", "(i > 1) IS NOT TRUE", "i = 1 = true", "NOT i = 1", "! i = 1", "i = 5 IS NULL"),
    *("i = 1 OR i = 5 AND l = 5", "i IN (1, 2) AND t LIKE 'a%' OR b IS NULL", "i BETWEEN 1 AND NULL"),
    *("t LIKE '%b'", "t NOT LIKE '_'", "(t LIKE 'a%c') IS NOT TRUE", "(t LIKE '_b%') IS FALSE"),
    *("i = l", "l < i", "NOT i >= l"),
    *("f = d", "d < f", "f >= d", "f != d", "NOT f <=> d", "i <=> l", "t = t", "i BETWEEN l AND 5", "b = b", "p != p"),
    *("i = NULL", "i <=> NULL", "1 = 1", "1 = 0", "`i` = 5", "I = 5", "t = 'a' 'b'", "t = 'it''s'"),
)


def _conditions() -> list[str]:
    found = list(OTHERS)
    for column, (_, _, _, literals) in COLUMNS.items():
        found += [shape.format(c=column, x=x) for shape, x in product(SHAPES, literals)]
        pairs = list(product(literals[:2], literals[:3]))
        found += [shape.format(c=column, x=x, y=y) for shape, (x, y) in product(PAIRS, pairs)]
    return found


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_agrees_on_every_row(spark: SparkSession, ansi: str) -> None:
    count = max(len(values) for _, _, values, _ in COLUMNS.values())
    rows = [{name: c[2][i % len(c[2])] for name, c in COLUMNS.items()} for i in range(count)]
    fields = [DataField(i, name, c[1]) for i, (name, c) in enumerate(COLUMNS.items())]
    schema = "n int, " + ", ".join(f"{name} {c[0]}" for name, c in COLUMNS.items())
    frame = spark.createDataFrame([(i, *row.values()) for i, row in enumerate(rows)], schema).coalesce(1)
    conditions = _conditions()
    before = spark.conf.get("spark.sql.ansi.enabled")
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    try:
        texts = [f"({condition}) AS c{i}" for i, condition in enumerate(conditions)]
        answers = [row[1:] for row in frame.selectExpr("n", *texts).orderBy("n").collect()]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
        spark.conf.set("spark.sql.session.timeZone", zone)
    wrong = []
    exact = judged = 0
    table = pa.table({name: pa.array([row[name] for row in rows], to_arrow(c[1])) for name, c in COLUMNS.items()})
    for i, condition in enumerate(conditions):
        predicate = parse_where(condition, fields, "Europe/Paris")
        exact += is_exact(predicate)
        if unknown_part(predicate) is None:
            judged += 1
            if matching(predicate, table).to_pylist() != [answer[i] is True for answer in answers]:
                wrong.append((condition, predicate, [answer[i] for answer in answers], matching(predicate, table)))
        for row, answer in zip(rows, answers, strict=True):
            found = evaluate(predicate, row)
            if (found is None and is_exact(predicate)) or found not in (None, answer[i] is True):
                wrong.append((condition, row, answer[i], found))
    assert wrong == []
    assert len(conditions) / 2 < exact < judged
