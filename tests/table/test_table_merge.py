"""Merges on both engines: each clause, NULL, rows that would be written twice, merge engines, concurrent commits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.results import CommitResult
from lakelsm.table import writable_table
from lakelsm.table.table_merge import TableMerge
from lakelsm.write.batch_write import BatchWriter
from tests.engines import TableEngine

COLUMNS = "id INT, v STRING, n BIGINT"
ROWS = [(1, "a", 1), (2, "b", 2), (3, "c", 3), (4, None, None)]
SOURCE = pa.table({"id": [2, 3, 9], "v": ["B", None, "z"], "n": [20, 30, None], "op": ["U", "D", None]})


@pytest.fixture
def table(engine: TableEngine, tmp_path: Path) -> Table:
    return filled(engine, tmp_path)


@pytest.fixture
def here(local: TableEngine, tmp_path: Path) -> Table:
    return filled(local, tmp_path)


def filled(engine: TableEngine, path: Path, options: Mapping[str, str] | None = None, columns: str = COLUMNS) -> Table:
    found = engine.create(path, columns, ["id"], options=options)
    engine.write(found, ROWS)
    return found


def rows(table: Table) -> list[tuple[Any, ...]]:
    found = table.to_arrow(fresh=True).to_pydict()
    return sorted(zip(*found.values()), key=lambda row: row[0])


def counts(result: CommitResult) -> tuple[int | None, ...]:
    return result.updated_rows, result.deleted_rows, result.inserted_rows


def test_the_first_clause_that_applies_decides_about_each_row(engine: TableEngine, table: Table) -> None:
    merge = (
        table.merge(SOURCE, "id")
        .when_matched_delete("s.op = 'D'")
        .when_matched_update({"v": "concat(t.v, s.v)", "N": "t.n + s.n"}, condition="s.n > t.n")
        .when_not_matched_insert({"id": "id", "v": "upper(v)"}, condition="n IS NULL")
        .when_not_matched_by_source_update({"n": "n + 100"}, condition="n < 100")
        .when_not_matched_by_source_delete()
    )
    result = merge.execute(engine=engine.name)
    assert rows(table) == [(1, "a", 101), (2, "bB", 22), (9, "Z", None)]
    assert (*counts(result), result.matched_rows) == (2, 2, 1, None)
    kinds = engine.changes(table, result.snapshot_id - 1, result.snapshot_id)  # type: ignore[operator]
    assert {(row[0], row[1]) for row in kinds} == {("+U", 1), ("+U", 2), ("-D", 3), ("-D", 4), ("+I", 9)}


def test_a_statement_merges_a_query_by_its_own_aliases(engine: TableEngine, table: Table, tmp_path: Path) -> None:
    catalog = engine.catalog(tmp_path)
    text = """MERGE INTO db.t USING (SELECT id AS k, v, n FROM changes WHERE op IS NULL OR op <> 'D') AS `my s`
        ON t.id = `my s`.k -- a comment
        WHEN MATCHED AND n2 THEN UPDATE SET v = 'never' WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (k, v, 7)"""
    with pytest.raises(InvalidInputError, match="n2"):
        catalog.sql(text, engine.name, changes=SOURCE)
    result = catalog.sql(text.replace("n2", "`my s`.n = 20"), engine.name, changes=SOURCE)
    assert (rows(table)[1], rows(table)[-1], counts(result)) == ((2, "never", 2), (9, "z", 7), (1, 0, 1))
    text = "MERGE INTO db.t USING db.t AS s ON t.id = s.n WHEN MATCHED AND s.id < 3 THEN UPDATE SET n = s.n * 2"
    assert counts(catalog.sql(text, engine.name)) == (2, 0, 0)


def test_all_columns_of_the_source_by_their_names(engine: TableEngine, table: Table) -> None:
    source = engine.frame([("B", 2, 5), ("Z", 9, 6)], "V STRING, ID INT, n INT")
    result = table.merge(source, ["ID"]).when_matched_update().when_not_matched_insert().execute()
    assert (rows(table)[1], rows(table)[-1], counts(result)) == ((2, "B", 5), (9, "Z", 6), (1, 0, 1))


def test_null_matches_nothing_but_in_the_key(local: TableEngine, tmp_path: Path) -> None:
    options = {"primary-key.nullable": "true"}
    table = local.create(tmp_path, COLUMNS, ["id"], options=options)
    local.write(table, [(None, "a", None), (1, None, None)])
    source = [{"id": None, "v": None, "n": 5}]
    assert counts(table.merge(source, "v").when_matched_update({"n": "s.n"}).execute()) == (0, 0, 0)
    assert counts(table.merge(source, "t.id = s.id").when_matched_delete().execute()) == (0, 0, 0)
    merge = table.merge(source, "id").when_matched_update({"n": "s.n"}).when_not_matched_insert()
    assert counts(merge.execute()) == (1, 0, 0)


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda t: t.merge({"id": [1, 1], "n": [5, 6]}, "id").when_matched_update({"n": "s.n"}), "with the key 1"),
        (lambda t: t.merge({"id": [7, 7]}, "id").when_not_matched_insert({"id": "s.id"}), "with the key 7"),
        (lambda t: t.merge({"v": ["x"]}, "v").when_not_matched_insert({"id": "1"}), "already has a row with the key 1"),
        (lambda t: t.merge({"id": [9], "v": ["a"], "n": [1]}, "v").when_matched_update(), "would change the key"),
        (lambda t: t.merge({"id": [1], "n": [1 << 40]}, "n < 0").when_matched_delete(), "ambiguous"),
        (lambda t: t.merge({"k": [1 << 40]}, "t.id = s.k").when_not_matched_insert({"id": "k"}), "does not fit INT"),
    ],
    ids=["two updates", "two inserts", "known key", "other key", "ambiguous", "range"],
)
def test_rows_that_a_merge_must_not_write(
    engine: TableEngine, table: Table, build: Callable[[Table], TableMerge], problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        build(table).execute(engine=engine.name)
    assert (rows(table), len(table.inspect.snapshots())) == (ROWS, 1)


def test_two_rows_may_delete_one_row_and_rows_without_a_clause_may_repeat(here: Table) -> None:
    twice = pa.table({"id": [1, 1, 8, 8], "n": [0, 1, 1, 1]})
    assert counts(here.merge(twice, "id").when_matched_update({"n": "7"}, "s.n = 1").execute()) == (1, 0, 0)
    assert counts(here.merge(twice, "id").when_matched_delete().execute()) == (0, 1, 0)
    with pytest.raises(InvalidInputError, match=r"with the key [18]"):
        here.merge(twice, "id").when_matched_delete().when_not_matched_insert({"id": "s.id"}).execute()


@pytest.mark.parametrize(
    ("build", "error", "problem"),
    [
        (lambda t: t.merge(SOURCE, "id"), InvalidInputError, "no clause"),
        (lambda t: t.merge(SOURCE, "id").when_matched_update({"id": "1"}), InvalidInputError, "primary key"),
        (lambda t: t.merge(SOURCE, "id").when_matched_update({"x": "1"}), InvalidInputError, "'x' does not exist"),
        (lambda t: t.merge(SOURCE, "id").when_matched_update({"n": "s.op"}), InvalidInputError, "BIGINT"),
        (lambda t: t.merge(SOURCE, "id").when_not_matched_insert({"v": "1"}), InvalidInputError, "key column 'id'"),
        (lambda t: t.merge({"id": [1]}, "id").when_matched_update(), InvalidInputError, "no column 'v'"),
        (lambda t: t.merge(SOURCE, "id").when_matched_delete().when_matched_delete(), InvalidInputError, "no effect"),
        (lambda t: t.merge(SOURCE, "id").when_not_matched_insert(condition="t.n > 1"), InvalidInputError, "'t.n'"),
        (lambda t: t.merge(SOURCE, "id").when_not_matched_by_source_delete("s.n > 1"), InvalidInputError, "'s.n'"),
        (lambda t: t.merge(SOURCE, "1 = 1) OR (2 = 2").when_matched_delete(), InvalidInputError, "not one expression"),
        (lambda t: t.merge(SOURCE, "id").when_matched_delete("s.n IN (SELECT 1)"), UnsupportedFeatureError, "a query"),
        (lambda t: t.merge(SOURCE, ["nope"]), InvalidInputError, "on: column 'nope'"),
        (lambda t: t.merge(SOURCE, []), InvalidInputError, "on"),
        (lambda t: t.merge(SOURCE, 5), InvalidInputError, "on"),
        (lambda t: t.merge(7, "id"), InvalidInputError, "source"),
        (lambda t: t.merge([1], "id"), InvalidInputError, "source"),
        (lambda t: t.merge(SOURCE.append_column("ID", SOURCE["id"]), "n").when_matched_delete(), InvalidInputError, "ID"),
        (lambda t: t.merge(SOURCE, "id").when_matched_update({}), InvalidInputError, "set"),
        (lambda t: t.merge(SOURCE, "id").when_matched_delete(5), InvalidInputError, "condition"),
    ],
)
def test_wrong_merges(here: Table, build: Callable[[Table], TableMerge], error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        build(here).execute()
    assert (rows(here), len(here.inspect.snapshots())) == (ROWS, 1)


def test_a_source_may_be_a_table_a_view_a_query_or_a_frame(engine: TableEngine, table: Table, tmp_path: Path) -> None:
    other = engine.create(tmp_path, "id INT, n BIGINT", ["id"], name="db.s")
    engine.write(other, [(1, 5), (2, 6)])
    engine.write(other, [(1, 7)])
    sources = [other, other.at(snapshot=1), pa.table({"id": [1], "n": [9]}), {"id": [1], "n": [None]}]
    if engine.spark is None:
        sources.append(engine.catalog(tmp_path).sql("SELECT 1 AS id, 11 AS n, 2 AS x", engine="local"))
    found = []
    for source in sources:
        result = table.merge(source, "id").when_matched_update({"n": "s.n"}).execute(engine=engine.name)
        found.append((result.updated_rows, rows(table)[0][2]))
    assert found == [(2, 7), (2, 5), (1, 9), (1, None), (1, 11)][: len(sources)]


def test_no_rows_commit_nothing_and_an_empty_table_gets_inserts(local: TableEngine, tmp_path: Path) -> None:
    table = local.create(tmp_path, COLUMNS, ["id"])
    nothing = table.merge(SOURCE.slice(0, 0), "id").when_matched_delete().when_not_matched_insert().execute()
    assert (nothing.snapshot_id, counts(nothing)) == (None, (0, 0, 0))
    assert counts(table.merge(SOURCE, "id").when_matched_delete().when_not_matched_insert().execute()) == (0, 0, 3)
    emptied = table.merge(SOURCE.slice(0, 0), "id").when_not_matched_by_source_delete().execute()
    assert (counts(emptied), rows(table)) == ((0, 3, 0), [])


def test_a_batch_that_was_committed_is_not_merged_again(here: Table, caplog: pytest.LogCaptureFixture) -> None:
    merge = here.merge(SOURCE, "id").when_matched_update({"n": "t.n + 1"})
    with caplog.at_level(logging.INFO, "lakelsm"):
        first = merge.execute(commit_user="u", batch_id=1)
    assert [(each.operation, each.updated_rows) for each in caplog.records] == [("merge", 2)]  # type: ignore[attr-defined]
    again = merge.execute(commit_user="u", batch_id=1)
    assert (again.snapshot_id, again.already_committed, counts(again)) == (first.snapshot_id, True, (None, None, None))
    assert rows(here)[1] == (2, "b", 3)
    assert here._store().snapshots.latest().operation == "MERGE"  # type: ignore[union-attr]


def test_rows_are_merged_again_if_another_commit_changes_their_keys(
    engine: TableEngine, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [[(2, "other", 200), (9, "first", 9)], [(1, "x", 1)]]

    def step(name: str) -> None:
        if name == "data-files-written" and left:
            table.write([dict(zip(("id", "v", "n"), row)) for row in left.pop(0)])

    monkeypatch.setattr(writable_table, "BatchWriter", partial(BatchWriter, step=step))
    source = pa.table({"id": [2, 9], "v": ["s", "s"], "n": [1, 1]})
    monkeypatch.setattr(writable_table.WritableTable, "write", partial_write(table))
    merge = table.merge(source, "id").when_matched_update({"n": "t.n + s.n"}).when_not_matched_insert()
    result = merge.execute(engine=engine.name)
    assert counts(result) == (2, 0, 0) and not left
    assert rows(table)[:2] == [(1, "x", 1), (2, "other", 201)] and rows(table)[-1] == (9, "first", 10)


def partial_write(table: Table) -> Callable[..., CommitResult]:
    """Return `Table.write` with the real writer, for the commits of others."""
    from lakelsm.engine import local_engine

    def write(self: Table, given: list[dict[str, Any]]) -> CommitResult:
        store = table._store()
        rows = local_engine().prepared_rows(store, given)
        BatchWriter(local_engine().writer(store), store).append(rows, "other")
        return CommitResult(snapshot_id=None)

    return write


PARTIAL = {"merge-engine": "partial-update"}
AGGREGATION = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}


@pytest.mark.parametrize(
    ("options", "update", "delete"),
    [
        ({}, None, None),
        ({"deletion-vectors.enabled": "true"}, None, None),
        ({"bucket": "-1"}, None, None),
        ({"sequence.field": "n"}, None, None),
        (PARTIAL, None, "delete"),
        ({**PARTIAL, "partial-update.remove-record-on-delete": "true"}, None, None),
        (AGGREGATION, "aggregation", "delete"),
        ({"merge-engine": "first-row"}, "first-row", "delete"),
    ],
    ids=["plain", "vectors", "dynamic", "sequence", "partial", "removing", "aggregation", "first-row"],
)
def test_merge_engines_refuse_what_they_cannot_do(
    local: TableEngine, tmp_path: Path, options: dict[str, str], update: str | None, delete: str | None
) -> None:
    table = filled(local, tmp_path, options)
    if "deletion-vectors.enabled" in options:
        table.compact(full=True)
    merge = table.merge(SOURCE, "id")
    assert counts(merge.when_not_matched_insert().execute()) == (0, 0, 1)
    for refused, clause, count in (
        (update, merge.when_matched_update({"v": "concat(v2, '!')", "n": "s.n"}, "s.id = 2"), (1, 0, 0)),
        (delete, merge.when_matched_delete("s.id = 3"), (0, 1, 0)),
    ):
        source = SOURCE.append_column("v2", SOURCE["v"])
        clause = TableMerge(table, lambda source=source: source, clause._request)  # type: ignore[misc]
        if refused:
            with pytest.raises(LakelsmError, match=refused):
                clause.execute()
        else:
            assert counts(clause.execute()) == count
    expected = {1: ("a", 1), 2: ("b", 2) if update else ("B!", 20), 3: ("c", 3), 4: (None, None), 9: ("z", None)}
    if not delete:
        del expected[3]
    assert {row[0]: row[1:] for row in rows(table)} == expected


def test_an_update_that_the_merge_would_not_apply_is_refused(local: TableEngine, tmp_path: Path) -> None:
    table = filled(local, tmp_path, {"sequence.field": "n"})
    with pytest.raises(InvalidInputError, match="older sequence"):
        table.merge({"id": [2], "n": [1]}, "id").when_matched_update({"n": "s.n"}).execute()
    other = filled(local, tmp_path / "p", PARTIAL)
    with pytest.raises(InvalidInputError, match="becomes NULL"):
        other.merge({"id": [2]}, "id").when_matched_update({"v": "NULL"}).execute()


def test_partitions_types_and_kinds(engine: TableEngine, tmp_path: Path) -> None:
    columns = "p STRING, id INT, d DECIMAL(5, 2), at TIMESTAMP(6), tags ARRAY<STRING>, m MAP<STRING, INT>, k STRING"
    table = engine.create(tmp_path, columns, ["p", "id"], ["p"], {"rowkind.field": "k"})
    table.write([{"p": p, "id": 1, "d": 1, "at": None, "tags": ["x"], "m": {"a": 1}, "k": "+I"} for p in "ab"])
    source = pa.table({"p": ["a", "c"], "id": [1, 1], "d": [1.005, 2.25], "k": ["-D", "-D"]})
    merge = table.merge(source, ["p", "id"]).when_matched_update({"d": "s.d + 0.001"})
    result = merge.when_not_matched_insert({"p": "p", "id": "id", "d": "d"}).execute(engine=engine.name)
    found = table.to_arrow().sort_by("p").drop_columns(["at"]).to_pylist()
    assert counts(result) == (1, 0, 1)
    assert [(row["p"], float(row["d"]), row["tags"], row["m"], row["k"]) for row in found] == [
        ("a", 1.01, ["x"], [("a", 1)], "+U"), ("b", 1.0, ["x"], [("a", 1)], "+I"), ("c", 2.25, None, None, "+I")
    ]  # fmt: skip


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """The opened and the existing files of each read of a merge's target."""
    found: list[tuple[int, int]] = []

    def planned(*given: Any, **named: Any) -> ReadPlan:
        plan = plan_read(*given, **named)
        found.append((plan.files_scanned, plan.files_live))
        return plan

    monkeypatch.setattr("lakelsm.local.arrow_scan.plan_read", planned)
    monkeypatch.setattr("lakelsm.frames.merge_frame.plan_read", planned, raising=False)
    yield found


