"""The catalog: names, layout, creation, listing, changes and drops. No session is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from lakelsm import Catalog, Table
from lakelsm.errors import (
    CorruptTableError,
    InvalidInputError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, SetOption, UpdateColumnType
from lakelsm.storage import LocalFileIO
from lakelsm.types import parse_type
from tests.compact.local_table import LocalTable
from tests.table_files import root_of

COLUMNS = "id INT, v STRING, dt DATE"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path.as_uri())


def make(catalog: Catalog, name: str = "db.t", **more: object) -> Table:
    return catalog.create_table(name, COLUMNS, primary_key=["id"], options={"bucket": "1"}, **more)  # type: ignore[arg-type]


def test_a_table_has_the_location_of_paimons_file_system_catalog(catalog: Catalog, tmp_path: Path) -> None:
    make(catalog, "nyc.flights", comment="all flights")
    schema = json.loads((tmp_path / "nyc.db" / "flights" / "schema" / "schema-0").read_text(encoding="utf-8"))
    assert schema["primaryKeys"] == ["id"]
    assert schema["comment"] == "all flights"
    assert [(field["id"], field["name"], field["type"]) for field in schema["fields"]] == [
        (0, "id", "INT NOT NULL"),
        (1, "v", "STRING"),
        (2, "dt", "DATE"),
    ]


def test_columns_are_given_as_ddl_spark_schema_or_pyarrow_schema(catalog: Catalog) -> None:
    struct = T.StructType(
        [
            T.StructField("id", T.IntegerType()),
            T.StructField("v", T.StringType(), metadata={"comment": "a text"}),
            T.StructField("dt", T.DateType()),
        ]
    )
    arrow = pa.schema([("id", pa.int32()), ("v", pa.string()), ("dt", pa.date32())])
    options = {"bucket": "1"}
    tables = [
        catalog.create_table(f"db.t{at}", columns, primary_key=["id"], options=options)
        for at, columns in enumerate([COLUMNS, struct, arrow])
    ]
    types = [[(field.name, str(field.type)) for field in table.schema.fields] for table in tables]
    assert types[0] == types[1] == types[2]
    assert tables[1].schema.field("v").description == "a text"


def test_a_spark_type_that_paimon_lacks_is_refused_with_its_column(catalog: Catalog) -> None:
    struct = T.StructType([T.StructField("id", T.IntegerType()), T.StructField("gap", T.DayTimeIntervalType())])
    with pytest.raises(InvalidInputError, match="gap"):
        catalog.create_table("db.t", struct, primary_key=["id"])
    assert catalog.list_tables("db") == []


def test_deletion_vectors_are_enabled_and_disabled_over_compacted_rows(catalog: Catalog, tmp_path: Path) -> None:
    make(catalog)
    table = LocalTable(tmp_path / "db.db" / "t")
    none = None

    def switch(text: str) -> None:
        catalog.alter_table("db.t", SetOption("deletion-vectors.enabled", text))

    table.write((1, "old", none), (2, "old", none))
    with pytest.raises(InvalidInputError, match=r"^Table db\.t: .*'deletion-vectors.modifiable' = 'true' first"):
        switch("true")
    catalog.alter_table("db.t", SetOption("deletion-vectors.modifiable", "true"))
    with pytest.raises(InvalidInputError, match=r"^Table db\.t: .*bucket 0 \(1 files on level 0\)"):
        switch("true")
    table.compact()
    switch("true")
    table.write((1, "new", none))
    assert table.compact(full=False).rows_masked == 1
    with pytest.raises(InvalidInputError, match=r"^Table db\.t: .*1 data files have masked rows.*: bucket 0\."):
        switch("false")
    table.compact()
    switch("false")
    assert table.rows() == [(1, "new", none), (2, "old", none)] and len(table.levels()) == 1


def test_databases_and_tables_are_listed_sorted(catalog: Catalog, tmp_path: Path) -> None:
    assert catalog.list_databases() == []
    assert catalog.list_tables("none") == []
    for name in ("b.z", "b.a", "a.x"):
        make(catalog, name)
    (tmp_path / "b.db" / "no_table").mkdir()
    (tmp_path / "stray").mkdir()
    (tmp_path / "sqlite.db").write_text("a file")
    (tmp_path / "linked.db").symlink_to(tmp_path / "a.db")
    assert catalog.list_databases() == ["a", "b", "linked"]
    assert catalog.list_tables("b") == ["b.a", "b.z"]
    assert catalog.list_tables() == ["a.x", "b.a", "b.z", "linked.x"]
    assert [catalog.table_exists(name) for name in ("b.a", "b.no_table", "no.a", "b.a$branch_x")] == [True, *[False] * 3]


def test_a_relative_warehouse_is_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = Catalog("./wh")
    make(catalog)
    by_path = Table.for_path("wh/db.db/t")
    monkeypatch.chdir("/")
    assert catalog.list_tables() == ["db.t"] and by_path.schema.field_names == ("id", "v", "dt")
    assert repr(catalog) == f"Catalog('{tmp_path}/wh')"
    assert "databases: db" in catalog._repr_html_() and "<b>" not in Catalog(f"{tmp_path}/<b>")._repr_html_()


def test_a_table_is_renamed_with_its_rows_and_its_old_name_is_free(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog)
    rows = pa.table({"id": pa.array([1], pa.int32()), "v": ["a"], "dt": pa.array([None], pa.date32())})
    table.write(rows)
    catalog.create_database("other")
    renamed = catalog.rename_table("db.t", "other.u")
    assert (renamed.name, renamed.to_arrow().to_pylist()) == ("other.u", rows.to_pylist())
    assert catalog.list_tables() == ["other.u"]
    with pytest.raises(TableNotFoundError, match=r"db\.t does not exist"):
        table.write(rows)
    assert make(catalog).to_arrow().num_rows == 0
    assert renamed.to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("db.no", "db.new", r"db\.no does not exist. The database has db.linked, db.other, db.t"),
        ("db.t", "db.other", "cannot be renamed to db.other: .*already exists"),
        ("db.t", "db.t", "already exists"),
        ("db.t", "db.stray", "already exists"),
        ("db.t", "db.dangling", "already exists"),
        ("db.t", "none.t", "Database none does not exist. Warehouse .* has db"),
        ("db.linked", "db.new", "symbolic link"),
    ],
)
def test_an_impossible_rename_changes_nothing(
    catalog: Catalog, tmp_path: Path, old: str, new: str, error: str
) -> None:
    make(catalog)
    make(catalog, "db.other")
    (tmp_path / "db.db" / "stray").mkdir()
    (tmp_path / "db.db" / "dangling").symlink_to("nowhere")
    (tmp_path / "db.db" / "linked").symlink_to(tmp_path / "db.db" / "t")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInputError, match=error):
        catalog.rename_table(old, new)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_that_appears_at_the_new_name_is_kept(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may create it between the check and the rename."""
    make(catalog)
    make(catalog, "db.other")
    monkeypatch.setattr("lakelsm.storage.local.os.path.lexists", lambda path: False)
    with pytest.raises(TableAlreadyExistsError, match=r"db\.other"):
        catalog.rename_table("db.t", "db.other")
    assert catalog.list_tables() == ["db.other", "db.t"]


