"""Unsupported features of Paimon are refused by name at creation, and on opening if rows would be wrong."""

from __future__ import annotations

import pytest

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.options import TableOptions
from lakelsm.options.other_keys import FEATURE_KEYS, UPKEEP_KEYS, WRITE_KEYS, check_new_keys
from lakelsm.schema import unbuilt_features
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema.unbuilt_features import refuse_unbuilt, refuse_unbuilt_writes

_COLUMNS = "k INT, p INT, s STRING, v BIGINT, m MAP<STRING, INT>, y BYTES"


def _schema(options: dict[str, str], primary: tuple[str, ...] = ("k",), by: tuple[str, ...] = ()) -> TableSchema:
    return create_schema(_COLUMNS, primary, by, options)


def creating(schema: TableSchema) -> None:
    refuse_unbuilt(schema, TableOptions.parse(schema.options), creating=True)


def opening(schema: TableSchema) -> None:
    refuse_unbuilt(schema, TableOptions.parse(schema.options), creating=False)


def writing(schema: TableSchema) -> None:
    refuse_unbuilt_writes(schema, TableOptions.parse(schema.options))


_REFUSED_EVERYWHERE: tuple[dict[str, str], ...] = (
    {"bucket": "-2"},
    {"sequence.snapshot-ordering": "true", "write-only": "true"},
    {"branch": "dev"},
    {"scan.snapshot-id": "3"},
    {"scan.mode": "compacted-full"},
    {"scan.tag-name": "t"},
    {"data-file.path-directory": "data"},
    {"index-file-in-data-file-dir": "true"},
    {"pk-clustering-override": "true"},
    {"type": "materialized-table"},
    {"query-auth.enabled": "true"},
    {"fields.m.map.storage-layout": "shared-shredding"},
)


@pytest.mark.parametrize("options", _REFUSED_EVERYWHERE, ids=str)
def test_an_unsupported_feature_is_refused_by_name_at_creation_and_on_opening(options: dict[str, str]) -> None:
    name = next(iter(options))
    for judge in (creating, opening):
        with pytest.raises(UnsupportedFeatureError) as caught:
            judge(_schema(options))
        assert name.rsplit(".", 1)[-1] in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"file-index.range-bitmap.columns": "v"},
        {"metadata.stats-mode.per.level": "0:none"},
        {"tag.callbacks": "a.Callback"},
        {"partition.expiration-strategy": "custom"},
        {"path": "/x"},
        {"commit.callbacks": "x.Y"},
        {"scan.ignore-corrupt-files": "true"},
        {"scan.ignore-lost-files": "TRUE"},
        {"commit.force-create-snapshot": "true"},
        {"snapshot.ignore-empty-commit": "false"},
        {"partition.mark-done-action": "http-report"},
        {"manifest-sort.enabled": "true"},
        {"manifest.delete-file-drop-stats": "true"},
        {"batch-scan-mode": "compact-bucket-table"},
        {"stream-scan-mode": "file-monitor"},
    ],
    ids=str,
)
def test_features_of_maintenance_are_refused_only_at_creation(options: dict[str, str]) -> None:
    opening(_schema(options))
    writing(_schema(options))
    with pytest.raises(UnsupportedFeatureError, match=next(iter(options))):
        creating(_schema(options))


@pytest.mark.parametrize(
    "options",
    [
        {"file.format": "orc"},
        {"file.format": "avro"},
        {"file.format.per.level": "0:avro"},
        {"file.compression.per.level": "0:lz4"},
        {"changelog-file.format": "avro"},
        {"metadata.iceberg.storage": "table-location"},
    ],
    ids=str,
)
def test_features_of_new_files_and_commits_are_refused_at_creation_and_by_writes(options: dict[str, str]) -> None:
    opening(_schema(options))
    for judge in (creating, writing):
        with pytest.raises(UnsupportedFeatureError, match=next(iter(options))):
            judge(_schema(options))


def test_tables_without_primary_key_and_cross_partition_tables_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="without a primary key"):
        opening(_schema({}, ()))
    with pytest.raises(UnsupportedFeatureError, match="cross-partition"):
        creating(_schema({}, ("k",), ("p",)))


@pytest.mark.parametrize(
    "column",
    [
        "VARIANT",
        "BLOB",
        "ARRAY<VARIANT>",
        "VECTOR<FLOAT, 3>",
        "INT DEFAULT '1'",
        "ROW<x ARRAY<BLOB>>",
        "MAP<STRING, VARIANT>",
    ],
)
def test_columns_of_unsupported_types_are_refused(column: str) -> None:
    with pytest.raises(UnsupportedFeatureError):
        opening(create_schema(f"k INT, x {column}", ["k"]))


def test_a_row_type_without_members_can_be_read_but_not_created_or_written() -> None:
    for column in ("ROW<>", "ARRAY<ROW<>>", "MAP<STRING, ROW<x ROW<>>>"):
        schema = create_schema(f"k INT, x {column}", ["k"])
        opening(schema)
        for refused in (creating, writing):
            with pytest.raises(UnsupportedFeatureError, match="ROW without members"):
                refused(schema)


@pytest.mark.parametrize(
    "options",
    [
        {"type": "TABLE"},
        {"file.format": " Parquet "},
        {"file.format.per.level": ""},
        {"index-file-in-data-file-dir": "false"},
        {"scan.mode": "latest"},
        {"fields.m.map.storage-layout": "default"},
        *({key: text} for key, text in {**FEATURE_KEYS, **WRITE_KEYS, **UPKEEP_KEYS}.items()),
    ],
    ids=str,
)
def test_the_value_that_disables_a_feature_is_accepted(options: dict[str, str]) -> None:
    creating(_schema(options))


def test_sketches_are_refused_only_without_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    sketched = {"merge-engine": "aggregation", "fields.y.aggregate-function": "theta_sketch"}
    monkeypatch.setattr(unbuilt_features, "find_spec", lambda name: None)
    for options in (sketched, {"merge-engine": "aggregation", "fields.default-aggregate-function": "hll_sketch"}):
        with pytest.raises(UnsupportedFeatureError, match="without the package datasketches"):
            opening(_schema(options))
    opening(_schema({**sketched, "merge-engine": "deduplicate"}))
    monkeypatch.setattr(unbuilt_features, "find_spec", lambda name: object())
    opening(_schema(sketched))


@pytest.mark.parametrize("key", sorted([*FEATURE_KEYS, *WRITE_KEYS, *UPKEEP_KEYS]))
def test_a_key_that_a_feature_refuses_is_known_and_refused_at_creation(key: str) -> None:
    options = {"bucket": "1", key: "some"}
    check_new_keys(options)
    with pytest.raises(UnsupportedFeatureError, match=r"does not support .*Use Apache Paimon"):
        creating(_schema(options))


def test_a_refusal_names_the_operation() -> None:
    schema = _schema({"bucket": "1", "file.format": "orc"})
    with pytest.raises(UnsupportedFeatureError, match="cannot create or change the table: lakelsm does not support"):
        creating(schema)  # Also the check of alter_table, and of the options of a write.
    with pytest.raises(UnsupportedFeatureError, match="cannot write to the table: lakelsm does not support"):
        writing(schema)
