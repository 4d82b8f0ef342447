"""Manifest lists and the summary of a manifest."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import fastavro
import pytest

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.avro.container import write_container
from lakelsm.format.manifest import (
    EMPTY_STATS,
    ManifestFileMeta,
    SimpleStats,
    decode_manifest,
    decode_manifest_list,
    encode_manifest_list,
    summarize,
)
from lakelsm.format.manifest.avro_schemas import MANIFEST_LIST_SCHEMA
from lakelsm.format.manifest.entry import FileKind
from lakelsm.types import parse_type
from tests.format.manifest.manifest_samples import entry, golden_files, int_row

META = ManifestFileMeta(
    file_name="manifest-u-0",
    file_size=1234,
    num_added_files=3,
    num_deleted_files=1,
    partition_stats=SimpleStats(int_row(1), int_row(7), (0,)),
    schema_id=2,
    min_bucket=0,
    max_bucket=3,
    min_level=0,
    max_level=5,
)


def test_lists_of_golden_tables_are_equal_after_rewriting_and_have_javas_summaries(
    tmp_path: Path,
) -> None:
    lists = compared = 0
    for name, path in golden_files(tmp_path, "*/manifest/manifest-list-*"):
        metas = decode_manifest_list(path.read_bytes(), name)
        assert decode_manifest_list(encode_manifest_list(metas), name) == metas, name
        schema = json.loads((path.parents[1] / "schema" / "schema-0").read_text())
        types = {item["name"]: parse_type(item["type"]) for item in schema["fields"]}
        partition_types = [types[column] for column in schema["partitionKeys"]]
        for meta in metas:
            data = (path.parent / meta.file_name).read_bytes()
            assert len(data) == meta.file_size, name
            assert summarize(meta.file_name, len(data), decode_manifest(data, name), partition_types) == meta, name
        lists, compared = lists + 1, compared + len(metas)
    assert lists > 80 and compared > 40


def test_the_written_schema_is_javas(tmp_path: Path) -> None:
    [java_list, *_] = [path for _, path in golden_files(tmp_path, "simple/manifest/manifest-list-0a341a7a*-0")]
    java = fastavro.reader(io.BytesIO(java_list.read_bytes())).writer_schema
    assert fastavro.reader(io.BytesIO(encode_manifest_list([META]))).writer_schema == java


def test_an_empty_list_is_a_valid_file() -> None:
    assert decode_manifest_list(encode_manifest_list([]), "l") == []


def test_all_fields_are_read_back() -> None:
    metas = [META, replace(META, min_row_id=4, max_row_id=9, min_bucket=None, max_level=None)]
    assert decode_manifest_list(encode_manifest_list(metas), "l") == metas


def test_lists_of_old_releases_lack_the_ranges() -> None:
    schema = {**MANIFEST_LIST_SCHEMA, "fields": MANIFEST_LIST_SCHEMA["fields"][:7]}
    record = {
        "_VERSION": 2,
        "_FILE_NAME": "m",
        "_FILE_SIZE": 1,
        "_NUM_ADDED_FILES": 1,
        "_NUM_DELETED_FILES": 0,
        "_PARTITION_STATS": {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": []},
        "_SCHEMA_ID": 0,
    }
    [meta] = decode_manifest_list(write_container(schema, [record], "null"), "l")
    assert meta == ManifestFileMeta(
        "m", 1, num_added_files=1, num_deleted_files=0, partition_stats=EMPTY_STATS, schema_id=0
    )


def test_fields_of_newer_writers_are_skipped() -> None:
    more = [
        {"name": "_TOTAL_BUCKETS", "type": ["null", "int"]},
        {"name": "_EXTRA_FILES", "type": ["null", {"type": "array", "items": "string"}]},
    ]
    schema = {**MANIFEST_LIST_SCHEMA, "fields": [*MANIFEST_LIST_SCHEMA["fields"], *more]}
    records = list(fastavro.reader(io.BytesIO(encode_manifest_list([META]))))
    data = write_container(schema, [{**record, "_TOTAL_BUCKETS": 4, "_EXTRA_FILES": ["x"]} for record in records], "null")
    assert decode_manifest_list(data, "l") == [META]


def test_another_version_is_refused() -> None:
    records = [{**record, "_VERSION": 3} for record in fastavro.reader(io.BytesIO(encode_manifest_list([META])))]
    with pytest.raises(UnsupportedFeatureError, match="list-9 has entries of version 3"):
        decode_manifest_list(write_container(MANIFEST_LIST_SCHEMA, records, "null"), "list-9")


def test_a_damaged_list_is_named() -> None:
    with pytest.raises(CorruptTableError, match="list-9"):
        decode_manifest_list(encode_manifest_list([META])[:-3], "list-9")
    with pytest.raises(CorruptTableError, match="list-9"):
        decode_manifest_list(b"no avro", "list-9")


def test_a_summary_counts_and_bounds_all_entries() -> None:
    entries = [
        entry(bucket=3, level=0, schema_id=1),
        entry(bucket=1, level=5, schema_id=4),
        entry(bucket=2, level=2, kind=FileKind.DELETE),
    ]
    bounds = {"schema_id": 4, "min_bucket": 1, "max_bucket": 3, "min_level": 0, "max_level": 5}
    assert summarize("m", 77, entries, []) == ManifestFileMeta(
        "m", 77, num_added_files=2, num_deleted_files=1, partition_stats=EMPTY_STATS, **bounds
    )


def test_a_summary_has_row_ids_only_if_every_entry_has() -> None:
    tracked = [entry(first_row_id=100, row_count=10), entry(first_row_id=50, row_count=5)]
    meta = summarize("m", 1, tracked, [])
    assert (meta.min_row_id, meta.max_row_id) == (50, 109)
    meta = summarize("m", 1, [*tracked, entry()], [])
    assert (meta.min_row_id, meta.max_row_id) == (None, None)


@pytest.mark.parametrize(
    "change",
    [
        {"file_size": -1},
        {"num_added_files": -1},
        {"num_deleted_files": -1},
        {"schema_id": -1},
        {"min_bucket": 4},
        {"min_bucket": -3},
        {"min_level": -1},
        {"max_level": -1},
        {"min_row_id": 5, "max_row_id": 4},
    ],
)
def test_a_number_that_no_writer_writes_is_refused(change: dict[str, int]) -> None:
    data = encode_manifest_list([META, replace(META, file_name="manifest-u-1", **change)])
    problem = r"^list-x is damaged: the entry of manifest-u-1 has numbers out of range"
    with pytest.raises(CorruptTableError, match=problem):
        decode_manifest_list(data, "list-x")


def test_ranges_of_postponed_buckets_and_of_no_entries_are_read() -> None:
    postponed = replace(META, min_bucket=-2, max_bucket=-2)
    empty = replace(META, num_added_files=0, num_deleted_files=0, min_bucket=2**31 - 1, max_bucket=-(2**31))
    assert decode_manifest_list(encode_manifest_list([postponed, empty]), "list-x") == [postponed, empty]
