"""A wrong argument of a public method raises an error with argument, value and remedy, before any work."""

from __future__ import annotations

import datetime
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lakelsm import Catalog, Table
from lakelsm.arguments import (
    checked_age,
    checked_assignments,
    checked_buckets,
    checked_choice,
    checked_condition,
    checked_file_name,
    checked_flag,
    checked_location,
    checked_name,
    checked_names,
    checked_number,
    checked_point,
    checked_projection,
    checked_seconds,
    checked_tag,
    checked_task_memory,
    checked_text,
    checked_time,
    option_text,
    option_texts,
    wrong_argument,
)
from lakelsm.errors import InvalidInputError, StorageError, TableNotFoundError, UnsupportedFeatureError
from lakelsm.moment import Age
from lakelsm.schema_changes import SetOption
from lakelsm.types import DataField, parse_type
from tests.hostile_values import plain_values

INT = parse_type("INT")
HALF = "\ud800"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """A catalog with the table db.t; a call that needs a Spark session fails the test."""
    resolver = "lakelsm.frames.spark_engine.resolve_session"
    monkeypatch.setattr(resolver, lambda *_: pytest.fail("a session was requested"))
    catalog = Catalog(str(tmp_path))
    catalog.create_table("db.t", "k INT, dt STRING", primary_key=["k"], options={"bucket": 2})
    return catalog


WRONG_LOCATIONS: list[tuple[Any, str]] = [
    (None, "expected the path or URI of a directory as text, .* got None"),
    (5, "expected the path .* got 5"),
    (Path("/tmp"), "got an object of type pathlib.PosixPath"),
    ("", "not blank"),
    ("file:relative", "must be absolute. Write relative"),
    ("~nobody-at-all/wh", "this home directory does not exist.* ./~nobody-at-all/wh"),
    ("/a\0b", "without the NUL character"),
    (f"/a{HALF}", "Half of a surrogate pair"),
    ("/a/" + "b" * 256, "parts have at most 255 bytes"),
    ("/a" * 1025, "a path of at most 2048 bytes"),
    ("file://host/x", "Write file:///host/x"),
    ("http://[", "location: .* is not a path or URI"),
]


@pytest.mark.parametrize(("location", "message"), WRONG_LOCATIONS)
def test_a_wrong_location_is_refused_with_a_remedy(location: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Catalog(location)
    with pytest.raises(InvalidInputError, match=message):
        Table.for_path(location)


WRONG_NAMES: list[tuple[Any, str]] = [
    (None, "name: expected 'database.table'"),
    ("t", "name: expected 'database.table'"),
    ("a.b.c", "'database.table'"),
    ("db.", "'database.table'"),
    (".t", "'database.table'"),
    ("../x.t", "'database.table'"),
    ("d\0b.t", "without the NUL character"),
    (f"db.{HALF}", "Half of a surrogate pair"),
    ("db." + "t" * 256, "at most 255 bytes"),
    ("d" * 253 + ".t", "at most 252 bytes"),
    ("é" * 127 + ".t", "at most 252 bytes"),
    ("db.t$snapshots", "Read it with table"),
    ("sys.t", "system table"),
]


@pytest.mark.parametrize(("name", "message"), WRONG_NAMES)
def test_a_wrong_name_of_a_table_is_refused_by_every_method_that_takes_one(
    catalog: Catalog, name: Any, message: str
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: catalog.table(name),
        lambda: catalog.create_table(name, "k INT", primary_key=["k"], options={"bucket": "1"}),
        lambda: catalog.alter_table(name, SetOption("write-only", "true")),
        lambda: catalog.drop_table(name),
        lambda: catalog.table_exists(name),
        lambda: catalog.rename_table(name, "db.new"),
        lambda: catalog.rename_table("db.t", name),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match=message):
            call()


@pytest.mark.parametrize("database", [None, "", "..", "a/b", "db.t", "\0", HALF, "d" * 253])
def test_a_wrong_name_of_a_database_is_refused(catalog: Catalog, database: Any) -> None:
    calls = [catalog.create_database, catalog.drop_database, *([] if database is None else [catalog.list_tables])]
    for call in calls:
        with pytest.raises(InvalidInputError, match="database"):
            call(database)


def test_a_warehouse_that_is_a_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match=r"warehouse: the directory .*file.* cannot be created: Not a directory"):
        Catalog(str(tmp_path / "file")).create_table("db.t", "k INT", primary_key=["k"], options={"bucket": "1"})


