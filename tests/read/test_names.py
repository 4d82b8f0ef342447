"""Names of columns and files that lakelsm, Spark or SQL use themselves change no row."""

from __future__ import annotations

import ast
import datetime
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lakelsm
from lakelsm import Catalog
from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.file_check import ExpectedFile, FileCheck
from lakelsm.format.data_file.int96_timestamps import leaves_of
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.schema import system_columns
from lakelsm.schema.table_schema import create_schema
from lakelsm.storage import LocalFileIO
from tests.engines import TableEngine, each_case
from tests.merge.run_files import layout_of, reader_of, rows_table, write_files, write_run
from tests.nano_times import python_rows

#: Names that Spark's scan reads unchanged.
NAMES = (
    *("stale_words", "HIDDEN_FILE", "file_name", "_SNAPSHOT_ID", "a", "a.b", "`tick`", "quo'te", 'dq"', "sp ace", "üñ漢"),
    *(".dot", "%41", "a,b;c", "{x}()=", "\\back", "*", "column_0", "_level", "null", "1", "--c", "/* x */", "${x}"),
)
#: Names to which Spark gives another meaning or location.
TAKEN = ("_metadata", "_TMP_METADATA_ROW_INDEX", "a.b")

#: Names that plans give to their columns. No table has the first two, nor any that begins with `_KEY_`; tasks read files
#: that have the third; and the last is for reads with positions, which the user requested.
_OURS = {"_SEQUENCE_NUMBER", "_VALUE_KIND", "_tmp_metadata_row_index", "_SNAPSHOT_ID"}


def _columns(names: tuple[str, ...]) -> str:
    texts = [f"{quoted(name)} STRING" for name in names]
    members = ", ".join(texts[:8])
    return ", ".join(["_part STRING NOT NULL", "`_${file}` BIGINT NOT NULL", *texts, f"row ROW<{members}>"])


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


#: For each case: names of columns, the prefix of files, and options.
ODD: dict[str, tuple[tuple[str, ...], str, dict[str, str]]] = {
    "names of all kinds": (NAMES, "data-", {"changelog-producer": "input"}),
    "names that Spark's scan takes": (TAKEN, "x %é", {"merge-engine": "partial-update", "changelog-producer": "lookup"}),
    "files that Spark hides": (("v",), "_", {"changelog-producer": "input"}),
}


@each_case("odd", ODD, ODD)
def test_rows_and_changes_equal_those_of_any_other_table(engine: TableEngine, odd: str, tmp_path: Path) -> None:
    names, prefix, given = ODD[odd]
    options = {"bucket": "2", "data-file.prefix": prefix, "changelog-file.prefix": prefix} | given
    table = engine.create(tmp_path, _columns(names), ["_part", "_${file}"], ["_part"], options)
    expected: dict[int, tuple[object, ...]] = {}
    for first, tag in ((0, "old"), (2, "new")):
        rows = [
            ("_x" if key % 2 else ".y", key, *(texts := [f"{tag} {name}" for name in names]), tuple(texts[:8]))
            for key in range(first, first + 4)
        ]
        engine.write(table, [(*row[:-1], dict(zip(names, row[-1]))) for row in rows])
        expected |= {row[1]: row for row in rows}
    wanted = sorted(expected.values())
    assert engine.rows(table) == wanted
    last = names[-1]
    found = engine.rows(table, "_part = '_x'", [last, "_${file}"])
    assert found == sorted((row[-2], row[1]) for row in wanted if row[0] == "_x")
    engine.compact(table, full=True)
    assert engine.rows(table) == wanted
    changes: dict[int, tuple[object, ...]] = {}
    for kind, *row in engine.changes(table):
        changes[row[1]] = (kind, *row)
    assert sorted(row[1:] for row in changes.values()) == wanted


