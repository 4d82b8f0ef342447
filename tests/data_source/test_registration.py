"""`Catalog.register`: tables by name in a Spark session, and entries of others that stay as they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError
from lakelsm.schema_changes import AddColumn, RenameColumn
from lakelsm.storage.local import LocalFileIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id INT NOT NULL, Carrier STRING COMMENT 'the \"airline''s\" code', `a b` DECIMAL(10, 2)"


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[Catalog]:
    made = Catalog(str(tmp_path / "it's a warehouse"), spark)
    flights = made.create_table("nyc.Flights", COLUMNS, primary_key="id")
    flights.write([{"id": 1, "Carrier": "AA", "a b": 1}, {"id": 2, "Carrier": "UA", "a b": 2}])
    carriers = made.create_table("dim.carriers", "carrier STRING, name STRING", primary_key="carrier")
    carriers.write([{"carrier": "AA", "name": "American"}])
    yield made
    for name in ("nyc", "dim"):
        spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")
    for view in ("nyc.flights", "nyc.other", "nyc.new-one"):
        spark.catalog.dropTempView(view)


def rows(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.sql(query).collect()), key=str)


def test_tables_are_read_and_written_by_name_and_follow_the_catalog(spark: SparkSession, catalog: Catalog) -> None:
    catalog.create_table("nyc.two-words", "id INT", primary_key="id")
    found = catalog.register(spark)
    assert found.names == ("dim.carriers", "nyc.Flights")
    assert [each.partition(":")[0] for each in found.skipped] == ["nyc.two-words"]
    joined = "SELECT id, name FROM nyc.flights f JOIN dim.carriers USING (carrier)"
    assert rows(spark, joined) == [(1, "American")]
    spark.sql("INSERT INTO nyc.flights VALUES (3, 'AA', 5), (1, 'UA', 6)")
    spark.sql("INSERT INTO NYC.FLIGHTS BY NAME SELECT 7 AS `a b`, 'AA' AS carrier, 4 AS id")
    assert rows(spark, joined) == [(3, "American"), (4, "American")]
    spark.sql("INSERT OVERWRITE dim.carriers VALUES ('UA', 'United')")
    assert rows(spark, joined) == [(1, "United"), (2, "United")]
    assert rows(spark, "SELECT count(*) FROM nyc.flights WITH ('snapshot-id' = '1')") == [(2,)]
    for option, text in (("path", r"a read of the registered table nyc\.Flights"), ("columns", "are not the columns")):
        with pytest.raises(Exception, match=f"option .{option}.: .*{text}"):
            spark.sql(f"SELECT * FROM nyc.flights WITH ('{option}' = 'id')").collect()

    catalog.alter_table("nyc.Flights", RenameColumn("Carrier", "airline"), AddColumn("z", "INT"))
    catalog.create_table("nyc.new", "id INT", primary_key="id").write([{"id": 1}])
    catalog.rename_table("dim.carriers", "dim.airlines")
    with pytest.raises(Exception, match="register its catalog, again"):
        spark.sql("SELECT * FROM nyc.flights").collect()
    again = catalog.register(spark)
    assert (again.names, again.dropped) == (("dim.airlines", "nyc.Flights", "nyc.new"), ("dim.carriers",))
    assert spark.table("nyc.flights").columns == ["id", "airline", "a b", "z"]
    assert rows(spark, "SELECT * FROM nyc.new") == [(1,)]
    assert catalog.register(spark, ["dim"]).names == ("dim.airlines",)
    # Dropping an entry deletes no file.
    spark.sql("DROP DATABASE nyc CASCADE")
    assert catalog.table("nyc.Flights").count(engine="local").rows == 4


def test_entries_of_others_stay_as_they_are(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    spark.sql("CREATE DATABASE nyc")
    spark.sql("CREATE TABLE nyc.mine USING parquet AS SELECT 1 AS x")
    catalog.register(spark)
    other = Catalog(str(tmp_path / "other"), spark)
    other.create_table("nyc.flights", "id INT", primary_key="id")
    with pytest.raises(InvalidInputError, match=r"Table nyc.flights: .* of another warehouse"):
        other.register(spark)
    catalog.create_table("nyc.mine", "id INT", primary_key="id")
    catalog.create_table("aaa.first", "id INT", primary_key="id")
    with pytest.raises(InvalidInputError, match=r"Table nyc.mine: .* another table or view"):
        catalog.register(spark)
    assert rows(spark, "SELECT * FROM nyc.mine") == [(1,)]
    assert "aaa" not in {row[0] for row in spark.sql("SHOW DATABASES").collect()}
    catalog.drop_table("nyc.mine")
    assert catalog.register(spark, ["nyc"]).dropped == ()
    assert rows(spark, "SELECT * FROM nyc.mine") == [(1,)]


def test_databases_of_the_session_never_own_files_of_tables(spark: SparkSession) -> None:
    warehouse = str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:").replace("//", "/")
    catalog = Catalog(warehouse, spark)
    for name in ("shared_one", "shared_two"):
        catalog.create_table(f"{name}.t", "id INT", primary_key="id").write([{"id": 1}])
    spark.sql("CREATE DATABASE shared_two")
    try:
        with pytest.raises(InvalidInputError, match=r"Database shared_two: .* DROP DATABASE would delete"):
            catalog.register(spark, ["shared_one", "shared_two"])
        catalog.register(spark, ["shared_one"])
        assert rows(spark, "SELECT * FROM shared_one.t") == [(1,)]
        spark.sql("DROP DATABASE shared_one CASCADE")
        assert catalog.table("shared_one.t").count(engine="local").rows == 1
    finally:
        for name in ("shared_one", "shared_two"):
            spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")
        catalog.drop_database("shared_one", cascade=True)


def test_pinned_views_keep_their_snapshot(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_table("nyc.new-one", "id INT", primary_key="id")
    assert catalog.register(spark, ["nyc"], pinned=True).names == ("`nyc.Flights`", "`nyc.new-one`")
    catalog.table("nyc.Flights").write([{"id": 9, "Carrier": None, "a b": None}])
    assert rows(spark, "SELECT id FROM `nyc.flights`") == [(1,), (2,)]
    catalog.drop_table("nyc.new-one")
    assert catalog.register(spark, ["nyc"], pinned=True).dropped == ("`nyc.new-one`",)
    assert rows(spark, "SELECT id FROM `nyc.flights`") == [(1,), (2,), (9,)]
    other = Catalog(str(tmp_path / "other"), spark)
    other.create_table("nyc.new-one", "id INT", primary_key="id")
    assert other.register(spark, pinned=True).dropped == ()
    other.create_table("nyc.FLIGHTS", "id INT", primary_key="id")
    with pytest.raises(InvalidInputError, match=r"View `nyc\.flights`: the session has another temporary view"):
        other.register(spark, pinned=True)
    assert rows(spark, "SELECT id FROM `nyc.flights`") == [(1,), (2,), (9,)]
    spark.range(1).createOrReplaceTempView("lost")
    spark.sql("CREATE TEMPORARY VIEW `nyc.other` AS SELECT * FROM lost")
    spark.catalog.dropTempView("lost")
    catalog.create_table("nyc.other", "id INT", primary_key="id")
    with pytest.raises(InvalidInputError, match=r"View `nyc\.other`: the session has another temporary view"):
        catalog.register(spark, pinned=True)


def test_sessions_register_while_another_one_is_active_and_at_the_same_time(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.register(spark)
    other = spark.newSession()
    assert catalog.register(other, ["dim"]).names == ("dim.carriers",)
    spark.sql("DROP TABLE dim.carriers")
    with ThreadPoolExecutor(2) as threads:
        calls = [threads.submit(catalog.register, each, ["dim"]) for each in (spark, other)]
    assert [call.result().names for call in calls] == [("dim.carriers",)] * 2
    assert rows(other, "SELECT * FROM dim.carriers") == [("AA", "American")]
    active = type(spark).getActiveSession()
    assert active is not None and active._jsparkSession.equals(spark._jsparkSession)


def test_names_of_databases_that_spark_reserves_or_cannot_tell_apart_are_left_out(
    spark: SparkSession, catalog: Catalog
) -> None:
    for name in ("global_temp.t", "DIM.t"):
        catalog.create_table(name, "id INT", primary_key="id")
    found = catalog.register(spark)
    assert found.names == ("nyc.Flights",)
    assert [each.partition(":")[0] for each in found.skipped] == ["DIM.t", "dim.carriers", "global_temp.t"]
    for pinned in (False, True):
        assert catalog.register(spark, ["dim"], pinned=pinned).names == ()


def test_the_data_sources_run_with_the_python_of_this_process(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")
    catalog.register(spark, ["dim"])
    assert spark.sparkContext.pythonExec == sys.executable


def test_the_session_catalog_has_no_secret(spark: SparkSession, catalog: Catalog) -> None:
    catalog._file_io.secret = "S3CR3T"  # type: ignore[attr-defined]
    assert isinstance(catalog._file_io, LocalFileIO)
    catalog.register(spark)
    shown = spark.sql("SHOW TABLE EXTENDED IN nyc LIKE '*'").collect()
    assert shown and "S3CR3T" not in str(shown)


def test_wrong_arguments_are_refused(spark: SparkSession, catalog: Catalog) -> None:
    wrong: list[tuple[Any, Any, str]] = [
        (spark, ["zz"], "Database zz does not exist"),
        (spark, "nyc", "databases: expected a list of names of databases"),
        (None, None, "spark: expected a SparkSession"),
        ("x", None, "spark: expected"),
    ]
    for session, databases, text in wrong:
        with pytest.raises(InvalidInputError, match=text):
            catalog.register(session, databases)