def test_databases_are_created_and_dropped(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_database("db")
    catalog.create_database("db", if_not_exists=True)
    with pytest.raises(InvalidInputError, match="Database db already exists"):
        catalog.create_database("db")
    with pytest.raises(InvalidInputError, match="Paimon's system tables"):
        catalog.create_database("sys")
    make(catalog)
    (tmp_path / "db.db" / "stray").mkdir()
    with pytest.raises(InvalidInputError, match=r"Database db is not empty: it contains db\.t\. Drop these first"):
        catalog.drop_database("db")
    catalog.drop_table("db.t")
    with pytest.raises(InvalidInputError, match=r"is not empty: it contains .*/db\.db/stray"):
        catalog.drop_database("db")
    make(catalog)
    (tmp_path / "linked.db").symlink_to(tmp_path / "db.db")
    with pytest.raises(InvalidInputError, match=r"is a symbolic link\. Delete it"):
        catalog.drop_database("linked", cascade=True)
    assert catalog.list_tables("linked") == ["linked.t"]
    (tmp_path / "linked.db").unlink()
    catalog.drop_database("db", cascade=True)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidInputError, match=r"Database db does not exist. Warehouse .* has no databases"):
        catalog.drop_database("db")
    catalog.drop_database("db", if_exists=True)


def test_each_change_of_a_catalog_is_one_log_line(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "lakelsm.catalog")
    make(catalog)
    catalog.alter_table("db.t", SetOption("write-only", "true"))
    catalog.create_database("other")
    catalog.rename_table("db.t", "other.u")
    catalog.drop_table("other.u")
    catalog.drop_database("other")
    records = [record for record in caplog.records if record.name == "lakelsm.catalog"]
    assert (vars(records[1])["table"], vars(records[1])["operation"]) == ("db.t", "alter_table")
    assert [re.sub(r" ?seconds=[\d.]+", "", record.getMessage()) for record in records] == [
        "Table db.t: create_table done ()",
        "Table db.t: alter_table done (schema_id=1)",
        "Database other: create_database done ()",
        "Table db.t: rename_table done (new_name=other.u)",
        "Table other.u: drop_table done ()",
        "Database other: drop_database done ()",
    ]


