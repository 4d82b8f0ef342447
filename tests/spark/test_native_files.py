"""Spark's own reader opens a table's files if it can, as its plans show; credentials are never shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog
from lakelsm.errors import CorruptTableError, StorageError
from lakelsm.spark.native_files import NativeFiles
from lakelsm.spark.task_errors import lakelsm_error
from tests.storage.object_server import ObjectServer

SECRETS = ("test-secret", "test-access")
#: Characters of a partition that are special in names of objects, URIs and patterns.
ODD = "é%x=[y]*{z}? +&:"
JARS = os.environ.get("LAKELSM_S3A_JARS")


def test_settings_with_credentials_are_not_shown() -> None:
    assert "word" not in repr(NativeFiles("s3://b", "s3a://b", {"fs.s3a.bucket.b.secret.key": "word"}))


def test_without_the_connector_tasks_read_objects_and_the_plan_shows_it(
    spark: SparkSession, object_server: ObjectServer
) -> None:
    catalog = Catalog(f"{object_server.new_bucket()}/w", spark, storage_options=object_server.options)
    table = catalog.create_table(
        "d.t", "dt STRING, id BIGINT, v INT", primary_key=["dt", "id"], partition_by=["dt"], options={"bucket": "1"}
    )
    rows = spark.range(20).selectExpr(f"'{ODD}' AS dt", "id", "0 AS v")
    table.write(rows)
    table.write(rows.where("id < 5").selectExpr("dt", "id", "1 AS v"))
    frame = table.read()
    plan = frame._jdf.queryExecution().toString()
    assert "MapInArrow StoredRows" in plan and "FileScan" not in plan
    assert not any(secret in plan for secret in SECRETS)
    assert sorted(map(tuple, frame.collect())) == [(ODD, number, int(number < 5)) for number in range(20)]
    table.compact(full=True, engine="spark")
    table.delete("id = 3")
    assert table.read("v = 1").count() == 4


@pytest.mark.skipif(JARS is None, reason="LAKELSM_S3A_JARS names no directory with Spark's connector s3a and its SDK")
def test_with_the_connector_spark_reads_objects(object_server: ObjectServer, tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("s3a_program.py"))
    arguments = [f"{object_server.new_bucket()}/w", json.dumps(object_server.options), str(JARS), str(tmp_path), ODD]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
    ran = subprocess.run(
        [sys.executable, program, *arguments], capture_output=True, text=True, check=False, timeout=600, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    for vectors in ("false", "true"):
        assert "FileScan parquet" in found[vectors]["plan"] and "StoredRows" not in found[vectors]["plan"]
        expected = [[ODD, number, int(number < 5), None] for number in range(20) if number != 3]
        assert sorted(found[vectors]["rows"]) == [*expected, [ODD, 99, 5_000_000_000, 7]]
        assert "StoredRows" in found[vectors]["plan with other credentials"], "the JVM has the bucket open with others"
        assert found[vectors]["missing"].startswith(CorruptTableError.__name__)
    outputs = [ran.stdout, ran.stderr, *(path.read_text() for path in tmp_path.rglob("events*"))]
    assert len(outputs) > 2
    assert [secret for secret in SECRETS for text in outputs if secret in text] == []


def test_an_error_of_the_store_through_the_connector_is_a_storage_error() -> None:
    text = "java.nio.file.AccessDeniedException: s3a://b/w/x: getFileStatus: Forbidden (Service: S3, Status Code: 403)"
    error = lakelsm_error(text, "s3://b/w")
    assert isinstance(error, StorageError) and "s3a://b/w/x" in str(error) and "403" in str(error)


def test_an_object_that_spark_cannot_read_is_named_by_the_tables_uri() -> None:
    text = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file {}. File does not exist. It is"
    error = lakelsm_error(text.format("s3a://b/w/t/dt=a%2520b/bucket-0/x.parquet"), "s3://b/w/t")
    assert isinstance(error, CorruptTableError) and "s3://b/w/t/dt=a%20b/bucket-0/x.parquet is missing" in str(error)
    assert lakelsm_error(text.format("s3a://b/w/t2/x.parquet"), "s3://b/w/t") is None
