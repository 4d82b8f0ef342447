"""Manifests: Java's files are read, written files are read back, and errors name damaged files."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, LakelsmError, UnsupportedFeatureError
from lakelsm.format.avro.container import write_container
from lakelsm.format.avro.lanes import UnsupportedLayoutError
from lakelsm.format.manifest import decode_entries, decode_manifest, encode_entries, encode_manifest
from lakelsm.format.manifest.avro_schemas import MANIFEST_SCHEMA
from lakelsm.format.manifest.columns import COUNTED, EntryColumns
from lakelsm.format.manifest.entry import FileKind, ManifestEntry
from lakelsm.format.manifest.manifest_file import EntryList, open_manifests
from lakelsm.format.manifest.record import entry_to_record
from tests.format.manifest.manifest_samples import (
    changed_schema,
    entry,
    golden_files,
    in_lanes,
    manifest_of_small_blocks,
    one_by_one,
    varied_entries,
)


def test_manifests_of_golden_tables_are_equal_after_rewriting(tmp_path: Path) -> None:
    count = 0
    for name, path in golden_files(tmp_path, "*/manifest/manifest-*"):
        if path.name.startswith("manifest-list"):
            continue
        entries = decode_manifest(path.read_bytes(), name)
        assert entries, name
        assert decode_manifest(encode_manifest(entries), name) == entries, name
        assert in_lanes(path.read_bytes()) == entries, name
        assert all((path.parents[1] / "schema").exists() and item.file.row_count > 0 for item in entries)
        count += 1
    assert count > 40


def test_entries_of_a_golden_table_have_javas_values(tmp_path: Path) -> None:
    files = dict(golden_files(tmp_path, "dv_true/manifest/manifest-05ee71e8*-0"))
    [(name, path)] = files.items()
    [found] = decode_manifest(path.read_bytes(), name)
    assert (found.kind, found.bucket, found.total_buckets, found.partition) == (FileKind.ADD, 0, 1, bytes(12))
    meta = found.file
    assert meta.file_name == "data-2a57115e-0da1-4a6d-b1bf-0c0e394755ac-0.parquet"
    assert (meta.file_size, meta.row_count, meta.delete_row_count, meta.level) == (1125, 3, 1, 0)
    assert (meta.min_sequence_number, meta.max_sequence_number, meta.file_source) == (100, 102, 0)
    assert meta.min_key.hex() == "00000001" + "00" * 8 + "0500000000000000"
    assert (meta.key_stats.null_counts, meta.value_stats.null_counts) == ((0,), (0, 0))
    assert (meta.extra_files, meta.value_stats_cols, meta.embedded_index) == ((), None, None)
    assert meta.creation_time_millis == 1795248730697


@pytest.mark.parametrize("compression", ["zstandard", "ZSTD", "zstd", "null", "none", "deflate"])
def test_every_field_is_read_back_with_each_codec(compression: str) -> None:
    entries = varied_entries(40)
    assert decode_manifest(encode_manifest(entries, compression), "m") == entries


def test_snappy_blocks_are_read_and_their_checksum_is_checked() -> None:
    entries = varied_entries(40)
    data = _as_snappy(encode_manifest(entries, "null"))
    assert decode_manifest(data, "m") == entries
    with pytest.raises(CorruptTableError, match="checksum"):
        decode_manifest(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:], "m")


def _as_snappy(data: bytes) -> bytes:
    """Return the same container with another codec for its first block."""
    header_end = data.index(data[-16:]) + 16
    stream = io.BytesIO(data[header_end:])
    out = data[:header_end].replace(b"\x14avro.codec\x08null", b"\x14avro.codec\x0csnappy")
    while stream.tell() < len(data) - header_end:
        count, size = (fastavro.schemaless_reader(stream, "long", None) for _ in range(2))
        plain = stream.read(size)
        packed = pa.compress(plain, "snappy", asbytes=True) + zlib.crc32(plain).to_bytes(4, "big")
        for number in (count, len(packed)):
            head = io.BytesIO()
            fastavro.schemaless_writer(head, "long", number)
            out += head.getvalue()
        out += packed + stream.read(16)
    return out


def test_an_unknown_compression_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="'lzo'"):
        encode_manifest([entry()], "lzo")


def test_a_manifest_without_entries_is_empty() -> None:
    data = encode_manifest([])
    assert decode_manifest(data, "m") == []
    assert in_lanes(data) == []


def test_entries_are_encoded_as_task_results() -> None:
    entries = varied_entries(3)
    assert decode_entries(encode_entries(entries)) == entries


@pytest.mark.parametrize("decode", [in_lanes, one_by_one])
def test_unknown_fields_are_skipped(decode: Any) -> None:
    more = {
        "_A": ["null", {"type": "array", "items": ["null", "string"]}],
        "_B": "double",
        "_C": ["null", "float"],
        "_D": ["null", {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "bytes"}]}],
        "_E": "boolean",
    }
    values = {"_A": ["x", None], "_B": 1.5, "_C": None, "_D": {"x": b"y"}, "_E": True}
    entries = varied_entries(40)
    records = [entry_to_record(item) for item in entries]
    for number, record in enumerate(records):
        record["_FILE"] |= values if number % 2 else {**values, "_A": None, "_C": 2.5, "_D": None}
    assert decode(write_container(changed_schema(**more), records, "null", 16)) == entries


@pytest.mark.parametrize("decode", [in_lanes, one_by_one])
def test_absent_optional_fields_become_none(decode: Any) -> None:
    names = [
        "_EXTRA_FILES",
        "_CREATION_TIME",
        "_DELETE_ROW_COUNT",
        "_EMBEDDED_FILE_INDEX",
        "_FILE_SOURCE",
        "_VALUE_STATS_COLS",
        "_EXTERNAL_PATH",
        "_FIRST_ROW_ID",
        "_WRITE_COLS",
        "_WRITE_COLS_SEQUENCES",
    ]
    entries = [entry(f"data-{number}.parquet") for number in range(40)]
    records = [entry_to_record(item) for item in entries]
    data = write_container(changed_schema(**dict.fromkeys(names)), records, "null", 16)
    assert decode(data) == entries


@pytest.mark.parametrize("decode", [in_lanes, one_by_one])
@pytest.mark.parametrize(
    ("schema", "change", "error", "message"),
    [
        (changed_schema(_ROW_COUNT=None), {}, CorruptTableError, r"manifest-x.*_ROW_COUNT"),
        (MANIFEST_SCHEMA, {"_VERSION": 3}, UnsupportedFeatureError, "manifest-x has entries of version 3"),
        (MANIFEST_SCHEMA, {"_KIND": 2}, CorruptTableError, "manifest-x"),
    ],
    ids=["an absent required field", "another version", "another kind"],
)
def test_an_invalid_entry_is_refused(
    decode: Any, schema: dict[str, Any], change: dict[str, int], error: type[LakelsmError], message: str
) -> None:
    with pytest.raises(error, match=message):
        decode(write_container(schema, [entry_to_record(entry()) | change], "null"))


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"Obj\x01", b"Obj\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"])
def test_other_bytes_instead_of_an_avro_file_are_corrupt(damage: bytes) -> None:
    with pytest.raises(CorruptTableError, match="manifest-7"):
        decode_manifest(damage, "manifest-7")


def test_a_manifest_that_is_truncated_within_a_block_is_corrupt() -> None:
    data = encode_manifest(varied_entries(3))
    for size in range(0, len(data), 7):
        with pytest.raises(CorruptTableError, match="manifest-7"):
            decode_manifest(data[:size] if size else b"", "manifest-7")


@given(st.data())
def test_damaged_bytes_raise_only_errors_with_the_name(data: st.DataObject) -> None:
    entries = varied_entries(data.draw(st.sampled_from([1, 40])), 3)
    records = [entry_to_record(item) for item in entries]
    intact = write_container(MANIFEST_SCHEMA, records, data.draw(st.sampled_from(["null", "zstandard"])), 16)
    damaged = bytearray(intact)
    header = intact.index(intact[-16:])
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.sampled_from([0, header]))
        damaged[data.draw(st.integers(first, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    for decode in (in_lanes, lambda bytes_: decode_manifest(bytes_, "manifest-x")):
        try:
            decode(bytes(damaged))
        except (LakelsmError, UnsupportedLayoutError) as error:
            assert isinstance(error, UnsupportedLayoutError) or "manifest-x" in str(error)


def test_many_blocks_are_decoded_in_lanes_and_few_are_not() -> None:
    entries = varied_entries(200)
    [many] = open_manifests([(manifest_of_small_blocks(entries), "m", None)])
    [few] = open_manifests([(encode_manifest(entries[:20]), "m", None)])
    assert isinstance(many, EntryColumns)
    assert isinstance(few, EntryList)
    rows = np.arange(20)
    assert few.entries(rows) == many.entries(rows)
    assert few.identities(rows) == many.identities(rows)
    assert few.file_names(rows) == many.file_names(rows)
    names = {entries[3].file.file_name, entries[150].file.file_name, "none"}
    wanted = [row == 3 for row in range(20)]
    assert few.have_names(rows, names).tolist() == many.have_names(rows, names).tolist() == wanted
    assert few.partitions == many.partitions
    for name in ("kinds", "buckets", "total_buckets", "partition_codes"):
        assert np.array_equal(getattr(few, name), getattr(many, name)[:20])


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_the_same_in_lanes_and_one_by_one_and_without_other_fields(seed: int) -> None:
    entries = varied_entries(200, seed)
    data = manifest_of_small_blocks(entries)
    [every], [few] = open_manifests([(data, "m", None)]), open_manifests([(data, "m", None)], COUNTED)
    rows = np.array([7, 0, 199, 7])
    for batch in (every, few, EntryList(entries)):
        assert batch.identities(rows) == [entries[row].identity for row in rows.tolist()]
        counts, files = batch.counts(rows), [entries[row].file for row in rows.tolist()]
        assert counts.levels.tolist() == [file.level for file in files]
        assert counts.rows.tolist() == [file.row_count for file in files]
        deletes = [-1 if file.delete_row_count is None else file.delete_row_count for file in files]
        assert counts.delete_rows.tolist() == deletes
        assert counts.sources.tolist() == [-1 if file.file_source is None else file.file_source for file in files]
        bounds = [[key.as_py() for key in side] for side in batch.key_bounds(rows)]
        assert bounds == [[file.min_key for file in files], [file.max_key for file in files]]
        assert [len(side) for side in batch.key_bounds(rows[:0])] == [0, 0]


def with_new_field(item: ManifestEntry) -> dict[str, Any]:
    record = entry_to_record(item)
    record["_FILE"]["_NEW"] = 1
    return record


def test_manifests_of_one_schema_are_opened_together_in_order() -> None:
    entries = varied_entries(6)
    other = write_container(changed_schema(_NEW="int"), [with_new_field(item) for item in entries[2:4]], "null")
    manifests = [encode_manifest(entries[:1]), encode_manifest(entries[1:2]), other, encode_manifest(entries[4:])]
    batches = open_manifests([(data, f"m{at}", None) for at, data in enumerate(manifests)])
    assert [batch.count for batch in batches] == [2, 2, 2]
    assert [item for batch in batches for item in batch.entries(np.arange(batch.count))] == entries


def test_a_manifest_with_another_number_of_entries_than_in_its_list_is_refused() -> None:
    data = encode_manifest(varied_entries(3))
    [batch] = open_manifests([(data, "manifest-7", 3)])
    assert batch.count == 3
    with pytest.raises(CorruptTableError, match=r"^manifest-7 has 3 entries instead of 4\. Restore the file"):
        open_manifests([(data, "manifest-7", 4)])


@pytest.mark.parametrize("pack", [encode_manifest, manifest_of_small_blocks])
def test_a_name_that_leads_elsewhere_is_refused_in_both_forms(pack: Callable[[list[ManifestEntry]], bytes]) -> None:
    bad = pack([entry(f"../data-{at}.parquet") for at in range(40)])
    with pytest.raises(CorruptTableError, match=r"m is damaged: _FILE_NAME is '../data-\d+.parquet'"):
        [batch.file_names(np.arange(batch.count)) for batch in open_manifests([(bad, "m", None)])]


def test_a_manifest_read_one_by_one_keeps_each_footers_checksum() -> None:
    written = [entry(f"data-{at}.parquet", footer_checksum=at if at else None) for at in range(3)]
    batches = open_manifests([(encode_manifest(written[:1]), "m0", None), (encode_manifest(written[1:]), "m1", None)])
    found = [item.file.footer_checksum for batch in batches for item in batch.entries(np.arange(batch.count))]
    assert found == [None, 1, 2]