def test_an_unreadable_file_is_reported_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for call in (Table.for_path, lambda path: Catalog(path).list_databases(), lambda path: Catalog(path).table("db.t")):
        with pytest.raises(StorageError, match=r"loop.* cannot be read: Too many levels of symbolic links"):
            call(str(tmp_path / "loop"))
    Catalog(str(tmp_path)).create_table("db.t", "k INT", primary_key=["k"], options={"bucket": "1"})

    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("lakelsm.storage.local.os.open", refuse)
    with pytest.raises(StorageError, match=r"schema-0 cannot be read: Permission denied. Give this process"):
        Catalog(str(tmp_path)).table("db.t")


def test_a_path_below_a_file_has_no_table(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TableNotFoundError, match="file does not exist"):
        Table.for_path(str(tmp_path / "file"))
    with pytest.raises(TableNotFoundError, match=r"Table db.t does not exist. The database has no tables"):
        Catalog(str(tmp_path / "file")).table("db.t")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"schema": None}, "schema: expected a DDL text"),
        ({"schema": 5}, "schema: expected a DDL text"),
        ({"schema": [DataField(0, HALF, INT)]}, "the name of a column: .*Half of a surrogate pair"),
        ({"schema": [DataField(0, 5, INT)]}, "the name of a column: .* got 5"),  # type: ignore[arg-type]
        ({"schema": [DataField(0, "k", "INT")]}, "the type of column 'k': .* got 'INT'"),  # type: ignore[arg-type]
        ({"schema": [DataField(0, "k", INT, 5)]}, "the comment of column 'k': .* got 5"),  # type: ignore[arg-type]
        ({"schema": f"k INT, {HALF} INT"}, "schema: .*Half of a surrogate pair"),
        ({"primary_key": [1]}, "primary_key: expected a list of column names"),
        ({"primary_key": {"k"}}, "primary_key: expected a list of column names"),
        ({"primary_key": None}, "primary_key: .* got None"),
        ({"partition_by": "dt"}, r"Write \['dt'\]"),
        ({"options": "x"}, "options: expected a mapping"),
        ({"options": {5: "x"}}, "options: expected a mapping"),
        ({"options": {"bucket": None}}, "option 'bucket': expected a text"),
        ({"options": {"bucket": [1]}}, r"option 'bucket': .* got \[1\]"),
        ({"options": {"bucket": HALF}}, "Half of a surrogate pair"),
        ({"options": {"bucket": 2**70}}, "option 'bucket': 1180591620717411303424 is more than 9223372036854775807"),
        ({"comment": 5}, "comment: expected a text"),
        ({"comment": HALF}, "Half of a surrogate pair"),
        ({"if_not_exists": "no"}, "if_not_exists: expected True or False"),
    ],
)
def test_a_wrong_argument_of_a_creation_creates_nothing(
    catalog: Catalog, tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    right = {"schema": "k INT, dt STRING", "primary_key": ["k"], "options": {"bucket": "1"}, "if_not_exists": True}
    for name in ("db.u", "db.t"):  # A new table, and an existing one.
        with pytest.raises(InvalidInputError, match=message):
            catalog.create_table(name, **{**right, **changed})
    assert sorted(tmp_path.rglob("*")) == before


def test_options_may_be_numbers_and_booleans_everywhere(catalog: Catalog) -> None:
    options = {"bucket": 4, "write-only": True, "compaction.small-file-ratio": 0.5, "num-levels": np.int64(7)}
    table = catalog.create_table("db.n", "k INT", primary_key=["k"], options=options)
    assert table.schema.options == {
        "bucket": "4", "write-only": "true", "compaction.small-file-ratio": "0.5", "num-levels": "7"
    }  # fmt: skip
    catalog.alter_table("db.n", SetOption("write-only", False))  # type: ignore[arg-type]
    assert table.schema.options["write-only"] == "false"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((), "changes: no schema change is given. Pass AddColumn"),
        (([SetOption("write-only", "true")],), r"Write \*changes to pass the members"),
        ((SetOption("write-only", "true"), None), "changes: .* got None"),
        (("DROP COLUMN dt",), "changes: .* got 'DROP COLUMN dt'"),
    ],
)
def test_a_wrong_schema_change_changes_nothing(catalog: Catalog, changes: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        catalog.alter_table("db.t", *changes)
    assert catalog.table("db.t").schema.id == 0


READS: list[tuple[dict[str, Any], str]] = [
    ({"where": 5}, "where: expected an SQL condition as text"),
    ({"where": ""}, "where: .*''"),
    ({"where": f"dt = '{HALF}'"}, "Half of a surrogate pair"),
    ({"snapshot": 0}, "snapshot: 0 is less than 1"),
    ({"snapshot": -1}, "snapshot: -1 is less than 1"),
    ({"snapshot": 2**70}, "snapshot: 1180591620717411303424 is more than"),
    ({"snapshot": 10**5000}, "snapshot: .* is more than"),
    ({"snapshot": True}, "snapshot: .*True"),
    ({"snapshot": 1.0}, "snapshot: .* got 1.0"),
    ({"snapshot": "1"}, "snapshot: .*'1'"),
    ({"timestamp": 5}, "timestamp: 5 is not a point in time. Use a datetime, or a text such as "),
    ({"timestamp": datetime.date(2025, 1, 1)}, "timestamp: datetime.date"),
    ({"timestamp": pd.NaT}, "timestamp: NaT"),
    ({"timestamp": ""}, "timestamp: ''"),
    ({"tag": 5}, "tag: expected the name of a tag"),
    ({"tag": ""}, "tag: .*''"),
    ({"tag": "a/b"}, "without a slash"),
    ({"tag": "a\0"}, "without the NUL"),
    ({"tag": "t" * 252}, "at most 251 bytes"),
]


@pytest.mark.parametrize(("arguments", "message"), READS)
def test_a_wrong_argument_of_a_read_is_named(catalog: Catalog, arguments: dict[str, Any], message: str) -> None:
    table = catalog.table("db.t")
    for method in ((table.read, table.explain) if "where" in arguments else (table.at,)):
        with pytest.raises(InvalidInputError, match=message):
            method(**arguments)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("read", {"columns": "k"}, r"columns: expected a list of column names, got 'k'. Write \['k'\]"),
        ("read", {"columns": [5]}, "columns: expected a list of column names"),
        ("read", {"columns": b"k"}, "columns: .*b'k'"),
        ("read", {"columns": pd.DataFrame({"k": [1]})}, "columns: .* got an object of type pandas.*DataFrame"),
        ("read", {"columns": ["k", "k"]}, r"columns: expected a list of column names, each once"),
        ("read", {"columns": []}, r"columns: expected a list"),
        ("changelog", {"start": True}, "start: expected a snapshot id, a time, or the name of a tag"),
        ("changelog", {"start": -1}, "start: -1 is less than 0"),
        ("changelog", {"end": 0}, "end: 0 is less than 1"),
        ("changelog", {"end": 1.5}, "end: .* got 1.5"),
        ("changelog", {"end": ""}, "end: .*''"),
        ("changelog", {"where": 5}, "where: .*5"),
        ("changelog", {"mode": 5}, "mode: expected auto, changelog, delta or diff"),
        ("changelog", {"mode": None}, "mode: .*None"),
        ("changelog", {"mode": "fast"}, "mode: expected one of 'auto', "),
        ("changelog", {"kind_column": ""}, "kind_column: .*''"),
        ("changelog", {"kind_column": "K"}, "kind_column: 'k' is the name of another column"),
        ("changelog", {"kind_column": "_sequence_number"}, "'_SEQUENCE_NUMBER' is the name of another column"),
        ("changelog", {"positions": 1}, "positions: expected True or False"),
        ("delete", {"where": None}, "where: expected an SQL condition as text"),
        ("delete", {"where": " "}, "not blank"),
        ("write", {"frame": None}, "frame: expected rows in memory .* or a Spark DataFrame, got None"),
        ("write", {"frame": [1]}, "frame, row 1: expected a dict, got 1. Pass a list of dicts"),
        ("write", {"frame": pd.Series([1])}, r"frame: .*got .*pandas.*\. Write frame.to_frame\(\)"),
        ("write", {"frame": "db.src"}, r"Write spark.table\(frame\)"),
        ("overwrite", {"frame": {"k": 1}}, "column 'k' of frame: expected a list"),
        ("at", {}, "at: expected one of snapshot, timestamp, tag and watermark"),
        ("at", {"snapshot": 1, "tag": "a"}, "at: expected one of snapshot, timestamp, tag and watermark"),
        ("compact", {"full": "dt = 'x'"}, "full: expected True or False"),
        ("compact", {"dry_run": 1}, "dry_run: .*1"),
        ("compact", {"where": 5}, "where: .*5"),
        ("compact", {"buckets": ["0"]}, r"buckets: expected bucket numbers, such as \[0, 1\] or '0,1'"),
        ("compact", {"buckets": "0;1"}, "buckets: .*'0;1'"),
        ("compact", {"buckets": 0}, "buckets: .*0"),
        ("compact", {"buckets": []}, r"buckets: .*\[\]"),
        ("compact", {"buckets": [-1]}, r"buckets: .*\[-1\]"),
        ("compact", {"buckets": [True]}, r"buckets: .*\[True\]"),
        ("compact", {"buckets": {0: 1}}, "buckets: .*{0: 1}"),
        ("compact", {"buckets": range(10**18)}, "buckets: expected"),
        ("compact", {"buckets": [2]}, r"buckets: 2 does not exist\. Table db.t has the buckets 0 to 1"),
        ("compact", {"commit_every": -1}, "commit_every: -1 is less than 1"),
        ("compact", {"commit_every": 0}, "commit_every: .*0"),
        ("compact", {"commit_every": "2"}, "commit_every: .*'2'"),
        ("compact", {"deadline": "soon"}, "deadline: 'soon' is not a duration. Use, for example, '30 min'"),
        ("compact", {"deadline": float("nan")}, "deadline: nan"),
        ("compact", {"deadline": float("inf")}, "deadline: inf"),
        ("compact", {"deadline": -1}, "deadline: -1"),
        ("compact", {"deadline": datetime.timedelta(1)}, "deadline: an object of type datetime.timedelta"),
        ("compact", {"max_task_memory": 0}, "max_task_memory: expected bytes, or a size such as '256mb'"),
        ("compact", {"max_task_memory": "x"}, "max_task_memory: .*'x'"),
        ("compact", {"max_task_memory": None}, "max_task_memory: .*None"),
        ("compact", {"max_task_memory": 2.0**30}, "max_task_memory: .* got 1073741824.0"),
    ],
)
def test_a_wrong_argument_of_a_method_is_named(
    catalog: Catalog, method: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        getattr(catalog.table("db.t"), method)(**arguments)


def test_a_table_is_opened_by_a_catalog_or_a_path_and_in_a_spark_session(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"store: expected a TableStore, got '/wh/db.db/t'. Call Catalog.table"):
        Table("/wh/db.db/t")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"spark: expected a SparkSession, got"):
        Catalog(str(tmp_path), "local[2]")  # type: ignore[arg-type]


