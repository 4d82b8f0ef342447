"""Merges on Spark: values and types of DataFrames."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.engines import ON_SPARK, TableEngine


@ON_SPARK
def test_faults_of_rows_and_columns_that_spark_would_cut(engine: TableEngine, tmp_path: Path) -> None:
    table = engine.create(tmp_path, "id INT, v VARCHAR(2) NOT NULL", ["id"])
    engine.write(table, [(1, "a")])
    source = engine.frame([(1, "abc"), (2, None)], "id INT, v STRING")
    for clause, problem in (("id = 1", "2 characters|too long|longer"), ("id = 2", "NULL")):
        with pytest.raises(InvalidInputError, match=problem):
            table.merge(source.where(clause), "id").when_matched_update().when_not_matched_insert().execute()
    with pytest.raises(InvalidInputError, match="'local' cannot read a Spark DataFrame"):
        table.merge(source, "id").when_matched_delete().execute(engine="local")
    fine = engine.create(tmp_path, "id INT, at TIMESTAMP(9)", ["id"], name="db.fine")
    with pytest.raises(UnsupportedFeatureError, match="'at'"):
        fine.merge(source, "id").when_matched_delete().execute()