def test_a_table_that_cannot_be_opened_exists_and_can_be_dropped(catalog: Catalog, tmp_path: Path) -> None:
    make(catalog)
    (tmp_path / "db.db/t/schema/schema-0").write_text("{")
    assert catalog.table_exists("db.t")
    with pytest.raises(CorruptTableError):
        catalog.rename_table("db.t", "db.u")
    assert catalog.list_tables() == ["db.t"]
    catalog.drop_database("db", cascade=True)
    assert catalog.list_tables() == []


def test_a_table_that_exists_is_not_created_again(catalog: Catalog) -> None:
    make(catalog)
    with pytest.raises(TableAlreadyExistsError, match=r"db\.t already exists.*if_not_exists"):
        make(catalog)
    again = catalog.create_table("db.t", "other INT", primary_key=["other"], if_not_exists=True)
    assert again.schema.field_names == ("id", "v", "dt")


def test_a_dropped_table_is_deleted_with_its_files(catalog: Catalog, tmp_path: Path) -> None:
    make(catalog)
    make(catalog, "db.other")
    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == ["db.other"]
    assert not (tmp_path / "db.db" / "t").exists()
    with pytest.raises(TableNotFoundError, match=r"db\.t"):
        catalog.drop_table("db.t")
    assert make(catalog).schema.id == 0


def test_alter_table_writes_the_next_schema_and_open_tables_follow_it(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog)
    changed = catalog.alter_table(
        "db.t",
        AddColumn("n", parse_type("INT"), after="id"),
        RenameColumn("v", "w"),
        DropColumn("dt"),
        SetOption("write-only", "true"),
    )
    assert changed.schema.field_names == table.schema.field_names == ("id", "n", "w")
    assert table.schema.options["write-only"] == "true"
    assert table.schema.id == 1
    assert (tmp_path / "db.db" / "t" / "schema" / "schema-1").exists()
    assert [(field.name, field.id) for field in table.schema.fields] == [("id", 0), ("n", 3), ("w", 1)]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (DropColumn("id"), "id"),
        (DropColumn("nope"), "nope"),
        (UpdateColumnType("v", parse_type("INT")), "v"),
        (AddColumn("v", parse_type("INT")), "v"),
        (SetOption("buckit", "2"), "buckit"),
        (SetOption("branch", "dev"), "branch"),
    ],
)
def test_an_impossible_change_does_not_change_the_schema(catalog: Catalog, change: object, what: str) -> None:
    table = make(catalog)
    with pytest.raises((InvalidInputError, UnsupportedFeatureError), match=what):
        catalog.alter_table("db.t", change)  # type: ignore[arg-type]
    assert table.schema.id == 0


@pytest.mark.parametrize("form", ["plain", "file:", "file://"])
def test_a_warehouse_is_a_path_or_a_file_uri(tmp_path: Path, form: str) -> None:
    warehouse = tmp_path / "wh x"
    Catalog(str(warehouse)).create_table("db.t", COLUMNS, primary_key=["id"])
    text = {"plain": str(warehouse), "file:": f"file:{warehouse}", "file://": f"file://{warehouse}"}[form]
    assert Catalog(text).list_tables("db") == ["db.t"]


WRONG = {
    "a wrong value": (lambda c: make_with(c, {"bucket": "many"}), "'bucket'"),
    "an unknown option": (lambda c: make_with(c, {"buckets": "1"}), "'buckets'"),
    "a rule between options": (
        lambda c: make_with(c, {"bucket": "1", "merge-engine": "first-row", "sequence.field": "v"}),
        "sequence.field",
    ),
    "a feature that is not supported": (lambda c: make_with(c, {"bucket": "-2"}), "'bucket' = '-2'"),
    "a key that is not a column": (lambda c: c.create_table("db.new", COLUMNS, primary_key=["no"]), "'no'"),
    "a type of Spark that Paimon lacks": (
        lambda c: c.create_table("db.new", T.StructType([T.StructField("id", T.NullType())]), primary_key=["id"]),
        "'id'",
    ),
    "a wrong new value": (lambda c: c.alter_table("db.new", SetOption("bucket", "many")), "'bucket'"),
    "an unknown column": (lambda c: c.alter_table("db.new", DropColumn("no")), "'no'"),
}


def make_with(catalog: Catalog, options: dict[str, str]) -> Table:
    return catalog.create_table("db.new", COLUMNS, primary_key=["id"], options=options)


