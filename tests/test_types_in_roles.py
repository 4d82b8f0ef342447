"""Every type as a partition column, as a key and as a value: both engines give correct results for all operations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.types import output_arrow, parse_columns
from tests.engines import ON_SPARK, Row, TableEngine
from tests.typed_values import TYPED_VALUES, TypedValues, millis_of

#: Types whose conditions only Spark evaluates. The other engine refuses them by name.
_SPARKS_CONDITIONS = ("CHAR", "TIME")
#: Types without conditions that drop partitions.
_NO_DROP = ("CHAR(", "TIME(", "TIMESTAMP(9)", "TIMESTAMP_LTZ(9)")
_OPTIONS = {"bucket": "2", "write-only": "true", "changelog-producer": "lookup", "primary-key.nullable": "true"}


def _arrow(ddl: str, rows: Sequence[Row], timed: bool = True) -> pa.Table:
    """Return rows in Arrow; TIME is a number unless ``timed``, as in a DataFrame."""
    columns, names = [], []
    fields = parse_columns(ddl)
    for field, values in zip(fields, zip(*rows) if rows else [()] * len(fields), strict=True):
        numbers = field.type.root == "TIME" and not timed
        given = [value if value is None else millis_of(value) for value in values] if numbers else values
        columns.append(pa.array(given, pa.int32() if numbers else output_arrow(field.type)))
        names.append(field.name)
    return pa.Table.from_arrays(columns, names)


def _plain(rows: pa.Table) -> list[Row]:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=lambda row: [repr(value) for value in row])


class _OneType:
    """A table with a partition column p, a key c and a value v of one type, and a number k."""

    def __init__(self, warehouse: Path, typed: TypedValues) -> None:
        last = [] if typed.sql == "BOOLEAN" else [typed.values[2]]
        values: list[Any] = [None, *typed.values[:2], *last]
        self.literals = [None, *typed.literals]
        self.typed = typed
        self.ddl = f"p {typed.sql}, c {typed.sql}, k INT, v {typed.sql}"
        options = dict(_OPTIONS)
        if typed.type.root in ("BINARY", "VARBINARY"):
            options["partition.legacy-name"] = "false"
        self.table = Catalog(str(warehouse)).create_table(
            "db.t", self.ddl, primary_key=["p", "c"], partition_by=["p"], options=options
        )
        self.rows: list[Row] = [(value, value, at, value) for at, value in enumerate(values)]

    def write(self) -> None:
        """Write every key twice, the first time without a value."""
        self.table.write(_arrow(self.ddl, [(*row[:-1], None) for row in self.rows]))
        self.table.write(_arrow(self.ddl, self.rows))

    def check(self, *rows: Row) -> None:
        assert _plain(self.table.to_arrow()) == _plain(_arrow(self.ddl, rows)), self.typed.sql

    def conditions(self) -> list[tuple[str, Row]]:
        """Return conditions that this process evaluates, and the row that each finds."""
        found = [(f"{name} IS NULL", self.rows[0]) for name in "pcv"]
        if self.typed.type.root not in _SPARKS_CONDITIONS:
            for literal, row in zip(self.literals[1:], self.rows[1:]):
                found += [(f"{name} = {literal}", row) for name in "pcv"]
        return found


@pytest.mark.parametrize("typed", TYPED_VALUES, ids=lambda typed: typed.sql)
def test_a_column_of_any_type_can_be_a_partition_a_key_and_a_value(tmp_path: Path, typed: TypedValues) -> None:
    made = _OneType(tmp_path, typed)
    table, rows = made.table, made.rows
    made.write()
    made.check(*rows)
    table.compact(full=True)
    made.check(*rows)
    for condition, row in made.conditions():
        assert _plain(table.to_arrow(condition)) == _plain(_arrow(made.ddl, [row])), condition
        assert int(table.count(condition, engine="local")) == 1, condition
    changes = table.changelog_reader().read_all()
    assert changes["rowkind"].to_pylist() == ["+I"] * len(rows)
    assert _plain(changes.drop_columns(["rowkind"])) == _plain(_arrow(made.ddl, rows))
    with table.lookup() as lookup:
        for row in rows[1:]:
            found = lookup.get(*row[:2])
            assert found is not None and tuple(found.values()) == row
        assert len(lookup.get_many(changes.select(["p", "c"]))) == len(rows)
    table.delete(keys=_arrow(made.ddl, rows[:2]).select(["p", "c"]))
    made.check(*rows[2:])
    if not typed.sql.startswith(_NO_DROP):
        assert len(table.maintenance.drop_partitions(f"p = {made.literals[2]}").partitions) == 1
        made.check(*rows[3:])
    assert not table.maintenance.check().findings


class _AllTypes:
    """One table with a partition column, a key column and a value of every type, and a number n."""

    def __init__(
        self, warehouse: Path, engine: TableEngine, types: Sequence[TypedValues] = TYPED_VALUES, buckets: str = "2"
    ) -> None:
        columns = {f"{role}{at}": typed for role in "pkv" for at, typed in enumerate(types)}
        self.columns, self.engine, self.root = columns, engine, warehouse / "db.db" / "t"
        self.ddl = ", ".join([*(f"{name} {typed.sql}" for name, typed in columns.items()), "n INT"])
        partition, key = ([name for name in columns if name[0] == role] for role in "pk")
        options = {**_OPTIONS, "partition.legacy-name": "false", "bucket": buckets}
        self.table = engine.create(warehouse, self.ddl, [*partition, *key], partition, options)
        self.rows: list[Row] = [(*(typed.values[at] for typed in columns.values()), at) for at in range(3)]
        self.rows.append((*[None] * len(columns), 3))

    def frame(self, rows: Sequence[Row]) -> Any:
        """Return rows in the form that the engine takes."""
        if self.engine.spark is None:
            return _arrow(self.ddl, rows)
        from lakelsm.spark.spark_types import to_struct

        return self.engine.spark.createDataFrame(_arrow(self.ddl, rows, timed=False), to_struct(self.table.schema.fields))

    def local_rows(self, rows: Any) -> list[Row]:
        """Return the rows of a DataFrame in the form of this process."""
        found = rows.toArrow()
        kinds = {field.name: field.type.root for field in self.table.schema.fields}
        columns = [found.column(name) for name in self.table.schema.field_names]
        timed = [
            column.cast(pa.time32("ms")) if kinds[name] == "TIME" else column
            for name, column in zip(self.table.schema.field_names, columns, strict=True)
        ]
        return _plain(pa.Table.from_arrays(timed, self.table.schema.field_names))

    def check(self, *rows: Row) -> None:
        """Assert that both engines read the rows."""
        expected = _plain(_arrow(self.ddl, rows))
        assert _plain(self.table.to_arrow()) == expected
        if self.engine.spark is not None:
            assert self.local_rows(self.table.read()) == expected

    def condition(self, at: int, roles: str = "pkv") -> str:
        """Return a condition that only the row with this index meets."""
        columns = {name: typed for name, typed in self.columns.items() if name[0] in roles}
        if at == 3:
            return " AND ".join(f"{name} IS NULL" for name in columns)
        return " AND ".join(f"{name} = {typed.literals[at]}" for name, typed in columns.items())

    def directories(self) -> set[str]:
        """Return the directories of data files, relative to the table's directory."""
        return {str(path.parent.relative_to(self.root)) for path in self.root.glob("p0=*/**/*.parquet")}


