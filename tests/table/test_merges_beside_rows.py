"""Random merges, compared with a merge of Python rows one by one: rows, counts, refused rows and changelogs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError
from lakelsm.plan.merge_plan import plan_merge
from lakelsm.table import table_merge, writable_table
from lakelsm.write.batch_write import BatchWriter
from tests.engines import TableEngine, each_case

Row = dict[str, Any]
#: A condition or value in SQL, and the same in Python. Arguments are the rows of the target and the source.
Text = tuple[str, Callable[[Row, Row], Any]]

COLUMNS = "id INT, v STRING, n BIGINT"
SOURCE = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32()), ("op", pa.string())])


def known(function: Callable[[Row, Row], Any], *columns: tuple[int, str]) -> Callable[[Row, Row], Any]:
    """Return a function that is NULL if one of the columns of the target (0) or the source (1) is."""
    return lambda t, s: None if any((t, s)[side][name] is None for side, name in columns) else function(t, s)


BOTH: list[Text] = [
    ("s.n > t.n", known(lambda t, s: s["n"] > t["n"], (0, "n"), (1, "n"))),
    ("s.op = 'D'", known(lambda t, s: s["op"] == "D", (1, "op"))),
    ("t.v IS NULL -- no value", lambda t, s: t["v"] is None),
]
OF_SOURCE: list[Text] = [
    ("s.n > 4", known(lambda t, s: s["n"] > 4, (1, "n"))),
    ("op <> 'D'", known(lambda t, s: s["op"] != "D", (1, "op"))),
]
OF_TARGET: list[Text] = [
    ("t.n < 5", known(lambda t, s: t["n"] < 5, (0, "n"))),
    ("v IS NOT NULL", lambda t, s: t["v"] is not None),
]
ALL: dict[str, Text] = {name: (name, lambda t, s, name=name: s[name]) for name in ("v", "n")}  # type: ignore[misc]
UPDATES: list[dict[str, Text] | None] = [
    {"n": ("t.n + s.n", known(lambda t, s: t["n"] + s["n"], (0, "n"), (1, "n")))},
    {"v": ("concat(s.v, '!')", known(lambda t, s: s["v"] + "!", (1, "v")))},
    None,
]
INSERTS: list[dict[str, Text] | None] = [
    {"id": ("id", lambda t, s: s["id"]), "n": ("s.n * 2", known(lambda t, s: s["n"] * 2, (1, "n")))},
    None,
]


@dataclass(frozen=True)
class Clause:
    rows: str
    action: str
    condition: Text | None
    values: Mapping[str, Text] | None = None

    def applies(self, target: Row, source: Row) -> bool:
        return self.condition is None or self.condition[1](target, source) is True

    def row(self, target: Row, source: Row) -> Row:
        values = ALL if self.values is None else self.values
        start = target or {"id": source["id"], "v": None, "n": None}
        return {**start, **{name: value(target, source) for name, (_, value) in values.items()}}


@dataclass(frozen=True)
class Case:
    """A merge. ``expected`` are the rows and the numbers of rows of kinds +U, -D and +I; None: it is refused."""

    clauses: Sequence[Clause]
    source: Sequence[Row]
    takes_last: bool

    def run(self, table: Table, source: object, engine: str) -> Any:
        duplicates = "last" if self.takes_last else "error"
        merge: Any = table.merge(source, "id", duplicates=duplicates)
        for each in self.clauses:
            condition = None if each.condition is None else each.condition[0]
            values = None if each.values is None else {name: text for name, (text, _) in each.values.items()}
            call = getattr(merge, f"when_{each.rows}_{each.action}")
            merge = call(condition=condition) if each.action == "delete" else call(values, condition)
        return merge.execute(engine=engine)

    def expected(self, rows: Sequence[Row]) -> tuple[list[Row], dict[str, list[Any]]] | None:
        found: dict[Any, Row] = {row["id"]: dict(row) for row in rows}
        kinds: dict[str, list[Any]] = {"update": [], "delete": [], "insert": []}
        for key in sorted({*found, *(row["id"] for row in self.source)}, key=repr):
            target = found.get(key)
            same = [row for row in self.source if row["id"] == key]
            if self.takes_last:
                same = same[-1:]
            chosen = list(self._chosen(target, same))
            deletes_all = [(each.action, each.condition) for each in self._of("matched")] == [("delete", None)]
            if len(chosen) > 1 and not (target and deletes_all):
                return None
            for clause, source in chosen[:1]:
                kinds[clause.action].append(key)
                if clause.action == "delete":
                    del found[key]
                else:
                    found[key] = clause.row(target or {}, source)
        return sorted(found.values(), key=lambda row: repr(row["id"])), kinds

    def _of(self, rows: str) -> list[Clause]:
        return [each for each in self.clauses if each.rows == rows]

    def _chosen(self, target: Row | None, same: Sequence[Row]) -> Any:
        rows = "not_matched" if target is None else "matched" if same else "not_matched_by_source"
        for source in same or [{}]:
            clause = next((each for each in self._of(rows) if each.applies(target or {}, source)), None)
            if clause is not None:
                yield clause, source


def drawn_rows(draw: random.Random, number: int, keys: Sequence[int], *, repeats: bool) -> list[Row]:
    ids = draw.choices(keys, k=number) if repeats else draw.sample(keys, number)
    texts, numbers = [None, "a", "b", "ä"], [None, *range(9)]
    return [{"id": key, "v": draw.choice(texts), "n": draw.choice(numbers), "op": draw.choice("UDI")} for key in ids]


def drawn_case(draw: random.Random, updates: bool, deletes: bool) -> Case:
    clauses: list[Clause] = []
    for rows, conditions, actions in (
        ("matched", BOTH, "update delete"),
        ("not_matched", OF_SOURCE, "insert"),
        ("not_matched_by_source", OF_TARGET, "update delete"),
    ):
        allowed = [each for each in actions.split() if {"update": updates, "delete": deletes}.get(each, True)]
        for at in reversed(range(draw.choice([0, 1, 2]) if allowed else 0)):
            action = draw.choice(allowed)
            # A clause without a condition is the last one of its rows.
            condition = draw.choice([*conditions, None] if not at else conditions)
            values: Any = None
            if action == "insert":
                values = draw.choice(INSERTS)
            elif action == "update":
                values = draw.choice(UPDATES) if rows == "matched" else {"n": ("n + 100", plus_hundred)}
            clauses.append(Clause(rows, action, condition, values))
    clauses = clauses or [Clause("not_matched", "insert", None)]
    return Case(clauses, drawn_rows(draw, draw.randrange(9), range(14), repeats=draw.random() < 0.5), draw.random() < 0.5)


plus_hundred = known(lambda t, s: t["n"] + 100, (0, "n"))

INPUT, REMOVING = {"changelog-producer": "input"}, {"partial-update.remove-record-on-delete": "true"}
TABLES: dict[str, tuple[dict[str, str], bool, bool]] = {
    "deduplicate": ({}, True, True),
    "buckets": ({"bucket": "3"}, True, True),
    "vectors": ({"deletion-vectors.enabled": "true"}, True, True),
    "input": (INPUT, True, True),
    "lookup": ({"changelog-producer": "lookup"}, True, True),
    "full-compaction": ({"changelog-producer": "full-compaction"}, True, True),
    "dynamic": ({"bucket": "-1"}, True, True),
    "first-row": ({"merge-engine": "first-row"}, False, False),
    "aggregation": ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, False, False),
    "partial-update": ({"merge-engine": "partial-update", **REMOVING}, True, True),
}


def shown(table: Table) -> list[Row]:
    return sorted(table.to_arrow(fresh=True).to_pylist(), key=lambda row: repr(row["id"]))


@each_case("name", list(TABLES), on_spark=["deduplicate", "vectors"])
def test_random_merges_give_the_rows_and_counts_of_a_merge_row_by_row(
    engine: TableEngine, tmp_path: Path, name: str
) -> None:
    options, updates, deletes = TABLES[name]
    draw = random.Random(name)
    table = engine.create(tmp_path, COLUMNS, ["id"], options=options)
    refused = 0
    for _ in range(3 if engine.spark else 9):
        rows = drawn_rows(draw, 8, range(12), repeats=False)
        table.overwrite([{name: row[name] for name in ("id", "v", "n")} for row in rows])
        if draw.random() < 0.5:
            table.compact(full=True, engine="local")
        before, case = shown(table), drawn_case(draw, updates, deletes)
        source = pa.Table.from_pylist(list(case.source), SOURCE)
        expected = case.expected(before)
        if expected is not None and name == "partial-update" and _becomes_null(before, expected[0]):
            expected = None
        if expected is None:
            refused += 1
            with pytest.raises(InvalidInputError, match=r"two rows of the source|becomes NULL"):
                case.run(table, source, engine.name)
            assert shown(table) == before, case
            continue
        result = case.run(table, source, engine.name)
        wanted, kinds = expected
        assert shown(table) == wanted, case
        counts = (result.updated_rows, result.deleted_rows, result.inserted_rows)
        assert counts == tuple(map(len, kinds.values())), case
        if name == "input" and result.snapshot_id is not None:
            changes = table.changelog_reader(result.snapshot_id - 1, result.snapshot_id).read_all().to_pylist()
            names = {"update": "+U", "delete": "-D", "insert": "+I"}
            written = sorted((names[kind], key) for kind, keys in kinds.items() for key in keys)
            assert sorted((row["rowkind"], row["id"]) for row in changes) == written, case
    assert refused < 9


def _becomes_null(before: Sequence[Row], after: Sequence[Row]) -> bool:
    """Return whether NULL replaces a value, which `partial-update` does not do."""
    old = {row["id"]: row for row in before}
    return any(
        row[name] is None and old.get(row["id"], row)[name] is not None for row in after for name in ("v", "n")
    )


def test_sequence_groups_refuse_older_sequences(local: TableEngine, tmp_path: Path) -> None:
    options = {"merge-engine": "partial-update", "fields.g.sequence-group": "v,n"}
    table = local.create(tmp_path, f"{COLUMNS}, g INT, free STRING", ["id"], options=options)
    local.write(table, [(1, "a", 1, 5, "x"), (2, "b", 2, 5, None)])
    source = {"id": [1, 2, 3], "v": ["A", "B", "C"], "g": [6, 5, None]}
    merge = table.merge(source, "id").when_matched_update({"v": "s.v", "g": "s.g"})
    result = merge.when_not_matched_insert({"id": "id", "free": "v"}).execute()
    assert (result.updated_rows, result.inserted_rows) == (2, 1)
    expected = [(1, "A", 1, 6, "x"), (2, "B", 2, 5, None), (3, None, None, None, "C")]
    assert sorted(map(tuple, (row.values() for row in shown(table)))) == expected
    for values, problem in (({"g": "1"}, "older sequence 'g'"), ({"v": "NULL", "g": "NULL"}, "sequence 'g'")):
        with pytest.raises(InvalidInputError, match=problem):
            table.merge(source, "id").when_matched_update(values).execute()
    table.compact(full=True)
    assert sorted(map(tuple, (row.values() for row in shown(table)))) == expected


def test_the_source_can_be_the_target_or_another_branch(local: TableEngine, tmp_path: Path) -> None:
    table = local.create(tmp_path, COLUMNS, ["id"], options={"changelog-producer": "lookup"})
    local.write(table, [(1, "a", 1), (2, "b", 2), (3, None, 1)])
    table.compact()
    table.tags.create("one")
    table.branches.create("b", "one")
    branch = table.branches.open("b")
    merge = branch.merge(table, "t.id = s.n AND s.id <> s.n").when_matched_update({"n": "t.n + s.id"})
    assert merge.execute().updated_rows == 1
    merge = table.merge(table, "id").when_matched_delete("s.v = 'b'").when_matched_update({"n": "s.n * 10"})
    merge = merge.when_not_matched_insert().when_not_matched_by_source_delete()
    result = merge.execute()
    assert (result.updated_rows, result.deleted_rows, result.inserted_rows) == (2, 1, 0)
    assert [(row["id"], row["n"]) for row in shown(table)] == [(1, 10), (3, 10)]
    assert [(row["id"], row["n"]) for row in shown(branch)] == [(1, 4), (2, 2), (3, 1)]
    compacted = table.compact().snapshot_ids
    changes = table.changelog_reader(compacted[0] - 1, compacted[-1]).read_all().to_pylist()
    kinds = sorted((row["rowkind"], row["id"], row["n"]) for row in changes)
    assert kinds == [("+U", 1, 10), ("+U", 3, 10), ("-D", 2, 2), ("-U", 1, 1), ("-U", 3, 1)]


SELF_MERGES: dict[str, Callable[[Table, Path], Any]] = {
    "table": lambda table, _: table.merge(table, "id").when_matched_update({"n": "s.n + 1"}).execute(),
    "statement": lambda _, warehouse: Catalog(str(warehouse)).sql(
        "MERGE INTO db.t USING (SELECT id, n FROM db.t WHERE n > 0) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = s.n + 1",
        engine="local",
    ),
}


@pytest.mark.parametrize("step", ["planned", "data-files-written"])
@pytest.mark.parametrize("name", SELF_MERGES)
def test_a_source_that_reads_the_target_is_as_new_as_the_target(
    local: TableEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: str
) -> None:
    table = local.create(tmp_path, COLUMNS, ["id"])
    local.write(table, [(1, "a", 1), (2, "b", 2)])
    left = [[(2, "b", 200), (3, "c", 300)]]
    other = local.opened(tmp_path / "db.db" / "t")

    def write() -> None:
        if left:
            rows = left.pop()
            monkeypatch.setattr(writable_table, "BatchWriter", BatchWriter)
            local.write(other, rows)

    def planned(*given: Any) -> Any:
        if step == "planned":  # Between the opening of the source and the read of the target.
            write()
        return plan_merge(*given)

    monkeypatch.setattr(table_merge, "plan_merge", planned)
    if step != "planned":
        late = partial(BatchWriter, step=lambda name: write() if name == step else None)
        monkeypatch.setattr(writable_table, "BatchWriter", late)
    assert SELF_MERGES[name](table, tmp_path).updated_rows == 3
    assert not left and [(row["id"], row["n"]) for row in shown(table)] == [(1, 2), (2, 201), (3, 301)]


@pytest.mark.parametrize("name", SELF_MERGES)
def test_a_source_that_reads_the_target_has_its_rows_of_level_0(
    local: TableEngine, tmp_path: Path, name: str
) -> None:
    table = local.create(tmp_path, COLUMNS, ["id"], options={"deletion-vectors.enabled": "true"})
    local.write(table, [(1, "a", 1)])
    table.compact(full=True)
    local.write(table, [(1, "a", 5), (2, "b", 2)])
    assert SELF_MERGES[name](table, tmp_path).updated_rows == 2
    assert [(row["id"], row["n"]) for row in shown(table)] == [(1, 6), (2, 3)]


def test_a_source_without_a_snapshot_stays_empty(
    local: TableEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, source = (local.create(tmp_path, COLUMNS, ["id"], name=name) for name in ("db.t", "db.s"))
    local.write(table, [(1, "a", 1)])

    def planned(*given: Any) -> Any:
        local.write(source, [(2, "late", 2)])
        return plan_merge(*given)

    monkeypatch.setattr(table_merge, "plan_merge", planned)
    result = table.merge(source, "id").when_not_matched_insert().execute()
    assert result.snapshot_id is None and [row["v"] for row in shown(table)] == ["a"]


def test_two_columns_of_the_source_with_one_name_are_refused(engine: TableEngine, tmp_path: Path) -> None:
    table = engine.create(tmp_path, COLUMNS, ["id"])
    engine.write(table, [(1, "a", 1)])
    text = "MERGE INTO db.t USING (SELECT 1 AS id, 2 AS n, 3 AS n) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    with pytest.raises(InvalidInputError, match="columns 'n' and 'n' of the source have one name"):
        engine.catalog(tmp_path).sql(text, engine=engine.name)
    assert len(shown(table)) == 1
