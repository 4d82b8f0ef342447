"""Updates: matching rows get new values, other rows and columns stay; an update without effect is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.engines import LOCALLY, ON_SPARK, TableEngine, each_case, in_order

COLUMNS = "k INT, n INT, v STRING NOT NULL, d DECIMAL(5, 2), s INT, a ARRAY<INT>"
ROWS = [(1, 10, "a", 1, 1, [1, 2]), (2, 20, "b", 2, 2, None), (3, None, "c", 3, None, [])]


def filled(engine: TableEngine, folder: Path, options: dict[str, str] | None = None) -> Table:
    table = engine.create(folder, COLUMNS, ["k"], options=options)
    engine.write(table, ROWS)
    return table


def read(engine: TableEngine, table: Table, *columns: str) -> list[tuple[object, ...]]:
    return in_order(engine.rows(table, columns=["k", *columns]))


def test_matching_rows_get_values_computed_from_the_old_row_and_all_else_stays(
    engine: TableEngine, tmp_path: Path
) -> None:
    table = filled(engine, tmp_path)
    set_values = {"N": "n + d * 1.5", "v": "concat(v, n)", "d": "NULL", "s": "if(n % 10 = 0, -s, 1 / 0)"}
    result = engine.update(table, set_values, "K = 1 OR n > 100 OR n IS NULL AND k < 3")
    assert (result.matched_rows, result.rows) == (1, 1)
    found = read(engine, table, "n", "v", "d", "s", "a")
    assert found[0] == (1, 11, "a10", None, -1, [1, 2]) and found[1][1:3] == (20, "b") and found[2][2] == "c"
    nothing = engine.update(table, {"v": "'x'"}, "n > 100")
    assert (nothing.matched_rows, nothing.snapshot_id) == (0, None)
    assert read(engine, table, "n", "v", "d", "s", "a") == found
    snapshot = table._store().snapshots.latest()
    assert snapshot is not None and (snapshot.id, snapshot.operation) == (2, "UPDATE")
    first = engine.update(table, {"n": "n + 1"}, "k = 1", commit_user="u", batch_id=1)
    again = engine.update(table, {"n": "n + 1"}, "k = 1", commit_user="u", batch_id=1)
    assert first.matched_rows == 1 and again.already_committed and again.matched_rows is None
    assert read(engine, table, "n") == [(1, 12), (2, 20), (3, None)]


@ON_SPARK
def test_on_spark_any_expression_of_a_row_is_accepted(engine: TableEngine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path)
    engine.update(table, {"a": "array_append(a, k)", "v": "upper(v)"}, "k = 1")
    assert read(engine, table, "v", "a")[0] == (1, "A", [1, 2, 1])
    for value, message in (
        ("max(n)", r"set\['n'\] = 'max"),
        ("explode(a)", r"set\['n'\] = 'explode"),
        ("*", r"set\['n'\] = '\*' "),
        ("w + 1", r"set\['n'\] = 'w \+ 1' is not valid.*`w`"),
        ("n +", r"set\['n'\] = 'n \+' is not valid"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            engine.update(table, {"v": "upper(v)", "n": value}, "k > 0")


@LOCALLY
def test_in_this_process_other_expressions_are_refused_by_name(engine: TableEngine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path)
    for value, error, message in (
        ("n + rand()", UnsupportedFeatureError, r"'n \+ rand\(\)': the local engine cannot evaluate 'RAND\(\)'. "),
        ("max(n)", UnsupportedFeatureError, "cannot evaluate"),
        ("*", UnsupportedFeatureError, "cannot evaluate"),
        ("'5' + 1", UnsupportedFeatureError, "cannot evaluate"),
        ("w + 1", InvalidInputError, r"set\['n'\] = 'w \+ 1': expression: column 'w' does not exist"),
        ("n +", InvalidInputError, r"set\['n'\] = 'n \+': cannot parse expression"),
        ("n; 1", InvalidInputError, "more than one expression"),
        ("+".join("1" * 300), InvalidInputError, "nested too deeply"),
    ):
        with pytest.raises(error, match=message):
            engine.update(table, {"n": value}, "k > 0")
    assert table._store().snapshots.latest_id() == 1
    with pytest.raises(InvalidInputError, match=r"engine: .* got 'flink'"):
        table.update({"n": "1"}, "k = 1", engine="flink")


REFUSED: list[tuple[dict[str, str], list[tuple[dict[str, str], str]]]] = [
    (
        {},
        [
            ({"n": "n * 1000000000000L"}, "'n': a new value does not fit INT"),
            ({"n": "n + 2147483647"}, "overflow"),
            ({"n": "n / (k - 1)"}, "[Dd]ivi"),
            ({"d": "1000"}, r"'d': a new value does not fit DECIMAL\(5, 2\)"),
            ({"v": "NULL"}, "column 'v' is NOT NULL, and its new value is NULL"),
            ({"n": "v"}, "'n' is INT, but its new value is (?i:string). Cast it to (?i:int)"),
            ({"k": "1"}, "part of the primary key"),
        ],
    ),
    (
        {"sequence.field": "s"},
        [({"s": "s - 1"}, "an older sequence 's' than it has"), ({"n": "0", "s": "NULL"}, "an older sequence")],
    ),
    (
        {"sequence.field": "s", "sequence.field.sort-order": "descending"},
        [({"s": "s + 1"}, "an older sequence 's' than it has"), ({"s": "NULL"}, "an older sequence")],
    ),
    ({"merge-engine": "partial-update"}, [({"n": "NULL"}, "'n' becomes NULL, but with 'merge-engine'")]),
    (
        {"merge-engine": "partial-update", "fields.s.sequence-group": "n"},
        [({"n": "n + 1"}, "has no sequence 's'"), ({"s": "s - 1"}, "an older sequence 's' than it has")],
    ),
    ({"merge-engine": "first-row"}, [({"n": "1"}, "'first-row' keeps the first row")]),
]


@pytest.mark.parametrize(("options", "cases"), REFUSED, ids=lambda case: ",".join(case) if isinstance(case, dict) else "")
def test_a_value_that_the_merge_would_not_apply_is_refused_by_name(
    engine: TableEngine, tmp_path: Path, options: dict[str, str], cases: list[tuple[dict[str, str], str]]
) -> None:
    table = filled(engine, tmp_path, options)
    for values, message in cases:
        with pytest.raises(InvalidInputError, match=message):
            engine.update(table, values, "k > 0")
    assert table._store().snapshots.latest_id() == 1


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"sequence.field": "s"}, {"n": "n + 1", "s": "s + 0"}, [(1, 11, 1), (2, 21, 2)]),
        ({"sequence.field": "s", "sequence.field.sort-order": "descending"}, {"s": "0"}, [(1, 10, 0), (2, 20, 0)]),
        ({"merge-engine": "partial-update"}, {"n": "-n"}, [(1, -10, 1), (2, -20, 2)]),
        (
            {"merge-engine": "partial-update", "fields.s.sequence-group": "n"},
            {"n": "NULL", "s": "s + k"},
            [(1, None, 2), (2, None, 4)],
        ),
    ],
)
def test_an_update_wins_in_tables_with_sequence_fields(
    engine: TableEngine,
    tmp_path: Path,
    options: dict[str, str],
    values: dict[str, str],
    expected: list[tuple[object, ...]],
) -> None:
    table = filled(engine, tmp_path, options)
    assert engine.update(table, values, "k < 3").matched_rows == 2
    assert read(engine, table, "n", "s")[:2] == expected


def test_with_deletion_vectors_rows_in_level_0_are_matched(engine: TableEngine, tmp_path: Path) -> None:
    table = filled(engine, tmp_path, {"deletion-vectors.enabled": "true"})
    assert engine.rows(table) == [] and table.count().rows == 0
    assert engine.update(table, {"n": "n + 1"}, "n >= 10").matched_rows == 2
    assert engine.update(table, {"v": "'z'"}, "n = 21").matched_rows == 1
    assert engine.delete(table, "n = 11").matched_rows == 1
    engine.compact(table, full=True)
    assert read(engine, table, "n", "v") == [(2, 21, "z"), (3, None, "c")] and table.count().how == "metadata"


def test_an_update_is_computed_again_if_others_change_its_rows_first(
    monkeypatch: pytest.MonkeyPatch, engine: TableEngine, tmp_path: Path
) -> None:
    from lakelsm.write.batch_write import BatchWriter

    table, left = filled(engine, tmp_path), ["once"]
    execute = BatchWriter._execute

    def others_first(writer: BatchWriter[Any], *arguments: Any) -> Any:
        written = execute(writer, *arguments)
        if left:
            left.pop()
            engine.update(table, {"n": "n + 100"}, "k = 2")
            engine.delete(table, "k = 1")
        return written

    monkeypatch.setattr(BatchWriter, "_execute", others_first)
    assert engine.update(table, {"n": "n + 1"}, "n >= 10").matched_rows == 1
    assert read(engine, table, "n") == [(2, 121), (3, None)]


NANOS = [1_577_836_800_123_456_789, -1, 1_001]
_DELETES = "partial-update.remove-record-on-delete"
_PARTS = "a ARRAY<TIMESTAMP(7)>, r ROW<x TIMESTAMP(9)>, m MAP<INT, TIMESTAMP(9)>"
_ON_SPARK = ("parts", "key of dynamic buckets", "partition", "sequence", "merged", "vectors")
#: Tables with times finer than microseconds.
FINE: list[tuple[str, str, list[str], list[str], dict[str, str]]] = [
    ("value", "k INT, t TIMESTAMP(9)", ["k"], [], {}),
    ("parts", f"k INT, t TIMESTAMP(9), {_PARTS}", ["k"], [], {}),
    ("zone", "k INT, t TIMESTAMP(9) WITH LOCAL TIME ZONE", ["k"], [], {"bucket": "-1"}),
    ("key", "k INT, t TIMESTAMP(9)", ["k", "t"], [], {"bucket": "3"}),
    ("key of dynamic buckets", "k INT, t TIMESTAMP(9)", ["k", "t"], [], {"bucket": "-1"}),
    ("partition", "k INT, t TIMESTAMP(9)", ["k", "t"], ["t"], {}),
    ("sequence", "k INT, t TIMESTAMP(9)", ["k"], [], {"sequence.field": "t"}),
    ("merged", "k INT, t TIMESTAMP(9)", ["k"], [], {"merge-engine": "partial-update", _DELETES: "true"}),
    ("vectors", "k INT, t TIMESTAMP(9)", ["k"], [], {"deletion-vectors.enabled": "true"}),
    ("input", "k INT, t TIMESTAMP(9)", ["k"], [], {"changelog-producer": "input", "rowkind.field": "op"}),
]


@each_case("case", FINE, on_spark=[case for case in FINE if case[0] in _ON_SPARK])
def test_unset_times_keep_their_nanoseconds(
    engine: TableEngine, tmp_path: Path, case: tuple[str, str, list[str], list[str], dict[str, str]]
) -> None:
    _, columns, key, partitions, options = case
    table = engine.create(tmp_path, f"{columns}, n INT, op STRING", key, partitions, options)
    zone = "UTC" if "ZONE" in columns else None
    times = pa.array([*NANOS, None] if "t" not in key else [*NANOS, 5], pa.timestamp("ns", zone))
    given: dict[str, Any] = {"k": pa.array([1, 2, 3, 4], pa.int32()), "t": times}
    if "a ARRAY" in columns:
        given["a"] = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3, 4], pa.int32()), times.cast(pa.timestamp("ns")))
        given["r"] = pa.StructArray.from_arrays([times], ["x"])
        given["m"] = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), given["k"], times)
    rows = pa.table({**given, "n": pa.array([1, 2, 3, 4], pa.int32()), "op": ["+I"] * 4})
    table.write(rows)
    table.write(rows.slice(1, 2))
    assert engine.update(table, {"n": "n + 10"}, "n <= 3").matched_rows == 3
    assert engine.delete(table, "n = 11").matched_rows == 1
    engine.compact(table, full=True)
    found = table.to_arrow().sort_by("k")
    assert found.column("n").to_pylist() == [12, 13, 4]
    for name in given:
        kept = rows.column(name).cast(found.schema.field(name).type).combine_chunks().slice(1)
        assert found.column(name).combine_chunks().equals(kept), name


@ON_SPARK
def test_on_spark_a_sequence_or_keys_finer_than_microseconds_are_refused(engine: TableEngine, tmp_path: Path) -> None:
    table = engine.create(tmp_path, "k TIMESTAMP(9), s TIMESTAMP(9), n INT", ["k"], options={"sequence.field": "s"})
    with pytest.raises(UnsupportedFeatureError, match=r"update of a sequence compares column 's'.*engine='local'"):
        engine.update(table, {"s": "s"}, "n = 1")
    assert engine.spark is not None
    keys = engine.spark.sql("SELECT TIMESTAMP_NTZ '2020-01-01 00:00:00' AS k")
    with pytest.raises(UnsupportedFeatureError, match=r"delete by keys compares column 'k'"):
        table.delete(keys=keys)
