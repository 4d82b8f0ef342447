"""The meaning of names in a query: tables, branches, system tables, frames and functions."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, LakelsmError, SnapshotNotFoundError
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
