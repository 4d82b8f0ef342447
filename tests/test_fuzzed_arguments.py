"""Public methods accept hostile values or raise a LakelsmError; in both cases the table opens with its rows."""

from __future__ import annotations

import datetime
import inspect
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm import Catalog, LakelsmError, Lookup, Table
from lakelsm import schema_changes as changes
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table import (
    ResultTable,
    TableBranches,
    TableConsumers,
    TableInspection,
    TableMaintenance,
    TableTags,
    TableView,
)
from lakelsm.types import parse_type
from tests.engines import plain_rows
from tests.examples import examples
from tests.hostile_values import plain_values, spark_values

ROWS = [("a", 1, "x"), ("a", 2, "y"), ("b", 1, "z")]
CHANGES = get_args(changes.SchemaChange)
NAMESPACES = {
    TableMaintenance: "maintenance",
    TableTags: "tags",
    TableBranches: "branches",
    TableConsumers: "consumers",
    TableInspection: "inspect",
}
OWNERS = [Catalog, Table, TableView, *NAMESPACES, ResultTable, Lookup, *CHANGES]
#: Classes whose instances only methods of other classes make.
MADE = (Lookup, TableView, ResultTable, *NAMESPACES)


@dataclass(frozen=True)
class Method:
    """A public method (a class means its constructor) and its parameters."""

    owner: type
    name: str

    @property
    def label(self) -> str:
        owner = f"Table.{NAMESPACES[self.owner]}" if self.owner in NAMESPACES else self.owner.__name__
        return owner if self.name == "__init__" else f"{owner}.{self.name}"

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        called = self.owner if self.name == "__init__" else inspect.getattr_static(self.owner, self.name)
        found = inspect.signature(called.__func__ if isinstance(called, staticmethod) else called).parameters
        return {name: parameter for name, parameter in found.items() if name != "self"}

    def arguments(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return values in the form of the method: a variadic parameter gets one value."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, value in values.items():
            kind = self.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                positional.append(value)
            elif kind is inspect.Parameter.VAR_KEYWORD:
                texts = type(value) is dict and all(type(key) is str for key in value)
                named.update(value if texts else {"k": value})
            else:
                named[name] = value
        return positional, named


def public_methods() -> Iterator[Method]:
    """Yield all public methods, so that a new one cannot be missing."""
    for owner in OWNERS:
        inherited = {name: member for part in reversed(owner.mro()[:-1]) for name, member in vars(part).items()}
        for name, member in inherited.items():
            public = not name.startswith("_") and callable(getattr(owner, name)) and callable(member)
            if public or (name == "__init__" and owner not in MADE):
                yield Method(owner, name)


#: The tests do not need Polars.
METHODS = [method for method in public_methods() if method.parameters and method.name != "to_polars"]
#: Methods that write if they accept their arguments, and the calls of these that change rows.
WRITING = {f"Catalog.{name}" for name in ("create_table", "alter_table", "create_database")}
WRITING |= {f"Table.{name}" for name in ("write", "compact", "tags.create", "tags.rename", "tags.replace", "tags.delete")}
WRITING |= {
    "Table.maintenance.run_all",
    "Table.tags.expire",
    "Table.consumers.record",
    "Table.consumers.delete",
    "Table.consumers.expire",
}
WRITING |= {f"Table.branches.{name}" for name in ("create", "fast_forward", "rename", "delete")}
WRITING |= {
    f"Table.maintenance.{name}" for name in ("remove_orphans", "analyze", "expire_snapshots", "mark_partitions_done")
}
# A new consumer is recorded where it starts to read.
WRITING |= {"Table.changelog", "Table.changelog_reader", "Table.follow"}
REMOVING = {"Catalog.drop_table", "Catalog.drop_database", "Catalog.rename_table"}
CHANGING_ROWS = {*REMOVING, "Table.delete", "Table.update", "Table.overwrite", "Table.rollback"}
CHANGING_ROWS |= {"Table.maintenance.drop_partitions", "Table.maintenance.expire_partitions"}
WRITING |= CHANGING_ROWS

#: Methods that need a session for all arguments, or that belong to one.
SPARK_ALONE = {"read", "changelog", "write_stream", "lookup_join", "update", "to_spark", "__init__", "for_path"}

POINT = [None, 1, "old", datetime.datetime(2999, 1, 1)]
DRY_RUN: dict[str, list[Any]] = {"dry_run": [False, True]}
TAGGED = {
    "snapshot": POINT,
    "time_retained": [None, "1 d", 60, datetime.timedelta(days=1)],
}
CONDITIONS = ["dt = 'a'", "dt IS NULL", "dt <> '/'"]
COMMIT = {"commit_user": [None, "u"], "batch_id": [None, 3]}
WHERE = {"where": [None, "dt = 'a'"]}
CAST = {"cast": ["safe", "strict"], "merge_schema": [False, True]}
ENGINE = {"engine": ["local", "spark", None]}
SHOWN = {"columns": [None, ["k"]], "limit": [None, 1], "ordered": [False, True]}
TIMES = {"timestamps": ["ns", "us", "text"]}
ARROW = {**WHERE, **SHOWN, "fresh": [False, True], **TIMES}
CHANGELOG = {
    "start": [None, 1],
    "end": [None, 2],
    **WHERE,
    "mode": ["auto", "diff"],
    "kind_column": ["rowkind"],
    "positions": [False, True],
    "consumer_id": [None, "read"],
}
#: A view shows the first snapshot.
VIEWED = {name: values for name, values in CHANGELOG.items() if name not in ("end", "consumer_id")} | {"start": [None, 0]}


def empty_stream(spark: SparkSession, warehouse: Path, frame: DataFrame | pa.Table) -> object:
    """Return a stream without rows, which ends at once."""
    (warehouse / "landing").mkdir(exist_ok=True)
    stream = spark.readStream.schema(frame.schema).parquet(str(warehouse / "landing"))
    checkpoint = str(warehouse.with_name(f"{warehouse.name}-checkpoint"))
    return stream.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)


