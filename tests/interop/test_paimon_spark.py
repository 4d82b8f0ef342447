"""Tables shared with Java Paimon's Spark connector, which is used by SQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm.format.statistics_file import TableStatistics
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.spark_types import to_struct
from lakelsm.system_tables.metadata_tables import statistics_of
from lakelsm.types import parse_columns
from tests.interop.arrow_merge import bucket_keys, merged_rows
from tests.interop.conftest import PAIMON_SPARK
from tests.interop.engine_cases import (
    AGGREGATION,
    FIRST_ROW,
    GROUPS,
    PARTIAL_UPDATE,
    PARTIAL_UPDATE_IN_SEQUENCE,
    RETRACTIONS,
    EngineCase,
    Written,
)
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import PaimonSpark
from tests.interop.samples import ALL_TYPES, column_name, rows_of
from tests.interop.value_form import Rows, cut_to_micros, in_order, rows_of_arrow

#: Spark has no TIME. Paimon 0.9 takes a row of NULLs for NULL and reads no NULL in nested rows.
KINDS = [kind for kind in ALL_TYPES if not kind.startswith(("TIME(", "TIMESTAMP(9)", "ROW<a"))]


def _form(columns: str, table: pa.Table) -> Rows:
    fields = parse_columns(columns)
    return cut_to_micros(rows_of_arrow(table, fields), fields)


def _skip_unless_readable(path: Path) -> None:
    """Paimon before 1.0.1 has no reader of delta encoding."""
    version = PAIMON_SPARK.rsplit(":", 1)[-1]
    if version >= "1.0.1":
        return
    for file in path.rglob("data-*.parquet"):
        group = pq.read_metadata(file).row_group(0)
        if any("DELTA_BINARY_PACKED" in group.column(at).encodings for at in range(group.num_columns)):
            pytest.skip(f"{PAIMON_SPARK} does not read DELTA_BINARY_PACKED, which lakelsm wrote: it needs Paimon 1.0.1")


def test_lakelsm_reads_and_compacts_what_spark_wrote(ours: LakelsmTables, paimon_spark: PaimonSpark) -> None:
    columns = (
        "b BOOLEAN, k BIGINT, s STRING, d DECIMAL(20, 3), t TIMESTAMP_LTZ(6), a ARRAY<STRING>, "
        "m MAP<INT NOT NULL, DOUBLE>"
    )
    paimon_spark.sql(
        "CREATE DATABASE IF NOT EXISTS paimon.db",
        "CREATE TABLE paimon.db.written (b BOOLEAN, k BIGINT, s STRING, d DECIMAL(20, 3), t TIMESTAMP, a ARRAY<STRING>, "
        "m MAP<INT, DOUBLE>) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '3')",
        "INSERT INTO paimon.db.written SELECT id % 2 = 0, id, CAST(id AS STRING), CAST(id / 8 AS DECIMAL(20, 3)), "
        "TIMESTAMP_MICROS(id * 1000001), ARRAY(CAST(id AS STRING), NULL), MAP(CAST(id AS INT), id / 3) FROM range(50)",
        "DELETE FROM paimon.db.written WHERE k % 5 = 0",
        "INSERT INTO paimon.db.written VALUES (NULL, 7, NULL, NULL, NULL, NULL, NULL), "
        "(true, 100, '', 0, NULL, ARRAY(), MAP())",
    )
    path = paimon_spark.path("written")
    written = paimon_spark.read("written")
    assert len(written) == 41
    assert [field.type for field in ours.table(path).schema.fields if field.name != "k"] == [
        field.type for field in parse_columns(columns) if field.name != "k"
    ]
    assert ours.read(path) == written
    ours.compact(path)
    assert ours.read(path) == written
    _skip_unless_readable(path)
    assert paimon_spark.read("written") == written


def test_spark_reads_all_types_that_lakelsm_wrote(ours: LakelsmTables, paimon_spark: PaimonSpark) -> None:
    columns = "k INT, " + ", ".join(f"{column_name(kind)} {kind}" for kind in KINDS)
    values = {column_name(kind): [*ALL_TYPES[kind], None] for kind in KINDS}
    values["char_5"] = ["abcde", "é中文ñ!", "12345", None]  # Spark pads shorter texts.
    values["row_x_int_y_string"] = [{"x": 1, "y": "y"}, {"x": 2, "y": None}, {"x": None, "y": ""}, None]
    rows = rows_of(columns, {"k": [1, 2, 3, 4], **values})
    path = paimon_spark.path("types")
    ours.create(path, columns, ["k"], options={"bucket": "2"})
    ours.write(path, rows)
    _skip_unless_readable(path)
    assert paimon_spark.read("types") == _form(columns, rows)
    ours.write(path, rows.take([3]), ["-D"])
    ours.compact(path)
    assert paimon_spark.read("types") == ours.read(path) == _form(columns, rows.slice(0, 3))
    assert paimon_spark.read("types", "bigint = 4") == _form(columns, rows.slice(0, 1))


@pytest.mark.parametrize("bucket", ["2", "-1"], ids=["fixed", "dynamic"])
def test_partitions_upserts_deletes_and_compactions_in_turn(
    ours: LakelsmTables, paimon_spark: PaimonSpark, bucket: str
) -> None:
    name = "turns" + bucket.replace("-", "_")
    columns = "dt DATE, k INT, v STRING"
    day = ALL_TYPES["DATE"][0]

    def rows(first: int, last: int, value: str) -> pa.Table:
        count = last - first
        return rows_of(columns, {"dt": [day] * count, "k": list(range(first, last)), "v": [value] * count})

    paimon_spark.sql(
        "CREATE DATABASE IF NOT EXISTS paimon.db",
        f"CREATE TABLE paimon.db.{name} (dt DATE, k INT, v STRING) PARTITIONED BY (dt) TBLPROPERTIES ("
        f"'primary-key' = 'dt,k', 'bucket' = '{bucket}', 'dynamic-bucket.target-row-num' = '5')",
        f"INSERT INTO paimon.db.{name} SELECT DATE'{day}', CAST(id AS INT), 'spark' FROM range(20)",
    )
    path = paimon_spark.path(name)
    assert ours.read(path) == _form(columns, rows(0, 20, "spark"))
    ours.write(path, rows(10, 30, "ours"))
    both = in_order(_form(columns, rows(0, 10, "spark")) + _form(columns, rows(10, 30, "ours")))
    assert ours.read(path) == both
    _skip_unless_readable(path)
    assert paimon_spark.read(name) == both
    ours.compact(path)
    assert ours.read(path) == paimon_spark.read(name) == both
    paimon_spark.sql(f"DELETE FROM paimon.db.{name} WHERE k < 5")
    paimon_spark.sql(f"INSERT INTO paimon.db.{name} SELECT DATE'{day}', CAST(id AS INT), 'again' FROM range(25, 35)")
    parts = [rows(5, 10, "spark"), rows(10, 25, "ours"), rows(25, 35, "again")]
    now = _form(columns, pa.concat_tables(parts))
    assert ours.read(path) == paimon_spark.read(name) == now
    paimon_spark.sql(f"CALL paimon.sys.compact(table => 'db.{name}')")
    assert ours.read(path) == paimon_spark.read(name) == now
    keys = [key for bucket_of in bucket_keys(str(path)).values() for key in bucket_of]
    assert len(keys) == len(set(keys)), "no key is in two buckets"


def test_columns_are_changed_by_either_engine(ours: LakelsmTables, paimon_spark: PaimonSpark) -> None:
    before, after = "k INT, a INT, b STRING", "k INT, a BIGINT, c STRING, d DOUBLE"
    path = paimon_spark.path("evolved")
    ours.create(path, before, ["k"], options={"bucket": "1"})
    ours.write(path, rows_of(before, {"k": [1, 2], "a": [1, None], "b": ["x", "y"]}))
    _skip_unless_readable(path)
    ours.alter(path, ("type", "a", "BIGINT"), ("rename", "b", "c"))
    paimon_spark.sql("ALTER TABLE paimon.db.evolved ADD COLUMN d DOUBLE")
    expected = rows_of(after, {"k": [1, 2], "a": [1, None], "c": ["x", "y"], "d": [None, None]})
    assert ours.read(path) == paimon_spark.read("evolved") == _form(after, expected)
    ours.compact(path)
    assert ours.read(path) == paimon_spark.read("evolved") == _form(after, expected)


#: Cases that Paimon 0.9 knows all options of, with the column that it merges by older rules. Of the others, it knows no
#: remove-record-on-sequence-group nor aggregation.remove-record-on-delete, and fails on rows after a removal.
ENGINES = [
    (PARTIAL_UPDATE, None),
    (PARTIAL_UPDATE_IN_SEQUENCE, None),
    (GROUPS, None),
    (AGGREGATION, "once"),  # listagg has no `distinct`.
    (RETRACTIONS, "factor"),  # Division of a missing product gives the value itself.
    (FIRST_ROW, None),
]


@pytest.mark.parametrize(("case", "older"), ENGINES, ids=[case.name for case, _ in ENGINES])
def test_merge_engines_are_read_and_continued(
    ours: LakelsmTables,
    paimon_spark: PaimonSpark,
    written: Callable[[EngineCase], Written],
    case: EngineCase,
    older: str | None,
) -> None:
    fields = parse_columns(case.columns)
    kept = [at for at, field in enumerate(fields) if field.name != older]

    def known(rows: Rows) -> Rows:
        return in_order(tuple(row[at] for at in kept) for row in case.comparable(rows))

    name = case.name.replace("-", "_")
    tables = written(case)
    _skip_unless_readable(tables.begun)
    shutil.copytree(tables.loose, paimon_spark.path(f"{name}_loose"))
    assert known(paimon_spark.read(f"{name}_loose")) == known(case.visible_rows())
    rows, kinds = case.batches[-1]
    if kinds is not None:
        return  # SQL cannot insert retractions.

    path = paimon_spark.path(name)
    shutil.copytree(tables.begun, path)
    types = [member.dataType.simpleString() for member in to_struct(fields).fields]
    values = ", ".join(f"({', '.join(map(sql_literal, row.values(), types))})" for row in rows.to_pylist())
    paimon_spark.sql(f"INSERT INTO paimon.db.{name} VALUES {values}")
    assert case.comparable(merged_rows(str(path))) == case.visible_rows()
    assert known(paimon_spark.read(name)) == known(case.visible_rows())
    ours.compact(path)
    assert case.comparable(paimon_spark.read(name)) == case.comparable(merged_rows(str(path))) == case.rows()


def sql_literal(value: Any, kind: str) -> str:
    """Return the literal of a value of a type in Spark's SQL."""
    return f"CAST({_literal(value)} AS {kind})"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"ARRAY({', '.join(map(_literal, value))})"
    if isinstance(value, dict):
        return "NAMED_STRUCT(" + ", ".join(f"'{name}', {_literal(part)}" for name, part in value.items()) + ")"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def test_an_analysis_has_the_results_of_sparks(ours: LakelsmTables, paimon_spark: PaimonSpark) -> None:
    paimon_spark.sql(
        "CREATE DATABASE IF NOT EXISTS paimon.db",
        "CREATE TABLE paimon.db.analyzed (k INT, n BIGINT, x DOUBLE, f FLOAT, d DECIMAL(20, 3), s STRING, b BINARY, "
        "day DATE, t TIMESTAMP, e STRING, flag BOOLEAN) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '2')",
        "INSERT INTO paimon.db.analyzed SELECT CAST(id AS INT), id - 3, id / 3, CAST(id AS FLOAT), "
        "IF(id % 3 = 0, NULL, CAST(id / 8 AS DECIMAL(20, 3))), REPEAT('ü', CAST(id AS INT)), "
        "CAST(REPEAT('ü', CAST(id AS INT)) AS BINARY), DATE_ADD(DATE'2024-01-01', CAST(id AS INT)), "
        "TIMESTAMP_MICROS(id * 1000001), NULL, id > 4 FROM range(9)",
        "INSERT INTO paimon.db.analyzed SELECT 2, 7, 0, 0, 0, '', NULL, NULL, NULL, NULL, NULL",
        "ANALYZE TABLE paimon.db.analyzed COMPUTE STATISTICS FOR ALL COLUMNS",
    )
    path = paimon_spark.path("analyzed")

    def found() -> TableStatistics | None:
        store = TableStore.open(str(path))
        return statistics_of(store, store.snapshots.latest())

    theirs = found()
    ours.table(path).maintenance.analyze(engine="local")
    mine = found()
    assert theirs is not None and mine is not None and mine.snapshot_id == theirs.snapshot_id + 1
    # Paimon 0.9 divides integers, so it has 0 bytes if files have more rows than the table.
    assert (mine.columns, mine.merged_record_count) == (theirs.columns, theirs.merged_record_count)
