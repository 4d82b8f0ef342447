"""Entries and Avro records have the same content, field by field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.manifest.avro_schemas import DATA_FILE_SCHEMA, MANIFEST_SCHEMA
from lakelsm.format.manifest.data_file_meta import SimpleStats
from lakelsm.format.manifest.record import entry_from_record, entry_to_record, stats_from_record, stats_to_record
from tests.format.manifest.manifest_samples import entry, varied_entries


@given(st.integers(0, 1000))
def test_every_field_of_an_entry_is_kept(seed: int) -> None:
    [item] = varied_entries(1, seed)
    assert entry_from_record(entry_to_record(item)) == item


def test_a_record_has_the_fields_of_its_schema_in_their_order() -> None:
    record = entry_to_record(entry())
    assert list(record) == [item["name"] for item in MANIFEST_SCHEMA["fields"]]
    assert list(record["_FILE"]) == [item["name"] for item in DATA_FILE_SCHEMA["fields"]]


@pytest.mark.parametrize("name", ["_MIN_KEY", "_KEY_STATS", "_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID", "_LEVEL"])
def test_a_field_that_every_release_writes_is_required(name: str) -> None:
    record = entry_to_record(entry())
    del record["_FILE"][name]
    with pytest.raises(KeyError, match=name):
        entry_from_record(record)


@pytest.mark.parametrize("kind", [-1, 2])
def test_a_kind_that_is_neither_add_nor_delete_is_wrong(kind: int) -> None:
    with pytest.raises(ValueError, match="FileKind"):
        entry_from_record(entry_to_record(entry()) | {"_KIND": kind})


@pytest.mark.parametrize("counts", [None, (), (0, None, 7)])
def test_statistics_without_counts_differ_from_those_of_no_column(counts: tuple[int | None, ...] | None) -> None:
    stats = SimpleStats(b"a", b"b", counts)
    assert stats_from_record(stats_to_record(stats)) == stats
    without = {name: value for name, value in stats_to_record(stats).items() if name != "_NULL_COUNTS"}
    assert stats_from_record(without).null_counts is None
