"""Numbers of manifest entries that no writer writes are damage, with either decoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import ManifestEntry, decode_manifest
from lakelsm.format.manifest.data_file_meta import SimpleStats
from lakelsm.format.manifest.entry_numbers import check_entries
from lakelsm.format.row.binary_row import EMPTY_ROW
from tests.format.manifest.manifest_samples import (
    entry,
    golden_files,
    in_lanes,
    int_row,
    manifest_of_small_blocks,
    one_by_one,
)

MAX_INT = 2**31 - 1
COUNTS = SimpleStats(EMPTY_ROW, EMPTY_ROW, (None, 11))
#: A change of an entry of 10 rows, and the text of the error.
IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"level": -1}, "_LEVEL -1, which is out of range"),
    ({"level": MAX_INT}, f"_LEVEL {MAX_INT}"),
    ({"bucket": -3}, "_BUCKET -3"),
    ({"total_buckets": -3}, "_TOTAL_BUCKETS -3"),
    ({"file_size": -1}, "_FILE_SIZE -1"),
    ({"row_count": -1}, "_ROW_COUNT -1"),
    ({"delete_row_count": -1}, "_DELETE_ROW_COUNT -1"),
    ({"delete_row_count": 11}, "_DELETE_ROW_COUNT 11, more than its _ROW_COUNT 10"),
    ({"schema_id": -1}, "_SCHEMA_ID -1"),
    ({"file_source": 128}, "_FILE_SOURCE 128"),
    ({"file_source": -1}, "_FILE_SOURCE -1"),
    ({"first_row_id": -1}, "_FIRST_ROW_ID -1"),
    ({"min_sequence_number": 10}, "_MIN_SEQUENCE_NUMBER 10, more than its _MAX_SEQUENCE_NUMBER 9"),
    ({"key_stats": COUNTS}, "_KEY_STATS _NULL_COUNTS 11, more than its _ROW_COUNT 10"),
    ({"value_stats": COUNTS}, "_VALUE_STATS _NULL_COUNTS 11, more than its _ROW_COUNT 10"),
]
#: The minimum and maximum numbers that writers write.
POSSIBLE: list[dict[str, Any]] = [
    {"level": MAX_INT - 1},
    {"bucket": -2, "total_buckets": -2},
    {"total_buckets": -1, "file_source": 2},
    {"file_size": 0, "row_count": 0, "delete_row_count": 0, "min_sequence_number": 5, "max_sequence_number": 5},
    {"delete_row_count": 10, "file_source": 1, "first_row_id": 0},
    {"delete_row_count": None, "file_source": None, "first_row_id": None},
    {
        "value_stats": SimpleStats(EMPTY_ROW, EMPTY_ROW, (None, 10, 0)),
        "key_stats": SimpleStats(EMPTY_ROW, EMPTY_ROW, None),
    },
]


@pytest.mark.parametrize("decode", [in_lanes, one_by_one], ids=["columns", "records"])
def test_an_impossible_number_is_damage_that_names_manifest_file_field_and_value(
    decode: Callable[[bytes], list[ManifestEntry]],
) -> None:
    for change, problem in IMPOSSIBLE:
        entries = [entry("first"), entry("second", **change), entry("third")]
        with pytest.raises(CorruptTableError) as raised:
            decode(manifest_of_small_blocks(entries))
        assert f"manifest-x: the entry of data file second has {problem}" in str(raised.value), change


@pytest.mark.parametrize("decode", [in_lanes, one_by_one], ids=["columns", "records"])
def test_numbers_within_the_bounds_are_read(decode: Callable[[bytes], list[ManifestEntry]]) -> None:
    entries = [entry(f"file-{at}", **change) for at, change in enumerate(POSSIBLE)]
    assert decode(manifest_of_small_blocks(entries)) == entries


def test_the_manifest_with_the_wrong_number_is_named() -> None:
    good, bad = (manifest_of_small_blocks([entry("x"), entry("y", level=level)]) for level in (3, -7))
    with pytest.raises(CorruptTableError, match=r"^manifest-x: the entry of data file y has _LEVEL -7"):
        in_lanes(good, bad, good)


@pytest.mark.parametrize("value", [None, "1", 1.0, True])
def test_a_value_that_is_not_a_number_is_damage(value: Any) -> None:
    with pytest.raises(CorruptTableError, match=r"^m is not a manifest: field _FILE\._LEVEL is missing or wrong"):
        check_entries([entry(level=value)], "m")


def test_numbers_of_javas_manifests_are_accepted(tmp_path: Path) -> None:
    found = [
        decode_manifest(path.read_bytes(), name)
        for name, path in golden_files(tmp_path, "*/manifest/manifest-*")
        if "list" not in path.name
    ]
    assert found


@pytest.mark.parametrize("decode", [in_lanes, one_by_one], ids=["columns", "records"])
def test_a_partition_of_another_row_kind_is_damage(decode: Callable[[bytes], list[ManifestEntry]]) -> None:
    partition = int_row(7)
    odd = partition[:4] + b"\xff" + partition[5:]
    entries = [entry("first", partition=partition), entry("second", partition=odd)]
    with pytest.raises(CorruptTableError, match=r"^manifest-x has an entry whose _PARTITION has row kind 255"):
        decode(manifest_of_small_blocks(entries))
