"""`format("lakelsm")` in a Spark session: found without registration, and with the rows of `Table.read`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import datasource
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakelsm import Catalog, Table
from lakelsm.commit.replay import STREAM_QUERY_PROPERTY
from lakelsm.data_source.source import DefaultSource
from lakelsm.data_source.stream_reader import UnlimitedReader
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.snapshot import CommitKind
from tests.typed_values import TYPED_VALUES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
NESTED = "a ARRAY<DECIMAL(5, 2)>, m MAP<STRING, TIMESTAMP(9)>, r ROW<x TIME NOT NULL, z ARRAY<CHAR(3)>>, mu MULTISET<INT>"
#: One column of each atomic type.
ATOMIC = {f"c{at}": each for at, each in enumerate(TYPED_VALUES)}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    catalog = Catalog(str(tmp_path_factory.mktemp("wh")), spark)
    catalog.create_database("d")
    columns = ", ".join(f"{name} {each.sql}" for name, each in ATOMIC.items())
    table = catalog.create_table("d.t", f"id INT NOT NULL, {columns}, {NESTED}", primary_key="id")
    rows = [{"id": at} | {name: each.values[at] for name, each in ATOMIC.items()} for at in range(3)]
    middle = {each.sql: each.values[1] for each in TYPED_VALUES}
    stamp, clock = middle["TIMESTAMP(9)"], middle["TIME(3)"]
    rows[0] |= {"a": [None], "m": [("k", stamp)], "r": {"x": clock, "z": ["ab", None]}, "mu": [(1, 2)]}
    rows.append({"id": 3})
    table.write(rows)
    table.write(rows)
    return table


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    if not hasattr(datasource, "EqualTo"):
        pytest.skip("PySpark 4.0 has no filter pushdown")
    spark.conf.set(_PUSHDOWN, "true")
    yield
    spark.conf.unset(_PUSHDOWN)


def load(spark: SparkSession, table: Table, **options: str) -> DataFrame:
    return spark.read.format("lakelsm").options(**options).load(table._store().paths.root)


def test_every_type_has_the_column_and_the_values_of_a_read(spark: SparkSession, table: Table) -> None:
    frame, expected = load(spark, table), table.read()
    assert frame.schema == expected.schema

    def shown(rows: DataFrame) -> list[str]:
        # As text: Python cannot hold all times of TIMESTAMP_LTZ, and NaN differs from itself.
        return sorted(row[0] for row in rows.selectExpr("to_json(struct(*))").collect())

    assert shown(frame) == shown(expected)
    assert len(shown(frame)) == 4


def test_options_and_a_temporary_view_follow_the_table(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    other = Catalog(str(tmp_path), spark)
    other.create_database("d")
    small = other.create_table("d.s", {"id": "INT", "n": "INT"}, primary_key="id", options={"bucket": "1"})
    small.write([{"id": 1, "n": 1}])
    root = small._store().paths.root
    frame = load(spark, small, WHERE="n > 0", Columns="N")
    spark.sql(f"CREATE TEMPORARY VIEW followed USING lakelsm OPTIONS (path '{root}', columns 'id, n')")
    try:
        small.write([{"id": 2, "n": 2}])
        assert sorted(row.N for row in frame.collect()) == [1, 2]
        assert spark.sql("SELECT sum(n) FROM followed WHERE id = 2").first()[0] == 2  # type: ignore[index]
        assert load(spark, small, **{"snapshot-id": "1"}).count() == 1
    finally:
        spark.catalog.dropTempView("followed")


def test_filters_reach_the_table_if_the_session_allows_it(spark: SparkSession, table: Table, pushdown: None) -> None:
    frame = load(spark, table).where("id > 0 AND id < 3 AND c10 LIKE 'a%' AND NOT c0 <=> false")
    expected = table.read().where("id > 0 AND id < 3 AND c10 LIKE 'a%' AND NOT c0 <=> false")
    assert frame.select("id").collect() == expected.select("id").collect()
    assert load(spark, table).count() == 4


def test_errors_have_the_text_of_lakelsm(spark: SparkSession, table: Table) -> None:
    with pytest.raises(Exception, match=r"lakelsm.errors.InvalidInputError: option 'mergeschema'"):
        load(spark, table, mergeSchema="true")
    with pytest.raises(Exception, match=r"lakelsm.errors.InvalidInputError: option 'where': a write"):
        load(spark, table).write.format("lakelsm").mode("append").save(table._store().paths.root, where="id > 0")


def test_frames_are_written_with_one_commit_and_a_failed_job_leaves_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    catalog = Catalog(str(tmp_path), spark)
    catalog.create_database("d")
    small = catalog.create_table("d.s", {"id": "BIGINT", "n": "CHAR(3)"}, primary_key="id", options={"bucket": "2"})
    root = small._store().paths.root
    frame = spark.range(0, 100, 1, 3).selectExpr("id", "CAST(id AS STRING) AS n")

    def save(rows: DataFrame, mode: str, **options: str) -> None:
        rows.write.format("lakelsm").mode(mode).options(**options).save(root)

    for _ in range(2):
        save(frame, "append", **{"commit-user": "job", "batch-id": "1"})
    commits = small.inspect.snapshots().to_arrow().column("commit_kind").to_pylist()
    assert commits.count("APPEND") == 1
    assert small.count(engine="local").rows == 100
    before = sorted(Path(root).rglob("*.parquet"))
    with pytest.raises(Exception, match=r"lakelsm.errors.InvalidInputError: Nothing was written: a value of column 'n'"):
        save(frame.selectExpr("id", "CAST(id * 11 AS STRING) AS n"), "append")
    assert sorted(Path(root).rglob("*.parquet")) == before
    save(load(spark, small).where("id < 2"), "overwrite")
    assert small.to_arrow(ordered=True).to_pylist() == [{"id": 0, "n": "0"}, {"id": 1, "n": "1"}]


def test_stream_reads_use_limits_if_spark_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    source = DefaultSource({"path": "t"})
    has_limits = hasattr(datasource, "ReadAllAvailable")
    assert isinstance(source.streamReader(StructType()), UnlimitedReader) is not has_limits
    monkeypatch.delattr(datasource, "ReadAllAvailable", raising=False)
    assert isinstance(source.streamReader(StructType()), UnlimitedReader)


def test_stream_writes_need_the_arrow_writer_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(datasource, "DataSourceStreamArrowWriter", raising=False)
    with pytest.raises(UnsupportedFeatureError, match=r"PySpark 4.1 or later. Use Table.write_stream"):
        DefaultSource({"path": "t"}).streamWriter(None, False)  # type: ignore[arg-type]


def test_row_kinds_of_a_batch_are_a_column_of_its_rows(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    small = catalog.create_table("d.s", {"id": "BIGINT", "n": "INT"}, primary_key="id")
    path = {"path": small._store().paths.root}
    assert DefaultSource({**path, "Row-Kind": "rk"}).schema().names == ["id", "n", "rk"]
    assert DefaultSource({**path, "event-time": "x"}).schema().names == ["id", "n"]


def test_streams_of_rows_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """Restarts, a replay as in apache/paimon#9666, a failed batch, a taken commit user, and the mode complete."""
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        pytest.skip("PySpark 4.0 has no stream writer for Arrow")
    options = {"bucket": "2", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    catalog = Catalog(str(tmp_path / "wh"), spark)
    catalog.create_database("d")
    columns = "id BIGINT NOT NULL, n BIGINT, s CHAR(3)"
    small = catalog.create_table("d.s", columns, primary_key="id", options=options)
    root, source, log = small._store().paths.root, tmp_path / "in", tmp_path / "log"
    source.mkdir()

    def add(number: int, rows: list[str]) -> None:
        (source / f"{number}.json").write_text("\n".join(rows))

    def run(mode: str = "append", log: Path = log, **given: str) -> None:
        frame = spark.readStream.schema("id BIGINT, n BIGINT, s STRING, rk STRING").option("maxFilesPerTrigger", 1)
        rows = frame.json(str(source))
        if mode == "complete":
            rows = rows.groupBy("id").agg(F.count("n").alias("n"), F.max("s").alias("s"))
        query = rows.writeStream.format("lakelsm").queryName("rows").outputMode(mode).trigger(availableNow=True)
        query.option("checkpointLocation", str(log)).options(**given).start(root).awaitTermination()

    def commits() -> list[tuple[str, int, str]]:
        found = [each for each in small._store().snapshots.list() if each.commit_kind is CommitKind.APPEND]
        return [(each.commit_user, each.commit_identifier, each.properties[STREAM_QUERY_PROPERTY]) for each in found]

    for number in range(3):
        lines = [f'{{"id": {at}, "n": {10**number}, "s": "a", "rk": "+I"}}' for at in range(3)]
        add(number, [*lines, f'{{"id": 3, "n": 1, "rk": "{"-D" if number == 1 else "+I"}"}}'])
        if number:
            run(**{"row-kind": "rk"})
    query = json.loads((log / "metadata").read_text())["id"]
    assert commits() == [(f"stream-{query}", number, query) for number in range(3)]
    rows = [{"id": at, "n": 1 if at == 3 else 111, "s": None if at == 3 else "a"} for at in range(4)]
    assert small.to_arrow(ordered=True).to_pylist() == rows

    # The query crashed between the commit of the table and the one of Spark.
    for path in log.glob("commits/*2*"):
        path.unlink()
    before = sorted(Path(root).rglob("*"))
    run(**{"row-kind": "rk"})
    assert small.to_arrow(ordered=True).to_pylist() == rows
    assert sorted(Path(root).rglob("*")) == before

    add(3, ['{"id": 1, "n": 1, "s": "too long", "rk": "+I"}', '{"id": 2, "n": 1, "s": "b", "rk": "+I"}'])
    with pytest.raises(Exception, match=r"InvalidInputError: Nothing was written: .*column 's'"):
        run(**{"row-kind": "rk"})
    assert sorted(Path(root).rglob("*")) == before
    add(3, ['{"id": 1, "n": 1, "s": "b", "rk": "+I"}'])
    with pytest.raises(Exception, match=rf"CommitUserTakenError: .*{query}"):
        run(log=tmp_path / "other", **{"row-kind": "rk", "commit-user": f"stream-{query}"})
    assert sorted(Path(root).rglob("*.parquet")) == [path for path in before if path.suffix == ".parquet"]
    with pytest.raises(Exception, match="option 'batch-id': the batches of a stream"):
        run(log=tmp_path / "third", **{"batch-id": "1"})

    run("complete", tmp_path / "complete")
    expected = [{"id": 0, "n": 3, "s": "a"}, {"id": 1, "n": 4, "s": "b"}, {"id": 2, "n": 3, "s": "a"}]
    assert small.to_arrow(ordered=True).to_pylist() == [*expected, {"id": 3, "n": 3, "s": None}]
    assert not small.maintenance.check(data="full").findings