def test_another_file_system_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"'ftp' is not supported\. Use a path"):
        Table.for_path("ftp://host/wh/db.db/t")
    with pytest.raises(UnsupportedFeatureError, match="HDFS is not supported"):
        Table.for_path("hdfs://host/wh/db.db/t")


@pytest.mark.parametrize(
    ("given", "numbers"),
    [("0", {0}), ("0,1, 12", {0, 1, 12}), ((3, 3), {3}), (range(2), {0, 1}), ([np.int32(1)], {1}), (None, None)],
)
def test_buckets_are_numbers_or_a_text_with_commas(given: Any, numbers: set[int] | None) -> None:
    assert checked_buckets("buckets", given) == numbers


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(90, 90), (1.5, 1.5), ("90", 90), ("1.5", 1.5), ("30 min", 1800), ("2h", 7200), ("500 ms", 0.5), (None, None)],
)
def test_a_duration_is_seconds_or_text_with_a_unit(given: Any, seconds: float | None) -> None:
    assert checked_seconds("deadline", given) == seconds


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "set: expected a mapping of columns"),
        (["a"], "set: expected a mapping of columns"),
        ({"a": 5}, r"set\['a'\]: expected an SQL expression as text, such as '5'"),
        ({"a": " "}, r"set\['a'\]: expected .*not blank, got ' '"),
        ({1: "a"}, "set: expected a mapping of columns"),
    ],
)
def test_the_values_of_an_update_are_expressions_by_column(given: Any, message: str) -> None:
    assert checked_assignments({"a": "5", "b": "NULL"}) == {"a": "5", "b": "NULL"}
    with pytest.raises(InvalidInputError, match=message):
        checked_assignments(given)


