"""Entries that are decoded in columns equal the written ones, in any order and selection of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import read_container, write_container
from lakelsm.format.avro.lanes import UnsupportedLayoutError
from lakelsm.format.manifest import decode_manifest, encode_manifest
from lakelsm.format.manifest.avro_schemas import MANIFEST_SCHEMA
from lakelsm.format.manifest.columns import EntryColumns
from lakelsm.format.manifest.data_file_meta import EMPTY_STATS
from lakelsm.format.manifest.record import entry_to_record
from tests.format.manifest.manifest_samples import (
    changed_schema,
    entry,
    in_lanes,
    manifest_of_small_blocks,
    one_by_one,
    varied_entries,
)


@given(st.integers(0, 1000), st.integers(1, 60), st.sampled_from([16, 700, 5000]))
def test_lanes_and_single_records_decode_the_same(seed: int, count: int, block_bytes: int) -> None:
    entries = varied_entries(count, seed)
    records = [entry_to_record(item) for item in entries]
    data = write_container(MANIFEST_SCHEMA, records, "null", block_bytes)
    assert in_lanes(data) == entries
    assert one_by_one(data) == entries


def test_lanes_keep_the_order_of_manifests_and_entries() -> None:
    first, second = varied_entries(70, 1), varied_entries(50, 2)
    blocks = [manifest_of_small_blocks(first), encode_manifest(second)]
    assert in_lanes(*blocks) == first + second


def test_lanes_make_only_the_requested_entries() -> None:
    entries = varied_entries(50)
    columns = EntryColumns([read_container(manifest_of_small_blocks(entries), "m")])
    rows = np.array([41, 3, 3, 17])
    wanted = [entries[row] for row in rows]
    assert columns.entries(rows) == wanted
    assert columns.file_names(rows) == [item.file.file_name for item in wanted]
    assert columns.identities(rows) == [item.identity for item in wanted]
    assert columns.entries(rows[:0]) == []
    assert [columns.partitions[code] for code in columns.partition_codes] == [item.partition for item in entries]


@pytest.mark.parametrize(
    "extra",
    [
        {"type": "map", "values": "string"},
        {"type": "array", "items": {"type": "array", "items": "int"}},
        {"type": "array", "items": {"type": "record", "name": "i", "fields": [{"name": "x", "type": "int"}]}},
        {"type": "enum", "name": "e", "symbols": ["A"]},
        ["null", "int", "string"],
    ],
)
def test_a_schema_that_lanes_do_not_support_is_read_one_by_one(extra: Any) -> None:
    entries = varied_entries(60)
    records = [entry_to_record(item) for item in entries]
    value: Any = {"map": {"k": "v"}, "enum": "A", "array": []}.get(extra["type"] if isinstance(extra, dict) else "", 7)
    for record in records:
        record["_FILE"]["_NEW"] = value
    data = write_container(changed_schema(_NEW=extra), records, "null", 16)
    with pytest.raises(UnsupportedLayoutError):
        in_lanes(data)
    assert decode_manifest(data, "m") == entries


def test_entries_can_be_made_without_statistics() -> None:
    entries = varied_entries(30)
    columns = EntryColumns([read_container(manifest_of_small_blocks(entries), "m")])
    rows = np.arange(30)[::-1]
    bare = [replace(item.file, key_stats=EMPTY_STATS, value_stats=EMPTY_STATS) for item in entries[::-1]]
    assert [item.file for item in columns.entries(rows, stats=False)] == bare


def test_each_entry_has_the_checksum_of_its_footer_across_manifests() -> None:
    manifests = []
    for first in (0, 3):
        entries = [entry(f"data-{at}.parquet", footer_checksum=None if at == 4 else at) for at in range(first, first + 3)]
        manifests.append(read_container(encode_manifest(entries), "m"))
    found = EntryColumns(manifests).entries(np.array([5, 4, 0]))
    assert [item.file.footer_checksum for item in found] == [5, None, 0]


@pytest.mark.parametrize(
    ("field", "kind"),
    [("_FILE_NAME", "bytes"), ("_EXTRA_FILES", {"type": "array", "items": "bytes"}), ("_EXTERNAL_PATH", "bytes")],
)
def test_a_name_that_is_not_text_is_corrupt(field: str, kind: Any) -> None:
    record = entry_to_record(entry())
    record["_FILE"][field] = b"\xff" if kind == "bytes" else [b"\xff"]
    with pytest.raises(CorruptTableError, match="manifest-x has a name that is not text"):
        in_lanes(write_container(changed_schema(**{field: kind}), [record], "null"))


@pytest.mark.parametrize(
    ("field", "kind", "value"),
    [
        ("_FILE_NAME", "long", 1),
        ("_FILE_SIZE", ["null", "long"], None),
        ("_LEVEL", "string", "1"),
        ("_EXTRA_FILES", {"type": "array", "items": "long"}, [1]),
        ("_WRITE_COLS_SEQUENCES", {"type": "array", "items": "string"}, ["a"]),
        ("_EXTERNAL_PATH", "long", 1),
    ],
)
def test_a_field_of_another_type_is_named(field: str, kind: Any, value: Any) -> None:
    record = entry_to_record(entry())
    record["_FILE"][field] = value
    with pytest.raises(CorruptTableError, match=rf"^manifest-x is not a manifest: field _FILE\.{field} is missing"):
        in_lanes(write_container(changed_schema(**{field: kind}), [record], "null"))


def test_a_file_name_that_leads_elsewhere_is_refused_when_it_is_read() -> None:
    data = encode_manifest([entry("data-1.parquet"), entry("../data-2.parquet")])
    columns = EntryColumns([read_container(data, "m")])
    assert columns.file_names(np.array([0])) == ["data-1.parquet"]
    for ask in (columns.file_names, columns.identities, columns.entries):
        with pytest.raises(CorruptTableError, match=r"m is damaged: _FILE_NAME is '../data-2.parquet'"):
            ask(np.array([1]))
