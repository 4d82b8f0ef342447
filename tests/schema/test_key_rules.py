"""The rules for keys of a table: their types, and keys without partition columns."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions
from lakelsm.schema.key_rules import check_key, check_key_per_partition, check_new_key
from lakelsm.schema.table_schema import TableSchema, create_schema

_COLUMNS = "k INT, p INT, q INT, v MAP<STRING, INT>"
_MEANT = {"lakelsm.key-per-partition": "true"}


def _schema(key: list[str], by: list[str], **options: str) -> tuple[TableSchema, TableOptions]:
    schema = create_schema(_COLUMNS, key, by, {name.replace("__", "."): text for name, text in options.items()})
    return schema, TableOptions.parse(schema.options)


@pytest.mark.parametrize(
    ("key", "by", "reason"),
    [
        (["v"], [], "primary key column 'v': type"),
        (["k"], ["v"], "partition column 'v': type"),
        (["p"], ["p"], "has only partition columns"),
    ],
)
def test_keys_of_wrong_types_and_of_partition_columns_are_refused(key: list[str], by: list[str], reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        check_key(*_schema(key, by))


@pytest.mark.parametrize(
    ("key", "lacking"), [(["k"], r"\['p', 'q'\]"), (["k", "p"], r"\['q'\]"), (["q", "k"], r"\['p'\]")]
)
def test_a_new_key_without_all_partition_columns_needs_an_option(key: list[str], lacking: str) -> None:
    with pytest.raises(InvalidInputError, match=f"lacks the partition columns {lacking}.*'lakelsm.key-per-partition'"):
        check_new_key(*_schema(key, ["p", "q"], bucket="1"))
    check_new_key(*_schema(key, ["p", "q"], bucket="1", **_MEANT))
    check_key_per_partition(*_schema(key, ["p", "q"], bucket="1", **_MEANT))
    check_new_key(*_schema(["k", "p", "q"], ["p", "q"], bucket="1"))
    check_new_key(*_schema(key, [], bucket="1"))


@pytest.mark.parametrize(
    ("key", "by", "bucket"), [(["k", "p"], ["p"], "1"), (["k"], [], "1"), (["k"], ["p"], "-1"), (["k", "p"], ["p"], "-1")]
)
def test_the_option_is_refused_if_it_has_no_effect(key: list[str], by: list[str], bucket: str) -> None:
    with pytest.raises(InvalidInputError, match=r"'true' needs a fixed number of buckets.*Remove the option"):
        check_key_per_partition(*_schema(key, by, bucket=bucket, **_MEANT))
