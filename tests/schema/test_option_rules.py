"""Paimon's rules for a table's schema and options, broken one at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import TableOptions
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.option_rules import can_have_index, check_rules, check_scan_mode
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema.validation import validate_existing_table, validate_table
from lakelsm.schema_changes import DropColumn, RenameColumn
from lakelsm.types import DataField, parse_type

_COLUMNS = "k INT, p INT, s STRING, v BIGINT, t TIMESTAMP(3), m MAP<STRING, INT>, r ROW<x INT>, a ARRAY<INT>"


def check(options: dict[str, str], primary: tuple[str, ...] = ("k",), by: tuple[str, ...] = ()) -> None:
    check_schema(create_schema(_COLUMNS, primary, by, options))


def check_schema(schema: TableSchema) -> None:
    check_rules(schema, TableOptions.parse(schema.options))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bucket": "0"}, "greater than 0"),
        ({"bucket-key": "k"}, "needs a fixed number of buckets"),
        ({"bucket": "1", "bucket-key": "x"}, "column 'x' does not exist"),
        ({"bucket": "1", "bucket-key": "v"}, "not a primary key column"),
        ({"sequence.field": "x"}, "column 'x' does not exist"),
        ({"sequence.field": "v,v"}, "twice"),
        ({"sequence.field": "v", "fields.v.aggregate-function": "sum"}, "'v' is a sequence field"),
        ({"sequence.field": "v", "merge-engine": "first-row"}, "first-row"),
        ({"rowkind.field": "x"}, "column 'x' does not exist"),
        ({"rowkind.field": "v"}, "STRING"),
        ({"fields.x.aggregate-function": "sum"}, "column 'x' does not exist"),
        ({"fields.r.x.aggregate-function": "sum"}, "ROW column 'r'"),
        ({"fields.v.map.storage-layout": "default"}, "not a MAP"),
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
        ({"record-level.time-field": "x", "record-level.expire-time": "1 m"}, "column 'x' does not exist"),
        ({"record-level.time-field": "s", "record-level.expire-time": "1 m"}, "INT, BIGINT or TIMESTAMP"),
        ({"sequence.snapshot-ordering": "true"}, "write-only"),
        ({"sequence.snapshot-ordering": "true", "sequence.field": "v"}, "cannot be combined with 'sequence.field'"),
        ({"row-tracking.enabled": "true"}, "primary key"),
        ({"data-evolution.enabled": "true"}, "row-tracking.enabled"),
        ({"merge-engine": "partial-update", "fields.x.sequence-group": "v"}, "column 'x' does not exist"),
        ({"merge-engine": "partial-update", "fields.v.sequence-group": "k"}, "'k' is a primary key column"),
        ({"merge-engine": "aggregation", "fields.v.aggregate-function": "summ"}, "not an aggregate function"),
        (
            {
                "merge-engine": "aggregation",
                "aggregation.remove-record-on-delete": "true",
                "fields.v.ignore-retract": "true",
            },
            "contradict|cannot be combined with",
        ),
    ],
)
def test_a_broken_rule_is_reported_with_its_names(options: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        check(options)


@pytest.mark.parametrize(
    ("options", "primary", "by", "reason"),
    [
        ({"primary-key.nullable": "true"}, (), (), "needs a primary key"),
        ({"full-compaction.delta-commits": "3"}, (), (), "'full-compaction.delta-commits' needs a primary key"),
        ({"bucket": "4"}, (), (), "without a primary key needs 'bucket-key'"),
        ({"bucket": "-2"}, (), (), "-2 is not a number of buckets"),
        ({"bucket": "2", "bucket-key": "p"}, ("k", "p"), ("p",), "'p' is a partition column. Leave it out"),
        ({"bucket": "2", "bucket-key": "m"}, (), (), "is nested"),
        ({"changelog-producer": "input"}, (), (), "'changelog-producer' = 'input' needs a primary key"),
        ({"streaming-read-overwrite": "true"}, (), (), "'streaming-read-overwrite' = 'true' needs a primary key"),
        ({"sequence.snapshot-ordering": "true"}, (), (), "'sequence.snapshot-ordering' = 'true' needs a primary key"),
        ({"row-tracking.enabled": "true", "bucket": "1", "bucket-key": "k"}, (), (), "needs 'bucket' = '-1', not '1'"),
    ],
)
def test_rules_of_keys_and_buckets_name_the_column_or_option(
    options: dict[str, str], primary: tuple[str, ...], by: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        check(options, primary, by)


@pytest.mark.parametrize(
    "name", ["_KEY_k", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "_ROW_ID", "rowkind", " "]
)
def test_reserved_names_are_refused(name: str) -> None:
    columns = [DataField(-1, "k", parse_type("INT")), DataField(-1, name, parse_type("INT"))]
    with pytest.raises(InvalidInputError, match=r"Choose another name"):
        check_schema(create_schema(columns, ["k"]))


@pytest.mark.parametrize("name", ["m", "r", "a"])
def test_nested_columns_are_refused_as_keys(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{name}'"):
        check({}, ("k", name))
    with pytest.raises(InvalidInputError, match=f"'{name}'"):
        check({}, ("k", name), (name,))


@pytest.mark.parametrize(
    ("columns", "clash"),
    [
        ("k INT, Name INT, name INT", "column 'Name' and column 'name' differ only in case"),
        ("k INT, r ROW<x INT, X INT>", "member of 'r' 'x' and member of 'r' 'X' differ only in case"),
        ("k INT, a ARRAY<MAP<INT, ROW<x INT, X INT>>>", "member of 'a' 'x' and member of 'a' 'X' differ only in case"),
        ("k INT, _key_v INT", "column name '_key_v' is reserved in data files"),
    ],
)
def test_names_that_are_equal_in_spark_are_refused(columns: str, clash: str) -> None:
    with pytest.raises(InvalidInputError, match=clash):
        check_schema(create_schema(columns, ["k"]))


def test_the_mod_function_needs_one_integer_column() -> None:
    options = {"bucket": "2", "bucket-function.type": "mod"}
    check(options)
    check(options, ("v",))
    for primary in (("s",), ("k", "v")):
        with pytest.raises(InvalidInputError, match="mod"):
            check(options, primary)


@pytest.mark.parametrize("key", ["data-file.prefix", "changelog-file.prefix"])
def test_a_file_prefix_leaves_room_for_the_rest_of_the_name(key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{key}': the prefix has 176 bytes.*Use at most 175"):
        check({key: "ü" * 88})
    check({key: "x" * 175})


@pytest.mark.parametrize("key", ["data-file.prefix", "changelog-file.prefix"])
@pytest.mark.parametrize("prefix", ["../../x", "a/b-", "/tmp/x-", "x\0"])
def test_a_file_prefix_that_leads_to_another_directory_is_refused(key: str, prefix: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{key}': .* has a slash or NUL"):
        check({key: prefix})


def test_a_stored_schema_whose_key_has_only_partition_columns_is_refused() -> None:
    stored = replace(create_schema(_COLUMNS, ["p"]), partition_keys=("p",))
    with pytest.raises(InvalidInputError, match=r"only partition columns\. Add another column"):
        check_schema(stored)


@pytest.mark.parametrize("column", ["k", "v", "t"])
def test_a_record_time_may_be_a_number_or_a_timestamp(column: str) -> None:
    check({"record-level.time-field": column, "record-level.expire-time": "1 m"})


#: The options for the start of a scan, each with a valid text.
STARTS = {
    "scan.timestamp-millis": "1",
    "scan.timestamp": "2024-01-01 00:00:00",
    "scan.file-creation-time-millis": "1",
    "scan.snapshot-id": "1",
    "scan.tag-name": "t",
    "incremental-between": "1,2",
    "incremental-between-timestamp": "1,2",
    "incremental-to-auto-tag": "t",
}
WATERMARK = {"scan.watermark": "1"}
#: The options of a start by mode, of which the mode needs exactly one.
MODES = {
    "from-timestamp": ["scan.timestamp-millis", "scan.timestamp"],
    "from-snapshot": ["scan.snapshot-id", "scan.tag-name"],
    "from-snapshot-full": ["scan.snapshot-id"],
    "from-file-creation-time": ["scan.file-creation-time-millis"],
    "incremental": ["incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"],
}


def check_scan(options: dict[str, str]) -> None:
    check_scan_mode(TableOptions.parse(options))


@pytest.mark.parametrize("key", STARTS)
def test_an_option_of_a_start_implies_its_mode(key: str) -> None:
    check_scan({key: STARTS[key]})


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_needs_exactly_one_of_its_starts_and_no_other_option(mode: str) -> None:
    for key, text in STARTS.items():
        options = {"scan.mode": mode, key: text}
        if key in MODES[mode]:
            check_scan(options)
        else:
            with pytest.raises(InvalidInputError, match=f"'scan.mode' = '{mode}' needs exactly one of .* found none"):
                check_scan(options)
    for others in (MODES[mode], [MODES[mode][0], next(key for key in STARTS if key not in MODES[mode])]):
        if len(others) > 1:
            with pytest.raises(InvalidInputError, match=r"scan\.mode"):
                check_scan({"scan.mode": mode, **{key: STARTS[key] for key in others}})


def test_a_watermark_is_a_start_of_a_snapshot() -> None:
    check_scan(WATERMARK)
    check_scan({"scan.mode": "from-snapshot", **WATERMARK})
    with pytest.raises(InvalidInputError, match=r"found scan.snapshot-id, scan.watermark"):
        check_scan({"scan.snapshot-id": "1", **WATERMARK})


@pytest.mark.parametrize("mode", ["default", "latest-full", "full", "latest", "compacted-full"])
def test_other_modes_refuse_options_of_a_start(mode: str) -> None:
    check_scan({"scan.mode": mode})
    for key, text in STARTS.items():
        with pytest.raises(InvalidInputError, match=f"'{key}' cannot be combined with 'scan.mode' = '{mode}'"):
            check_scan({"scan.mode": mode, key: text})


def test_starts_that_imply_different_modes_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'scan.snapshot-id' cannot be combined with .* 'from-timestamp'"):
        check_scan({"scan.snapshot-id": "1", "scan.timestamp-millis": "1"})
    check_scan({})


_INDEXED_COLUMNS = "k INT, s STRING, y BYTES, d DECIMAL(9, 2), o BOOLEAN, m MAP<STRING, INT>"


@pytest.mark.parametrize(
    ("kind", "bloom", "bitmap"),
    [
        ("STRING", True, True),
        ("BYTES", True, False),
        ("BOOLEAN", False, True),
        ("DECIMAL(9, 2)", False, False),
        ("TIMESTAMP(9)", True, True),
        ("ARRAY<INT>", False, False),
    ],
)
def test_types_with_an_index_are_those_of_java(kind: str, bloom: bool, bitmap: bool) -> None:
    data_type = parse_type(kind)
    assert (can_have_index(BLOOM_FILTER, data_type), can_have_index(BITMAP, data_type)) == (bloom, bitmap)


@pytest.mark.parametrize(
    ("kind", "column", "message"),
    [
        (BLOOM_FILTER, "x", "column 'x' does not exist. Columns: k, s, y"),
        (BLOOM_FILTER, "x[a]", "column 'x' does not exist"),
        (BLOOM_FILTER, "o", "column 'o' of type BOOLEAN cannot have such an index. Leave it out"),
        (BITMAP, "y", "column 'y' of type BYTES"),
        (BITMAP, "d", r"column 'd' of type DECIMAL\(9, 2\)"),
        (BITMAP, "m", "column 'm' of type MAP"),
    ],
)
def test_an_impossible_index_is_refused_at_creation_by_name(kind: str, column: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"option 'file-index.{kind}.columns': {message}"):
        validate_table(create_schema(_INDEXED_COLUMNS, ["k"], (), {f"file-index.{kind}.columns": column}))


def test_an_index_on_a_key_of_a_map_is_refused_at_creation_and_ignored_on_opening() -> None:
    schema = create_schema(_INDEXED_COLUMNS, ["k"], (), {"file-index.bitmap.columns": "m[a]"})
    with pytest.raises(UnsupportedFeatureError, match="one key of a map"):
        validate_table(schema)
    assert validate_existing_table(schema).file_indexes[0].is_nested


def test_a_renamed_column_keeps_its_index_and_an_indexed_column_cannot_be_dropped() -> None:
    options = {"file-index.bitmap.columns": "k,s", "file-index.bitmap.s.version": "1"}
    schema = create_schema(_INDEXED_COLUMNS, ["k"], (), options)
    renamed = apply_changes(schema, [RenameColumn(("s",), "text")], 0, True)
    assert renamed.options == {"file-index.bitmap.columns": "k,text", "file-index.bitmap.text.version": "1"}
    with pytest.raises(InvalidInputError, match="column 's' does not exist"):
        apply_changes(schema, [DropColumn(("s",))], 0, True)
