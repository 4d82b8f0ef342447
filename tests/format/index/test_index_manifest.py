"""Index manifests."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import fastavro
import pytest

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.avro.container import write_container
from lakelsm.format.index.hash_index import decode_hashes
from lakelsm.format.index.index_manifest import (
    DeletionVectorRange,
    GlobalIndexMeta,
    IndexFileMeta,
    IndexManifestEntry,
    decode_index_manifest,
    encode_index_manifest,
)
from lakelsm.format.manifest.avro_schemas import INDEX_MANIFEST_SCHEMA
from lakelsm.format.manifest.entry import FileKind
from tests.format.manifest.manifest_samples import golden_files, int_row

ENTRIES = [
    IndexManifestEntry(FileKind.ADD, int_row(), 0, IndexFileMeta("HASH", "index-u-0", 12, 3)),
    IndexManifestEntry(
        FileKind.ADD,
        int_row(5),
        1,
        IndexFileMeta(
            "DELETION_VECTORS",
            "index-u-1",
            99,
            2,
            dv_ranges=(DeletionVectorRange("data-a", 1, 46, 3), DeletionVectorRange("data-b", 47, 52, None)),
            external_path="file:/x",
        ),
    ),
    IndexManifestEntry(
        FileKind.ADD,
        int_row(),
        0,
        IndexFileMeta(
            "btree",
            "g",
            1,
            1,
            dv_ranges=None,
            external_path=None,
            global_index=GlobalIndexMeta(
                row_range_start=0,
                row_range_end=9,
                index_field_id=3,
                extra_field_ids=(4,),
                index_meta=b"m",
                source_meta=None,
            ),
        ),
    ),
]


def test_index_manifests_of_golden_tables_are_equal_after_rewriting(tmp_path: Path) -> None:
    kinds = set()
    for name, path in golden_files(tmp_path, "*/manifest/index-manifest-*"):
        entries = decode_index_manifest(path.read_bytes(), name)
        assert decode_index_manifest(encode_index_manifest(entries), name) == entries, name
        for entry in entries:
            kinds.add(entry.file.index_type)
            index = path.parents[1] / "index" / entry.file.file_name
            assert index.stat().st_size == entry.file.file_size, name
            if entry.file.index_type == "HASH":
                assert len(decode_hashes(index.read_bytes(), name)) == entry.file.row_count
    assert kinds == {"HASH", "DELETION_VECTORS"}


def test_the_written_schema_is_javas(tmp_path: Path) -> None:
    [java] = [path for _, path in golden_files(tmp_path, "dyn/manifest/index-manifest-*")]
    ours = fastavro.reader(io.BytesIO(encode_index_manifest(ENTRIES))).writer_schema
    assert ours == fastavro.reader(io.BytesIO(java.read_bytes())).writer_schema


def test_every_field_is_read_back() -> None:
    assert decode_index_manifest(encode_index_manifest(ENTRIES), "i") == ENTRIES
    assert decode_index_manifest(encode_index_manifest([]), "i") == []


def test_index_manifests_of_old_releases_lack_the_last_fields() -> None:
    schema = {**INDEX_MANIFEST_SCHEMA, "fields": INDEX_MANIFEST_SCHEMA["fields"][:8]}
    records = list(fastavro.reader(io.BytesIO(encode_index_manifest(ENTRIES[:1]))))
    assert decode_index_manifest(write_container(schema, records, "null"), "i") == ENTRIES[:1]


def test_ranges_without_a_null_branch_and_cardinality_are_read() -> None:
    plain = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "f0", "type": "string"},
            {"name": "f1", "type": "int"},
            {"name": "f2", "type": "int"},
        ],
    }
    fields = [dict(item) for item in INDEX_MANIFEST_SCHEMA["fields"]]
    fields[8]["type"] = ["null", {"type": "array", "items": plain}]
    [record] = fastavro.reader(io.BytesIO(encode_index_manifest(ENTRIES[:1])))
    ranges = {"_DELETIONS_VECTORS_RANGES": [{"f0": "data-a", "f1": 1, "f2": 2}]}
    data = write_container({**INDEX_MANIFEST_SCHEMA, "fields": fields}, [{**record, **ranges}], "null")
    [entry] = decode_index_manifest(data, "i")
    assert entry.file.dv_ranges == (DeletionVectorRange("data-a", 1, 2, None),)


def test_another_version_is_refused() -> None:
    [record] = fastavro.reader(io.BytesIO(encode_index_manifest(ENTRIES[:1])))
    data = write_container(INDEX_MANIFEST_SCHEMA, [{**record, "_VERSION": 2}], "null")
    with pytest.raises(UnsupportedFeatureError, match="index-manifest-x has entries of version 2"):
        decode_index_manifest(data, "index-manifest-x")


def test_a_damaged_index_manifest_is_named() -> None:
    with pytest.raises(CorruptTableError, match="index-manifest-x"):
        decode_index_manifest(encode_index_manifest(ENTRIES)[:-1], "index-manifest-x")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"_BUCKET": -3}, "_BUCKET -3"),
        ({"_FILE_SIZE": -1}, "_FILE_SIZE -1"),
        ({"_ROW_COUNT": -1}, "_ROW_COUNT -1"),
        ({"f1": -1}, "f1 -1"),
        ({"f2": -1}, "f2 -1"),
        ({"_CARDINALITY": -1}, "_CARDINALITY -1"),
    ],
)
def test_a_number_that_no_writer_writes_is_refused(change: dict[str, int], named: str) -> None:
    [record] = fastavro.reader(io.BytesIO(encode_index_manifest([replace(ENTRIES[1], file=_MASKS)])))
    target = record if next(iter(change)) in record else record["_DELETIONS_VECTORS_RANGES"][0]
    target.update(change)
    data = write_container(INDEX_MANIFEST_SCHEMA, [record], "null")
    with pytest.raises(CorruptTableError, match=f"^index-manifest-x: .* masks has {named}, which is out of range"):
        decode_index_manifest(data, "index-manifest-x")


_MASKS = IndexFileMeta("DELETION_VECTORS", "masks", 0, 0, dv_ranges=(DeletionVectorRange("data-a", 0, 0, 0),))
