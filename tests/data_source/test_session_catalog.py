"""Locations and descriptions of Spark's session catalog."""

from __future__ import annotations

import pytest

from lakelsm.data_source.session_catalog import are_nested, is_valid_name, provider_of, quoted


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("file:/wh/nyc.db", "/wh/nyc.db", True),
        ("file:///wh/nyc.db/", "/wh/nyc.db", True),
        ("/wh", "/wh/nyc.db", True),
        ("file:/wh/nyc.db/sub", "/wh/nyc.db", True),
        ("file:/wh/nyc.db2", "/wh/nyc.db", False),
        ("file:/wh/a:b", "/wh/a:b", True),
        ("s3a://b/wh/nyc.db", "s3://b/wh/nyc.db", True),
        ("s3a://b2/wh", "s3://b/wh", False),
        ("hdfs://b/wh", "s3://b/wh", False),
        ("s3://b/wh", "/b/wh", False),
    ],
)
def test_locations_are_compared_by_directory(one: str, other: str, expected: bool) -> None:
    assert are_nested(one, other) is are_nested(other, one) is expected


def test_only_a_table_has_a_provider() -> None:
    head = "Catalog: spark_catalog\nDatabase: d\nTable: t\nCreated By: Spark 4.3.0\n"
    table = f"{head}Type: EXTERNAL\nProvider: lakelsm_1_2\nComment: Type: VIEW\nProvider: parquet\nLocation: x\n"
    assert provider_of(table) == "lakelsm_1_2"
    assert provider_of(f"{head}Type: VIEW\nComment: a\nType: MANAGED\nProvider: lakelsm_1_2\nView Text: x\n") == ""
    assert provider_of(f"{head}Type: VIEW\n") == ""


def test_names_are_quoted_and_checked() -> None:
    assert quoted("a`b") == "`a``b`"
    assert all(map(is_valid_name, ("a", "A_1", "1")))
    assert not any(map(is_valid_name, ("", "a-b", "a b", "ä", "a\n", "a.b", "a`")))