def test_names_are_found_in_any_case_as_spark_finds_them(spark: SparkSession, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path), spark)
    columns, options = "id INT, Dt STRING, v INT", {"bucket": "1", "write-only": "true"}
    table = catalog.create_table("d.t", columns, primary_key=["id", "Dt"], partition_by=["Dt"], options=options)
    table.write(spark.createDataFrame([(1, "a", 1), (2, "b", 2)], "ID INT, DT STRING, V INT"))
    table.overwrite(spark.createDataFrame([(3, 3)], "ID INT, V INT"), {"DT": "b"})
    found = table.read(where="dt = 'b' OR ID = 7", columns=["V", "iD"])
    assert (found.columns, [tuple(row) for row in found.collect()]) == (["V", "iD"], [(3, 3)])
    with pytest.raises(InvalidInputError, match="partition: 'DT' and 'Dt' are one column for Spark"):
        table.overwrite(spark.createDataFrame([(3, 3)], "id INT, v INT"), {"DT": "b", "Dt": "b"})


def test_a_batch_that_lost_a_race_is_written_again_from_files_that_spark_hides(
    spark: SparkSession, tmp_path: Path
) -> None:
    from lakelsm.frames.frame_writer import FrameWriter
    from lakelsm.frames.prepare import prepare
    from lakelsm.write.batch_write import BatchWriter

    catalog = Catalog(str(tmp_path), spark)
    options = {"bucket": "1", "write-only": "true", "data-file.prefix": "_"}
    table = catalog.create_table("d.t", "id INT, v INT", primary_key=["id"], options=options)
    store = table._store()
    others = iter([True])

    def race(step: str) -> None:
        if step == "data-files-written" and next(others, False):
            table.write(spark.createDataFrame([(1, 1)], "id int, v int"))

    rows = prepare(spark.createDataFrame([(1, 2), (2, 2)], "id int, v int"), store.schema, store.options)
    BatchWriter(FrameWriter(spark, store), store, race).append(rows, "late")
    assert sorted(map(tuple, table.read().collect())) == [(1, 2), (2, 2)]


def test_plans_use_no_column_name_that_a_table_may_have() -> None:
    root = Path(lakelsm.__file__).parent
    found = {
        name
        for room in ("read", "write", "compact", "merge")
        for path in (root / room).glob("*.py")
        for name in _new_columns(ast.parse(path.read_text()))
    }
    assert {name for name in found if not name.startswith("_KEY_")} <= _OURS
    assert len(found) > 3


def _new_columns(tree: ast.Module) -> Iterator[str]:
    """Return the literal names that calls of a module give to columns, with constants and system columns resolved."""
    constants = {name: value for name, value in vars(system_columns).items() if name.isupper()} | {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if called not in ("alias", "withColumn", "StructField", "append_column", "withColumnRenamed", "add"):
            continue
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value
        if isinstance(first, ast.Name) and first.id in constants:
            yield constants[first.id]


def test_columns_with_dots_are_not_taken_for_members(tmp_path: Path) -> None:
    columns = "a ROW<b BIGINT>, `a.b` BIGINT, `t.u` TIMESTAMP(9), `r.s` ROW<x TIMESTAMP(9)>"
    schema = create_schema(columns, ["a.b"])
    late = datetime.datetime(9999, 12, 31, 23, 59, 59)
    rows = [(at, 0, {"a.b": at, "a": {"b": 1000 + at}, "t.u": late, "r.s": {"x": late}}) for at in range(6)]
    (run,) = reader_of(schema).open_runs(
        MergeUnit((write_run(tmp_path, schema, rows, group_rows=2),), lower=(2,), upper=(4,))
    )
    found = [row for table in run for row in python_rows(table.select(["a.b", "a", "t.u", "r.s"]))]
    assert found == [row for _, _, row in rows[2:4]]
    (meta,) = write_files(tmp_path, layout_of(schema), [rows_table(schema, rows)])
    (check,) = FileCheck.of([ExpectedFile.of(meta, b"")], schema)
    check.check_file(LocalFileIO().filesystem(), f"{tmp_path}/{meta.file_name}")
    footer = pq.read_metadata(f"{tmp_path}/{meta.file_name}")
    assert [leaf.path for leaf in leaves_of(footer.schema, ["t.u", "r.s"])] == ["t.u", "r.s.x"]