@pytest.mark.parametrize(("given", "size"), [(1 << 30, 1 << 30), ("256mb", 256 << 20), ("1 gb", 1 << 30)])
def test_memory_is_bytes_or_text_with_a_unit(given: Any, size: int) -> None:
    assert checked_task_memory("max_task_memory", given) == size


def test_numbers_of_numpy_become_python_numbers() -> None:
    assert type(checked_number("id", np.int32(3), min_value=1)) is int
    assert type(checked_point("start", np.int64(3), min_value=1, is_tag=bool)) is int  # type: ignore[arg-type]
    assert option_texts("options", {"bucket": np.int16(3)}) == {"bucket": "3"}


CHECKS: dict[str, Callable[[Any], object]] = {
    "text": lambda value: checked_text("a", value, "a text"),
    "location": lambda value: checked_location("a", value),
    "file name": lambda value: checked_file_name("a", value, "a name"),
    "name": lambda value: checked_name("a", value, "a name"),
    "choice": lambda value: checked_choice("a", value, ("one", "other")),
    "flag": lambda value: checked_flag("a", value),
    "number": lambda value: checked_number("a", value, min_value=1),
    "condition": lambda value: checked_condition(value),
    "assignments": lambda value: checked_assignments(value),
    "assignment": lambda value: checked_assignments({"a": value}),
    "projection": lambda value: checked_projection(value),
    "names": lambda value: checked_names("a", value),
    "options": lambda value: option_texts("a", value),
    "option": lambda value: option_text("key", value),
    "time": lambda value: checked_time("a", value),
    "point": lambda value: checked_point("a", value, min_value=0, is_tag=bool),
    "tag": lambda value: checked_tag("a", value),
    "buckets": lambda value: checked_buckets("a", value),
    "seconds": lambda value: checked_seconds("a", value),
    "age": lambda value: checked_age("a", value),
    "duration": lambda value: checked_age("a", value, moments=False),
    "memory": lambda value: checked_task_memory("a", value),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_check_accepts_a_hostile_value_or_raises_a_short_error(check: Callable[[Any], object]) -> None:
    for value in plain_values():
        try:
            check(value)
        except InvalidInputError as error:
            assert len(str(error).encode()) < 500


def test_the_value_in_a_message_is_short_and_its_repr_may_fail() -> None:
    class Evil:
        def __repr__(self) -> str:
            raise RuntimeError("no representation")

    for value in ("x" * 10_000, list(range(10_000)), 10**6000, [10**6000], Evil(), [Evil()], HALF * 10_000):
        message = str(wrong_argument("a", value, "b"))
        assert len(message) < 300
        message.encode()


@pytest.mark.parametrize(
    "given, seconds",
    [
        (datetime.timedelta(days=7), 604_800),
        ("7 days", 604_800),
        ("90 d", 7_776_000),
        ("1 h", 3600),
        ("60", 60),
        (0, 0),
        (1.5, 1.5),
    ],
)
def test_an_age_is_a_timedelta_a_duration_or_seconds(given: object, seconds: float) -> None:
    age = Age(seconds=seconds)
    assert checked_age("older_than", given) == checked_age("older_than", given, moments=False) == age
    assert age.bound(10_000_000_000, datetime.timezone.utc) == 10_000_000_000 - seconds * 1000


def test_an_age_may_be_a_moment_in_the_tables_zone() -> None:
    assert checked_age("older_than", None) is None
    zone = datetime.timezone(datetime.timedelta(hours=9))
    for moment in ("2026-01-31 12:00:00", datetime.datetime(2026, 1, 31, 12, tzinfo=zone)):
        age = checked_age("older_than", moment)
        assert age is not None
        assert age.bound(5, zone) == datetime.datetime(2026, 1, 31, 3, tzinfo=datetime.timezone.utc).timestamp() * 1000
        with pytest.raises(InvalidInputError, match=r"older_than: .* is not a duration. Use, for example, '7 days'"):
            checked_age("older_than", moment, moments=False)


@pytest.mark.parametrize("text", ["1 fortnight", "yesterday", "12:00", "2025-13-01", "-1 d", "1 d 2 h", "a" * 100_000])
def test_a_text_that_is_not_an_age_is_refused_with_its_argument(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"older_than: '.* is not a duration or a point.*'7 days'") as caught:
        checked_age("older_than", text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "given", [-1, "-7 days", True, datetime.timedelta(seconds=-1), float("nan"), float("inf"), "9999999 d", [1]]
)
def test_an_invalid_age_is_refused(given: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^older_than: .* is not a duration"):
        checked_age("older_than", given, moments=False)
