"""Each operation of a table logs one INFO line with fields; no line has a secret, and no handler breaks an operation."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Lookup, Table, errors
from lakelsm.errors import CommitConflictError, LakelsmError
from lakelsm.operation_log import log_step, operation_line
from lakelsm.schema_changes import AddColumn
from lakelsm.storage import LocalFileIO
from lakelsm.table import TableBranches, TableConsumers, TableInspection, TableMaintenance, TableTags, TableView
from tests.maintain.versioned_table import versioned_table
from tests.storage.object_server import ObjectServer

SECRET = "hunter2Zq"


def lines(caplog: pytest.LogCaptureFixture, call: Callable[[], object]) -> list[dict[str, object]]:
    """Return the fields of the INFO lines that a call logs."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "lakelsm"):
        call()
    found = [each for each in caplog.records if each.name.startswith("lakelsm") and each.levelno == logging.INFO]
    assert all(each.__dict__["seconds"] >= 0 and each.getMessage().count("\n") == 0 for each in found)
    return [vars(each) for each in found]


KINDS = (Catalog, Table, TableView, TableMaintenance, TableTags, TableBranches, TableConsumers, TableInspection, Lookup)
#: Methods that change and read no rows: they log nothing.
OF_METADATA = {
    *("Catalog.list_databases", "Catalog.list_tables", "Catalog.register", "Catalog.sql"),
    *("Catalog.table", "Catalog.table_exists"),
    *("Table.at", "Table.explain", "Table.for_path", "Table.lookup_join", "Table.merge", "TableView.explain"),
    *("TableBranches.list", "TableBranches.open", "TableConsumers.list", "TableTags.list"),
    *(
        f"TableInspection.{each}"
        for each in ["buckets", "files", "history", "options", "partitions", "schemas", "snapshots"]
    ),
    *("TableInspection.status", "TableInspection.system"),
    *("Lookup.close", "Lookup.get", "Lookup.get_all", "Lookup.get_many", "Lookup.staleness"),
}
#: Methods that return DataFrames (tested with a session below), and methods of a view, which are those of a table.
ELSEWHERE = {
    "Table.read",
    "Table.changelog",
    "Table.write_stream",
    *(f"TableView.{each}" for each in ["read", "changelog", "changelog_reader"]),
}
ELSEWHERE |= {f"TableView.{each}" for each in ["count", "head", "to_arrow", "to_pandas", "to_polars", "to_reader"]}

Case: TypeAlias = tuple[str, Callable[[], object], str, str, dict[str, object]]


