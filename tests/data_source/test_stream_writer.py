"""The writer of a stream: a batch is committed once, under its query, and what fails leaves no file."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.commit.replay import STREAM_QUERY_PROPERTY
from lakelsm.data_source import planned_write
from lakelsm.data_source.source import DefaultSource
from lakelsm.data_source.spark_rows import source_struct
from lakelsm.errors import (
    CommitConflictError,
    CommitUserTakenError,
    InvalidInputError,
    StorageError,
    UnsupportedFeatureError,
)
from lakelsm.format.snapshot import CommitKind
from lakelsm.schema_changes import AddColumn
from lakelsm.types import parse_type

if TYPE_CHECKING:
    from lakelsm.data_source.stream_writer import BatchMessage, StreamWriter

#: PySpark 4.0 has no stream writer for Arrow.
stream_writer = pytest.importorskip("lakelsm.data_source.stream_writer", exc_type=ImportError)
_COMMIT_WORKER = "pyspark.sql.worker.python_streaming_sink_runner"
Rows = list[dict[str, Any]]


#: The options of a table in which a row that is written twice is visible.
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}


def created(tmp_path: Path, options: dict[str, str] | None = None, columns: str = "id INT, n INT") -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d", if_not_exists=True)
    return catalog.create_table("d.t", columns, primary_key="id", options={"bucket": "2", **(options or {})})


class Query:
    """A query as Spark runs it: writers for the tasks and for the commit of a batch have nothing in common."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, table: Table, query_id: str = "q", **options: str) -> None:
        self.monkeypatch, self.table, self.query_id = monkeypatch, table, query_id
        self.overwrite = options.pop("mode", "append") == "complete"
        given = {"path": table._store().paths.root, "checkpointLocation": "c"}
        self.options = given | {name.replace("_", "-"): value for name, value in options.items()}
        self.columns: Sequence[str] | None = None

    def planned(self) -> StreamWriter:
        struct = source_struct(Table.for_path(self.options["path"]).schema, self.columns)
        if "row-kind" in self.options:
            struct = struct.add("rk", "string")
        return pickle.loads(pickle.dumps(self._writer(struct)))  # type: ignore[no-any-return]

    def _writer(self, struct: Any) -> Any:
        return DefaultSource(self.options).streamWriter(struct, self.overwrite)

    def task(self, writer: StreamWriter, number: int, rows: Rows) -> BatchMessage:
        query = self

        class Context:
            @staticmethod
            def get() -> Context:
                return Context()

            def partitionId(self) -> int:
                return number

            def getLocalProperty(self, name: str) -> str | None:
                return {"sql.streaming.queryId": query.query_id}.get(name)

        for module in (planned_write, stream_writer):
            self.monkeypatch.setattr(module, "TaskContext", Context)
        assert writer._planned is not None
        form = writer._planned.form
        batch = pa.RecordBatch.from_pylist([dict.fromkeys(form.names) | row for row in rows], schema=form)
        return pickle.loads(pickle.dumps(writer.write(iter([batch]))))  # type: ignore[no-any-return]

    def finish(self, messages: Sequence[BatchMessage | None], batch: int, end: str = "commit") -> None:
        with self.monkeypatch.context() as patch:
            patch.setitem(sys.modules, _COMMIT_WORKER, sys)
            writer = self._writer(None)
        getattr(writer, end)(messages, batch)

    def run(self, batch: int, *tasks: Rows) -> None:
        writer = self.planned()
        self.finish([self.task(writer, at, rows) for at, rows in enumerate(tasks)], batch)


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Query]:
    return lambda table, *arguments, **options: Query(monkeypatch, table, *arguments, **options)


def rows_of(table: Table) -> dict[int, Any]:
    return {row["id"]: row["n"] for row in table.to_arrow().to_pylist()}


def row(key: int, value: int | None, **others: Any) -> dict[str, Any]:
    return {"id": key, "n": value, **others}


def data_files(table: Table) -> set[str]:
    return {path.name for path in Path(table._store().paths.root).rglob("*.parquet")}


def appends(table: Table) -> list[Any]:
    return [each for each in table._store().snapshots.list() if each.commit_kind is not CommitKind.COMPACT]


@pytest.mark.parametrize("bucket", ["2", "-1"])
def test_a_batch_is_one_commit_of_its_query_and_a_replay_changes_nothing(
    tmp_path: Path, query: Callable[..., Query], bucket: str
) -> None:
    table = created(tmp_path, {**SUMS, "bucket": bucket, "commit.user-prefix": "p"})
    stream = query(table, "a-query")
    for batch in range(3):
        stream.run(batch, [row(1, 1), row(2, 1)], [row(1, 1)], [])
    assert rows_of(table) == {1: 6, 2: 3}
    found = [
        (each.commit_user, each.commit_identifier, each.properties[STREAM_QUERY_PROPERTY]) for each in appends(table)
    ]
    assert found == [("stream-a-query", batch, "a-query") for batch in range(3)]
    before = data_files(table), table._store().snapshots.latest_id()
    for batch in (2, 0):
        stream.run(batch, [row(1, 1)], [row(1, 1)])
        assert (data_files(table), table._store().snapshots.latest_id()) == before
    stream.run(3, [], [])
    assert table._store().snapshots.latest_id() == before[1]
    assert not table.maintenance.check(data="full").findings


