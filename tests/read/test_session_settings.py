"""Settings of a user's session change no row of a table."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.read.tables import create, rows_of

_SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
}


@pytest.fixture
def set_oddly(spark: SparkSession) -> Iterator[SparkSession]:
    before = {key: spark.conf.get(key) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        spark.conf.set(key, value or "")


def test_old_dates_and_missing_files_do_not_depend_on_settings(set_oddly: SparkSession, tmp_path: Path) -> None:
    table = create(set_oddly, tmp_path, "id INT, d DATE, m TIMESTAMP(3), n TIMESTAMP(9)", ["id"])
    old = datetime.datetime(1500, 1, 1)
    values = "DATE'1500-01-01' AS d, TIMESTAMP_NTZ'1500-01-01' AS m, TIMESTAMP_NTZ'1500-01-01' AS n"
    table.write(set_oddly.sql(f"SELECT EXPLODE(ARRAY(1, 2)) AS id, {values}"))
    table.write(set_oddly.sql(f"SELECT 2 AS id, {values}"))
    assert rows_of(table.read(columns=["ID", "d", "m", "n"])) == [(id, old.date(), old, old) for id in (1, 2)]
    found = table.read()
    for file in (tmp_path / "db.db" / "t" / "bucket-0").glob("data-*"):
        file.unlink()
    with pytest.raises(Exception, match=r"data-.*parquet"):
        found.collect()