def cases(table: Table, catalog: Catalog) -> list[Case]:
    """Calls in an order in which each has work to do: method, call, operation, outcome, some fields."""
    rows = table.to_arrow()
    keys = rows.select(table.schema.primary_keys).slice(0, 1)
    upkeep, tags, branches, consumers = table.maintenance, table.tags, table.branches, table.consumers
    lookup = table.lookup(refresh="never")
    days = catalog.create_table("db.p", {"d": "STRING", "id": "INT"}, primary_key=["d", "id"], partition_by=["d"])
    days.write([{"d": "2026-01-01", "id": 1}, {"d": "2026-01-02", "id": 2}])
    parts = days.maintenance
    local: dict[str, Any] = {"engine": "local"}
    dry: dict[str, Any] = {"dry_run": True}
    old = {"older_than": "1 d", "strategy": "update-time"}
    return [
        ("Table.write", lambda: table.write(rows, commit_user="u", batch_id=1), "write", "done", {"rows": 3, "files": 1}),
        ("Table.write", lambda: table.write(rows, commit_user="u", batch_id=1), "write", "already committed", {}),
        ("Table.write", lambda: table.write(rows.slice(0, 0)), "write", "nothing", {}),
        ("Table.overwrite", lambda: table.overwrite(rows), "overwrite", "done", {"snapshot_id": 5, "rows": 3}),
        ("Table.update", lambda: table.update({"v": "'y'"}, "id = 1", **local), "update", "done", {"matched_rows": 1}),
        ("Table.delete", lambda: table.delete(keys=keys), "delete", "done", {"matched_rows": 1}),
        ("Table.delete", lambda: table.delete(keys=[77]), "delete", "nothing", {}),
        ("Table.count", lambda: table.count(**local), "count", "done", {"rows": 2, "snapshot_id": 7}),
        ("Table.to_reader", lambda: table.to_reader().read_all(), "to_reader", "done", {"rows": 2, "snapshot_id": 7}),
        ("Table.to_arrow", lambda: table.to_arrow(limit=1), "to_reader", "done", {"rows": 1}),
        ("Table.to_pandas", lambda: table.to_pandas(), "to_reader", "done", {"rows": 2}),
        ("Table.head", lambda: table.head(1), "to_reader", "done", {"rows": 1}),
        ("Table.changelog_reader", lambda: table.changelog_reader(6).read_all(), "changelog_reader", "done", {"rows": 1}),
        ("Table.follow", lambda: list(table.follow(timeout=0)), "follow", "done", {"snapshot_id": 7, "phase": "full"}),
        ("Table.lookup", lambda: table.lookup().close(), "open lookup", "done", {"snapshot": 7}),
        ("Lookup.refresh", lambda: lookup.refresh(), "refresh lookup", "done", {"snapshot": 7}),
        ("Table.compact", lambda: table.compact(full=True, **local, **dry), "compact", "planned", {"dry_run": True}),
        ("Table.compact", lambda: table.compact(full=True, **local), "compact", "done", {"rows_written": 2}),
        ("TableTags.create", lambda: tags.create("a"), "create_tag", "done", {"subject": "a"}),
        ("TableTags.create", lambda: tags.create("a", if_not_exists=True), "create_tag", "nothing", {}),
        ("TableTags.replace", lambda: tags.replace("a", 7), "replace_tag", "done", {"snapshot_id": 7}),
        ("TableTags.rename", lambda: tags.rename("a", "b", **dry), "rename_tag", "planned", {"dry_run": True}),
        ("TableBranches.create", lambda: branches.create("x", "a"), "create_branch", "done", {}),
        ("TableBranches.create", lambda: branches.create("x", ignore_if_exists=True), "create_branch", "nothing", {}),
        ("TableBranches.rename", lambda: branches.rename("x", "y"), "rename_branch", "done", {}),
        ("TableTags.expire", lambda: tags.expire(), "expire_tags", "nothing", {}),
        ("TableTags.delete", lambda: tags.delete("a"), "delete_tag", "done", {"tags": 1}),
        ("TableConsumers.record", lambda: consumers.record("c", 8), "record_consumer", "done", {}),
        ("TableConsumers.expire", lambda: consumers.expire("1 d"), "expire_consumers", "nothing", {}),
        ("TableConsumers.delete", lambda: consumers.delete("c"), "delete_consumer", "done", {}),
        ("TableMaintenance.expire_snapshots", upkeep.expire_snapshots, "expire_snapshots", "done", {"snapshots": 6}),
        ("TableMaintenance.check", lambda: upkeep.check(**local), "check", "done", {}),
        ("TableMaintenance.analyze", lambda: upkeep.analyze(**local), "analyze", "done", {"rows": 2}),
        ("TableMaintenance.remove_orphans", lambda: upkeep.remove_orphans(**local), "remove_orphans", "nothing", {}),
        ("TableMaintenance.mark_partitions_done", parts.mark_partitions_done, "mark_partitions_done", "done", {}),
        (
            "TableMaintenance.drop_partitions",
            lambda: parts.drop_partitions("d > '2026-01-01'"),
            "drop_partitions",
            "done",
            {"partitions": 1},
        ),
        (
            "TableMaintenance.expire_partitions",
            lambda: parts.expire_partitions(**old),
            "expire_partitions",
            "nothing",
            {},
        ),
        ("Table.rollback", lambda: table.rollback(8), "rollback", "done", {"snapshots": [9]}),
        ("TableBranches.fast_forward", lambda: branches.fast_forward("y"), "fast_forward", "done", {}),
        ("TableBranches.delete", lambda: branches.delete("y"), "delete_branch", "done", {}),
        ("Catalog.create_database", lambda: catalog.create_database("e"), "create_database", "done", {"database": "e"}),
        (
            "Catalog.create_database",
            lambda: catalog.create_database("e", if_not_exists=True),
            "create_database",
            "nothing",
            {},
        ),
        (
            "Catalog.create_table",
            lambda: catalog.create_table("e.a", "k INT", primary_key="k"),
            "create_table",
            "done",
            {},
        ),
        (
            "Catalog.alter_table",
            lambda: catalog.alter_table("e.a", AddColumn("v", "INT")),
            "alter_table",
            "done",
            {"schema_id": 1},
        ),
        ("Catalog.rename_table", lambda: catalog.rename_table("e.a", "e.b"), "rename_table", "done", {"new_name": "e.b"}),
        ("Catalog.drop_table", lambda: catalog.drop_table(name="e.b"), "drop_table", "done", {"table": "e.b"}),
        ("Catalog.drop_database", lambda: catalog.drop_database("e"), "drop_database", "done", {}),
    ]