def test_two_runs_of_a_batch_at_the_same_time_commit_it_once(tmp_path: Path, query: Callable[..., Query]) -> None:
    """The first run was believed to be dead: its commit process still works."""
    table = created(tmp_path, {**SUMS, "write-only": "true"})
    stream = query(table)
    runs = [[stream.task(writer, 0, [row(1, 1)])] for writer in (stream.planned(), stream.planned())]
    for messages in runs:
        stream.finish(messages, 0)
    assert rows_of(table) == {1: 1}
    assert len(data_files(table)) == 1


def test_another_query_may_not_use_the_commit_user(tmp_path: Path, query: Callable[..., Query]) -> None:
    table = created(tmp_path)
    query(table, "one", commit_user="job").run(0, [row(1, 1)])
    before = data_files(table)
    with pytest.raises(CommitUserTakenError, match="belongs to streaming query 'one'"):
        query(table, "two", commit_user="job").run(0, [row(1, 2)])
    assert data_files(table) == before
    query(table, "two").run(0, [row(1, 2)])
    assert rows_of(table) == {1: 2}


@pytest.mark.parametrize("bucket", ["2", "-1"])
def test_the_last_row_of_a_key_wins_also_if_others_commit_first(
    tmp_path: Path, query: Callable[..., Query], bucket: str
) -> None:
    table = created(tmp_path, {"bucket": bucket})
    stream = query(table)
    writer = stream.planned()
    messages = [stream.task(writer, at, [row(1, at), row(2, at), row(1, at + 10)]) for at in (1, 0)]
    table.write([row(1, -1), row(3, -1)])
    stream.finish(messages, 0)
    assert rows_of(table) == {1: 11, 2: 1, 3: -1}
    stream.run(1, [row(1, 5)])
    assert rows_of(table)[1] == 5
    table.compact(full=True)
    assert rows_of(table) == {1: 5, 2: 1, 3: -1}
    assert not table.maintenance.check(data="full").findings


def test_a_compaction_while_a_batch_is_written_costs_no_second_write(tmp_path: Path, query: Callable[..., Query]) -> None:
    table = created(tmp_path, {"write-only": "true"})
    table.write([row(1, 0), row(2, 0)])
    stream = query(table)
    writer = stream.planned()
    messages = [stream.task(writer, at, [row(1, at), row(3, at)]) for at in range(2)]
    table.compact(full=True)
    stream.finish(messages, 0)
    assert rows_of(table) == {1: 1, 2: 0, 3: 1}
    assert writer._planned is not None
    written = {name for name in data_files(table) if writer._planned.job.names.owns(name)}
    assert written == {entry.file.file_name for message in messages for entry in message.files.files.entries}


def test_a_branch_has_its_own_batches(tmp_path: Path, query: Callable[..., Query]) -> None:
    table = created(tmp_path)
    table.write([row(1, 1)])
    table.branches.create("b")
    for batch in range(2):
        query(table, branch="b").run(batch, [row(1, 2 + batch)])
    query(table).run(0, [row(2, 2)])
    assert (rows_of(table), rows_of(table.branches.open("b"))) == ({1: 1, 2: 2}, {1: 3})


@pytest.mark.parametrize("bucket", ["2", "-1"])
def test_each_batch_of_the_mode_complete_replaces_all_rows(
    tmp_path: Path, query: Callable[..., Query], bucket: str
) -> None:
    table = created(tmp_path, {"bucket": bucket})
    stream = query(table, mode="complete")
    for batch in range(2):
        stream.run(batch, [row(batch, batch)], [row(9, batch)])
        assert rows_of(table) == {batch: batch, 9: batch}
    stream.run(1, [row(5, 5)])
    assert rows_of(table) == {1: 1, 9: 1}
    stream.run(2, [])
    assert rows_of(table) == {}
    with pytest.raises(InvalidInputError, match="option 'row-kind': rows that replace the table"):
        query(table, mode="complete", row_kind="rk").planned()