@pytest.mark.parametrize("what", WRONG)
def test_errors_of_a_new_or_changed_table_name_the_table_and_the_part(catalog: Catalog, what: str) -> None:
    do, part = WRONG[what]
    if "alter_table" in do.__code__.co_names:
        make(catalog, "db.new")
    with pytest.raises((InvalidInputError, UnsupportedFeatureError), match=r"^Table db\.new: ") as raised:
        do(catalog)
    assert part in str(raised.value)
    assert str(raised.value).count("db.new") == 1
    assert catalog.list_tables() == (["db.new"] if "alter_table" in do.__code__.co_names else [])


@pytest.mark.parametrize(
    ("key", "value"), [("merge-engine", "no-such"), ("bucket", "-2"), ("sequence.snapshot-ordering", "true")]
)
def test_an_option_that_prevents_opening_is_reported_with_the_table(
    catalog: Catalog, tmp_path: Path, key: str, value: str
) -> None:
    opened = make(catalog)
    path = tmp_path / "db.db" / "t"
    file = path / "schema" / "schema-0"
    schema = json.loads(file.read_text(encoding="utf-8"))
    schema["options"][key] = value
    file.write_text(json.dumps(schema), encoding="utf-8")
    openings = {
        "db.t": [lambda: catalog.table("db.t"), lambda: opened.schema],
        str(path): [lambda: Table.for_path(str(path))],
    }
    for name, ways in openings.items():
        for way in ways:
            with pytest.raises((InvalidInputError, UnsupportedFeatureError), match=f"^Table {name}: .*{key}.*{value}"):
                way()


def test_the_name_of_a_table_depends_on_how_it_was_opened(catalog: Catalog, tmp_path: Path) -> None:
    by_name = make(catalog)
    path = str(tmp_path / "db.db" / "t")
    by_path = Table.for_path(path + "/")
    assert (by_name.name, by_path.name) == ("db.t", path)
    wrongs: list[Callable[[Table], object]] = [
        lambda table: table.at(snapshot=7).explain(),
        lambda table: table.at(tag="no").explain(),
        lambda table: table.compact(buckets=[99]),
    ]
    for table in (by_name, by_path):
        for wrong in wrongs:
            with pytest.raises(InvalidInputError, match=rf"[Tt]able {table.name}\b"):
                wrong(table)


def test_an_existing_table_is_returned_even_if_a_new_one_would_be_refused(tmp_path: Path) -> None:
    catalog, meant = Catalog(str(tmp_path)), {"bucket": "1", "lakelsm.key-per-partition": "true"}
    made = catalog.create_table("db.t", "k INT, p INT", primary_key=["k"], partition_by=["p"], options=meant)
    path = root_of(made) / "schema" / "schema-0"
    path.write_text(path.read_text().replace("lakelsm.key-per-partition", "of.another.engine"))

    def create(if_not_exists: bool, name: str = "db.t") -> Table:
        keys = {"primary_key": ["k"], "partition_by": ["p"], "options": {"bucket": 1}}
        return catalog.create_table(name, "k INT, p INT", **keys, if_not_exists=if_not_exists)  # type: ignore[arg-type]

    table = create(if_not_exists=True)
    for partition in (1, 2):
        table.write(pa.table({"k": pa.array([1], pa.int32()), "p": pa.array([partition], pa.int32())}))
    assert table.to_arrow().num_rows == 2
    for wrong in (lambda: create(if_not_exists=False), lambda: create(True, "db.other")):
        with pytest.raises(InvalidInputError, match=r"lacks the partition columns \['p'\]"):
            wrong()


@pytest.mark.parametrize("step", ["create_if_absent", "write", "mkdirs"])
def test_a_write_that_a_rename_or_drop_overtakes_is_refused_and_leaves_no_directory(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A directory that the write created again below the old path would belong to no table, and its rows be lost."""
    real = getattr(LocalFileIO, step)
    for overtake in (lambda: catalog.rename_table("db.t", "db.u"), lambda: catalog.drop_table("db.t")):
        rows, ways = {"id": [1], "v": ["a"], "dt": [None]}, [overtake]
        table = make(catalog)
        table.write(rows)

        def overtaken(*arguments: Any, ways: list[Any] = ways, **more: Any) -> Any:
            if ways and "/t/" in arguments[1]:
                ways.pop()()
            return real(*arguments, **more)

        monkeypatch.setattr(LocalFileIO, step, overtaken)
        with pytest.raises(StorageError, match="t does not exist any more, because the table was dropped or renamed"):
            table.write(pa.table({"id": pa.array([2], pa.int32()), "v": ["b"], "dt": pa.array([None], pa.date32())}))
        monkeypatch.undo()
        assert not ways and not (tmp_path / "db.db" / "t").exists()
    assert catalog.table("db.u").to_arrow()["id"].to_pylist() == [1]
