"""Every permitted change of a column's type: each engine reads, merges and compacts the old values as Java casts them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm import Table
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.types import AtomicType, DataType, output_arrow, parse_type, to_arrow
from tests.engines import ON_SPARK, TableEngine
from tests.interop.value_form import Rows, cut_to_micros, rows_of_arrow
from tests.type_changes import BEFORE, CHANGES, NESTED, rows_before, schema_changes

#: Small enough that tasks that merge read overlapping files, not a scan.
_OPTIONS = {"merge-engine": "partial-update"}
_COUNT = 2000


def _cast(values: list[Any], old: DataType, new: DataType) -> list[Any]:
    """Return values as Java casts them: integers to the nearest number, decimals through DOUBLE."""
    if new.root not in ("FLOAT", "DOUBLE") or old.root in ("FLOAT", "DOUBLE"):
        return values
    numbers = [0 if value is None else value for value in values]
    if isinstance(old, AtomicType) and old.root == "DECIMAL":
        scale = old.scale or 0
        compact = (old.precision or 0) <= 18
        doubles = [float(int(v.scaleb(scale))) / 10**scale if compact else float(v) for v in map(Decimal, numbers)]
        found = np.array(doubles)
    else:
        found = np.array(numbers, np.int64)
    cast = found.astype(np.float32 if new.root == "FLOAT" else np.float64).tolist()
    return [None if value is None else number for value, number in zip(values, cast)]


def _expected(rows: pa.Table, table: Table) -> Rows:
    columns = {name: rows.column(name).to_pylist() for name in rows.column_names}
    for at, (old, new) in enumerate(CHANGES):
        columns[f"c{at}"] = _cast(columns[f"c{at}"], parse_type(old), parse_type(new))
    for at, (old, part, new) in enumerate(NESTED):
        kind: Any = parse_type(old)
        inner = {"element": lambda k: k.element, "value": lambda k: k.value}.get(part, lambda k: k.fields[0].type)(kind)
        columns[f"n{at}"] = [_nested(value, inner, parse_type(new)) for value in columns[f"n{at}"]]
    fields = table.schema.fields
    arrays = [pa.array(columns[field.name], output_arrow(field.type)) for field in fields]
    return rows_of_arrow(pa.Table.from_arrays(arrays, [field.name for field in fields]), fields)


def _nested(value: Any, old: DataType, new: DataType) -> Any:
    if isinstance(value, dict):
        return {**value, "x": _cast([value["x"]], old, new)[0]}
    if value and isinstance(value[0], tuple):
        return [(key, _cast([part], old, new)[0]) for key, part in value]
    return value and _cast(value, old, new)


def _changed(local: TableEngine, tmp_path: Path) -> tuple[Table, Rows]:
    """Return a table of one file that was written before its types changed, and its current rows."""
    made = local.create(tmp_path, BEFORE, ["k"], options=_OPTIONS)
    rows = rows_before(_COUNT)
    made.write(rows)
    local.catalog(tmp_path).alter_table("db.t", *schema_changes())
    table = local.catalog(tmp_path).table("db.t")
    return table, _expected(rows, table)


def _touch(table: Table) -> None:
    """Write rows that change no other column, so that every row is merged."""
    table.write(pa.table({"k": pa.array(range(0, _COUNT, 50), pa.int32())}))


def _local(table: Table) -> Rows:
    return rows_of_arrow(table.to_arrow(), table.schema.fields)


def test_scans_merges_and_compactions_cast_old_values_in_the_same_way(local: TableEngine, tmp_path: Path) -> None:
    table, expected = _changed(local, tmp_path)
    assert _local(table) == expected
    _touch(table)
    assert _local(table) == expected
    table.compact(full=True)
    assert _local(table) == expected


@ON_SPARK
def test_spark_casts_old_values_as_this_process_does(engine: TableEngine, local: TableEngine, tmp_path: Path) -> None:
    table, expected = _changed(local, tmp_path)
    on_spark = engine.opened(tmp_path / "db.db" / "t")
    cut = cut_to_micros(expected, table.schema.fields)

    def check() -> None:
        assert rows_of_arrow(on_spark.read().toArrow(), table.schema.fields) == cut

    check()
    _touch(table)
    check()
    on_spark.compact(full=True, engine="spark")
    check()
    assert _local(table) == expected


#: Changes that Java permits and that truncate, round, parse or refuse values.
LOSSY = [
    ("INT", "STRING"),
    ("BIGINT", "INT"),
    ("DOUBLE", "DECIMAL(10, 2)"),
    ("DOUBLE", "FLOAT"),
    ("DECIMAL(10, 2)", "DECIMAL(5, 1)"),
    ("DECIMAL(10, 2)", "INT"),
    ("STRING", "INT"),
    ("VARCHAR(9)", "VARCHAR(3)"),
    ("TIMESTAMP(6)", "TIMESTAMP(3)"),
    ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)"),
    ("TIMESTAMP(6)", "DATE"),
    ("DATE", "TIMESTAMP(6)"),
    ("BOOLEAN", "INT"),
]


def _changed_by_another_engine(local: TableEngine, tmp_path: Path) -> Table:
    columns = ", ".join(["k INT", *(f"c{at} {old}" for at, (old, _) in enumerate(LOSSY))])
    table = local.create(tmp_path, columns, ["k"])
    table.write(_one_row(table))
    folder = tmp_path / "db.db" / "t" / "schema"
    schema = json.loads((folder / "schema-0").read_text())
    schema["id"] = 1
    for at, (_, new) in enumerate(LOSSY):
        schema["fields"][at + 1]["type"] = parse_type(new).sql()
    (folder / "schema-1").write_text(json.dumps(schema))
    return local.catalog(tmp_path).table("db.t")


def test_a_lossy_change_of_another_engine_is_refused_by_name(local: TableEngine, tmp_path: Path) -> None:
    table = _changed_by_another_engine(local, tmp_path)
    assert table.to_arrow(columns=["k"]).to_pylist() == [{"k": 1}]
    for at, (old, new) in enumerate(LOSSY):
        with pytest.raises(UnsupportedFeatureError, match=f"column 'c{at}' is ") as raised:
            table.to_arrow(columns=["k", f"c{at}"])
        assert parse_type(old).sql() in str(raised.value) and parse_type(new).sql() in str(raised.value)
    table.write(_one_row(table))
    with pytest.raises(UnsupportedFeatureError, match="column 'c0' is INT in a data file and STRING in the table"):
        table.compact(full=True)


def _one_row(table: Table) -> pa.Table:
    kinds = {field.name: to_arrow(field.type) for field in table.schema.fields}
    return pa.table({name: pa.nulls(1, kind) if name != "k" else pa.array([1], kind) for name, kind in kinds.items()})


@ON_SPARK
def test_spark_refuses_the_same_changes(engine: TableEngine, local: TableEngine, tmp_path: Path) -> None:
    _changed_by_another_engine(local, tmp_path)
    table = engine.opened(tmp_path / "db.db" / "t")
    with pytest.raises(UnsupportedFeatureError, match="column 'c0' is INT in a data file and STRING in the table"):
        table.read()