@pytest.mark.parametrize(
    ("options", "batches", "expected"),
    [
        ({}, [("+I", 1), ("-U", 1), ("+U", 2)], 2),
        ({}, [("+I", 1), ("-D", 1)], None),
        ({"deletion-vectors.enabled": "true"}, [("+I", 1), ("+U", 2), ("-D", 2), ("+I", 3)], 3),
        (SUMS, [("+I", 5), ("-U", 2), ("+U", 4)], 7),
        ({"merge-engine": "first-row", "ignore-delete": "true"}, [("+I", 1), ("+I", 2), ("-D", 2)], 1),
        ({"merge-engine": "partial-update"}, [("+I", 1), ("+U", None)], 1),
        ({"changelog-producer": "input"}, [("+I", 1), ("-U", 1), ("+U", 2)], 2),
        ({"changelog-producer": "lookup"}, [("+I", 1), ("-U", 1), ("+U", 2)], 2),
    ],
)
def test_row_kinds_reach_the_merge_engine(
    tmp_path: Path,
    query: Callable[..., Query],
    options: dict[str, str],
    batches: list[tuple[str, int | None]],
    expected: int | None,
) -> None:
    table = created(tmp_path, options)
    stream = query(table, row_kind="RK")
    for batch, (kind, value) in enumerate(batches):
        stream.run(batch, [row(1, value, rk=kind), row(2 + batch, 0, rk="+I")])
    assert rows_of(table).pop(1, None) == expected
    assert len(rows_of(table)) == len(batches) + (expected is not None)
    with pytest.raises(InvalidInputError, match="row kind column 'rk': expected"):
        stream.run(9, [row(1, 1, rk="x")])
    assert not table.maintenance.check(data="full").findings


@pytest.mark.parametrize(("every", "compacted"), [("1", [0, 1, 2, 3]), ("2", [1, 3]), ("0", [])])
def test_every_nth_batch_is_compacted(
    tmp_path: Path, query: Callable[..., Query], every: str, compacted: list[int]
) -> None:
    table = created(tmp_path, {"bucket": "1", "changelog-producer": "lookup"})
    stream = query(table, compact_every=every)
    for batch in range(4):
        stream.run(batch, [row(1, batch)])
    found = [each.commit_identifier for each in table._store().snapshots.list() if each.commit_kind is CommitKind.COMPACT]
    assert found == compacted