def right_values(
    spark: SparkSession | None, warehouse: Path, frame: DataFrame | pa.Table
) -> dict[str, dict[str, list[Any]]]:
    """Return correct values by method and parameter, for a warehouse with table db.t; ``frame`` has its rows."""
    path = str(warehouse / "db.db" / "t")
    column: dict[str, list[Any]] = {"name": ["v"]}
    return {
        "Catalog": {
            "warehouse": [str(warehouse)],
            "spark": [spark],
            "storage_options": [None, {}],
            "options": [None, {}, {"lakelsm.time-zone": "Asia/Tokyo"}],
        },
        "Catalog.create_table": {
            "name": ["db.new", "db.t"],
            "schema": ["k INT"],
            "primary_key": [["k"]],
            "partition_by": [()],
            "options": [{"bucket": "1"}],
            "comment": [None, "new"],
            "if_not_exists": [True],
            "load": [False],
        },
        "Catalog.rename_table": {"name": ["db.t"], "new_name": ["db.other"]},
        "Catalog.table_exists": {"name": ["db.t", "db.no"]},
        "Catalog.create_database": {"name": ["new", "db"], "if_not_exists": [True, False]},
        "Catalog.drop_database": {"name": ["none"], "cascade": [False, True], "if_exists": [True]},
        "Catalog.register": {"spark": [spark], "databases": [["db"], None], "pinned": [True]},
        "Catalog.sql": {"text": ["SELECT k FROM db.t"], **ENGINE, "frames": [{}]},
        "Catalog.table": {"name": ["db.t"]},
        "Catalog.alter_table": {"name": ["db.t"], "changes": [changes.UpdateComment("altered")]},
        "Catalog.drop_table": {"name": ["db.t"]},
        "Catalog.list_tables": {"database": ["db", None]},
        "Table": {"store": [TableStore.open(path)], "spark": [spark]},
        "Table.for_path": {"location": [path], "spark": [spark], "storage_options": [None, {}]},
        "Table.write": {
            "frame": [frame],
            "row_kind": [None],
            **COMMIT,
            "options": [None],
            "event_time": [None],
            "event_time_delay": [None],
            **CAST,
        },
        "Table.write_stream": {
            "stream": [None if spark is None else empty_stream(spark, warehouse, frame)],
            "row_kind": [None],
            "overwrite": [False],
            "cast": CAST["cast"],
            "commit_user": COMMIT["commit_user"],
            "compact_every": [1, 0],
            "event_time": [None],
            "event_time_delay": [None],
        },
        "Table.overwrite": {"frame": [frame], "partition": [None], **COMMIT, **CAST},
        "Table.delete": {"where": ["k = 1"], "keys": [None], **COMMIT, **ENGINE},
        "Table.update": {
            "set": [{"v": "upper(v)"}],
            "where": ["k = 1"],
            **COMMIT,
            "engine": ["local" if spark is None else "spark"],
        },
        "Table.merge": {
            "source": [[{"k": 1, "v": "x"}]],
            "on": ["k", ["k", "dt"], "t.k = s.k"],
            "duplicates": ["error", "last"],
            "order_by": [None, "k", ["v"]],
            "schema_evolution": [False, True],
        },
        "Table.read": {**WHERE, "columns": [None, ["k"]], "fresh": [False, True]},
        "Table.follow": {
            "start": ["latest-full", "latest", "compacted-full"],
            "snapshot": [None],
            "timestamp": [None],
            **WHERE,
            "consumer_id": [None, "read"],
            "kind_column": ["rowkind", "op"],
            "positions": [False, True],
            **TIMES,
            "overwrites": [None, False, True],
            "fail_on_data_loss": [True, False],
            "max_rows": [None, 5],
            "max_bytes": [None, 1000],
            "max_files": [None, 1],
            "max_poll_interval": [None, 5, "1 s"],
            "heartbeat": [None, 5, "1 s"],
            "timeout": [None, 0, "1 s"],
        },
        "Table.lookup": {
            "columns": [None, ["v"]],
            "key": [None, ["dt", "k"]],
            **WHERE,
            "refresh": [None, "10s", 5, "never"],
            "cache": [None, "full", "partial"],
            "options": [None, {"lookup.cache-rows": 5}],
            "directory": [None],
        },
        "Table.lookup_join": {
            "on": ["k", ["k", "dt"], {"k": "k"}],
            "columns": [None, ["v"], {"v": "w"}],
            "how": ["left", "inner"],
            **WHERE,
            "refresh": [None, "10s", 5],
            "cache": [None, "full", "partial"],
            "options": [None, {"lookup.cache-rows": 5}],
            "by_bucket": [False],
        },
        "Lookup.get": {"key": ["a"], "named": [{"k": 1}]},
        "Lookup.get_all": {"key": ["a"], "named": [{"k": 1}]},
        "Lookup.get_many": {"keys": [pa.table({"dt": ["a"], "k": [1]})], "how": ["left", "inner"], **TIMES},
        "Table.explain": {**WHERE, "fresh": [False, True]},
        "Table.head": {"rows": [2, 0]},
        "Table.at": {"snapshot": [1], "timestamp": [None], "tag": [None], "watermark": [None]},
        "Table.to_reader": ARROW,
        "Table.to_arrow": ARROW,
        "Table.to_pandas": ARROW,
        "Table.count": {**WHERE, "fresh": [False, True], **ENGINE},
        "Table.changelog": CHANGELOG,
        "Table.changelog_reader": {**CHANGELOG, **TIMES},
        "Table.compact": {
            "full": [False, True],
            **WHERE,
            "buckets": [None, [0], "0"],
            "dry_run": [False, True],
            "commit_every": [None, 1],
            "deadline": [None, "1 h"],
            "max_task_memory": ["64mb"],
            "commit_user": [None],
            **ENGINE,
        },
        "Table.inspect.history": {"limit": [1, 50]},
        "Table.maintenance.remove_orphans": {
            "older_than": ["1 day", 90_000, datetime.timedelta(days=2), datetime.datetime(2020, 1, 1)],
            "dry_run": [False, True],
            "force": [False, True],
            **ENGINE,
            "deadline": [None, "1 h"],
        },
        "Table.maintenance.expire_snapshots": {
            "retain_last": [None, 1],
            "older_than": [None, "1 day", 90_000, datetime.timedelta(days=2), datetime.datetime(2020, 1, 1)],
            "retain_max": [None, 20],
            "max_deletes": [None, 1],
            "dry_run": [False, True],
            "deadline": [None, "1 h"],
        },
        "Table.inspect.partitions": {"where": [None, *CONDITIONS]},
        "Table.maintenance.drop_partitions": {"where": CONDITIONS, "dry_run": [False, True], "commit_user": [None, "u"]},
        "Table.maintenance.expire_partitions": {
            "older_than": ["1 d", 5, datetime.timedelta(days=1), datetime.datetime(2999, 1, 1)],
            "strategy": ["update-time", None, "values-time"],
            "dry_run": [False, True],
            "deadline": [None, 0],
        },
        "Table.maintenance.mark_partitions_done": {
            "where": [*CONDITIONS, None],
            "idle_only": [False],
            "dry_run": [False, True],
        },
        "Table.branches.create": {
            "name": ["new", "b"],
            "tag": [None, "old"],
            "ignore_if_exists": [False, True],
            **DRY_RUN,
        },
        "Table.branches.open": {"name": ["main", "b"]},
        "Table.branches.fast_forward": {"name": ["b"], **DRY_RUN},
        "Table.branches.rename": {"name": ["b"], "new_name": ["c"], **DRY_RUN},
        "Table.branches.delete": {"name": ["b"], **DRY_RUN},
        "Table.tags.create": {"name": ["new", "old", "1", "a=b é"], **TAGGED, "if_not_exists": [False, True], **DRY_RUN},
        "Table.tags.replace": {"name": ["old"], **TAGGED, **DRY_RUN},
        "Table.tags.rename": {"name": ["old"], "new_name": ["new", "old", "2"], **DRY_RUN},
        "Table.tags.delete": {"name": ["old"], "dry_run": [False, True]},
        "Table.tags.expire": {"older_than": [None, "1 d", 0], "dry_run": [False, True]},
        "Table.rollback": {"to": [1, 2, "old", "tag:old", datetime.datetime(2999, 1, 1)], **DRY_RUN},
        "Table.consumers.record": {"consumer_id": ["etl"], "next_snapshot": [1, 2, 3], **DRY_RUN},
        "Table.consumers.delete": {"consumer_id": ["read"], **DRY_RUN},
        "Table.consumers.expire": {"older_than": ["1 d", 0, None], "dry_run": [False, True]},
        "Table.maintenance.check": {"data": ["none", "sample", "full"], **WHERE, **ENGINE, "deadline": [None, "1 h"]},
        "Table.maintenance.run_all": {
            "steps": [["tags", "check"], None],
            "orphans_older_than": ["1 day"],
            "data": ["none", "footers"],
            **DRY_RUN,
            "deadline": [None, "1 h"],
            **ENGINE,
        },
        "Table.inspect.status": {"max_buckets": [0, 3]},
        "Table.maintenance.analyze": {"columns": [None, ["k"], []], **DRY_RUN, "commit_user": [None, "u"], **ENGINE},
        "Table.inspect.system": {"name": ["files", "snapshots"]},
        **{f"TableView.{name}": {**WHERE, "columns": [None, ["k"]], "fresh": [False, True]} for name in ("read",)},
        **{f"TableView.{name}": ARROW for name in ("to_reader", "to_arrow", "to_pandas")},
        "TableView.head": {"rows": [2, 0]},
        "TableView.count": {**WHERE, "fresh": [False, True], **ENGINE},
        "TableView.explain": {**WHERE, "fresh": [False, True]},
        "TableView.changelog": VIEWED,
        "TableView.changelog_reader": {**VIEWED, **TIMES},
        "ResultTable.to_arrow": TIMES,
        "ResultTable.show": {"rows": [2, 0]},
        "AddColumn": {
            "name": ["new"],
            "type": [parse_type("INT")],
            "comment": [None],
            "after": [None, "k"],
            "first": [False],
        },
        "DropColumn": column,
        "RenameColumn": {**column, "new_name": ["w"]},
        "UpdateColumnType": {**column, "type": [parse_type("STRING")]},
        "UpdateColumnNullability": {**column, "nullable": [True]},
        "UpdateColumnComment": {**column, "comment": [None]},
        "MoveColumn": {**column, "after": [None, "k"], "first": [False]},
        "UpdateComment": {"comment": [None]},
        "SetOption": {"key": ["write-only"], "value": ["true"]},
        "RemoveOption": {"key": ["write-only"]},
    }


