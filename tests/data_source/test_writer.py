"""The writer of the data source: tasks write files, one commit publishes all of them, and a failure leaves nothing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from lakelsm import Catalog, Table
from lakelsm.data_source import planned_write
from lakelsm.data_source.read_options import ReadOptions
from lakelsm.data_source.reader import TableReader
from lakelsm.data_source.spark_rows import arrow_form, source_struct
from lakelsm.data_source.write_options import WriteOptions
from lakelsm.data_source.writer import TableWriter
from lakelsm.environment import SYSTEM
from lakelsm.errors import CommitConflictError, InvalidInputError
from tests.typed_values import TYPED_VALUES


def created(tmp_path: Path, columns: Any = None, **options: str) -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    settings = {"bucket": "2"} | {name.replace("_", "-"): value for name, value in options.items()}
    return catalog.create_table("d.t", columns or {"id": "INT", "n": "INT"}, primary_key="id", options=settings)


def writer_of(table: Table, *, overwrite: bool = False, **options: str) -> TableWriter:
    given = {"path": table._store().paths.root} | {name.replace("_", "-"): value for name, value in options.items()}
    made = TableWriter(WriteOptions.of(given), source_struct(table.schema, None), overwrite=overwrite)
    copied: TableWriter = pickle.loads(pickle.dumps(made))
    return copied


def task(writer: TableWriter, number: int, rows: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a task of Spark with rows of ids and values, and return its message."""

    class Context:
        @staticmethod
        def get() -> Context:
            return Context()

        def partitionId(self) -> int:
            return number

    monkeypatch.setattr(planned_write, "TaskContext", Context)
    schema = pa.schema([("id", pa.int32()), ("n", pa.int32())])
    batch = pa.RecordBatch.from_pydict({"id": list(rows), "n": list(rows.values())}, schema=schema)
    return pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(writer)).write(iter([batch]))))


def rows_of(table: Table) -> dict[int, int]:
    return {row["id"]: row["n"] for row in table.to_arrow().to_pylist()}


def files_of(table: Table) -> set[str]:
    root = Path(table._store().paths.root)
    return {str(path.relative_to(root)) for path in root.rglob("*.parquet")}


def numbers(start: int, stop: int, add: int = 0) -> dict[int, int]:
    return {number: number + add for number in range(start, stop)}


@pytest.mark.parametrize("bucket", ["2", "-1"])
@pytest.mark.parametrize("options", [{}, {"write_only": "true"}, {"changelog_producer": "input"}])
def test_one_commit_has_the_rows_of_all_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], bucket: str
) -> None:
    table = created(tmp_path, **options, bucket=bucket)
    table.write([{"id": 0, "n": -1}, {"id": 99, "n": -1}])
    before = table.inspect.snapshots().to_arrow().num_rows
    writer = writer_of(table)
    # Of one key, the row of the highest partition wins, in any order of the messages.
    messages = [task(writer, at, numbers(0, 10, 100 * at), monkeypatch) for at in (2, 0, 1)]
    assert rows_of(table) == {0: -1, 99: -1}
    writer.commit(messages)
    assert rows_of(table) == {**numbers(0, 10, 200), 99: -1}
    kinds = table.inspect.snapshots().to_arrow().column("commit_kind").to_pylist()
    assert kinds[before:].count("APPEND") == 1
    table.compact(full=True)
    assert rows_of(table) == {**numbers(0, 10, 200), 99: -1}
    table.write([{"id": 3, "n": -3}])
    assert rows_of(table)[3] == -3
    assert not table.maintenance.check(data="full").findings


@pytest.mark.parametrize("bucket", ["2", "-1"])
def test_an_overwrite_replaces_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: str) -> None:
    table = created(tmp_path, bucket=bucket)
    table.write([{"id": 77, "n": 7}])
    writer = writer_of(table, overwrite=True)
    writer.commit([task(writer, at, numbers(at, at + 2), monkeypatch) for at in (0, 1)])
    assert rows_of(table) == {0: 0, 1: 1, 2: 2}
    writer_of(table, overwrite=True).commit([])
    assert rows_of(table) == {}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_rerun_of_a_batch_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    table = created(tmp_path)
    states = []
    for value in (1, 2):
        writer = writer_of(table, overwrite=overwrite, commit_user="job", batch_id="4")
        writer.commit([task(writer, 0, {1: value}, monkeypatch)])
        states.append((rows_of(table), table._store().snapshots.latest_id(), files_of(table)))
    assert states[0] == states[1]
    assert states[0][0] == {1: 1}


