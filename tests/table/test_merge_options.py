"""Merges with repeated rows of the source, and with columns that the table lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.errors import CommitConflictError, InvalidInputError
from lakelsm.table.table_merge import TableMerge
from lakelsm.write.batch_write import BatchWriter
from tests.engines import TableEngine
from tests.table.test_table_merge import ROWS, SOURCE, counts, filled, rows


@pytest.fixture
def table(engine: TableEngine, tmp_path: Path) -> Table:
    return filled(engine, tmp_path)


@pytest.fixture
def here(local: TableEngine, tmp_path: Path) -> Table:
    return filled(local, tmp_path)


CHANGES = pa.table(
    {"id": [2, 9, 2, 3, 9, 3], "v": ["x", "y", "B", "c", "z", "gone"], "n": [9, 1, 2, 1, 2, 2], "op": list("UIUUUD")}
)


def changed(merge: TableMerge) -> TableMerge:
    merge = merge.when_matched_delete("s.op = 'D'").when_matched_update({"v": "s.v"}, "s.op = 'U'")
    return merge.when_not_matched_insert(condition="s.op <> 'D'")


def test_the_last_of_several_rows_decides(engine: TableEngine, table: Table) -> None:
    with pytest.raises(InvalidInputError, match=r"two rows of the source change the row with the key [239]"):
        changed(table.merge(CHANGES, "id")).execute(engine=engine.name)
    assert counts(changed(table.merge(CHANGES, "id", duplicates="last")).execute(engine=engine.name)) == (1, 1, 1)
    assert rows(table) == [(1, "a", 1), (2, "B", 2), (4, None, None), (9, "z", 2)]
    # No clause applies to the last row, although one applies to a row before it.
    more = pa.table({"id": [1, 1, 7, 7], "v": ["x"] * 4, "n": [5, 5, 5, 5], "op": ["U", "?", "I", "D"]})
    assert counts(changed(table.merge(more, "id", duplicates="last")).execute(engine=engine.name)) == (0, 0, 0)
    frame = engine.frame([(1, "late", 2), (1, "early", 1), (1, "none", None)], "id INT, v STRING, n INT")
    merge = table.merge(frame, "id", duplicates="last", order_by="N").when_matched_update({"v": "s.v"})
    assert (counts(merge.execute()), rows(table)[0]) == ((1, 0, 0), (1, "late", 1))
    frame = engine.frame([(1, "x", 2), (1, "y", 2)], "id INT, v STRING, n INT")
    same = table.merge(frame, "id", duplicates="last", order_by=["n"])
    with pytest.raises(InvalidInputError, match="two rows of the source change the row with the key 1"):
        same.when_matched_update({"v": "s.v"}).execute()


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda t: t.merge(SOURCE, "id", duplicates="first"), "duplicates"),
        (lambda t: t.merge(SOURCE, "id", order_by="n"), "order_by: has an effect only with"),
        (lambda t: t.merge(SOURCE, "id", duplicates="last", order_by="x"), "order_by: 'x' is not a column"),
        (lambda t: t.merge(SOURCE, "id", duplicates="last", order_by=[]), "order_by"),
        (lambda t: t.merge(t.at(snapshot=1), "id", duplicates="last"), "'last' needs an order"),
        (lambda t: t.merge(SOURCE, "id", schema_evolution=1), "schema_evolution"),
        (lambda t: t.merge(SOURCE, "id", schema_evolution=True).when_matched_delete(), "schema evolution has no effect"),
        (lambda t: t.merge({"id": [9], "x": [None]}, "id", schema_evolution=True).when_matched_update(), "column 'x'"),
        (lambda t: t.merge({"id": [9], "n": ["x"]}, "id", schema_evolution=True).when_matched_update(), "'n'"),
        (lambda t: t.merge({"id": [9.4, 8.6]}, "t.id = s.id").when_not_matched_insert({"id": "id"}), "key column 'id'"),
        (lambda t: t.merge(SOURCE, "id").when_matched_update({"n": "s.n * 1000000000000000000"}), "(?i)overflow"),
        (lambda t: t.merge({"id": [1], "n": [1e30]}, "id").when_matched_update({"n": "s.n"}), "column 'n'"),
    ],
)
def test_wrong_options_and_values(here: Table, build: Callable[[Table], TableMerge], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        build(here).execute()
    assert (rows(here), here.schema.id) == (ROWS, 0)


def test_the_schema_gets_what_the_source_has(engine: TableEngine, table: Table, tmp_path: Path) -> None:
    source = engine.frame([(1, 2.5, "new"), (9, None, "x")], "id INT, n DOUBLE, extra STRING")
    merge = table.merge(source, "id", schema_evolution=True).when_matched_update().when_not_matched_insert()
    with pytest.raises(InvalidInputError, match="no column 'v'"):
        table.merge(source, "id").when_matched_update().execute()
    result = merge.execute("u", 1)
    assert [str(each) for each in result.schema_changes] == ["the new column extra STRING"]
    expected = [(1, "a", 2, "new"), (2, "b", 2, None), (3, "c", 3, None), (4, None, None, None), (9, None, None, "x")]
    table = engine.catalog(tmp_path).table("db.t")
    assert (rows(table), counts(result)) == (expected, (1, 0, 1))
    again = merge.execute("u", 1)
    assert (again.already_committed, again.schema_changes) == (True, ())
    text = "MERGE WITH SCHEMA EVOLUTION INTO db.t USING s ON t.id = s.id WHEN MATCHED AND s.more > 0 THEN UPDATE SET *"
    source = engine.frame([(1, 7), (2, -1)], "id BIGINT, more SMALLINT")
    result = engine.catalog(tmp_path).sql(text, engine.name, s=source)
    assert [str(each) for each in result.schema_changes] == ["the new column more SMALLINT"]
    assert rows(engine.catalog(tmp_path).table("db.t"))[:2] == [(1, "a", 2, "new", 7), (2, "b", 2, None, None)]


def test_the_schema_gets_the_columns_of_a_table(local: TableEngine, here: Table, tmp_path: Path) -> None:
    other = local.create(tmp_path, "id INT, more ARRAY<INT>", ["id"], name="db.s")
    local.write(other, [(1, [1]), (7, None)])
    merge = here.merge(other, "id", schema_evolution=True).when_matched_update().when_not_matched_insert()
    result = merge.execute()
    assert [str(each) for each in result.schema_changes] == ["the new column more ARRAY<INT>"]
    assert (counts(result), result.schema_changes != merge.execute().schema_changes) == ((1, 0, 1), True)
    found = local.catalog(tmp_path).table("db.t")
    assert rows(found)[0] == (1, "a", 1, [1]) and rows(found)[-1] == (7, None, None, None)


def test_a_failed_merge_names_the_schema_changes(here: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {"id": [1, 1], "v": ["x", "y"], "n": [1, 2], "more": [1, 2]}
    with pytest.raises(InvalidInputError, match="two rows of the source"):
        here.merge(bad, "id", schema_evolution=True).when_matched_update().execute()
    assert here.schema.id == 0
    good = here.merge({**bad, "id": [1, 2]}, "id", schema_evolution=True).when_matched_update()

    def lost(*given: object) -> None:
        raise CommitConflictError("lost")

    with monkeypatch.context() as patched, pytest.raises(CommitConflictError, match=r"lost.*already published: schema 1"):
        patched.setattr(BatchWriter, "change", lost)
        good.execute()
    assert good.execute().updated_rows == 2