def failing(table: Table, catalog: Catalog) -> dict[str, Callable[[], object]]:
    """A call of each method that raises an error."""
    upkeep, tags, branches, consumers = table.maintenance, table.tags, table.branches, table.consumers
    wrong: Any = 5
    calls: dict[str, Callable[[], object]] = {
        f"Table.{name}": partial(getattr(table, name), where=wrong)
        for name in [
            "read",
            "to_reader",
            "to_arrow",
            "to_pandas",
            "to_polars",
            "count",
            "changelog_reader",
            "follow",
            "compact",
            "delete",
        ]
    }
    calls |= {
        f"TableMaintenance.{name}": partial(getattr(upkeep, name), where="no_such = 1")
        for name in ("check", "drop_partitions", "mark_partitions_done")
    }
    calls |= {
        f"TableMaintenance.{name}": partial(getattr(upkeep, name), engine="x")
        for name in ("analyze", "remove_orphans", "run_all")
    }
    calls |= {f"TableTags.{name}": partial(getattr(tags, name), wrong) for name in ("create", "delete", "replace")}
    calls |= {
        f"TableBranches.{name}": partial(getattr(branches, name), wrong) for name in ("create", "delete", "fast_forward")
    }
    calls |= {
        f"Catalog.{name}": partial(getattr(catalog, name), wrong)
        for name in ("drop_table", "create_database", "drop_database", "alter_table")
    }
    closed = table.lookup()
    closed.close()
    return calls | {
        "Lookup.refresh": closed.refresh,
        "Table.changelog": lambda: table.changelog(mode="x"),
        "Table.head": lambda: table.head(-1),
        "Table.lookup": lambda: table.lookup(["no_such"]),
        "Table.write": lambda: table.write(wrong),
        "Table.overwrite": lambda: table.overwrite(wrong),
        "Table.update": lambda: table.update(wrong, "id = 1"),
        "Table.rollback": lambda: table.rollback("no_such"),
        "TableMaintenance.expire_snapshots": lambda: upkeep.expire_snapshots(wrong, retain_max=1),
        "TableMaintenance.expire_partitions": lambda: upkeep.expire_partitions("x"),
        "TableTags.rename": lambda: tags.rename("no_such", "b"),
        "TableTags.expire": lambda: tags.expire("x"),
        "TableBranches.rename": lambda: branches.rename("no_such", "b"),
        "TableConsumers.record": lambda: consumers.record("c", -1),
        "TableConsumers.delete": lambda: consumers.delete("no_such"),
        "TableConsumers.expire": lambda: consumers.expire(),
        "Catalog.create_table": lambda: catalog.create_table("db.z", "k NUMBER", primary_key="k"),
        "Catalog.rename_table": lambda: catalog.rename_table("db.t", "db.p"),
    }