def test_two_runs_of_a_batch_at_the_same_time_commit_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = created(tmp_path, write_only="true")
    writers = [writer_of(table, commit_user="job", batch_id="1") for _ in range(2)]
    messages = [task(writer, 0, {1: at}, monkeypatch) for at, writer in enumerate(writers)]
    for writer, message in zip(writers, messages):
        writer.commit([message])
    assert rows_of(table) == {1: 0}
    assert len(files_of(table)) == 1


@pytest.mark.parametrize("options", [{"write_only": "true"}, {"write_only": "true", "changelog_producer": "input"}])
def test_rows_get_higher_numbers_if_another_write_commits_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    table = created(tmp_path, **options)
    writer = writer_of(table)
    messages = [task(writer, at, numbers(0, 10, 100 * at), monkeypatch) for at in (0, 1)]
    table.write([{"id": number, "n": -1} for number in range(20)])
    writer.commit(messages)
    assert rows_of(table) == {**numbers(0, 10, 100), **dict.fromkeys(range(10, 20), -1)}
    live = {Path(name).name for name in files_of(table)}
    assert not any(writer._planned.job.names.owns(name) for name in live)
    assert not table.maintenance.check(data="full").findings


def test_an_overwrite_also_replaces_what_was_committed_since_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path)
    writer = writer_of(table, overwrite=True)
    messages = [task(writer, at, numbers(0, 10, 100 * at), monkeypatch) for at in (0, 1)]
    table.write([{"id": 50, "n": -1}])
    writer.commit(messages)
    assert rows_of(table) == numbers(0, 10, 100)


def test_abort_deletes_the_files_of_all_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = created(tmp_path)
    table.write([{"id": 1, "n": 1}])
    before = files_of(table)
    writer = writer_of(table)
    message = task(writer, 0, numbers(0, 10), monkeypatch)
    assert files_of(table) > before
    # Another task writes a file until Spark kills it.
    monkeypatch.setattr(planned_write, "_ABORT_PAUSES", (0.0, 0.01))
    monkeypatch.setattr(type(SYSTEM), "sleep", lambda _, pause: pause and task(writer, 1, {1: 1}, monkeypatch))
    writer.abort([message, None])
    assert files_of(table) == before


def test_a_task_that_fails_deletes_its_files(tmp_path: Path) -> None:
    table = created(tmp_path, {"id": "INT", "s": "CHAR(1)"})
    writer = writer_of(table)

    def batches() -> Iterator[pa.RecordBatch]:
        schema = pa.schema([("id", pa.int32()), ("s", pa.string())])
        yield pa.RecordBatch.from_pydict({"id": [1], "s": ["a"]}, schema=schema)
        yield pa.RecordBatch.from_pydict({"id": [2], "s": ["too long"]}, schema=schema)

    with pytest.raises(InvalidInputError, match="'s'"):
        writer.write(batches())
    assert files_of(table) == set()


def test_abort_after_a_failed_commit_keeps_what_may_be_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path)
    writer = writer_of(table)
    message = task(writer, 0, {1: 1}, monkeypatch)
    writer.commit([message])
    writer.abort([message])
    assert rows_of(table) == {1: 1}


@pytest.mark.parametrize("bucket", ["2", "-1"])
def test_a_task_that_runs_twice_is_published_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: str) -> None:
    table = created(tmp_path, bucket=bucket, write_only="true")
    writer = writer_of(table)
    lost, kept = (task(writer, 0, numbers(0, 5, add), monkeypatch) for add in (100, 200))
    assert lost.files.entries != kept.files.entries
    writer.commit([kept])
    writer.abort([kept])
    assert rows_of(table) == numbers(0, 5, 200)
    assert not table.maintenance.check(data="full").findings