@dataclass(frozen=True)
class World:
    """A warehouse with a table of `ROWS`, the target of the calls."""

    spark: SparkSession | None
    warehouse: Path
    frame: DataFrame | pa.Table
    pool: list[Any]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the object beside a failing example: some hostile values raise errors when they are shown."""
        printer.text(f"World({str(self.warehouse)!r})")

    @property
    def table(self) -> Path:
        return self.warehouse / "db.db" / "t"

    def copy(self, folder: Path) -> World:
        shutil.copytree(self.warehouse, folder)
        return replace(self, warehouse=folder)

    def listing(self) -> dict[str, tuple[int, int]]:
        found = {path: path.stat() for path in self.warehouse.rglob("*") if path.is_file()}
        return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}

    def right(self, method: Method) -> dict[str, list[Any]]:
        right = right_values(self.spark, self.warehouse, self.frame)[method.label]
        return {name: ["local"] if name == "engine" and self.spark is None else right[name] for name in right}

    def call(self, method: Method, values: Mapping[str, Any]) -> object:
        """Call a method. A DataFrame is computed, because a part of a read's work is only done then."""
        more, given = method.arguments(values)
        if isinstance(directory := given.get("directory"), (str, Path)) and Path(directory).is_absolute():
            given["directory"] = f"{self.warehouse.parent}/caches{directory}"  # Root may create any directory.
        if "changes" in values:
            more, given = [given["name"], *more], {}
        with ExitStack() as stack:
            called: Callable[..., Any] = method.owner
            if method.owner is Lookup:
                called = getattr(stack.enter_context(self.opened().lookup()), method.name)
            elif method.name != "__init__":
                called = getattr(self.holder(method.owner), method.name)
            result = called(*more, **given)
        if isinstance(result, Lookup):
            with result:
                return result.staleness()
        if isinstance(result, pa.RecordBatchReader):
            return result.read_all()
        return result.limit(2).collect() if isinstance(result, DataFrame) else result

    def holder(self, owner: type) -> Any:
        """Return an object with the methods of a class."""
        if owner is Catalog:
            return Catalog(str(self.warehouse), self.spark)
        if owner in NAMESPACES:
            return getattr(self.opened(), NAMESPACES[owner])
        if owner is ResultTable:
            return self.opened().inspect.system("audit_log")
        return self.opened().at(snapshot=1) if owner is TableView else self.opened()

    def opened(self) -> Table:
        return Table.for_path(str(self.table), self.spark)

    def rows(self) -> list[tuple[Any, ...]]:
        """Read without Spark, whose jobs would take most of the time of all these calls."""
        return sorted(plain_rows(self.opened().to_arrow(columns=["dt", "k", "v"])))


