"""Manifests opened for scanning: the same entries in columns and one by one, and as many as their list says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import write_container
from lakelsm.format.manifest import encode_manifest
from lakelsm.format.manifest.batch import EntryList, open_manifests
from lakelsm.format.manifest.columns import EntryColumns
from lakelsm.format.manifest.entry import ManifestEntry
from lakelsm.format.manifest.record import entry_to_record
from tests.format.manifest.manifest_samples import changed_schema, entry, manifest_of_small_blocks, varied_entries


def test_many_blocks_go_to_lanes_and_few_do_not() -> None:
    entries = varied_entries(200)
    [many] = open_manifests([(manifest_of_small_blocks(entries), "m", None)])
    [few] = open_manifests([(encode_manifest(entries[:20]), "m", None)])
    assert isinstance(many, EntryColumns)
    assert isinstance(few, EntryList)
    rows = np.arange(20)
    assert few.entries(rows) == many.entries(rows)
    assert few.identities(rows) == many.identities(rows)
    assert few.file_names(rows) == many.file_names(rows)
    assert few.partitions == many.partitions
    for name in ("kinds", "buckets", "total_buckets", "partition_codes"):
        assert np.array_equal(getattr(few, name), getattr(many, name)[:20])


def with_new_field(item: ManifestEntry) -> dict[str, Any]:
    record = entry_to_record(item)
    record["_FILE"]["_NEW"] = 1
    return record


def test_manifests_of_one_schema_are_opened_together_and_all_in_their_order() -> None:
    entries = varied_entries(6)
    other = write_container(changed_schema(_NEW="int"), [with_new_field(item) for item in entries[2:4]], "null")
    manifests = [encode_manifest(entries[:1]), encode_manifest(entries[1:2]), other, encode_manifest(entries[4:])]
    batches = open_manifests([(data, f"m{at}", None) for at, data in enumerate(manifests)])
    assert [batch.count for batch in batches] == [2, 2, 2]
    assert [item for batch in batches for item in batch.entries(np.arange(batch.count))] == entries


def test_a_manifest_of_another_number_of_entries_than_its_list_says_is_refused() -> None:
    data = encode_manifest(varied_entries(3))
    [batch] = open_manifests([(data, "manifest-7", 3)])
    assert batch.count == 3
    with pytest.raises(CorruptTableError, match=r"^manifest-7 has 3 entries, but the manifest list says 4: restore it"):
        open_manifests([(data, "manifest-7", 4)])


@pytest.mark.parametrize("pack", [encode_manifest, manifest_of_small_blocks])
def test_a_name_that_leads_elsewhere_is_refused_in_both_forms(pack: Callable[[list[ManifestEntry]], bytes]) -> None:
    bad = pack([entry(f"../data-{at}.parquet") for at in range(40)])
    with pytest.raises(CorruptTableError, match=r"m has '../data-\d+.parquet' as _FILE_NAME"):
        [batch.file_names(np.arange(batch.count)) for batch in open_manifests([(bad, "m", None)])]


def test_a_manifest_read_one_by_one_keeps_each_footers_checksum() -> None:
    written = [entry(f"data-{at}.parquet", footer_checksum=at if at else None) for at in range(3)]
    batches = open_manifests([(encode_manifest(written[:1]), "m0", None), (encode_manifest(written[1:]), "m1", None)])
    found = [item.file.footer_checksum for batch in batches for item in batch.entries(np.arange(batch.count))]
    assert found == [None, 1, 2]
