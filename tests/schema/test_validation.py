"""The errors of creation, opening, and the options of one call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import OPTIONS
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema.validation import (
    validate_changed_table,
    validate_existing_table,
    validate_table,
    with_dynamic_options,
)
from lakelsm.types import DataField, parse_type

_CASES = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "tables.jsonl"
_COLUMNS = "k INT, p INT, s STRING, v BIGINT, t TIMESTAMP(3), m MAP<STRING, INT>, r ROW<x INT>, a ARRAY<INT>"


def _schema(
    options: dict[str, str], primary: tuple[str, ...] = ("k",), by: tuple[str, ...] = ()
) -> TableSchema:
    return create_schema(_COLUMNS, primary, by, options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bukcet": "1"}, "'bucket'"),
        ({"fields.v.aggregate-functon": "sum"}, "Use 'aggregate-function'"),
        ({"bucket": "-3"}, "is less than -2"),
        ({"primary-key.nullable": "maybe"}, "primary-key.nullable"),
        ({"sequence.snapshot-ordering": "true"}, "write-only"),
        ({"scan.mode": "from-snapshot"}, "exactly one of"),
    ],
)
def test_a_wrong_table_is_reported_as_wrong_before_as_unsupported(
    options: dict[str, str], reason: str
) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        validate_table(_schema({"file.format": "orc", **options}))


@pytest.mark.parametrize(
    "options",
    [
        {"force-lookup": "true"},
        {"data-file.thin-mode": "true"},
        {"snapshot.time-retained": "2 h", "consumer.expiration-time": "1 d"},
        {"scan.mode": "latest-full"},
        {"local-merge-buffer-size": "5m", "commit.force-compact": "true"},
        {"sequence.field": "v,", "sequence.field.sort-order": "descending"},
        {"fields.v.stats-mode": "counts"},
    ],
    ids=str,
)
def test_harmless_options_are_accepted(options: dict[str, str]) -> None:
    validate_table(_schema(options))


def test_unknown_keys_do_not_prevent_opening() -> None:
    assert validate_existing_table(_schema({"my.owner": "x", "bucket": "3"})).bucket == 3


def test_the_options_of_a_call_override_the_tables() -> None:
    schema = _schema({"bucket": "2"})
    merged, options = with_dynamic_options(schema, {"write-only": "true"})
    assert options.write_only
    assert merged.options == {"bucket": "2", "write-only": "true"}
    assert schema.options == {"bucket": "2"}


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        ({"write-onyl": "true"}, InvalidInputError),
        ({"merge-engine": "aggregation"}, InvalidInputError),
        ({"bucket": "-1"}, InvalidInputError),
        ({"sequence.field": "x"}, InvalidInputError),
        ({"bucket": "4"}, InvalidInputError),
        ({"partition.default-name": "null"}, InvalidInputError),
        ({"partition.legacy-name": "false"}, InvalidInputError),
        ({"changelog-producer": "input"}, InvalidInputError),
        ({"sequence.field": "v"}, InvalidInputError),
        ({"sequence.field.sort-order": "descending"}, InvalidInputError),
        ({"deduplicate.ignore-delete": "true"}, InvalidInputError),
        ({"record-level.expire-time": "1 s", "record-level.time-field": "id"}, InvalidInputError),
        ({"fields.v.aggregate-function": "sum"}, InvalidInputError),
        ({"fields.default-aggregate-function": "sum"}, InvalidInputError),
        ({"file.format.per.level": "0:avro"}, UnsupportedFeatureError),
        ({"file-index.range-bitmap.columns": "v"}, UnsupportedFeatureError),
    ],
    ids=str,
)
def test_the_options_of_a_call_are_checked(overrides: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        with_dynamic_options(_schema({"bucket": "2", "other.engine": "x"}), overrides)


def test_a_call_may_repeat_the_tables_options_and_set_options_of_files() -> None:
    schema = _schema({"bucket": "2"})
    same = {"bucket": " 2", "changelog-producer": "none", "partition.legacy-name": "TRUE", "ignore-delete": "false"}
    tuned = {"target-file-size": "1 mb", "fields.v.stats-mode": "none", "num-sorted-run.compaction-trigger": "2"}
    assert with_dynamic_options(schema, same | tuned)[1].target_file_size == 1 << 20


def test_a_call_cannot_set_an_immutable_option() -> None:
    assert not [option.key for option in OPTIONS.values() if option.immutable and option.per_call]


def test_a_key_without_a_partition_column_needs_fixed_buckets_and_an_option() -> None:
    columns, key, meant = "id INT, p STRING, v INT", ["id"], {"bucket": "2", "lakelsm.key-per-partition": "true"}
    schema = create_schema(columns, key, ["p"], {"bucket": "2"})
    assert schema.cross_partition
    with pytest.raises(InvalidInputError, match=r"lacks the partition columns \['p'\].*lakelsm.key-per-partition"):
        validate_table(schema)
    assert validate_existing_table(schema).bucket == 2
    assert with_dynamic_options(schema, {"target-file-size": "1 mb"})[1].target_file_size == 1 << 20
    validate_changed_table(schema, {"target-file-size": "1 mb"})
    assert validate_table(create_schema(columns, key, ["p"], meant)).bucket == 2
    with pytest.raises(InvalidInputError, match=r"'sequence\.field' = 'v' needs a primary key with all"):
        validate_table(create_schema(columns, key, ["p"], {**meant, "sequence.field": "v"}))
    with pytest.raises(UnsupportedFeatureError, match="cross-partition update"):
        validate_table(create_schema(columns, key, ["p"]))


def _conformance() -> list[dict[str, Any]]:
    if not _CASES.is_file():
        return []
    cases = [json.loads(line) for line in _CASES.read_text().splitlines()]
    return [case for case in cases if any(step["op"] == "create_error" for step in case["steps"])]


@pytest.mark.parametrize("case", _conformance(), ids=lambda case: case["id"])
def test_creations_that_paimon_refuses_are_refused_as_wrong(case: dict[str, Any]) -> None:
    columns = [DataField(-1, column["name"], parse_type(column["type"])) for column in case["columns"]]
    with pytest.raises(InvalidInputError):
        validate_table(create_schema(columns, case["primary_key"], case["partition_by"], case["options"]))
