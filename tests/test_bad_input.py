"""Bad input raises an error with its name and a remedy, and the table's files do not change."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from lakelsm.errors import (
    CorruptTableError,
    InvalidInputError,
    SnapshotNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from lakelsm.schema_changes import SetOption
from lakelsm.snapshots.manifest_scan import read_live_entries
from tests.engines import LOCALLY, ON_SPARK, TableEngine, each_case

COLUMNS = "dt DATE NOT NULL, k INT NOT NULL, v STRING, code VARCHAR(3), n INT"
FRAME = "dt DATE, k INT, v STRING, code STRING, n INT"
DAY = datetime.date(2020, 1, 1)
NEXT_DAY = datetime.date(2020, 1, 2)
GOOD = (DAY, 7, "g", "x", 7)


@dataclass
class Tables:
    """A warehouse with a table that has rows, and an engine."""

    engine: TableEngine
    warehouse: Path

    @property
    def catalog(self) -> Catalog:
        return self.engine.catalog(self.warehouse)

    @property
    def table(self) -> Table:
        return self.catalog.table("db.t")

    @property
    def root(self) -> Path:
        return self.warehouse / "db.db" / "t"

    def rows(self, *rows: tuple[Any, ...], columns: str = FRAME) -> Any:
        return self.engine.frame(rows, columns)

    def read(self, where: str | None = None, columns: list[str] | None = None, **more: Any) -> list[tuple[Any, ...]]:
        return self.engine.rows(self.table, where, columns, **more)

    def delete(self, where: str, **more: Any) -> None:
        self.engine.delete(self.table, where, **more)

    def compact(self, **more: Any) -> None:
        self.engine.compact(self.table, **more)

    def listing(self) -> dict[str, int]:
        """Return all files of the warehouse with their sizes."""
        return {str(path): path.stat().st_size for path in self.warehouse.rglob("*") if path.is_file()}

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = self.listing()
        yield
        assert self.listing() == before


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    local = TableEngine("local")
    warehouse = tmp_path_factory.mktemp("bad-input")
    table = local.create(warehouse, COLUMNS, ["dt", "k"], ["dt"])
    local.write(table, [(DAY, 1, "a", "x", 1), (DAY, 2, "b", "x", 2), (NEXT_DAY, 1, "c", "x", 3)])
    local.write(table, [(DAY, 2, "b2", "x", 4)])
    return warehouse


@pytest.fixture
def tables(engine: TableEngine, tmp_path: Path, original: Path) -> Tables:
    """A copy of the warehouse for one test."""
    shutil.copytree(original, tmp_path / "wh")
    return Tables(engine, tmp_path / "wh")


def good(tables: Tables) -> Any:
    return tables.rows(GOOD)


Call = Callable[[Tables], Any]

#: One case of each check of a call, for each engine. All cases of the checks are in tests/row_refusals.py,
#: tests/test_arguments.py, tests/commit/test_commit_identity.py, tests/options.
INVALID: dict[str, tuple[Call, str]] = {
    "a null key": (lambda t: t.table.write(t.rows((DAY, None, "v", "x", 1))), "key column 'k' is NULL .* Remove or fill"),
    "a wrong type": (
        lambda t: t.table.write(t.rows((*GOOD[:4], "7"), columns="dt DATE, k INT, v STRING, code STRING, n STRING")),
        r"column 'n' is string in the frame and int(32)? in the table \(INT\)\. Cast it",
    ),
    "a value that does not fit": (
        lambda t: t.table.write(t.rows((DAY, 2**31, "v", "x", 1), columns=FRAME.replace("k INT", "k BIGINT"))),
        r"Nothing was written: (row 1, column 'k'|column 'k' of the row with .*): 2147483648 does not fit INT",
    ),
    "an unknown row kind": (
        lambda t: t.table.write(t.rows((*GOOD, "X"), columns=f"{FRAME}, op STRING"), row_kind="op"),
        r"row kind column 'op': expected \+I, -U, \+U or -D, got X",
    ),
    "a commit user that is not a text": (
        lambda t: t.table.write(good(t), commit_user=5),  # type: ignore[arg-type]
        "commit_user: expected a text",
    ),
    "a blank commit user": (lambda t: t.table.overwrite(good(t), commit_user=""), "is blank"),
    "a commit user of a compaction": (
        lambda t: t.compact(commit_user="a\ud800"),
        r"commit_user: 'a\\ud800' has the character",
    ),
    "a batch id that is a boolean": (
        lambda t: t.delete("k = 1", commit_user="u", batch_id=True),
        "batch_id: expected a whole number",
    ),
    "an unknown option of one write": (
        lambda t: t.table.write(good(t), options={"bukket": "2"}),
        "option 'bukket' = .* is unknown. Use 'bucket'",
    ),
    "an immutable option of one write": (
        lambda t: t.table.write(good(t), options={"merge-engine": "first-row"}),
        "'merge-engine' cannot change from its default",
    ),
    "another number of buckets in one write": (
        lambda t: t.table.write(good(t), options={"bucket": "2"}),
        r"option 'bucket' = '2' cannot be set for one call \(the table has '1'\)",
    ),
    "a wrong partition column": (
        lambda t: t.table.overwrite(good(t), {"k": 1}),
        "partition: 'k' is not a partition column. Partition columns: dt",
    ),
    "a partition value of another type": (
        lambda t: t.table.overwrite(good(t), {"dt": "someday"}),
        "partition value dt: expected a value of DATE",
    ),
    "a NULL partition value": (lambda t: t.table.overwrite(good(t), {"dt": None}), "partition value dt: .* got None"),
    "a partition value that would be cut": (
        lambda t: t.table.overwrite(good(t), {"dt": datetime.datetime(2020, 1, 1, 5)}),
        "expected a value of DATE NOT NULL, got .* Arrow would change it to",
    ),
    "a row outside the overwritten partition": (
        lambda t: t.table.overwrite(good(t), {"dt": NEXT_DAY}),
        "a row is not in the overwritten partition, where column 'dt' is '2020-01-02'",
    ),
    "a condition that is not SQL": (lambda t: t.read(where="k = = 1"), "cannot parse condition 'k = = 1'"),
    "a condition on an unknown column": (
        lambda t: t.read(where="kk = 1"),
        "condition: column 'kk' does not exist. Columns: dt, k",
    ),
    "a condition of a delete": (lambda t: t.delete("kk = 1"), "condition: column 'kk' does not exist"),
    "a condition of a compaction on values": (
        lambda t: t.compact(where="v = 'a'"),
        r"where: a compaction selects whole partitions.*partition columns \(dt\)",
    ),
    "an unknown column to read": (lambda t: t.read(columns=["x"]), "column 'x' does not exist. Columns: dt, k"),
    "an invalid time": (
        lambda t: t.table.at(timestamp="yesterday-ish"),
        "timestamp: 'yesterday-ish' is not a point in time. Use a datetime, or a text such as ",
    ),
}

#: The cases that also run on Spark: one of each kind of check.
TRIED_ON_SPARK = (
    "a null key",
    "a wrong type",
    "an unknown row kind",
    "a row outside the overwritten partition",
    "a condition that is not SQL",
    "a condition of a delete",
    "a condition of a compaction on values",
    "an unknown column to read",
    "an invalid time",
)

#: Cases that only Spark's frames and conditions have.
INVALID_ON_SPARK: dict[str, tuple[Call, str]] = {
    "a column twice": (
        lambda t: t.table.write(good(t).selectExpr("*", "n")),
        "column n occurs more than once in the frame. Rename or drop one",
    ),
    "a stream": (
        lambda t: t.table.write(session(t).readStream.format("rate").load()),
        "frame: a stream cannot be written directly.*frame.writeStream.foreachBatch",
    ),
    "a Column as a condition": (
        lambda t: t.read(where=good(t)["k"] == 1),  # type: ignore[arg-type]
        "where: expected an SQL condition as text",
    ),
    "a condition that is not boolean": (lambda t: t.read(where="k"), "condition 'k' is not valid: .*not a boolean"),
    "a condition that fails on a row": (lambda t: t.delete("CAST(v AS INT) = 1"), "fails on a row .*cannot be"),
    "a condition that Spark alone refuses": (lambda t: t.read(where="v COLLATE x = 'a'"), "condition .* is not valid"),
}


def session(tables: Tables) -> SparkSession:
    assert tables.engine.spark is not None
    return tables.engine.spark


@each_case("name", INVALID, on_spark=[*TRIED_ON_SPARK, *INVALID_ON_SPARK])
def test_bad_input_is_named_with_its_remedy_and_changes_nothing(tables: Tables, name: str) -> None:
    call, message = {**INVALID, **INVALID_ON_SPARK}[name]
    with tables.unchanged(), pytest.raises(InvalidInputError, match=message):
        call(tables)


@ON_SPARK
def test_a_frame_of_another_session_of_the_application_is_written(tables: Tables) -> None:
    other = session(tables).newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    tables.table.write(other.createDataFrame([GOOD], FRAME))
    assert tables.read("k = 7", ["v"]) == [("g",)]


@LOCALLY
def test_the_error_on_an_unknown_table_lists_the_tables(tables: Tables) -> None:
    with tables.unchanged(), pytest.raises(TableNotFoundError, match=r"db.nope does not exist. The database has db.t"):
        tables.catalog.table("db.nope")
    with tables.unchanged(), pytest.raises(TableNotFoundError, match=r"does not exist\. The database has no tables"):
        tables.catalog.table("nodb.t")
    with tables.unchanged(), pytest.raises(TableAlreadyExistsError, match="exists"):
        tables.catalog.create_table("db.t", COLUMNS, primary_key=["dt", "k"])


@LOCALLY
def test_a_path_without_a_table_is_refused(tables: Tables, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "nothing", tmp_path / "file", tables.warehouse, tables.root / "snapshot"):
        with tables.unchanged(), pytest.raises(TableNotFoundError, match=f"Table {path} does not exist"):
            Table.for_path(str(path))
    with pytest.raises(TableNotFoundError, match=r"relative/path does not exist"):
        Table.for_path("relative/path")


@LOCALLY
def test_an_expired_snapshot_is_distinguished_from_one_that_never_existed(tables: Tables) -> None:
    (tables.root / "snapshot" / "snapshot-1").unlink()
    with tables.unchanged():
        with pytest.raises(SnapshotNotFoundError, match=r"snapshot 1 has expired\. The table has snapshots 2 to 2"):
            tables.table.at(snapshot=1).read()
        with pytest.raises(SnapshotNotFoundError, match=r"snapshot 9 does not exist\. The table has snapshots 2 to 2"):
            tables.table.at(snapshot=9).read()
        with pytest.raises(SnapshotNotFoundError, match="The earliest snapshot is 2"):
            tables.table.at(timestamp="1999-01-01 00:00:00").read()
        with pytest.raises(SnapshotNotFoundError, match="tag 'x'"):
            tables.table.at(tag="x").read()


def test_an_empty_frame_writes_nothing_and_an_overwrite_with_it_deletes_the_rows_of_the_partition(tables: Tables) -> None:
    with tables.unchanged():
        result = tables.table.write(tables.rows())
    assert result.snapshot_id is None and not result.already_committed and result.files == 0
    with tables.unchanged():
        assert tables.table.write(tables.rows(), commit_user="u", batch_id=1).snapshot_id is None
    result = tables.table.overwrite(tables.rows(), {"dt": DAY})
    assert result.snapshot_id == 3
    assert tables.read(columns=["dt", "k"]) == [(NEXT_DAY, 1)]
    tables.table.overwrite(tables.rows(), {"dt": "2020-01-02"})
    assert tables.read() == []


@LOCALLY
def test_a_table_with_a_changed_number_of_buckets_is_written_only_by_an_overwrite(tables: Tables) -> None:
    tables.catalog.alter_table("db.t", SetOption("bucket", "3"))
    with tables.unchanged(), pytest.raises(InvalidInputError, match="has files with 1 buckets"):
        tables.table.write(good(tables))
    other = tables.rows((datetime.date(2020, 1, 3), 1, "n", "x", 1))
    tables.table.write(other)
    tables.table.overwrite(good(tables), {"dt": DAY})
    tables.table.write(tables.rows((DAY, 7, "g2", "x", 7)))
    rows = {(dt.day, k, v) for dt, k, v in tables.read(columns=["dt", "k", "v"])}
    assert rows == {(1, 7, "g2"), (2, 1, "c"), (3, 1, "n")}


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "cut off":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.write_bytes(bytes(len(data)))


def uses(tables: Tables) -> dict[str, Callable[[], Any]]:
    return {
        "read": tables.read,
        "compact": lambda: tables.compact(full=True),
        "overwrite": lambda: tables.table.overwrite(good(tables), {"dt": DAY}),
    }


DAMAGES = ("missing", "cut off", "zeros")
MANIFESTS = "manifest-[0-9a-f]*"


@each_case("damaged", product(["manifest-list-*", MANIFESTS], DAMAGES), on_spark=[(MANIFESTS, "cut off")])
def test_a_damaged_manifest_is_named_and_nothing_is_committed(tables: Tables, damaged: tuple[str, str]) -> None:
    kind, how = damaged
    names = {path.name for path in (tables.root / "manifest").glob(kind)}
    for name in names:
        damage(tables.root / "manifest" / name, how)
    for use in uses(tables).values():
        before = tables.listing()
        with pytest.raises(CorruptTableError) as raised:
            use()
        assert any(name in str(raised.value) for name in names)
        left = set(tables.listing()) - set(before)
        assert not left and set(before) <= set(tables.listing())


@each_case("how", ["cut off", "zeros"], on_spark=[])
def test_a_damaged_snapshot_or_schema_file_is_named(tables: Tables, how: str) -> None:
    damage(tables.root / "snapshot" / "snapshot-2", how)
    for use in uses(tables).values():
        with tables.unchanged(), pytest.raises(CorruptTableError, match="snapshot-2"):
            use()
    damage(tables.root / "schema" / "schema-0", how)
    for use in uses(tables).values():
        with tables.unchanged(), pytest.raises(CorruptTableError, match="schema-0"):
            use()


def data_files(tables: Tables) -> list[Path]:
    """Return the files of the first day (its directory name is the days since 1970), oldest first."""
    store = tables.table._store()
    latest = store.snapshots.latest()
    assert latest is not None
    entries = read_live_entries(store.file_io, store.paths, latest)
    oldest_first = sorted(entries, key=lambda entry: entry.file.min_sequence_number)
    paths = [Path(store.data_path(entry.partition, entry.bucket, entry.file.file_name)) for entry in oldest_first]
    return [path for path in paths if path.parent.parent.name == "dt=18262"]


@each_case("how", DAMAGES, on_spark=["cut off"])
def test_a_damaged_data_file_fails_a_compaction_and_a_delete_by_name(tables: Tables, how: str) -> None:
    victim = data_files(tables)[0]
    damage(victim, how)
    with tables.unchanged(), pytest.raises(CorruptTableError, match=victim.name):
        tables.compact(full=True)
    with tables.unchanged(), pytest.raises(CorruptTableError, match=victim.name):
        tables.delete("n = 1")
    assert len(tables.read(where="dt = DATE '2020-01-02'")) == 1


@each_case("how", DAMAGES, on_spark=DAMAGES)
def test_a_damaged_data_file_fails_a_read_and_is_named(tables: Tables, how: str) -> None:
    victim = data_files(tables)[0]
    damage(victim, how)
    with pytest.raises(CorruptTableError if tables.engine.spark is None else Exception, match=victim.name):
        tables.read()


def test_a_compaction_that_fails_after_a_write_is_in_the_result_of_the_write(tables: Tables) -> None:
    victim = data_files(tables)[0]
    damage(victim, "cut off")
    options = {"write-only": "false", "num-sorted-run.compaction-trigger": "2"}
    with pytest.warns(UserWarning, match="the commit succeeded, and the compaction after it failed"):
        result = tables.table.write(good(tables), options=options)
    assert result.snapshot_id == 3 and result.compaction is not None and result.compaction.error is not None
    assert (result.compaction.status, result.compaction.error.kind) == ("failed", "corrupt")
    assert victim.name in result.compaction.error.text
    assert tables.table._store().snapshots.ids() == [1, 2, 3]