def test_a_replay_compacts_what_its_first_run_did_not(
    tmp_path: Path, query: Callable[..., Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path, {"deletion-vectors.enabled": "true"})
    stream = query(table)

    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lakelsm.table.writable_table.finish_write", kill)
        with pytest.raises(KeyboardInterrupt):
            stream.run(0, [row(1, 1)])
    assert rows_of(table) == {}
    stream.run(0, [row(1, 1)])
    assert rows_of(table) == {1: 1}
    assert len(appends(table)) == 1


def test_compactions_of_a_table_that_is_write_only_are_refused(tmp_path: Path, query: Callable[..., Query]) -> None:
    table = created(tmp_path, {"write-only": "true"})
    with pytest.raises(InvalidInputError, match=r"option 'compact-every': table .* has the option 'write-only'"):
        query(table, compact_every="2").planned()
    query(table, compact_every="1").run(0, [row(1, 1)])
    assert len(table._store().snapshots.list()) == 1


def test_consumers_are_warned_of_each_replacement(tmp_path: Path, query: Callable[..., Query]) -> None:
    table = created(tmp_path)
    table.write([row(1, 1)])
    table.consumers.record("svc", 1)
    stream = query(table, mode="complete")
    with pytest.warns(UserWarning, match=r"no changelog contains snapshot 2, an overwrite, so consumers \(svc\)"):
        stream.run(0, [row(1, 2)])


def test_the_event_times_of_all_tasks_set_the_watermark(tmp_path: Path, query: Callable[..., Query]) -> None:
    table = created(tmp_path, columns="id INT, n TIMESTAMP_LTZ(3)")
    stream = query(table, event_time="N", event_time_delay="10 minutes")
    second = 1_000_000  # Microseconds, as Spark passes times.
    stream.run(0, [row(1, 3600 * second)], [row(1, 7200 * second), row(2, 0)])
    assert appends(table)[-1].watermark == 6_600_000
    stream.run(1, [row(3, 5 * second)])
    assert appends(table)[-1].watermark == 6_600_000
    with pytest.raises(InvalidInputError, match="option 'event-time'"):
        query(table, event_time="id").planned()


def test_a_failed_batch_leaves_no_file(
    tmp_path: Path, query: Callable[..., Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path, columns="id INT, n CHAR(1)")
    stream = query(table)
    stream.run(0, [row(1, "a")])
    before = data_files(table)
    monkeypatch.setattr(planned_write, "_ABORT_PAUSES", (0.0,))
    writer = stream.planned()
    written = stream.task(writer, 0, [row(1, "b"), row(2, "b")])
    with pytest.raises(InvalidInputError, match="'n'"):
        stream.task(writer, 1, [row(1, "too long")])
    assert data_files(table) > before
    stream.finish([written, None], 1, "abort")
    assert data_files(table) == before
    # The only task was killed, so nothing is known of its file, which is an orphan.
    stream.task(stream.planned(), 0, [row(1, "c")])
    stream.finish([None], 1, "abort")
    assert len(data_files(table)) == len(before) + 1
    for path in Path(table._store().paths.root).rglob("*.parquet"):
        os.utime(path, (0, 0))
    table.maintenance.remove_orphans()
    assert data_files(table) == before
    stream.run(1, [row(1, "d")])
    assert rows_of(table) == {1: "d"}


def test_an_abort_after_a_commit_deletes_nothing(tmp_path: Path, query: Callable[..., Query]) -> None:
    table = created(tmp_path)
    stream = query(table)
    messages = [stream.task(stream.planned(), 0, [row(1, 1)])]
    for end in ("commit", "abort"):
        stream.finish(messages, 0, end)
    assert rows_of(table) == {1: 1}


def test_a_commit_that_fails_deletes_the_files(
    tmp_path: Path, query: Callable[..., Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path)
    stream = query(table)

    def refuse(*_: object, **__: object) -> None:
        raise CommitConflictError("no")

    with monkeypatch.context() as patch:
        patch.setattr("lakelsm.write.batch_write.Committer.commit", refuse)
        with pytest.raises(CommitConflictError):
            stream.run(0, [row(1, 1)], [row(2, 1)])
    assert data_files(table) == set()


def test_columns_may_be_added_while_a_batch_is_written(tmp_path: Path, query: Callable[..., Query]) -> None:
    table = created(tmp_path)
    stream = query(table)
    messages = [stream.task(stream.planned(), 0, [row(1, 1)])]
    Catalog(str(tmp_path)).alter_table("d.t", AddColumn("more", parse_type("STRING")))
    stream.finish(messages, 0)
    assert table.to_arrow().to_pylist() == [row(1, 1, more=None)]
    # The frame of the query has no such column, and the query ends before it writes a row.
    stream.columns = ("id", "n")
    with pytest.raises(InvalidInputError, match="the frame lacks column more"):
        stream.run(1, [row(1, 2)])
    stream.columns = ("more", "id", "n")
    stream.run(1, [row(1, 2, more="x")])
    assert table.to_arrow().to_pylist() == [row(1, 2, more="x")]


@pytest.mark.parametrize("again", [False, True])
def test_a_table_that_is_dropped_while_a_batch_is_written(
    tmp_path: Path, query: Callable[..., Query], again: bool
) -> None:
    table = created(tmp_path)
    stream = query(table)
    writer = stream.planned()
    messages = [stream.task(writer, 0, [row(1, 1)])]
    Catalog(str(tmp_path)).drop_table("d.t")
    if again:
        created(tmp_path)
    else:  # As on a machine of Spark that does not have the table.
        with pytest.raises(StorageError, match="does not exist on a machine of Spark's workers"):
            stream.task(writer, 1, [row(1, 1)])
        assert not Path(stream.options["path"]).exists()
    with pytest.raises(CommitConflictError, match="was dropped, or created again, while its rows were written"):
        stream.finish(messages, 0)
    assert not list(tmp_path.rglob("*.parquet"))
    if again:
        stream.run(0, [row(1, 1)])
        assert rows_of(Table.for_path(table._store().paths.root)) == {1: 1}


def test_a_task_has_rows_for_its_own_sequence_numbers_only(
    tmp_path: Path, query: Callable[..., Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path, {"bucket": "1", "changelog-producer": "input"})
    monkeypatch.setattr(stream_writer, "_TASK_NUMBERS", 2)
    stream = query(table)
    stream.run(0, [row(1, 1), row(2, 1)], [row(1, 2), row(2, 2)])
    before = data_files(table)
    with pytest.raises(InvalidInputError, match="partition 0 of the frame has more than 2 rows of one bucket"):
        stream.run(1, [row(1, 3), row(2, 3), row(1, 4)], [row(1, 5)])
    assert data_files(table) == before
    assert rows_of(table) == {1: 2, 2: 2}


def test_continuous_processing_is_refused(tmp_path: Path, query: Callable[..., Query]) -> None:
    stream = query(created(tmp_path))
    with pytest.raises(UnsupportedFeatureError, match="no task of it in continuous processing"):
        stream.finish([], 0)
    stream.finish([], 0, "abort")


def test_a_replay_is_known_after_its_snapshots_have_expired(tmp_path: Path, query: Callable[..., Query]) -> None:
    table = created(tmp_path, SUMS)
    stream = query(table)
    for batch in range(2):
        stream.run(batch, [row(1, 1)])
    for number in range(3):
        table.write([row(2, number)])
    table.maintenance.expire_snapshots(retain_last=1, retain_max=1)
    stream.run(1, [row(1, 1)])
    assert rows_of(table)[1] == 2