def attempt(world: World, method: Method, values: Mapping[str, Any]) -> str:
    """Call a method with values. Return "refused" or "accepted", after checks of the files. Other errors are raised."""
    before = world.listing()
    try:
        world.call(method, values)
    except LakelsmError as error:
        str(error).encode()
        assert world.listing() == before, "it was refused, and files changed"
        return "refused"
    if world.listing() != before:
        assert method.label in WRITING, "it only reads, and files changed"
        assert method.label in CHANGING_ROWS or world.rows() == ROWS
        assert method.label in REMOVING or len(world.rows()) <= len(ROWS)
    return "accepted"


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    frame = spark.createDataFrame(ROWS, "dt STRING, k INT, v STRING").cache()
    warehouse = made(tmp_path_factory.mktemp("fuzzed") / "warehouse", spark, frame.withColumn("v", F.lit("old")), frame)
    return World(spark, warehouse, frame, [*plain_values(), *spark_values(spark)])


@pytest.fixture(scope="module")
def local_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The same warehouse without a session."""
    kinds = [("dt", pa.string()), ("k", pa.int32()), ("v", pa.string())]
    rows = pa.table([list(column) for column in zip(*ROWS)], schema=pa.schema(kinds))
    old = rows.set_column(2, "v", pa.array(["old"] * len(ROWS)))
    return World(None, made(tmp_path_factory.mktemp("fuzzed") / "warehouse", None, old, rows), rows, plain_values())


def made(warehouse: Path, spark: SparkSession | None, old: DataFrame | pa.Table, rows: DataFrame | pa.Table) -> Path:
    """Create a warehouse with table db.t, with a branch, a tag and a consumer."""
    table = Catalog(str(warehouse), spark).create_table(
        "db.t",
        "dt STRING, k INT, v STRING",
        primary_key=["dt", "k"],
        partition_by=["dt"],
        options={"bucket": 1, "write-only": True},
    )
    table.write(old)
    table.write(rows)
    table.branches.create("b")
    table.branches.open("b").write(rows)
    table.tags.create("old", 1)
    table.consumers.record("read", 2)
    return warehouse


def test_every_public_parameter_is_fuzzed(world: World) -> None:
    right = right_values(world.spark, world.warehouse, world.frame)
    assert {method.label: set(method.parameters) for method in METHODS} == {
        label: set(values) for label, values in right.items()
    }


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.label)
def test_right_values_are_accepted(world: World, method: Method, tmp_path: Path) -> None:
    copy = world.copy(tmp_path / "copy")
    values = {name: values[0] for name, values in copy.right(method).items()}
    assert attempt(copy, method, values) == "accepted"


PARAMETERS = [(method, name) for method in METHODS for name in method.parameters]
#: As many numbers as the method with the most parameters needs: they select the values.
PICKS = st.lists(st.integers(0, 10**6), min_size=17, max_size=17)



def fuzz(world: World, chosen: tuple[Method, str], others: set[int], picks: list[int]) -> None:
    """Call a method with hostile values for one parameter and possibly for others."""
    method, hostile = chosen
    with tempfile.TemporaryDirectory() as folder:
        copy = world.copy(Path(folder) / "copy") if method.label in WRITING else world
        values = {}
        for at, (name, right) in enumerate(copy.right(method).items()):
            pool = world.pool if name == hostile or at in others else right
            values[name] = pool[picks[at] % len(pool)]
        event(attempt(copy, method, values))


@examples(150)
@given(chosen=st.sampled_from(PARAMETERS), others=st.sets(st.integers(0, 30), max_size=2), picks=PICKS)
def test_a_call_with_hostile_values_is_refused_or_accepted_and_the_table_keeps_its_rows(
    world: World, chosen: tuple[Method, str], others: set[int], picks: list[int]
) -> None:
    fuzz(world, chosen, others, picks)


LOCAL = [
    (method, name)
    for method, name in PARAMETERS
    if method.owner is not Catalog and method.owner not in CHANGES and method.name not in SPARK_ALONE
]


@examples(150)
@given(chosen=st.sampled_from(LOCAL), others=st.sets(st.integers(0, 30), max_size=2), picks=PICKS)
def test_a_call_in_this_process_is_refused_or_accepted_and_the_table_keeps_its_rows(
    local_world: World, chosen: tuple[Method, str], others: set[int], picks: list[int]
) -> None:
    fuzz(local_world, chosen, others, picks)
