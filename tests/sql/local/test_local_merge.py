"""Sources and expressions of merges."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.plan.merge_plan import DELETE, MATCHED, MergeRequest, MergeRule
from lakelsm.sql.local.local_merge import check_expressions, checked_source, opened_source
from lakelsm.sql.pushdown import Need
from tests.engines import TableEngine


def request(condition: str) -> MergeRequest:
    return MergeRequest("t.k = s.k", (MergeRule(MATCHED, condition, DELETE),), "t", "s")


@pytest.mark.parametrize("text", ["a > 1 -- (", "')' = b", "((a))", "`select` = 1", "a /* ) */ = 1"])
def test_one_expression_is_accepted(text: str) -> None:
    check_expressions(request(text))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a) OR (b", InvalidInputError),
        ("(a", InvalidInputError),
        ("a; DROP TABLE t", InvalidInputError),
        ("'a", InvalidInputError),
        ("EXISTS (SELECT 1)", UnsupportedFeatureError),
        ("a /*+ BROADCAST(t) */", UnsupportedFeatureError),
    ],
)
def test_more_than_one_expression_and_queries_are_refused(text: str, error: type[LakelsmError]) -> None:
    with pytest.raises(error):
        check_expressions(request(text))


def test_columns_of_null_have_the_type_of_the_table(local: TableEngine, tmp_path: Path) -> None:
    schema = local.create(tmp_path, "k INT, d DATE", ["k"]).schema
    source = checked_source({"K": [1], "D": [None], "x": [None]}, schema)
    opened = opened_source(source)
    assert [field.type.sql() for field in opened.fields] == ["BIGINT", "DATE", "STRING"]
    assert opened.reader(Need(["D"], None)).read_all().schema == pa.schema([("D", pa.date32())])
