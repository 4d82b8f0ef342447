"""A program of tests/spark/test_native_files.py: a session with Spark's connector s3a writes and reads tables."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from lakelsm import Catalog, LakelsmError, Table
from lakelsm.schema_changes import AddColumn, UpdateColumnType
from tests.spark_session import build_session


def main(warehouse: str, given: str, jars: str, scratch: str, odd: str) -> None:
    logging.basicConfig(level=logging.DEBUG)
    spark = build_session(
        "lakelsm-s3a",
        Path(scratch),
        spark__jars=",".join(map(str, Path(jars).glob("*.jar"))),
        spark__eventLog__enabled="true",
        spark__eventLog__compress="false",
        spark__eventLog__dir=scratch,
    )
    options = json.loads(given)
    others = {**options, "s3.access-key": "another"}
    catalog = Catalog(warehouse, spark, storage_options=options)
    found = {}
    for vectors in ("false", "true"):
        name = f"d.{vectors}"
        settings = {"bucket": "1", "deletion-vectors.enabled": vectors}
        columns = "dt STRING, id BIGINT, v INT"
        table = catalog.create_table(
            name, columns, primary_key=["dt", "id"], partition_by=["dt"], options=settings
        )
        rows = spark.range(20).selectExpr(f"'{odd}' AS dt", "id", "0 AS v")
        table.write(rows)
        table.compact(full=True, engine="spark")
        table.write(rows.where("id < 5").selectExpr("dt", "id", "1 AS v"))
        table.delete("id = 3")
        table = catalog.alter_table(name, AddColumn("w", "INT"), UpdateColumnType("v", "BIGINT"))
        table.write(spark.sql(f"SELECT '{odd}' AS dt, 99L AS id, 5000000000L AS v, 7 AS w"))
        frame = table.read()
        other = Table.for_path(f"{warehouse}/d.db/{vectors}", spark, storage_options=others)
        found[vectors] = {
            "plan": frame._jdf.queryExecution().toString(),
            "rows": [list(row) for row in frame.collect()],
            "plan with other credentials": other.read()._jdf.queryExecution().toString(),
        }
        assert other.read().count() == len(found[vectors]["rows"])
        store = table._store()
        lost = table.inspect.system("files").to_spark().first()
        assert lost is not None
        store.file_io.delete(lost["file_path"])
        try:
            table.read().count()
        except LakelsmError as error:
            found[vectors]["missing"] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
