"""Random tables of all merge engines: files, reads and compactions of Java equal the results of lakelsm's kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Table as LakelsmTable
from lakelsm.format.row_kinds import ROW_KINDS, is_retract
from lakelsm.merge.kernel import merge_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import parse_columns
from tests.chance import seeds
from tests.interop.arrow_merge import file_rows, merged_rows
from tests.interop.peers import JavaPaimon
from tests.interop.random_tables import NESTED, Keyed, random_commits, random_table
from tests.interop.value_form import Rows, rows_of_arrow, unordered_of_arrow
from tests.merge.engine_oracle import Table
from tests.merge.engine_tables import rows_of, schema_of, spec_of

SYSTEM = parse_columns(f"{SEQUENCE_NUMBER} BIGINT, {VALUE_KIND} TINYINT")


@pytest.fixture(scope="module")
def check(java: JavaPaimon, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Table, list[Keyed]], None]:
    """Compare Java and the kernel on one table."""
    root, numbers = tmp_path_factory.mktemp("random"), itertools.count()

    def compare(table: Table, commits: list[Keyed]) -> None:
        path = root / f"db{next(numbers)}.db" / "t"
        schema = schema_of(table)
        ddl = ", ".join(f"{field.name} {field.type}" for field in schema.fields)
        java.create(path, ddl, ["id"], options=schema.options)
        java.write_all(
            path,
            [
                (rows_of(schema, found).select(schema.field_names), [ROW_KINDS[record.kind] for _, record in found])
                for found in commits
            ],
            {"write-only": "true"},
        )
        made = [run for run in _runs(table, schema, commits) if len(run)]
        assert [_form(table, run) for run in file_rows(str(path))] == [_form(table, run) for run in made]
        assert _ordered(table, java.read(path)) == _ordered(table, merged_rows(str(path))) == _read(table, path)
        if made:
            java.compact(path)
            whole = _merged(schema, pa.concat_tables(made))
            live = whole.filter(pa.array(~is_retract(whole.column(VALUE_KIND))))
            assert [_form(table, run) for run in file_rows(str(path))] == [_form(table, live)] * (len(live) > 0)
            assert _ordered(table, java.read(path)) == _ordered(table, merged_rows(str(path)))

    return compare


def _runs(table: Table, schema: TableSchema, commits: list[Keyed]) -> list[pa.Table]:
    """Return the sorted run that a writer makes of each commit."""
    numbers = itertools.count()
    runs = []
    for found in commits:
        taken = [(key, record) for key, record in found if not (table.ignore_delete and record.retracts)]
        numbered = [(key, replace(record, number=next(numbers))) for key, record in taken]
        runs.append(_merged(schema, rows_of(schema, numbered)))
    return runs


def _merged(schema: TableSchema, rows: pa.Table) -> pa.Table:
    return merge_rows(rows, order_keys([rows.column("id")]), spec_of(schema))


def _form(table: Table, rows: pa.Table) -> Rows:
    """Return the rows of a file in their order, with sequence numbers and kinds first."""
    schema = schema_of(table)
    system = unordered_of_arrow(rows.select([SEQUENCE_NUMBER, VALUE_KIND]), SYSTEM)
    values = unordered_of_arrow(rows.select(schema.field_names), schema.fields)
    return [(*numbers, *_plain(table, row)) for numbers, row in zip(system, values, strict=True)]


def _read(table: Table, path: Path) -> Rows:
    """Return the rows that lakelsm reads in this process."""
    found = LakelsmTable.for_path(str(path))
    return _ordered(table, rows_of_arrow(found.to_arrow(), found.schema.fields))


def _ordered(table: Table, rows: Rows) -> Rows:
    return [_plain(table, row) for row in rows]


def _plain(table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row (its key first), with sorted arrays if they have no order."""
    plain = [row[0]]
    for column, value in zip(table.columns, row[1:], strict=True):
        free = column.function in NESTED or column.flag("distinct")
        plain.append(tuple(sorted(value, key=repr)) if free and isinstance(value, tuple) else value)
    return tuple(plain)


@pytest.mark.property
@pytest.mark.parametrize("number", seeds(5))
@pytest.mark.parametrize("engine", ["aggregation", "partial-update", "deduplicate", "first-row"])
def test_java_and_the_kernel_merge_random_rows_alike(
    check: Callable[[Table, list[Keyed]], None], engine: str, number: int
) -> None:
    random = Random(f"{engine} {number}")
    table = random_table(random, engine, number)
    check(table, random_commits(random, table, retractions=number % 5 > 0))
