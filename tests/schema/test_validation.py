"""What creation, opening and the options of one call refuse, and with which kind of error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import OPTIONS
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema.validation import validate_existing_table, validate_table, with_dynamic_options
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
        ({"wrong": "1"}, "unknown option 'wrong'"),
        ({"bucket": "0"}, "greater than 0"),
        ({"bucket": "-3"}, "at least -2"),
        ({"bucket-key": "k"}, "'bucket' is -1"),
        ({"bucket": "1", "bucket-key": "x"}, "'x', which is no column"),
        ({"bucket": "1", "bucket-key": "v"}, "no primary key column"),
        (
            {"bucket": "1", "bucket-function.type": "mod", "primary-key.nullable": "maybe"},
            "primary-key.nullable",
        ),
        ({"sequence.field": "x"}, "'x', which is no column"),
        ({"sequence.field": "v,v"}, "twice"),
        ({"sequence.field": "v", "fields.v.aggregate-function": "sum"}, "sequence field 'v'"),
        ({"sequence.field": "v", "merge-engine": "first-row"}, "first-row"),
        ({"rowkind.field": "x"}, "'x', which is no column"),
        ({"rowkind.field": "v"}, "STRING"),
        ({"fields.x.aggregate-function": "sum"}, "'x', which is no column"),
        ({"fields.v.aggregate-functon": "sum"}, "did you mean 'aggregate-function'"),
        ({"fields.r.x.aggregate-function": "sum"}, "ROW column 'r'"),
        ({"fields.v.map.storage-layout": "default"}, "MAP column"),
        (
            {"changelog-producer": "lookup", "full-compaction.delta-commits": "1"},
            "full-compaction.delta-commits",
        ),
        ({"changelog-producer": "lookup", "streaming-read-overwrite": "true"}, "streaming-read-overwrite"),
        ({"merge-engine": "first-row", "changelog-producer": "input"}, "changelog-producer"),
        ({"merge-engine": "first-row", "deletion-vectors.enabled": "true"}, "deletion-vectors.enabled"),
        ({"changelog-producer": "full-compaction", "deletion-vectors.enabled": "true"}, "deletion-vectors"),
        ({"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "4"}, "snapshot.num-retained.min"),
        ({"changelog.num-retained.max": "4"}, "changelog.num-retained.min"),
        ({"record-level.time-field": "x", "record-level.expire-time": "1 m"}, "'x', which is no column"),
        ({"record-level.time-field": "s", "record-level.expire-time": "1 m"}, "INT, BIGINT or TIMESTAMP"),
        ({"sequence.snapshot-ordering": "true"}, "write-only"),
        ({"sequence.snapshot-ordering": "true", "sequence.field": "v"}, "excludes"),
        ({"row-tracking.enabled": "true"}, "primary key"),
        ({"data-evolution.enabled": "true"}, "row-tracking.enabled"),
        ({"scan.mode": "from-snapshot"}, "exactly one of"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, "scan.snapshot-id"),
        ({"scan.snapshot-id": "1", "scan.timestamp-millis": "1"}, "scan"),
        ({"merge-engine": "partial-update", "fields.x.sequence-group": "v"}, "'x', which is no column"),
        ({"merge-engine": "partial-update", "fields.v.sequence-group": "k"}, "primary key column 'k'"),
        ({"merge-engine": "aggregation", "fields.v.aggregate-function": "summ"}, "no aggregate function"),
        (
            {
                "merge-engine": "aggregation",
                "aggregation.remove-record-on-delete": "true",
                "fields.v.ignore-retract": "true",
            },
            "contradict|cannot go with",
        ),
    ],
)
def test_a_wrong_table_is_called_wrong_even_where_its_feature_is_not_built(
    options: dict[str, str], reason: str
) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        validate_table(_schema(options))


@pytest.mark.parametrize(
    "name", ["_KEY_k", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "_ROW_ID", "rowkind", " "]
)
def test_names_of_the_system_are_refused(name: str) -> None:
    columns = [DataField(-1, "k", parse_type("INT")), DataField(-1, name, parse_type("INT"))]
    with pytest.raises(InvalidInputError, match=r"rename the column|name the column"):
        validate_table(create_schema(columns, ["k"]))


@pytest.mark.parametrize("name", ["m", "r", "a"])
def test_nested_columns_are_no_keys(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{name}'"):
        validate_table(_schema({}, ("k", name)))
    with pytest.raises(InvalidInputError, match=f"'{name}'"):
        validate_table(_schema({}, ("k", name), (name,)))


def test_a_mod_bucket_needs_one_whole_number() -> None:
    options = {"bucket": "2", "bucket-function.type": "mod"}
    assert validate_table(_schema(options)).bucket == 2
    for primary in (("s",), ("k", "v")):
        with pytest.raises(InvalidInputError, match="mod"):
            validate_table(_schema(options, primary))


_REFUSED_EVERYWHERE: tuple[dict[str, str], ...] = (
    {"deletion-vectors.enabled": "true"},
    {"bucket": "-2"},
    {"sequence.snapshot-ordering": "true", "write-only": "true"},
    {"file.format": "orc"},
    {"file.format": "avro"},
    {"file.format.per.level": "0:avro"},
    {"branch": "dev"},
    {"scan.snapshot-id": "3"},
    {"scan.mode": "compacted-full"},
    {"scan.tag-name": "t"},
    {"data-file.path-directory": "data"},
    {"index-file-in-data-file-dir": "true"},
    {"pk-clustering-override": "true"},
    {"metadata.iceberg.storage": "table-location"},
    {"type": "materialized-table"},
    {"query-auth.enabled": "true"},
    {"fields.m.map.storage-layout": "shared-shredding"},
)


@pytest.mark.parametrize("options", _REFUSED_EVERYWHERE, ids=str)
def test_an_unbuilt_feature_is_refused_by_name_at_creation_and_on_opening(options: dict[str, str]) -> None:
    name = next(iter(options))
    for judge in (validate_table, validate_existing_table):
        with pytest.raises(UnsupportedFeatureError) as caught:
            judge(_schema(options))
        assert name.rsplit(".", 1)[-1] in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"file-index.bloom-filter.columns": "v"},
        {"file.compression.per.level": "0:lz4"},
        {"metadata.stats-mode.per.level": "0:none"},
        {"tag.automatic-creation": "process-time"},
        {"partition.expiration-time": "7 d"},
        {"path": "/x"},
        {"commit.callbacks": "x.Y"},
    ],
    ids=str,
)
def test_what_only_concerns_new_files_or_upkeep_is_refused_at_creation_alone(options: dict[str, str]) -> None:
    validate_existing_table(_schema(options))
    with pytest.raises(UnsupportedFeatureError, match=next(iter(options))):
        validate_table(_schema(options))


def test_tables_without_primary_key_and_cross_partition_tables_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="without a primary key"):
        validate_existing_table(_schema({}, ()))
    with pytest.raises(UnsupportedFeatureError, match="cross-partition"):
        validate_table(_schema({}, ("k",), ("p",)))


@pytest.mark.parametrize(
    "column", ["VARIANT", "BLOB", "ARRAY<VARIANT>", "VECTOR<FLOAT, 3>", "INT DEFAULT '1'"]
)
def test_columns_that_lakelsm_cannot_hold_are_refused(column: str) -> None:
    with pytest.raises(UnsupportedFeatureError):
        validate_existing_table(create_schema(f"k INT, x {column}", ["k"]))


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


@pytest.mark.parametrize("key", ["data-file.prefix", "changelog-file.prefix"])
def test_a_file_prefix_leaves_room_for_the_rest_of_the_name(key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{key}' has 176 bytes.*use at most 175"):
        validate_table(_schema({key: "ü" * 88}))
    validate_table(_schema({key: "x" * 175}))


@pytest.mark.parametrize("key", ["data-file.prefix", "changelog-file.prefix"])
@pytest.mark.parametrize("prefix", ["../../x", "a/b-", "/tmp/x-", "x\0"])
def test_a_file_prefix_that_leads_to_another_directory_is_refused(key: str, prefix: str) -> None:
    for validate in (validate_table, validate_existing_table):
        with pytest.raises(InvalidInputError, match=f"'{key}' = .* must not have a slash"):
            validate(_schema({key: prefix}))


def test_foreign_keys_do_not_prevent_opening() -> None:
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
        ({"file-index.bloom-filter.columns": "v"}, UnsupportedFeatureError),
    ],
    ids=str,
)
def test_the_options_of_a_call_are_judged(overrides: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        with_dynamic_options(_schema({"bucket": "2", "other.engine": "x"}), overrides)


def test_a_call_may_say_what_the_table_has_and_tune_how_files_are_written() -> None:
    schema = _schema({"bucket": "2"})
    same = {"bucket": " 2", "changelog-producer": "none", "partition.legacy-name": "TRUE", "ignore-delete": "false"}
    tuned = {"target-file-size": "1 mb", "fields.v.stats-mode": "none", "num-sorted-run.compaction-trigger": "2"}
    assert with_dynamic_options(schema, same | tuned)[1].target_file_size == 1 << 20


def test_no_call_has_its_own_of_an_option_that_is_fixed() -> None:
    assert not [option.key for option in OPTIONS.values() if option.immutable and option.per_call]


def test_a_key_that_lacks_a_partition_column_has_fixed_buckets_as_in_paimon_since_1_4() -> None:
    columns, key = "id INT, p STRING, v INT", ["id"]
    schema = create_schema(columns, key, ["p"], {"bucket": "2"})
    assert schema.cross_partition
    assert validate_table(schema).bucket == validate_existing_table(schema).bucket == 2
    with pytest.raises(InvalidInputError, match=r"'sequence\.field' = 'v' cannot be used"):
        validate_table(create_schema(columns, key, ["p"], {"bucket": "2", "sequence.field": "v"}))
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
