"""Values that would fail later are refused when they are set: at creation, by ALTER, for one call."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema.validation import validate_existing_table, validate_table
from lakelsm.schema_changes import SetOption

_WRONG = [
    ("consumer.mode", "x", "exactly-once"),
    ("consumer-id", "a/b", "without a slash"),
    ("consumer-id", "", "not blank"),
    ("consumer-id", "x" * 250, "at most 246 bytes"),
    ("tag.batch.customized-name", "../x", "without a slash"),
    ("tag.batch.customized-name", "", "not blank"),
    ("partition.default-name", "", "1 to 252 bytes"),
    ("partition.default-name", "é" * 130, "1 to 252 bytes"),
    ("partition.timestamp-pattern", "$day", "\\$day is not a partition column.*dt"),
    ("partition.timestamp-pattern", "$dt $day", "\\$day is not a partition column"),
    ("partition.timestamp-pattern", "dt", "no partition column is referenced"),
    ("partition.timestamp-formatter", "yyyyMM", "a year, a month or a day"),
    ("partition.timestamp-formatter", "", "a year, a month or a day"),
    ("changelog-producer.row-deduplicate-ignore-fields", "v,V", "column 'V' does not exist. Write 'v'"),
    ("commit.user-prefix", "a\nb", "printable"),
    ("commit.user-prefix", "a" * 1000, "at most 900"),
    ("tag.creation-period-duration", "100000000000 d", "more than 3155760000000 ms"),
    ("commit.max-retry-wait", "9223372036854775807", "more than 3155760000000 ms"),
]


def _schema(options: dict[str, str], by: tuple[str, ...] = ("dt",)) -> TableSchema:
    return create_schema("k INT, dt STRING, v BIGINT", ("k", *by), by, options)


@pytest.mark.parametrize(("key", "text", "reason"), _WRONG)
def test_an_invalid_value_is_refused_at_creation_and_by_alter(key: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=f"option '{key}'.*{reason}"):
        validate_table(_schema({key: text}))
    with pytest.raises(InvalidInputError, match=f"option '{key}'.*{reason}"):
        apply_changes(_schema({}), [SetOption(key, text)], 0, has_snapshots=False)


def test_an_unsupported_formatter_of_java_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"partition\.timestamp-formatter.*'MMM' is not supported"):
        validate_table(_schema({"partition.timestamp-formatter": "yyyy-MMM-dd"}))


def test_expiry_of_partitions_needs_partitions() -> None:
    validate_table(_schema({"partition.expiration-time": "7 d"}))
    with pytest.raises(InvalidInputError, match=r"'partition\.expiration-time' = '7 d' needs a table with partitions"):
        validate_table(_schema({"partition.expiration-time": "7 d"}, by=()))


@pytest.mark.parametrize(("key", "text", "reason"), [case for case in _WRONG if "ms" not in case[2]])
def test_a_table_of_another_engine_with_such_a_value_can_be_opened_and_altered(key: str, text: str, reason: str) -> None:
    schema = _schema({key: text})
    validate_existing_table(schema)
    apply_changes(schema, [SetOption("write-only", "true")], 0)


@pytest.mark.parametrize("key", ["partition.default-name", "partition.legacy-name"])
def test_options_of_directory_names_cannot_change_once_the_table_has_data(key: str) -> None:
    change = SetOption(key, "false")
    apply_changes(_schema({}), [change], 0, has_snapshots=False)
    with pytest.raises(LakelsmError, match=f"option '{key}' cannot change from .* once the table has data"):
        apply_changes(_schema({}), [change], 0)