@ON_SPARK
def test_spark_writes_and_changes_tables_of_every_type_as_this_process_does(engine: TableEngine, tmp_path: Path) -> None:
    made, local = _AllTypes(tmp_path / "spark", engine), _AllTypes(tmp_path / "local", TableEngine("local"))
    table, rows = made.table, made.rows
    for each in (made, local):
        each.table.write(each.frame([(*row[:-1], -1) for row in rows]))
        each.table.write(each.frame(rows))
    made.check(*rows)
    assert made.directories() == local.directories()
    for at in range(len(rows)):
        assert made.local_rows(table.read(made.condition(at))) == _plain(_arrow(made.ddl, rows[at : at + 1]))
    assert int(table.count(made.condition(1), engine="spark")) == 1
    table.compact(full=True, engine="spark")
    made.check(*rows)
    changes = table.changelog()
    assert made.local_rows(changes) == _plain(_arrow(made.ddl, rows))
    with table.lookup() as lookup:
        assert lookup.get(*rows[2][: 2 * len(TYPED_VALUES)]) == dict(zip(table.schema.field_names, rows[2], strict=True))
    dropped = " AND ".join(
        f"{name} = {typed.literals[0]}"
        for name, typed in made.columns.items()
        if name[0] == "p" and not typed.sql.startswith(_NO_DROP)
    )
    assert len(table.maintenance.drop_partitions(dropped).partitions) == 1
    made.check(*rows[1:])


@ON_SPARK
def test_spark_updates_and_deletes_rows_of_every_type_without_nanoseconds(engine: TableEngine, tmp_path: Path) -> None:
    made = _AllTypes(tmp_path, engine, [typed for typed in TYPED_VALUES if "(9)" not in typed.sql], buckets="-1")
    table, rows = made.table, made.rows
    table.write(made.frame(rows))
    table.update({"n": "n + 10"}, f"({made.condition(1)}) OR ({made.condition(3)})")
    changed = [(*row[:-1], row[-1] + 10 * (row[-1] in (1, 3))) for row in rows]
    made.check(*changed)
    table.delete(made.condition(1, "pk"), engine="spark")
    table.delete(keys=made.frame(rows[3:]).select(*table.schema.primary_keys))
    made.check(changed[0], changed[2])


@pytest.mark.parametrize("sql", ["BINARY(3)", "VARBINARY(3)", "BYTES"])
def test_bytes_cannot_be_a_partition_with_legacy_names(tmp_path: Path, sql: str) -> None:
    catalog = Catalog(str(tmp_path))
    with pytest.raises(UnsupportedFeatureError, match=r"partition column of type .*'partition.legacy-name' = 'true'"):
        catalog.create_table("db.t", f"c {sql}, k INT", primary_key=["c", "k"], partition_by=["c"])


@pytest.mark.parametrize("sql", ["ARRAY<INT>", "MAP<INT, INT>", "MULTISET<INT>", "ROW<a INT>"])
@pytest.mark.parametrize("partition", [["c"], []], ids=["partition", "key"])
def test_nested_types_cannot_be_partitions_or_keys(tmp_path: Path, sql: str, partition: list[str]) -> None:
    catalog = Catalog(str(tmp_path))
    with pytest.raises(InvalidInputError, match=r"column 'c': type"):
        catalog.create_table("db.t", f"c {sql}, k INT", primary_key=["c", "k"], partition_by=partition)
