"""System tables of data files, one by one and added up."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.format.manifest.data_file_meta import FileSource
from lakelsm.maintain.system_tables.file_tables import BUCKETS, FILE_KEY_RANGES, FILES, PARTITIONS
from tests.commit.commit_table import CommitTable, add, delete, file, vector_index
from tests.maintain.system_tables.states import shown
from tests.masked_files import with_index_files


@pytest.fixture
def table(tmp_path: Path) -> CommitTable:
    return CommitTable(tmp_path)


def test_each_live_file_has_paimons_columns(table: CommitTable) -> None:
    told = file("a.orc", level=3, rows=7, seq=(20, 29), creation_time_millis=1234, file_source=FileSource.COMPACT)
    table.append(add(told, dt="x=1", bucket=1), add(file("b.parquet"), dt=None))
    second, first = sorted(shown(table, FILES), key=lambda row: row["level"])
    root = str(table.root)
    assert first == {
        "partition": "{x=1}",
        "bucket": 1,
        "file_path": f"{root}/dt=x%3D1/bucket-1/a.orc",
        "file_format": "orc",
        "schema_id": 0,
        "level": 3,
        "record_count": 7,
        "file_size_in_bytes": 1000,
        "min_key": "[1]",
        "max_key": "[9]",
        "null_value_counts": "{dt=null, id=null, v=null}",
        "min_value_stats": "{dt=null, id=null, v=null}",
        "max_value_stats": "{dt=null, id=null, v=null}",
        "min_sequence_number": 20,
        "max_sequence_number": 29,
        "creation_time": dt.datetime(1970, 1, 1, 0, 0, 1, 234_000),
        "deleteRowCount": 0,
        "file_source": "COMPACT",
        "first_row_id": None,
        "write_cols": None,
    }
    assert (second["partition"], second["file_source"], second["creation_time"]) == ("{null}", None, None)
    ranges = shown(table, FILE_KEY_RANGES)
    assert list(ranges[0]) == [*list(first)[:10], "first_row_id"]
    assert {row["file_path"]: row["max_key"] for row in ranges} == {row["file_path"]: "[9]" for row in (first, second)}


def test_files_are_those_of_the_chosen_snapshot(table: CommitTable) -> None:
    first = add(file("a"))
    table.append(first)
    table.append(add(file("b")))
    table.compact([delete(first)])
    assert [row["file_path"].rsplit("/", 1)[-1] for row in shown(table, FILES)] == ["b"]
    assert len(shown(table, FILES, 2)) == 2


def test_partitions_and_buckets_add_up_live_files_in_the_order_of_their_texts(table: CommitTable) -> None:
    gone = add(file("gone", rows=5, creation_time_millis=9000), dt="b", bucket=1)
    emptied = add(file("emptied"), dt="c")
    table.append(gone, emptied, add(file("x", rows=3, creation_time_millis=1000), dt="b", bucket=1))
    table.append(add(file("y", rows=2), dt="a"), add(file("z", rows=1), dt="b", bucket=0), add(dt=None))
    table.compact([delete(gone), delete(emptied)])
    found = shown(table, PARTITIONS)
    assert [row["partition"] for row in found] == ["dt=__DEFAULT_PARTITION__", "dt=a", "dt=b"]
    assert found[2] == {
        "partition": "dt=b",
        "record_count": 4,
        "file_size_in_bytes": 2000,
        "file_count": 2,
        "last_update_time": dt.datetime(1970, 1, 1, 0, 0, 9),
        "created_at": None,
        "created_by": None,
        "updated_by": None,
        "options": None,
        "total_buckets": 2,
        "done": False,
        "deleted_record_count": 0,
    }
    buckets = shown(table, BUCKETS)
    assert [(row["partition"], row["bucket"], row["record_count"], row["file_count"]) for row in buckets] == [
        ("{a}", 0, 2, 1), ("{b}", 0, 1, 1), ("{b}", 1, 3, 1), ("{null}", 0, 10, 1),
    ]
    assert len(shown(table, PARTITIONS, 1)) == 2


def test_masked_rows_are_counted_by_partition_where_vectors_are_enabled(tmp_path: Path) -> None:
    table = CommitTable(tmp_path, options={"deletion-vectors.enabled": "true"})
    table.append(add(file("one")), add(file("two"), dt="b"), add(file("three"), dt="c"))
    untold = vector_index("w", "two", dt="b")
    ranges = tuple(replace(each, cardinality=None) for each in untold.file.dv_ranges or ())
    untold = replace(untold, file=replace(untold.file, dv_ranges=ranges))
    with_index_files(table, vector_index("v", "one"), untold)
    assert [row["deleted_record_count"] for row in shown(table, PARTITIONS)] == [3, None, 0]


def test_a_table_without_snapshots_has_no_rows_of_the_same_columns(table: CommitTable) -> None:
    for system in (FILES, FILE_KEY_RANGES, PARTITIONS, BUCKETS):
        assert shown(table, system) == []
