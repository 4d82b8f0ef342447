"""Calls that may start a Spark session. Every public call is listed here, and all others run where none can start.

A call may start a session only if its name (`read`, `changelog`, `to_spark`) or its arguments (``engine='spark'``)
request Spark. Without Java, its error names the call that needs no Java.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

import lakelsm.table as table_room
from lakelsm import Catalog, Lookup, Table, TableView
from lakelsm.cli.main import VERBS, main
from lakelsm.cli.verb import VerbGroup
from lakelsm.errors import InvalidInputError, SparkUnavailableError
from lakelsm.results import UpkeepResult
from lakelsm.schema_changes import SetOption
from lakelsm.system_tables.named_tables import SYSTEM_TABLES
from lakelsm.table import ResultTable, TableMerge
from tests.table_files import root_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parents[1]
ROWS = {"id": [1, 2], "dt": ["a", "b"], "v": ["x", "y"]}
SCHEMA = {"id": "INT", "dt": "STRING", "v": "STRING"}
CLASSES = (Catalog, Lookup, *(each for each in vars(table_room).values() if inspect.isclass(each)))


@dataclass(frozen=True)
class CallWarehouse:
    """A separate warehouse for one call, with a session or without one."""

    warehouse: str
    spark: SparkSession | None = None

    @cached_property
    def catalog(self) -> Catalog:
        return Catalog(self.warehouse, self.spark)

    @cached_property
    def table(self) -> Table:
        """A table of two snapshots with level-0 files to merge, a tag, a branch and a consumer."""
        made = Path(self.warehouse).with_name("made")
        if not made.exists():
            CallWarehouse(str(made))._make()
        shutil.copytree(made, self.warehouse)
        return self.catalog.table("db.t")

    def _make(self) -> None:
        table = self.catalog.create_table("db.t", SCHEMA, primary_key=["id", "dt"], partition_by=["dt"])
        table.write(ROWS, options={"write-only": "true"})
        table.write({**ROWS, "v": ["x", "z"]}, options={"write-only": "true"})
        table.tags.create("one", 1)
        table.branches.create("other", tag="one")
        table.consumers.record("reader", 2)

    @property
    def warehouse_of_table(self) -> Catalog:
        assert self.table.name == "db.t"
        return self.catalog

    @cached_property
    def view(self) -> TableView:
        return self.table.at(snapshot=1)

    @property
    def merge(self) -> TableMerge:
        return self.table.merge(ROWS, ["id", "dt"])

    @cached_property
    def lookup(self) -> Lookup:
        return self.table.lookup()

    def verb(self, *arguments: str) -> str:
        """Return what a verb prints on standard error."""
        assert self.table.name
        text = io.StringIO()
        named = [] if arguments[0] in ("tables", "sql") else ["--table", "db.t"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(text):
            status = main([*arguments, "--warehouse", self.warehouse, *named])
        if status:
            raise SparkUnavailableError(text.getvalue())
        return text.getvalue()


    def verb_by_engine(self, engine: str | None, verb: str) -> str:
        return self.verb(verb, *(() if engine is None else ("--engine", engine)))


Call: TypeAlias = Callable[[CallWarehouse], object]
CallByEngine: TypeAlias = Callable[[CallWarehouse, str | None], object]
Calls: TypeAlias = Mapping[str, Call]
ENGINE_VERBS = ("all", "analyze", "check", "compact", "orphans")

#: The calls that may start a Spark session, and the call without Spark that their error names.
MAY_START: dict[str, tuple[Call, str]] = {
    "Table.read": (lambda at: at.table.read(), "call to_arrow, to_pandas or to_reader"),
    "TableView.read": (lambda at: at.view.read("id = 1"), "call to_arrow, to_pandas or to_reader"),
    "Table.changelog": (lambda at: at.table.changelog(), "call changelog_reader"),
    "TableView.changelog": (lambda at: at.view.changelog(where="id = 1"), "call changelog_reader"),
    "ResultTable.to_spark": (lambda at: at.table.inspect.files().to_spark(), "call to_arrow or to_pandas"),
    "lakelsm query-service": (lambda at: at.verb("query-service", "--engine", "spark"), "pass --engine local"),
}
#: Calls that load PySpark but start no session: they return a function of DataFrames, or are given a session or stream.
LOADING = ("Table.lookup_join", "Table.write_stream", "Catalog.register")
#: The calls with an argument ``engine``: they may start a session only with 'spark'.
BY_ENGINE: dict[str, CallByEngine] = {
    "Catalog.sql": lambda at, engine: at.warehouse_of_table.sql("SELECT id FROM db.t", engine),
    "Table.count": lambda at, engine: at.table.count("v = 'x'", engine=engine),
    "TableView.count": lambda at, engine: at.view.count("v = 'x'", engine=engine),
    "Table.delete": lambda at, engine: at.table.delete("id = 1", engine=engine),
    "Table.update": lambda at, engine: at.table.update({"v": "'n'"}, "id = 1", engine=engine),
    "TableMerge.execute": lambda at, engine: at.merge.when_matched_update().execute(engine=engine),
    "Table.compact": lambda at, engine: at.table.compact(True, "dt = 'a'", engine=engine),
    "TableMaintenance.analyze": lambda at, engine: at.table.maintenance.analyze(engine=engine),
    "TableMaintenance.check": lambda at, engine: at.table.maintenance.check(data="full", engine=engine),
    "TableMaintenance.remove_orphans": lambda at, engine: at.table.maintenance.remove_orphans(engine=engine),
    "TableMaintenance.run_all": lambda at, engine: _raised(at.table.maintenance.run_all(engine=engine)),
    "lakelsm sql": lambda at, engine: at.verb("sql", "SELECT id FROM db.t", "--engine", engine or "local"),
    **{f"lakelsm {verb}": partial(CallWarehouse.verb_by_engine, verb=verb) for verb in ENGINE_VERBS},
}
#: The verbs without Spark, and their arguments. tests/cli/test_query_service.py runs query-service without Spark.
VERBS_ALONE: dict[str, tuple[str, ...]] = {
    "alter": ("--comment", "c"),
    "branch create": ("new",),
    "branch delete": ("other",),
    "branch fast-forward": ("other",),
    "branch list": (),
    "branch rename": ("other", "new"),
    "consumers delete": ("reader",),
    "consumers expire": ("--older-than", "1 d"),
    "consumers list": (),
    "consumers record": ("reader", "--next-snapshot", "1"),
    "create": ("id INT", "--primary-key", "id", "--if-not-exists"),
    "describe": (),
    "drop": (),
    "explain": ("--where", "id = 1"),
    "expire": ("--retain-last", "1"),
    "files": (),
    "head": (),
    "history": (),
    "partitions drop": ("--where", "dt = 'a'"),
    "partitions expire": ("--older-than", "1 d", "--strategy", "update-time"),
    "partitions list": ("--where", "dt = 'a'"),
    "partitions mark-done": (),
    "rollback": ("--snapshot", "1"),
    "snapshots": (),
    "status": (),
    "tables": (),
    "tag create": ("two",),
    "tag delete": ("one",),
    "tag expire": (),
    "tag list": (),
    "tag rename": ("one", "first"),
    "tag replace": ("one", "--snapshot", "2"),
}
#: All other calls.
OTHERS: Calls = {
    "Catalog.alter_table": lambda at: at.warehouse_of_table.alter_table("db.t", SetOption("write-only", "true")),
    "Catalog.create_database": lambda at: at.catalog.create_database("new"),
    "Catalog.create_table": lambda at: at.catalog.create_table("db.new", ROWS, primary_key="id", load=True),
    "Catalog.drop_database": lambda at: at.warehouse_of_table.drop_database("db", cascade=True),
    "Catalog.drop_table": lambda at: at.warehouse_of_table.drop_table("db.t"),
    "Catalog.list_databases": lambda at: at.catalog.list_databases(),
    "Catalog.list_tables": lambda at: at.catalog.list_tables(),
    "Catalog.register": lambda at: _refused_registration(at.warehouse_of_table),
    "Catalog.rename_table": lambda at: at.warehouse_of_table.rename_table("db.t", "db.u"),
    "Catalog.table": lambda at: at.warehouse_of_table.table("db.t"),
    "Catalog.table_exists": lambda at: at.catalog.table_exists("db.t"),
    "Table.at": lambda at: [at.table.at(tag="one"), at.table.at(timestamp="9999-01-01")],
    "Table.changelog_reader": lambda at: at.table.changelog_reader(1, where="id = 1").read_all(),
    "Table.explain": lambda at: at.table.explain("id = 1"),
    "Table.follow": lambda at: list(at.table.follow(timeout=0)),
    "Table.for_path": lambda at: Table.for_path(str(root_of(at.table))),
    "Table.head": lambda at: at.table.head(),
    "Table.lookup": lambda at: at.table.lookup().close(),
    "Table.lookup_join": lambda at: at.table.lookup_join(["id", "dt"]),
    "Table.merge": lambda at: at.merge,
    "Table.name": lambda at: at.table.name,
    "Table.overwrite": lambda at: at.table.overwrite(ROWS),
    "Table.rollback": lambda at: at.table.rollback(1),
    "Table.schema": lambda at: at.table.schema,
    "Table.to_arrow": lambda at: at.table.to_arrow("dt > 'a'", ordered=True),
    "Table.to_pandas": lambda at: at.table.to_pandas(),
    "Table.to_polars": lambda at: _to_polars(at.table),
    "Table.to_reader": lambda at: at.table.to_reader("id = 1", ["id"]).read_all(),
    "Table.write": lambda at: at.table.write([{"id": 1, "dt": "a", "v": None}]),
    "Table.write_stream": lambda at: _refused_stream(at.table),
    "TableMerge.when_matched_delete": lambda at: at.merge.when_matched_delete(),
    "TableMerge.when_matched_update": lambda at: at.merge.when_matched_update(),
    "TableMerge.when_not_matched_by_source_delete": lambda at: at.merge.when_not_matched_by_source_delete(),
    "TableMerge.when_not_matched_by_source_update": lambda at: at.merge.when_not_matched_by_source_update({"v": "'n'"}),
    "TableMerge.when_not_matched_insert": lambda at: at.merge.when_not_matched_insert(),
    "TableView.changelog_reader": lambda at: at.view.changelog_reader().read_all(),
    "TableView.explain": lambda at: at.view.explain(),
    "TableView.head": lambda at: at.view.head(1),
    "TableView.name": lambda at: at.view.name,
    "TableView.schema": lambda at: at.view.schema,
    "TableView.snapshot_id": lambda at: at.view.snapshot_id,
    "TableView.to_arrow": lambda at: at.view.to_arrow(),
    "TableView.to_pandas": lambda at: at.view.to_pandas(),
    "TableView.to_polars": lambda at: _to_polars(at.view),
    "TableView.to_reader": lambda at: at.view.to_reader().read_all(),
    "TableMaintenance.drop_partitions": lambda at: at.table.maintenance.drop_partitions("dt = 'a'"),
    "TableMaintenance.expire_partitions": lambda at: at.table.maintenance.expire_partitions(1, strategy="update-time"),
    "TableMaintenance.expire_snapshots": lambda at: at.table.maintenance.expire_snapshots(1),
    "TableMaintenance.mark_partitions_done": lambda at: at.table.maintenance.mark_partitions_done("dt = 'a'"),
    "TableTags.create": lambda at: at.table.tags.create("two"),
    "TableTags.delete": lambda at: at.table.tags.delete("one"),
    "TableTags.expire": lambda at: at.table.tags.expire(),
    "TableTags.list": lambda at: at.table.tags.list(),
    "TableTags.rename": lambda at: at.table.tags.rename("one", "first"),
    "TableTags.replace": lambda at: at.table.tags.replace("one", 2),
    "TableBranches.create": lambda at: at.table.branches.create("new"),
    "TableBranches.delete": lambda at: at.table.branches.delete("other"),
    "TableBranches.fast_forward": lambda at: at.table.branches.fast_forward("other"),
    "TableBranches.list": lambda at: at.table.branches.list(),
    "TableBranches.open": lambda at: at.table.branches.open("other").to_arrow(),
    "TableBranches.rename": lambda at: at.table.branches.rename("other", "new"),
    "TableConsumers.delete": lambda at: at.table.consumers.delete("reader"),
    "TableConsumers.expire": lambda at: at.table.consumers.expire("1 d"),
    "TableConsumers.list": lambda at: at.table.consumers.list(),
    "TableConsumers.record": lambda at: at.table.consumers.record("reader", 1),
    "TableInspection.buckets": lambda at: at.table.inspect.buckets(),
    "TableInspection.files": lambda at: at.table.inspect.files(),
    "TableInspection.history": lambda at: at.table.inspect.history(),
    "TableInspection.options": lambda at: at.table.inspect.options(),
    "TableInspection.partitions": lambda at: at.table.inspect.partitions("dt = 'a'"),
    "TableInspection.schemas": lambda at: at.table.inspect.schemas(),
    "TableInspection.snapshots": lambda at: at.table.inspect.snapshots(),
    "TableInspection.status": lambda at: at.table.inspect.status(),
    "TableInspection.system": lambda at: [at.table.inspect.system(name).to_arrow() for name in SYSTEM_TABLES],
    "SnapshotInspection.buckets": lambda at: at.view.inspect.buckets(),
    "SnapshotInspection.files": lambda at: at.view.inspect.files(),
    "SnapshotInspection.partitions": lambda at: at.view.inspect.partitions("dt = 'a'"),
    "SnapshotInspection.system": lambda at: at.view.inspect.system("audit_log").to_arrow(),
    "ResultTable.to_arrow": lambda at: at.table.inspect.files().to_arrow(),
    "ResultTable.to_pandas": lambda at: at.table.inspect.system("ro").to_pandas(),
    "ResultTable.to_polars": lambda at: _to_polars(at.table.inspect.files()),
    "ResultTable.show": lambda at: _show(at.table.inspect.system("ro")),
    "Lookup.close": lambda at: at.lookup.close(),
    "Lookup.get": lambda at: at.lookup.get(1, "a"),
    "Lookup.get_all": lambda at: at.table.lookup(key=["v"]).get_all("x"),
    "Lookup.get_many": lambda at: at.lookup.get_many([(1, "a")]),
    "Lookup.refresh": lambda at: at.lookup.refresh(),
    "Lookup.staleness": lambda at: at.lookup.staleness(),
    **{f"lakelsm {verb}": methodcaller("verb", *verb.split(), *VERBS_ALONE[verb]) for verb in VERBS_ALONE},
}


def _raised(result: UpkeepResult) -> None:
    """Raise the errors of the steps."""
    errors = [step.error.text for step in result.steps if step.error is not None]
    if errors:
        raise SparkUnavailableError("\n".join(errors))


def _show(found: ResultTable) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        found.show(1)


def _to_polars(table: Table | TableView | ResultTable) -> None:
    """Read with Polars, if it is installed."""
    try:
        table.to_polars()
    except InvalidInputError as error:
        assert "lakelsm[polars]" in str(error)


def _refused_registration(catalog: Catalog) -> None:
    """Register tables without a session."""
    with pytest.raises(InvalidInputError, match="spark: expected a SparkSession"):
        catalog.register(None)  # type: ignore[arg-type]


def _refused_stream(table: Table) -> None:
    """Write rows that are not a stream."""
    with pytest.raises(InvalidInputError, match="stream: expected a streaming DataFrame"):
        table.write_stream(ROWS)


def _on(engine: str | None, call: CallByEngine) -> Call:
    return lambda at: call(at, engine)


def failure(call: Call, warehouse: str, spark: SparkSession | None = None) -> str:
    """Return the error of a call in a separate warehouse."""
    try:
        call(CallWarehouse(warehouse, spark))
    except Exception as error:  # noqa: BLE001  All are reported.
        return f"{type(error).__name__}: {error}"
    return "none"


def work(directory: str) -> None:
    """Run all calls in this process, which has no Java, and print their faults."""
    alone: Calls = {**OTHERS, **{name: _on(None, call) for name, call in BY_ENGINE.items()}}
    failures = {name: failure(call, f"{directory}/{name}") for name, call in alone.items() if name not in LOADING}
    if "pyspark" in sys.modules:
        print("PySpark is loaded.")
    failures |= {name: failure(OTHERS[name], f"{directory}/{name}") for name in LOADING}
    print(*(f"{name}: {error}" for name, error in failures.items() if error != "none"), sep="\n", end="")
    on_spark = {name: (_on("spark", call), "pass engine='local'") for name, call in BY_ENGINE.items()}
    for name, (call, instead) in {**MAY_START, **on_spark}.items():
        remedy = instead.replace("engine='local'", "--engine local") if name.startswith("lakelsm") else instead
        error = failure(call, f"{directory}/{name} on Spark")
        if "Unavailable" not in error or "needs a Java runtime" not in error or f"Without Spark: {remedy}." not in error:
            print(f"{name} on Spark: {error}")


def test_every_public_call_is_listed_once_and_calls_with_an_engine_by_it() -> None:
    calls = {
        f"{owner.__name__}.{name}": each
        for owner in CLASSES
        for name, each in inspect.getmembers(owner)
        if not name.startswith("_")
    }
    verbs = {
        f"lakelsm {group.name} {verb.name}" if verb is not group else f"lakelsm {verb.name}": verb
        for group in VERBS
        for verb in (group.verbs if isinstance(group, VerbGroup) else (group,))
    }
    listed = [*MAY_START, *BY_ENGINE, *OTHERS]
    assert sorted(listed) == sorted({*calls, *verbs})
    methods = {name: each for name, each in calls.items() if callable(each)}
    with_engine = {name for name, each in methods.items() if "engine" in inspect.signature(each).parameters}
    for name, verb in verbs.items():
        verb.add_arguments(parser := ArgumentParser())
        with_engine |= {name for action in parser._actions if action.dest == "engine"}
    assert with_engine == {*BY_ENGINE, "lakelsm query-service"}


def test_calls_need_no_spark_unless_they_request_it_and_errors_name_the_other_call(tmp_path: Path) -> None:
    program = "import sys; from tests.test_spark_starts import work; work(sys.argv[1])"
    env = {"PATH": "", "JAVA_HOME": "/nowhere", "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", "", 0)