def test_a_commit_that_fails_deletes_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = created(tmp_path)
    writer = writer_of(table)
    message = task(writer, 0, {1: 1}, monkeypatch)

    def refuse(*_: object, **__: object) -> None:
        raise CommitConflictError("no")

    monkeypatch.setattr("lakelsm.write.batch_write.Committer.commit", refuse)
    with pytest.raises(CommitConflictError):
        writer.commit([message])
    assert files_of(table) == set()


def test_a_key_has_one_dynamic_bucket_whichever_tasks_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"bucket": "-1", "write_only": "true", "dynamic_bucket.target_row_num": "7"}
    table = created(tmp_path, **settings)
    table.write([{"id": at, "n": -1} for at in range(30)])
    writer = writer_of(table)
    messages = [task(writer, at, numbers(20 * at, 20 * at + 40, 100 * at), monkeypatch) for at in range(3)]
    table.write([{"id": 70, "n": -1}, {"id": 500, "n": -1}])
    writer.commit(messages)
    assert rows_of(table) == {**numbers(0, 40), **numbers(20, 60, 100), **numbers(40, 80, 200), 500: -1}
    assert not table.maintenance.check(data="full").findings
    live = table.inspect.files().to_arrow().num_rows
    assert len(files_of(table)) == live
    assert not any(writer._planned.job.names.owns(path.name) for path in tmp_path.rglob("*"))
    table.compact(full=True)
    assert len(rows_of(table)) == 81


def test_columns_have_any_order_and_only_partial_updates_leave_some_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"id": "INT", "a": "INT", "b": "STRING"}
    table = created(tmp_path / "a", columns)
    batch = pa.RecordBatch.from_pydict({"B": ["x"], "a": [5], "ID": [1]})
    options = WriteOptions.of({"path": table._store().paths.root})
    struct = StructType().add("B", "string").add("a", "long").add("ID", "long")
    writer = TableWriter(options, struct, overwrite=False)
    writer.commit([writer.write(iter([batch]))])
    assert table.to_arrow().to_pylist() == [{"id": 1, "a": 5, "b": "x"}]
    with pytest.raises(InvalidInputError, match="lacks column b"):
        TableWriter(options, source_struct(table.schema, ("a", "id")), overwrite=False)
    partial = created(tmp_path / "b", columns, merge_engine="partial-update")
    partial.write([{"id": 1, "a": 1, "b": "x"}])
    options = WriteOptions.of({"path": partial._store().paths.root})
    writer = TableWriter(options, source_struct(partial.schema, ("a", "id")), overwrite=False)
    writer.commit([writer.write(iter([pa.RecordBatch.from_pydict({"a": [2], "id": [1]})]))])
    assert partial.to_arrow().to_pylist() == [{"id": 1, "a": 2, "b": "x"}]


def test_every_type_is_written_as_it_is_read(tmp_path: Path) -> None:
    names = {f"c{at}": each for at, each in enumerate(TYPED_VALUES)}
    nested = "a ARRAY<DECIMAL(5, 2)>, m MAP<STRING, TIMESTAMP(9)>, r ROW<x TIME NOT NULL, z ARRAY<TIME>>, u MULTISET<INT>"
    columns = f"id INT NOT NULL, {', '.join(f'{name} {each.sql}' for name, each in names.items())}, {nested}"
    source, target = created(tmp_path / "a", columns), created(tmp_path / "b", columns)
    middle = {each.sql: each.values[1] for each in TYPED_VALUES}
    stamp, clock = middle["TIMESTAMP(9)"], middle["TIME(3)"]
    rows = [{"id": at} | {name: each.values[at] for name, each in names.items()} for at in range(3)]
    rows[0] |= {"a": [None], "m": [("k", stamp)], "r": {"x": clock, "z": [clock, None]}, "u": [(1, 2)]}
    source.write([*rows, {"id": 3}])
    struct = source_struct(source.schema, None)
    reader = TableReader(ReadOptions.of({"path": source._store().paths.root}), struct)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert all(batch.schema == arrow_form(struct) for batch in batches)
    writer = writer_of(target)
    writer.commit([writer.write(iter(batches))])
    assert target.to_arrow(ordered=True) == source.to_arrow(ordered=True)
