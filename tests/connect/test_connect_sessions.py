"""Sessions of Spark Connect beside classic sessions, other servers and other Pythons."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, SparkUnavailableError
from lakelsm.frames.frame_reader import frame_reader
from lakelsm.spark.session import hadoop_settings
from lakelsm.spark.spark_types import to_struct
from lakelsm.version import VERSION
from tests.connect_server import connect_session
from tests.engines import TableEngine, in_order, plain_rows
from tests.spark_frames import frame_of
from tests.spark_session import ROOT
from tests.table_files import root_of

DDL = "k INT, v STRING"
#: A column of each kind of type, with values that engines may convert differently.
EVERY_TYPE = {
    "f": pa.array([-0.0, float("nan"), 1.5], pa.float64()),
    "d": pa.array([Decimal("0.01"), None, Decimal("-99999999999999999999.99")], pa.decimal128(22, 2)),
    "day": pa.array([-1, 0, 19000], pa.date32()),
    "ntz": pa.array([-1, 0, 1_700_000_000_123_456], pa.timestamp("us")),
    "ltz": pa.array([-1, 0, 1_700_000_000_123_456], pa.timestamp("us", "UTC")),
    "b": pa.array([b"", b"\x00", None], pa.binary()),
    "s": pa.array(["a`.$", "", None], pa.string()),
    "l": pa.array([[1, None], [], None], pa.list_(pa.int64())),
    "m": pa.array([[("x", 1)], [], None], pa.map_(pa.string(), pa.int32())),
    "r": pa.array([{"x": 1, "y.z": "t"}, None, {"x": None}], pa.struct({"x": pa.int32(), "y.z": pa.string()})),
}


def table_of(warehouse: Path, spark: SparkSession | None = None, **options: str) -> Table:
    every = {"bucket": "4", "write-only": "true", **{key.replace("_", "-"): value for key, value in options.items()}}
    return Catalog(str(warehouse), spark).create_table("db.t", DDL, primary_key="k", options=every)


def local_rows(table: Table) -> list[Any]:
    return in_order(plain_rows(Table.for_path(str(root_of(table))).to_arrow()))


def data_files(table: Table) -> list[Path]:
    return sorted(root_of(table).rglob("*.parquet"))


def test_rows_of_every_type_are_those_of_the_other_engines(connect: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "part": ["x", "y", "x"], **EVERY_TYPE})
    made = Catalog(str(tmp_path)).create_table(
        "db.t", rows, primary_key=["k", "part"], partition_by=["part"], options={"bucket": "2"}, load=True
    )
    table = Catalog(str(tmp_path), connect).table("db.t")
    table.overwrite(connect.createDataFrame(made.to_arrow(), to_struct(table.schema.fields)))
    table.write(table.read("k < 3"))
    table.compact(full=True)
    wanted = in_order(plain_rows(rows))
    found = frame_reader(table.read().select(*(f"`{name}`" for name in rows.column_names))).read_all()
    assert str(in_order(plain_rows(found))) == str(wanted)
    assert str(local_rows(table)) == str(wanted)


def test_sessions_of_both_kinds_work_in_one_process(spark: SparkSession, connect: SparkSession, tmp_path: Path) -> None:
    classic, remote = table_of(tmp_path, spark), Table.for_path(str(tmp_path / "db.db" / "t"), connect)
    for number, (table, session) in enumerate([(classic, spark), (remote, connect)]):
        rows = frame_of(session, [(key, f"{number}") for key in range(number, 6)], DDL)
        table.write(rows)
        table.update({"v": "concat(v, '!')"}, f"k = {number}")
    expected = [(0, "0!"), (1, "1!"), (2, "1"), (3, "1"), (4, "1"), (5, "1")]
    assert local_rows(classic) == expected
    for engine in (TableEngine("spark", spark), TableEngine("spark", connect)):
        table = engine.opened(root_of(classic))
        facts = frame_of(engine.spark, [(key, "") for key in range(6)], DDL).select("k")  # type: ignore[arg-type]
        joined = facts.transform(table.lookup_join("k", by_bucket=True))
        assert engine.rows(table) == in_order([tuple(row) for row in joined.collect()]) == expected


USES: dict[str, Callable[[Table, Any], object]] = {
    "write": lambda table, rows: table.write(rows),
    "overwrite": lambda table, rows: table.overwrite(rows),
    "delete": lambda table, rows: table.delete(keys=rows.select("k")),
    "merge": lambda table, rows: table.merge(rows, "k").when_matched_delete().execute(),
}


def test_a_frame_of_another_session_is_refused(
    spark: SparkSession, connect: SparkSession, connect_url: str, tmp_path: Path
) -> None:
    other = connect_session(connect_url)
    for own, foreign in ((spark, connect), (connect, spark), (connect, other)):
        table, rows = table_of(tmp_path / f"{own is spark} {foreign is spark}", own), frame_of(foreign, [(1, "a")], DDL)
        for use in USES.values():
            with pytest.raises(InvalidInputError, match="the DataFrame belongs to another Spark session than the table"):
                use(table, rows)
        with pytest.raises(InvalidInputError, match=r"^rows: the DataFrame belongs to another Spark session"):
            Catalog(str(root_of(table).parents[1]), own).sql("SELECT * FROM rows", rows=frame_of(foreign, [], DDL))
        assert (data_files(table), table.inspect.snapshots().to_arrow().num_rows) == ([], 0)
    other.stop()


def test_a_table_without_a_session_uses_that_of_a_connect_frame(
    connect: SparkSession, connect_url: str, tmp_path: Path
) -> None:
    other = connect_session(connect_url)
    table = table_of(tmp_path)
    for number, session in enumerate((connect, other)):  # One of them is not the active session.
        table.write(frame_of(session, [(1, "a"), (2, "b")], DDL))
        table.merge(frame_of(session, [(1, f"c{number}")], DDL), "k").when_matched_update().execute()
        assert local_rows(table) == [(1, f"c{number}"), (2, "b")]
    other.stop()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("SELECT CAST(NULL AS INT) AS k, 'x' AS v", "key column 'k' is NULL"),
        ("SELECT id AS k, 'x' AS v FROM range(3000000000, 3000000002, 1, 2)", "300000000[01] does not fit INT"),
        ("SELECT CAST(id AS INT) AS k, string(1 / (id - 999)) AS v FROM range(0, 1000, 1, 2)", "DIVIDE_BY_ZERO"),
        ("SELECT nothing AS k, 'x' AS v", "frame: Spark cannot analyze the DataFrame: .*`nothing`"),
    ],
    ids=["NULL", "a value that does not fit", "a failing expression", "an unknown column"],
)
def test_a_refused_row_is_a_typed_error_and_leaves_no_file(
    rows: str, message: str, connect: SparkSession, tmp_path: Path
) -> None:
    table = table_of(tmp_path, connect)
    frame = connect.range(1).selectExpr("nothing AS k", "'x' AS v") if "nothing" in rows else connect.sql(rows)
    with pytest.raises(InvalidInputError, match=message):
        table.write(frame)
    assert (data_files(table), table.inspect.snapshots().to_arrow().num_rows) == ([], 0)


def test_a_condition_that_only_spark_evaluates_is_checked_at_the_call(connect: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path, connect)
    table.write(frame_of(connect, [(1, "a"), (2, "b")], DDL))
    assert [row.k for row in table.read("regexp_like(v, 'a|c')").collect()] == [1]
    for call in (table.read, table.delete, lambda where: table.update({"v": "'x'"}, where)):
        with pytest.raises(InvalidInputError, match="no_such_function"):
            call("no_such_function(v) = 1")
    with pytest.raises(InvalidInputError, match=r"SQL: .*no_such_function"):
        Catalog(str(tmp_path), connect).sql("SELECT no_such_function(v) FROM db.t")


def test_hadoop_settings_of_the_server_are_those_of_the_client(connect: SparkSession) -> None:
    assert hadoop_settings(connect)["fs.s3a.test-setting"] == "of the server"


def test_a_session_that_was_stopped_is_an_error(connect_url: str, tmp_path: Path) -> None:
    session = connect_session(connect_url)
    table, frame = table_of(tmp_path, session), frame_of(session, [(1, "a")], DDL)
    session.stop()
    with pytest.raises(SparkUnavailableError, match="The Spark session has ended"):
        table.read()
    with pytest.raises(InvalidInputError, match="frame: its Spark session has ended"):
        table.write(frame)
    with pytest.raises(InvalidInputError, match="source: its Spark session has ended"):
        table.merge(frame, "k")


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_a_server_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    session: Any = connect_session("sc://127.0.0.1:1")
    for policy in session.client._retry_policies:
        policy.max_retries = 1
    table = table_of(tmp_path, session)
    table.write({"k": [1], "v": ["a"]})
    catalog = Catalog(str(tmp_path), session)
    for call in (
        lambda: table.read("k = 1"),
        lambda: table.write(session.range(1)),
        lambda: table.delete("k = 1"),
        lambda: table.merge(session.range(1), "k"),
        lambda: catalog.sql("SELECT 1"),
        lambda: catalog.create_table("db.other", session.range(1), primary_key="id"),
        lambda: catalog.register(session),
    ):
        with pytest.raises(SparkUnavailableError, match="The Spark Connect server does not answer"):
            call()
    session.client.close()


def test_workers_of_another_version_are_an_error(
    connect: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path, connect)
    monkeypatch.setattr("lakelsm.spark.tasks.VERSION", "0.0.1")
    with pytest.raises(SparkUnavailableError, match=rf"workers have lakelsm {VERSION}, and this program has 0\.0\.1"):
        table.write(frame_of(connect, [(1, "a")], DDL))
    assert data_files(table) == []


def test_workers_without_lakelsm_are_an_error_until_it_is_shipped(connect_url: str, tmp_path: Path) -> None:
    session = connect_session(connect_url)
    session.conf.set("spark.sql.execution.pyspark.python", str(_python_without_lakelsm(tmp_path)))
    table = table_of(tmp_path / "warehouse", session)
    rows = frame_of(session, [(1, "a")], DDL)
    with pytest.raises(SparkUnavailableError, match=rf"Install lakelsm {VERSION} for Python .* or ship it"):
        table.write(rows)
    package = tmp_path / "lakelsm.zip"
    with zipfile.ZipFile(package, "w") as archive:
        for path in (ROOT / "lakelsm").rglob("*.py"):
            archive.write(path, path.relative_to(ROOT))
    session.addArtifacts(str(package), pyfile=True)
    table.write(rows)
    assert local_rows(table) == [(1, "a")]
    session.stop()


def _python_without_lakelsm(folder: Path) -> Path:
    """Return a program that runs PySpark's daemon in this Python, in which no worker finds an installed lakelsm."""
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.path[:] = [path for path in sys.path if path != {str(ROOT)!r}]\n"
        "sys.meta_path[:] = [finder for finder in sys.meta_path if 'editable' not in repr(finder)]\n"
    )
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nshift 2\nPYTHONPATH={folder} exec {sys.executable} -m pyspark.daemon "$@"\n')
    program.chmod(0o755)
    assert os.access(program, os.X_OK)
    return program
