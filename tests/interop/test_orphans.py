"""Orphan removal of Java Paimon and lakelsm: Java reads what lakelsm keeps, and keeps the records of maintenance."""

from __future__ import annotations

import os
from pathlib import Path

from lakelsm import Table
from lakelsm.maintain.history import maintenance_runs
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import PaimonSpark
from tests.interop.samples import rows_of
from tests.maintain.orphans.table_census import census, unnamed

UUID = "01234567-89ab-cdef-0123-456789abcdef"
COLUMNS = "k INT, v STRING"


def orphans(path: Path) -> set[str]:
    """Create an unreferenced file of each kind, and make all files of the table old."""
    made = {
        f"bucket-0/data-{UUID}-0.parquet",
        f"bucket-0/data-{UUID}-0.parquet.index",
        f"manifest/manifest-{UUID}-0",
        f"manifest/manifest-list-{UUID}-0",
        f"index/index-{UUID}-0",
        f"statistics/stat-{UUID}-0",
        f"snapshot/.snapshot-9.{UUID}.tmp",
    }
    for name in made:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(b"x")
    for name in census(path):
        os.utime(path / name, (1_500_000_000, 1_500_000_000))
    return made


def test_lakelsm_and_java_remove_the_same_files_and_keep_the_same_rows(
    ours: LakelsmTables, paimon_spark: PaimonSpark
) -> None:
    path = paimon_spark.path("orphans")
    paimon_spark.sql(
        "CREATE DATABASE IF NOT EXISTS paimon.db",
        "CREATE TABLE paimon.db.orphans (k INT, v STRING) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1', "
        "'changelog-producer' = 'input', 'write-only' = 'true')",
        "INSERT INTO paimon.db.orphans VALUES (1, 'java'), (2, 'java')",
    )
    table = Table.for_path(str(path))
    table.write(rows_of(COLUMNS, {"k": [2, 3], "v": ["ours", "ours"]}))
    table.tags.create("kept")
    table.compact(full=True, engine="local")
    before, rows = census(path), paimon_spark.read("orphans")
    made = orphans(path)
    assert unnamed(path) == made
    assert table.maintenance.remove_orphans("1 day", engine="local").files == len(made)
    assert census(path) >= before and not census(path) & made
    assert paimon_spark.read("orphans") == ours.read(path) == rows

    records = {name for name in census(path) if name.startswith("service/")}
    orphans(path)
    assert records
    paimon_spark.sql(
        "CALL paimon.sys.remove_orphan_files(table => 'db.orphans', older_than => '2020-01-01 00:00:00')"
    )
    left = census(path)
    assert records <= left and before <= left and not left & made
    assert [run.operation for run in maintenance_runs(table._store(), 50)] == ["remove_orphans", "compact", "create_tag"]
    assert paimon_spark.read("orphans") == ours.read(path) == rows
