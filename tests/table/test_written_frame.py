"""``merge_schema=True``: a write first adds the columns and widens the types that its frame needs."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from lakelsm.errors import CommitConflictError, InvalidInputError, LakelsmError, StorageError
from lakelsm.schema_changes import AddColumn, UpdateColumnType
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.write.batch_write import BatchWriter
from tests.test_inferred_columns import Stream

BIG = 2**40
COLUMNS = "id INT, v INT, d DECIMAL(4, 2)"
ROWS = [{"id": 2, "v": BIG, "d": 1.5, "w": "x"}]
AFTER: list[dict[str, Any]] = [{"id": 1, "v": 1, "d": 1, "w": None}, {"id": 2, "v": BIG, "d": 1.5, "w": "x"}]
CHANGES = (UpdateColumnType("v", "BIGINT"), AddColumn("w", "STRING"))
FORMS: dict[str, Callable[[pa.Table], Any]] = {
    "dicts": pa.Table.to_pylist,
    "dict": pa.Table.to_pydict,
    "arrow": lambda rows: rows,
    "reader": pa.Table.to_reader,
    "pandas": pa.Table.to_pandas,
    "stream": Stream,
}


def table_in(path: Path, columns: str = COLUMNS, **options: str) -> Table:
    given = {"bucket": "1", **{name.replace("_", "-"): value for name, value in options.items()}}
    return Catalog(str(path)).create_table("d.t", columns, primary_key="id", options=given)


def schema_ids(table: Table) -> list[int]:
    return table._store().schemas.ids()


def rows_of(table: Any) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_rows_adds_columns_and_widens_types(tmp_path: Path, form: str) -> None:
    table = table_in(tmp_path)
    table.write([{"id": 1, "v": 1, "d": 1}])
    with pytest.raises(InvalidInputError, match=r"no column w\. .* \(merge_schema=True does\)"):
        table.write(ROWS)
    result = table.write(FORMS[form](pa.Table.from_pylist(ROWS)), merge_schema=True)
    assert result.schema_changes == CHANGES and result.snapshot_id == 2 and rows_of(table) == AFTER
    assert result.as_dict()["schema_changes"] == ("column v as BIGINT", "the new column w STRING")
    assert str(table.schema).startswith("id INT NOT NULL,\nv BIGINT,\nd DECIMAL(4, 2),\nw STRING\n")
    narrower = pa.table({"V": pa.array([7], pa.int8()), "D": [None], "ID": [2], "W": ["y"]})
    assert table.write(narrower, merge_schema=True).schema_changes == ()
    assert rows_of(table) == [AFTER[0], {"id": 2, "v": 7, "d": None, "w": "y"}] and schema_ids(table) == [0, 1]
    assert table.at(snapshot=1).schema.id == 0


def test_old_files_are_read_merged_and_compacted_with_the_widened_types(tmp_path: Path) -> None:
    columns = "id INT, v INT, f FLOAT, n DECIMAL(4, 2), s VARCHAR(2), b VARBINARY(2), t TIMESTAMP(3), r ROW<a INT>"
    table = table_in(tmp_path, columns, merge_engine="partial-update")
    day = dt.datetime(2026, 1, 1)
    old = {"v": 1, "f": 0.5, "n": 1, "s": "ab", "b": b"ab", "t": day, "r": {"a": 1}}
    table.write([{"id": at, **old} for at in range(20)])
    kinds = {
        "v": pa.int64(),
        "f": pa.float64(),
        "n": pa.decimal128(6, 2),
        "b": pa.binary(3),
        "t": pa.timestamp("us"),
        "r": pa.struct([("a", pa.int64()), ("x", pa.int32())]),
    }
    new = {"v": BIG, "f": 0.1, "n": Decimal(1000), "b": b"abc", "t": day.replace(microsecond=1), "r": {"a": BIG, "x": 5}}
    rows = {name: pa.array([new[name]] * 10).cast(kind) for name, kind in kinds.items() if name != "r"}
    rows |= {"id": pa.array(range(10)), "r": pa.array([new["r"]] * 10, kinds["r"])}
    changes = table.write(pa.table(rows), merge_schema=True).schema_changes
    assert len(changes) == 7
    seen = {**old, "r": {"a": 1, "x": None}}
    expected = [{"id": at, **(seen | new if at < 10 else seen)} for at in range(20)]
    assert rows_of(table) == expected
    table.compact(full=True)
    assert rows_of(table) == expected
    assert table.write([{"id": 10, "s": "abc"[:2]}], merge_schema=True).schema_changes == ()
    with pytest.raises(InvalidInputError, match=r"'s' is longer than VARCHAR\(2\) allows"):
        table.write([{"id": 10, "s": "abc"}], merge_schema=True)


def test_an_overwrite_also_merges_and_strict_casts_refuse_the_rest(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    table = catalog.create_table("d.p", "id INT, p INT, v INT", primary_key=["id", "p"], partition_by=["p"])
    table.write([{"id": 1, "p": 1, "v": 1}, {"id": 1, "p": 2, "v": 2}])
    rows = pa.table({"id": pa.array([3], pa.int32()), "v": [2.5], "w": [True]})
    result = table.overwrite(rows, {"p": 2}, merge_schema=True, cast="strict")
    assert result.schema_changes == (UpdateColumnType("v", "DOUBLE"), AddColumn("w", "BOOLEAN"))
    assert rows_of(table) == [{"id": 1, "p": 1, "v": 1.0, "w": None}, {"id": 3, "p": 2, "v": 2.5, "w": True}]
    wide = rows.set_column(0, "id", pa.array([3])).append_column("x", pa.array([1]))
    output = "Table d.p: column 'id' is BIGINT in the frame and INT in the table, and the type of a key"
    with pytest.raises(InvalidInputError, match=output):
        table.overwrite(wide, {"p": 2}, merge_schema=True, cast="strict")
    assert schema_ids(table) == [0, 1]
    assert table.overwrite(wide, {"p": 2}, merge_schema=True).schema_changes == (AddColumn("x", "BIGINT"),)


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ([{**ROWS[0], "v": "x"}], {}, "column 'v' is STRING in the frame and INT in the table"),
    ([{**ROWS[0], "W": 1}], {}, "column W, w occurs more than once"),
    ([{"id": 1, "w": 1}], {}, "lacks column v, d of the table"),
    ([{**ROWS[0], "_KEY_a": 1}], {}, "column name '_KEY_a' starts with the reserved prefix '_KEY_'"),
    ([{**ROWS[0], "n": None}], {}, "column 'n': all values are NULL"),
    ([{**ROWS[0], "d": 1.005}], {}, "row 1, column 'd': 1.005 does not fit DECIMAL(4, 2)"),
    (pa.Table.from_pylist([{**ROWS[0], "id": None}]), {}, "key column 'id' is NULL"),
    (pd.DataFrame({**ROWS[0], "t": pd.to_datetime([1])}), {}, "column 't': 1970-01-01 00:00:00.000000001 is finer"),
    (ROWS, {"row_kind": "op"}, "row_kind: column 'op' is not in the frame"),
    (ROWS, {"options": {"write-buffer-size": "x"}}, "write-buffer-size"),
    (ROWS, {"merge_schema": 1}, "merge_schema: expected True or False"),
]


def test_a_refused_write_does_not_change_the_schema(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    for frame, more, output in REFUSED:
        with pytest.raises(InvalidInputError, match=re.escape(output)):
            table.write(frame, **{"merge_schema": True, **more})
    assert schema_ids(table) == [0] and table.inspect.snapshots().to_arrow().num_rows == 0


def test_a_concurrent_schema_change_is_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, add = table_in(tmp_path), SchemaStore._add
    others: Iterator[Any] = iter([AddColumn("w", "VARCHAR(9)"), UpdateColumnType("v", "DOUBLE")])

    def racing(store: SchemaStore, schema: Any) -> bool:
        other = next(others, None)
        if other is not None:
            with monkeypatch.context() as patch:
                patch.setattr(SchemaStore, "_add", add)
                Catalog(str(tmp_path)).alter_table("d.t", other)
        return add(store, schema)

    monkeypatch.setattr(SchemaStore, "_add", racing)
    rows = pa.Table.from_pylist([{"id": 2, "v": 5, "d": None, "w": "x", "y": 1}]).to_reader()
    result = table.write(rows, merge_schema=True)
    assert result.schema_changes == (AddColumn("y", "BIGINT"),) and schema_ids(table) == [0, 1, 2, 3]
    assert rows_of(table) == [{"id": 2, "v": 5.0, "d": None, "w": "x", "y": 1}]


def test_a_write_that_fails_after_the_change_reports_the_new_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, write = table_in(tmp_path), BatchWriter.append
    output = "The schema changes are already published: schema {} has {}."

    def failing(error: Callable[[], BaseException]) -> Any:
        def append(*args: Any, **more: Any) -> Any:
            raise error()

        return append

    lost = partial(CommitConflictError, "others were first.", keeps_files=True)
    monkeypatch.setattr(BatchWriter, "append", failing(lost))
    with pytest.raises(CommitConflictError) as conflict:
        table.write(ROWS, merge_schema=True)
    assert conflict.value.keeps_files
    assert str(conflict.value) == "others were first. " + output.format(1, "column v as BIGINT, the new column w STRING")
    monkeypatch.setattr(BatchWriter, "append", failing(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt) as interrupted:
        table.write([{**ROWS[0], "x": 1}], merge_schema=True)
    assert interrupted.value.__notes__ == ["Table d.t: " + output.format(2, "the new column x BIGINT")]
    with pytest.raises(KeyboardInterrupt) as interrupted:  # Nothing was changed.
        table.write([{**ROWS[0], "x": 1}], merge_schema=True)
    assert not hasattr(interrupted.value, "__notes__")
    monkeypatch.setattr(BatchWriter, "append", write)
    with monkeypatch.context() as patch, pytest.raises(StorageError) as reading:
        patch.setattr(SchemaStore, "get", failing(partial(StorageError, "no answer")))
        table.write([{**ROWS[0], "x": 1, "z": 1}], merge_schema=True)
    assert str(reading.value) == "no answer. " + output.format(3, "the new column z BIGINT")
    stream = pa.Table.from_pylist([{**ROWS[0], "id": None, "x": 1, "z": 1, "y": 1}]).to_reader()
    with pytest.raises(InvalidInputError, match=re.escape("key column 'id' is NULL")) as row:
        table.write(stream, merge_schema=True)
    assert str(row.value).endswith(output.format(4, "the new column y BIGINT")) and schema_ids(table) == [*range(5)]
    assert table.write([{**ROWS[0], "x": 1, "z": 1, "y": 2}], merge_schema=True).schema_changes == ()


def test_a_repeated_batch_changes_no_schema_but_a_frame_without_rows_does(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.write([{"id": 1, "v": 1, "d": 1}], commit_user="job", batch_id=1)
    again = table.write([{**ROWS[0], "x": 1}], commit_user="job", batch_id=1, merge_schema=True)
    assert again.already_committed and again.schema_changes == () and schema_ids(table) == [0]
    empty = table.write(pa.Table.from_pylist(ROWS).slice(1), merge_schema=True)
    assert (empty.snapshot_id, empty.changed, empty.outcome) == (None, True, "done")
    assert empty.schema_changes == CHANGES and schema_ids(table) == [0, 1]
    assert table.write([], merge_schema=True).outcome == "nothing"


def test_partial_updates_and_branches_and_row_kinds_merge(tmp_path: Path) -> None:
    table = table_in(tmp_path, merge_engine="partial-update")
    table.write([{"id": 1, "v": 1, "d": 1}])
    table.branches.create("b")
    branch = Catalog(str(tmp_path)).table("d.t$branch_b")
    assert branch.write([{"id": 1, "z": [1]}], merge_schema=True).schema_changes == (AddColumn("z", "ARRAY<BIGINT>"),)
    assert schema_ids(branch) == [0, 1] and schema_ids(table) == [0]
    kinds = [{"id": 1, "w": np.float32(0.5), "op": "+U"}]
    assert table.write(kinds, "OP", merge_schema=True).schema_changes == (AddColumn("w", "FLOAT"),)
    assert rows_of(table) == [{"id": 1, "v": 1, "d": 1, "w": 0.5}]


def test_frames_of_spark_merge_by_their_schema_and_spark_reads_old_files(spark: SparkSession, tmp_path: Path) -> None:
    table = table_in(tmp_path, "id INT, v INT, a ARRAY<ROW<x INT>>")
    table.write([{"id": 1, "v": 1, "a": [{"x": 1}]}])
    frame = spark.sql(
        f"SELECT 2 AS ID, {BIG}L AS v, array(named_struct('x', {BIG}L, 'y', 'b')) AS a, date'2026-01-01' AS w"
    )
    result = Catalog(str(tmp_path), spark).table("d.t").write(frame, merge_schema=True)
    assert [str(change) for change in result.schema_changes] == [
        "column v as BIGINT", "column a.element.x as BIGINT", "the new column a.element.y STRING", "the new column w DATE"
    ]  # fmt: skip
    expected = [
        {"id": 1, "v": 1, "a": [{"x": 1, "y": None}], "w": None},
        {"id": 2, "v": BIG, "a": [{"x": BIG, "y": "b"}], "w": dt.date(2026, 1, 1)},
    ]
    on_spark = Catalog(str(tmp_path), spark).table("d.t")
    assert rows_of(table) == expected
    assert [row.asDict(recursive=True) for row in on_spark.read().orderBy("id").collect()] == expected
    on_spark.compact(full=True, engine="spark")
    assert rows_of(table) == expected
    output = r"column 'v' is STRING in the frame and BIGINT in the table"
    with pytest.raises(InvalidInputError, match=output):
        on_spark.write(spark.sql("SELECT 1 AS id, 'x' AS v, NULL AS a, NULL AS w"), merge_schema=True)
    with pytest.raises(LakelsmError, match="published: schema 2 has the new column z INT"):
        on_spark.write(
            spark.sql("SELECT CAST(NULL AS INT) AS id, 1 AS v, NULL AS a, NULL AS w, 1 AS z"), merge_schema=True
        )