def test_only_files_that_can_have_keys_of_the_source_are_opened(
    engine: TableEngine, tmp_path: Path, opened: list[tuple[int, int]]
) -> None:
    table = engine.create(tmp_path, "p STRING, id INT, n BIGINT", ["p", "id"], ["p"], {"bucket": "4"})
    for low in (0, 1000):
        table.write({"p": [p for p in "abc" for _ in range(40)], "id": [*range(low, low + 40)] * 3, "n": [1] * 120})
    source = pa.table({"p": ["b", "d", None], "id": [7, 7, 7], "n": [5, 6, 7]})
    merge = table.merge(source, ["p", "id"]).when_matched_update({"n": "t.n + s.n"})
    assert counts(merge.execute(engine=engine.name)) == (1, 0, 0)
    assert opened.pop(0) == (1, 24)
    # ON is a condition of its own, and inserts by another expression look for their keys once more.
    merge = table.merge(source, "t.p = s.p AND (s.id = t.id) AND s.n > 1").when_not_matched_insert(condition="n = 6")
    assert counts(merge.execute(engine=engine.name)) == (0, 0, 1)
    assert [files for files, _ in opened[:2]] == [2, 2]
    opened.clear()
    assert counts(table.merge(source, "n").when_matched_delete().execute(engine=engine.name)) == (0, 2, 0)
    nothing = table.merge(source, ["p", "id"]).when_not_matched_by_source_update({"n": "0"}, "id < 0")
    assert counts(nothing.execute(engine=engine.name)) == (0, 0, 0)
    empty = table.merge(source.slice(0, 0), ["p", "id"]).when_matched_delete().when_not_matched_insert()
    assert counts(empty.execute(engine=engine.name)) == (0, 0, 0)
    assert opened == [(26, 26), (28, 28), (0, 28)]
