"""The bytes of statistics files."""

from __future__ import annotations

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.statistics_file import ColumnStatistics, TableStatistics

TEXT = """{
  "snapshotId" : 3,
  "schemaId" : 1,
  "mergedRecordCount" : 4,
  "mergedRecordSize" : 50,
  "colStats" : {
    "ü{}" : {
      "colId" : 0,
      "distinctCount" : 4,
      "min" : "1",
      "max" : "19",
      "nullCount" : 0,
      "avgLen" : 4,
      "maxLen" : 4
    },
    "v" : {
      "colId" : 1,
      "nullCount" : 2
    }
  }
}"""
FOUND = TableStatistics(
    snapshot_id=3,
    schema_id=1,
    merged_record_count=4,
    merged_record_size=50,
    columns={
        "ü{}": ColumnStatistics(col_id=0, distinct_count=4, min="1", max="19", null_count=0, avg_len=4, max_len=4),
        "v": ColumnStatistics(col_id=1, null_count=2),
    },
)


def test_a_file_is_read_and_has_javas_bytes() -> None:
    assert TableStatistics.from_json(TEXT.encode(), "f") == FOUND
    assert FOUND.to_json() == TEXT
    assert TableStatistics(snapshot_id=1, schema_id=0).columns_json() == "{ }"


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"snapshotId" : 3', '"snapshotId" : "3"', "snapshotId"),
        ('"schemaId" : 1,', "", "schemaId"),
        ('"min" : "1"', '"min" : 1', "min"),
        ('"colId" : 1', '"colId" : null', "colId"),
        ('"nullCount" : 2', '"nullCount" : true', "nullCount"),
        ('"colStats"', '"other"', "colStats"),
    ],
)
def test_a_damaged_file_is_refused_by_its_name_and_key(old: str, new: str, named: str) -> None:
    with pytest.raises(CorruptTableError, match=f"^the file is damaged: .*{named}"):
        TableStatistics.from_json(TEXT.replace(old, new).encode(), "the file")
