"""Each operation of a table logs one INFO line with fields; no line has a secret, and no handler breaks an operation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import CommitConflictError, InvalidInputError
from lakelsm.operation_log import log_step, operation_line
from tests.maintain.versioned_table import versioned_table
from tests.storage.object_server import ObjectServer

SECRET = "hunter2Zq"


def lines(caplog: pytest.LogCaptureFixture, call: Callable[[], object]) -> list[dict[str, object]]:
    """The fields of the INFO lines of ``lakelsm.table`` that a call logs."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "lakelsm"):
        call()
    found = [each for each in caplog.records if each.name == "lakelsm.table" and each.levelno == logging.INFO]
    assert all(each.__dict__["seconds"] >= 0 and each.getMessage().count("\n") == 0 for each in found)
    return [vars(each) for each in found]


def test_each_operation_logs_one_line_with_the_fields_of_its_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = versioned_table(tmp_path, 3, **{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
    rows = table.to_arrow()
    keys = rows.select(table.schema.primary_keys).slice(0, 1)
    upkeep, tags, branches, consumers = table.maintenance, table.tags, table.branches, table.consumers
    cases: list[tuple[Callable[[], object], str, str, dict[str, object]]] = [
        (lambda: table.write(rows, commit_user="u", batch_id=1), "write", "done", {"snapshot_id": 4, "rows": 3}),
        (lambda: table.write(rows, commit_user="u", batch_id=1), "write", "already committed", {}),
        (lambda: table.write(rows.slice(0, 0)), "write", "nothing", {}),
        (lambda: table.delete(keys=keys), "delete", "done", {"matched_rows": 1}),
        (lambda: table.count(engine="local"), "count", "done", {"rows": 2}),
        (lambda: table.to_arrow(), "to_reader", "done", {"rows": 2}),
        (lambda: table.changelog_reader(3).read_all(), "changelog_reader", "done", {}),
        (lambda: table.compact(full=True, engine="local", dry_run=True), "compact", "planned", {"dry_run": True}),
        (lambda: table.compact(full=True, engine="local"), "compact", "done", {"rows_written": 2}),
        (lambda: tags.create("a"), "create_tag", "done", {"subject": "a"}),
        (lambda: tags.rename("a", "b", dry_run=True), "rename_tag", "done", {"dry_run": True}),
        (lambda: tags.delete("a"), "delete_tag", "done", {"tags": 1}),
        (lambda: branches.create("x"), "create_branch", "done", {}),
        (lambda: branches.delete("x"), "delete_branch", "done", {}),
        (lambda: consumers.record("c", 3), "record_consumer", "done", {}),
        (lambda: consumers.delete("c"), "delete_consumer", "done", {}),
        (lambda: upkeep.expire_snapshots(), "expire_snapshots", "done", {}),
        (lambda: upkeep.check(engine="local"), "check", "done", {}),
        (lambda: upkeep.remove_orphans(engine="local"), "remove_orphans", "nothing", {}),
        (lambda: table.rollback(table.at(timestamp="2999-01-01 00:00:00").snapshot_id), "rollback", "nothing", {}),
    ]
    for call, operation, outcome, fields in cases:
        (line,) = lines(caplog, call)
        assert (line["table"], line["operation"], line["outcome"]) == ("db.t", operation, outcome)
        assert line.items() >= fields.items(), operation
    assert [each["operation"] for each in lines(caplog, lambda: upkeep.run_all(["check"]))] == ["check", "run_all"]


def test_failures_and_conflicts_are_outcomes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = versioned_table(tmp_path, 1)

    def fail() -> None:
        with pytest.raises(InvalidInputError):
            table.maintenance.check(data="all")

    def lose() -> None:
        with pytest.raises(CommitConflictError), operation_line("db.t", "write"):
            raise CommitConflictError("lost")

    for call, outcome, error in ((fail, "failed", "InvalidInputError"), (lose, "conflict", "CommitConflictError")):
        (line,) = lines(caplog, call)
        assert (line["outcome"], line["error"]) == (outcome, error)
    next((tmp_path / "db.db/t/bucket-0").glob("data-*")).unlink()
    with pytest.raises(Exception, match="data-"):
        lines(caplog, table.to_arrow)
    assert caplog.records[-1].__dict__["outcome"] == "failed"


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


def test_a_handler_that_fails_breaks_no_operation(tmp_path: Path, broken_handler: None) -> None:
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


def test_nothing_is_made_where_lines_are_not_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = versioned_table(tmp_path, 1)
    made: list[object] = []
    monkeypatch.setattr("lakelsm.operation_log.OperationLine", made.append)
    table.tags.create("a")
    table.to_reader().read_all()
    log_step(logging.getLogger("lakelsm.x"), "%d", "no number")
    assert made == []