def test_each_operation_logs_one_line_with_the_fields_of_its_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = versioned_table(tmp_path, 3, **{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
    catalog = Catalog(str(tmp_path))
    known, failures = cases(table, catalog), failing(table, catalog)
    methods = {
        f"{kind.__name__}.{name}"
        for kind in KINDS
        for name, each in inspect.getmembers(kind, inspect.isroutine)
        if not name.startswith("_")
    }
    logged = {method for method, *_ in known} | {"TableMaintenance.run_all", "Table.to_polars"}
    assert logged | OF_METADATA | ELSEWHERE == methods, "a new method must log a line or be listed above"
    assert failures.keys() == logged | {"Table.read", "Table.changelog"}
    for method, call, operation, outcome, fields in known:
        (line,) = lines(caplog, call)
        assert (line["operation"], line["outcome"]) == (operation, outcome), (method, line)
        assert line.items() >= fields.items(), (method, line)
    nested = lines(caplog, lambda: table.maintenance.run_all(["check"]))
    assert [each["operation"] for each in nested] == ["check", "run_all"]
    for method, call in failures.items():

        def fail(call: Callable[[], object] = call) -> None:
            with pytest.raises(LakelsmError):
                call()

        (line,) = lines(caplog, fail)
        assert line["outcome"] == "failed" and hasattr(errors, str(line["error"])), (method, line)
    for quiet in (lambda: table.inspect.snapshots(), lambda: catalog.list_tables(), lambda: table.at(snapshot=7)):
        assert lines(caplog, quiet) == []


def test_a_stream_logs_its_line_when_it_fails_or_is_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = versioned_table(tmp_path, 1)

    def drop_untouched() -> None:
        del_me = table.to_reader()
        del del_me

    (line,) = lines(caplog, drop_untouched)
    assert (line["rows"], line["outcome"]) == (0, "done")
    next((tmp_path / "db.db/t/bucket-0").glob("data-*")).unlink()

    def fail() -> None:
        with pytest.raises(LakelsmError, match="data-"):
            table.head()

    (line,) = lines(caplog, fail)
    assert (line["outcome"], line["error"]) == ("failed", "CorruptTableError")


def test_a_commit_that_loses_has_its_own_outcome(caplog: pytest.LogCaptureFixture) -> None:
    def lose() -> None:
        with pytest.raises(CommitConflictError), operation_line("db.t", "write"):
            raise CommitConflictError("lost")

    (line,) = lines(caplog, lose)
    assert (line["outcome"], line["error"]) == ("conflict", "CommitConflictError")


def test_steps_and_retries_are_debug_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = versioned_table(tmp_path, 1)
    publish, others = LocalFileIO.create_if_absent, list[str]()

    def beaten(self: LocalFileIO, path: str, data: bytes) -> bool:
        """Another writer publishes snapshot 2 first."""
        if path.endswith("/snapshot-2") and not others:
            others.append(path)
            table.write([{"id": 5, "v": "other"}])
        return publish(self, path, data)

    monkeypatch.setattr(LocalFileIO, "create_if_absent", beaten)
    caplog.set_level(logging.DEBUG, "lakelsm")
    batch = pa.table({"id": pa.array(range(4000), pa.int32()), "v": ["x" * 1000] * 4000})
    table.write(batch.to_reader(max_chunksize=500), options={"write-buffer-size": "1 mb"})
    table.compact(full=True, engine="local")
    table.to_arrow()
    steps = "\n".join(
        f"{record.name} {record.getMessage()}" for record in caplog.records if record.levelno == logging.DEBUG
    )
    for wanted in (
        r"lakelsm.write Table db.t: 1 files of a batch are written",
        r"lakelsm.local \d+ bytes of rows beyond write-buffer-size are in a scratch file",
        r"lakelsm.commit Table db.t: attempt 1 prepared snapshot 2",
        r"lakelsm.commit Table db.t: snapshot 2 was published by another commit",
        r"lakelsm.commit Attempt 1 of a commit failed; the next one begins in 0\.\d+ s",
        r"lakelsm.write Table db.t: a batch is written again: .*sequence numbers",
        r"lakelsm.commit Table db.t: snapshot 3 is published",
        r"lakelsm.compact Table db.t: 1 units of 1 buckets are rewritten",
        r"lakelsm.table Table db.t: the read of snapshot 4 opens 1 of 1 files and merges 0 units",
    ):
        assert re.search(wanted, steps), (wanted, steps)


@pytest.mark.spark
def test_frames_of_a_session_are_logged_when_they_are_planned(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = versioned_table(tmp_path, 2)
    for call, operation in ((table.read, "read"), (table.changelog, "changelog")):
        (line,) = lines(caplog, call)
        assert (line["operation"], line["outcome"], line["files"]) == (operation, "done", 2)


@pytest.fixture
def broken_handler() -> Iterator[None]:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("no space left")

    logger, handler = logging.getLogger("lakelsm"), Broken()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def test_a_failing_handler_does_not_make_an_operation_fail(tmp_path: Path, broken_handler: None) -> None:
    table = versioned_table(tmp_path, 2)
    assert len(table.to_arrow()) == 2
    table.tags.create("a")
    log_step(logging.getLogger("lakelsm.x"), "%s", "step")


def test_no_record_shows_a_secret(object_server: ObjectServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        options = object_server.options
        catalog = Catalog(f"{object_server.new_bucket()}/w", storage_options=options)
        table = catalog.create_table("db.t", "k INT NOT NULL, v STRING", primary_key="k")
        table.write(pa.table({"k": pa.array([1], pa.int32()), "v": ["x"]}))
        table.to_arrow()
        table.compact(full=True, engine="local")
        for call in (
            lambda: Table.for_path(f"s3://user:{SECRET}@bucket/t", storage_options=options),
            lambda: table.maintenance.check(engine=f"token={SECRET}"),
            lambda: table.tags.delete(f"password={SECRET}"),
        ):
            with pytest.raises(Exception):  # noqa: B017
                call()
        with pytest.raises(OSError), operation_line(f"s3://user:{SECRET}@bucket/t", "write"):
            raise OSError(f"secret-key={SECRET}")
        log_step(logging.getLogger("lakelsm.x"), "retry after %s", OSError(f"token: {SECRET}"))
    assert len(caplog.records) > 5
    shown = [record for record in caplog.records if record.name.startswith("lakelsm")]
    text = "".join(f"{vars(record)} {record.getMessage()}" for record in shown)
    assert SECRET not in text and "test-secret" not in text


def test_nothing_is_computed_if_lines_are_not_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = versioned_table(tmp_path, 1)
    made: list[object] = []
    monkeypatch.setattr("lakelsm.operation_log.OperationLine", made.append)
    table.tags.create("a")
    table.to_reader().read_all()
    log_step(logging.getLogger("lakelsm.x"), "%d", "no number")
    assert made == []
