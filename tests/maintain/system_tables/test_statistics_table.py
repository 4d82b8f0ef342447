"""The system table of what an analysis found."""

from __future__ import annotations

from pathlib import Path

from lakelsm.format.statistics import TableStatistics
from lakelsm.maintain.system_tables.statistics_table import STATISTICS
from tests.commit.commit_table import CommitTable, add
from tests.maintain.system_tables.states import shown


def test_the_statistics_of_the_snapshot_are_one_row(tmp_path: Path) -> None:
    table = CommitTable(tmp_path)
    assert shown(table, STATISTICS) == []
    table.append(add())
    assert shown(table, STATISTICS) == []
    told = TableStatistics(snapshot_id=1, schema_id=0, merged_record_count=5, merged_record_size=60)
    table.file_io.write(table.paths.statistics("stat-x-0"), told.to_json().encode())
    table.rewrite(1, statistics="stat-x-0")
    assert shown(table, STATISTICS) == [
        {"snapshot_id": 1, "schema_id": 0, "mergedRecordCount": 5, "mergedRecordSize": 60, "colstat": "{ }"}
    ]
