"""What a write of the data source refuses before a task runs. `test_writer` and `test_stream_writer` have its tasks."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from lakelsm import Catalog, Table
from lakelsm.data_source.planned_write import PlannedWrite
from lakelsm.data_source.spark_rows import source_struct
from lakelsm.data_source.write_options import WriteOptions
from lakelsm.errors import InvalidInputError


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    return catalog.create_table("d.t", {"id": "INT", "n": "INT"}, primary_key="id", options={"bucket": "-1"})


def planned(table: Table, *, overwrite: bool = False, **options: str) -> PlannedWrite:
    given = {name.replace("_", "-"): value for name, value in options.items()}
    struct = source_struct(table.schema, None).add("rk", "string")
    wanted = WriteOptions.of({"path": table._store().paths.root, **given})
    return PlannedWrite.of(wanted, struct, overwrite=overwrite, task_numbers=10)


def test_tasks_get_the_write_without_the_keys_of_its_buckets(table: Table) -> None:
    table.write([{"id": at, "n": 0} for at in range(3)])
    found = pickle.loads(pickle.dumps(planned(table, row_kind="RK")))
    assert found.job.hash_indexes == {}
    assert [found._first_sequence(at) - found.job.first_sequence for at in range(3)] == [0, 10, 20]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the table has no column rk"),
        ({"row_kind": "no"}, "option 'row-kind': column 'no' is not in the frame. Columns: id, n, rk"),
        ({"row_kind": "rk", "overwrite": True}, "option 'row-kind': rows that replace the table have no row kinds"),
        ({"row_kind": "rk", "event_time": "no"}, "no column 'no'|column 'no'"),
        ({"row_kind": "rk", "event_time": "n"}, "option 'event-time': column 'n' is of type INT"),
    ],
)
def test_wrong_columns_are_refused_before_a_row_is_read(table: Table, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        planned(table, **options)  # type: ignore[arg-type]
