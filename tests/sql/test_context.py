"""The meaning of names in a query: tables, branches, system tables, frames and functions."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, LakelsmError, SnapshotNotFoundError
from lakelsm.local.arrow_input import ArrowInput
from tests.sql.queries import catalog


def values(c: Catalog, text: str, **frames: object) -> list[object]:
    return c.sql(text, engine="local", **frames).to_arrow().column(0).to_pylist()  # type: ignore[no-any-return]


def test_a_branch_and_its_system_tables_have_names(tmp_path: Path) -> None:
    c = catalog(str(tmp_path))
    flights = c.table("db.flights")
    flights.tags.create("one", 1)
    flights.branches.create("b", "one")
    assert values(c, "SELECT count(*) FROM db.`flights$branch_b`") == [3]
    c.sql("DELETE FROM db.`flights$branch_b` WHERE id = 1", engine="local")
    assert values(c, "SELECT count(*) FROM db.`flights$branch_b`") == [2]
    assert values(c, "SELECT max(snapshot_id) FROM db.`flights$branch_b$snapshots`") == [2]
    assert values(c, "SELECT max(snapshot_id) FROM db.`flights$snapshots`") == [2]
    assert values(c, "SELECT count(*) FROM db.`flights$files` VERSION AS OF 1") == [1]


def test_a_frame_goes_before_a_table_of_the_default_database(tmp_path: Path) -> None:
    c = Catalog(str(tmp_path))
    c.create_table("default.t", {"k": "INT"}, primary_key="k").write([{"k": 1}])
    assert values(c, "SELECT k FROM t") == [1]
    assert values(c, "SELECT k FROM t", t=pd.DataFrame({"k": [7]})) == [7]
    assert values(c, "SELECT k FROM default.t", t=pa.table({"k": [7]})) == [1]


def test_changes_between_times_are_read_by_text_and_by_milliseconds(tmp_path: Path) -> None:
    c = catalog(str(tmp_path))
    text = "SELECT count(*) FROM paimon_incremental_between_timestamp('db.carriers', {})"
    texts, numbers = "'1999-01-01 00:00:00', '2999-01-01 00:00:00'", "'915148800000', '32472144000000'"
    for times in (texts, numbers, "0, 32472144000000"):
        assert values(c, text.format(times)) == [3]
    with pytest.raises(SnapshotNotFoundError, match="9"):
        values(c, "SELECT count(*) FROM paimon_incremental_query('db.carriers', 1, 9)")


@pytest.mark.parametrize("frame", [[{"k": 1}], pa.table({"k": [1]}).to_reader(), 7])
def test_a_frame_that_cannot_be_read_again_is_refused_by_name(tmp_path: Path, frame: object) -> None:
    with pytest.raises(InvalidInputError, match="t: expected a Spark DataFrame"):
        values(Catalog(str(tmp_path)), "SELECT k FROM t", t=frame)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT * FROM a.b.c", "write the name as database.table"),
        ("SELECT * FROM `a.b`.c", "a name cannot contain a dot"),
        ("SELECT * FROM paimon_incremental_query('t', 1)", "takes a table's name as text, a start and an end"),
        ("SELECT * FROM range(3)", "(?i)range"),
    ],
)
def test_names_that_stand_for_nothing_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(LakelsmError, match=problem):
        values(Catalog(str(tmp_path)), text)


def test_no_name_of_the_user_hides_a_table_of_the_query(tmp_path: Path) -> None:
    c = Catalog(str(tmp_path))
    c.create_table("db.t", {"k": "INT"}, primary_key="k").write([{"k": 1}])
    for name in ("table0", "lakelsm_table_0_", "LAKELSM_TABLE_0_", "`Lakelsm_Table_0_`", "t1"):
        assert values(c, f"WITH {name} AS (SELECT 7 AS k) SELECT t.k FROM db.t, {name} x WHERE x.k = 7") == [1]


def test_a_spark_frame_is_neither_collected_nor_read_in_this_process(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, *_: object) -> None:
        raise AssertionError("the rows are collected")

    frame = spark.range(3)
    monkeypatch.setattr(type(frame), "__arrow_c_stream__", fail, raising=False)
    c = catalog(str(tmp_path))
    text = "SELECT f.id FROM db.flights f JOIN changes USING (id) WHERE f.id > 1"
    assert [row.id for row in c.sql(text, changes=frame).collect()] == [2]
    lines = [row["plan"] for row in c.sql(f"EXPLAIN {text}", changes=frame).to_arrow().to_pylist()]
    assert "frame changes" in lines
    with pytest.raises(InvalidInputError, match=r"^changes: this process does not read a Spark DataFrame"):
        c.sql(text, engine="local", changes=frame)


def test_a_pandas_frame_is_converted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converted = []
    convert = ArrowInput.of
    monkeypatch.setattr(ArrowInput, "of", lambda *given, **named: converted.append(1) or convert(*given, **named))
    text = "SELECT sum(x.k) FROM t x JOIN t y USING (k)"
    assert values(Catalog(str(tmp_path)), text, t=pd.DataFrame({"k": [7]})) == [7]
    assert len(converted) == 2  # once for each reference


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "t: more than one column has the name 'a'"),
        (pa.table([[1], [2]], names=["a", "a"]), "t: more than one column has the name 'a'"),
        (pd.DataFrame({"a": [1, "x"]}), "column 'a' of the DataFrame has no Arrow type"),
        (pd.Series([1]), "t: expected a Spark DataFrame"),
        (pa.Table, "t: expected a Spark DataFrame"),
    ],
)
def test_a_frame_without_proper_columns_is_one_typed_error(tmp_path: Path, frame: object, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        values(Catalog(str(tmp_path)), "SELECT * FROM t", t=frame)


def test_changes_up_to_an_automatic_tag_begin_at_the_automatic_tag_before_it(tmp_path: Path) -> None:
    c = Catalog(str(tmp_path))
    t = c.create_table("db.t", {"k": "INT"}, primary_key="k", options={"tag.creation-period": "daily"})
    for key, tag in enumerate(["2024-01-01", "other", "2024-01-05"]):
        t.write([{"k": key}])
        t.tags.create(tag)
    text = "SELECT k FROM paimon_incremental_to_auto_tag('db.t', '{}') ORDER BY k"
    assert values(c, text.format("2024-01-01")) == []
    assert values(c, text.format("2024-01-05")) == [1, 2]
