"""The files of merged sections are read by the tasks that merge them, or by Spark's own scan."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm.errors import CorruptTableError
from lakelsm.frames.scan_frame import _sizes_identify_chunks, scan_frame
from lakelsm.merge.merge_unit import RunFile
from lakelsm.plan.read_plan import plan_read
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.session import resolve_session
from lakelsm.table import Table
from tests.compact.local_table import LocalTable
from tests.maintain.versioned_table import rows, versioned_table
from tests.read.tables import create, frame, rows_of
from tests.read.test_pushed_down import parquet_scans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WANTED = [(i, 10 * i if i % 3 else 10 * i + 100, i) for i in range(20) if i != 7] + [(30, 3, 3)]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Create keys 0 to 19, every third of them and key 30 in a second run, and key 7 deleted in a third."""
    options = {
        "merge-engine": "aggregation",
        "fields.s.aggregate-function": "sum",
        "aggregation.remove-record-on-delete": "true",
    }
    made = create(spark, tmp_path_factory.mktemp("handed"), "id INT, s INT, v INT", ["id"], options=options)
    made.write(frame(made, [(i, 10 * i, i) for i in range(20)]))
    made.write(frame(made, [(i, 100, i) for i in range(0, 20, 3)] + [(30, 3, 3)]))
    made.write(frame(made, [(7, 0, 0)]).withColumn("op", F.lit("-D")), row_kind="op")
    return made


@pytest.mark.usefixtures("classic_functions")
@pytest.mark.parametrize(("small", "scanned"), [("every file", 0), ("all but the largest", 1), ("none", 3)])
def test_tasks_and_scans_return_the_same_rows(table: Table, small: str, scanned: int) -> None:
    sizes = sorted(file.file_size for file in table.explain().merged_files)
    assert len(set(sizes)) == 3
    cost = {"every file": sizes[-1] + 1, "all but the largest": sizes[-1], "none": 1}[small]
    store = TableStore.open(f"file:{table._opened.paths.root}").with_options({"source.split.open-file-cost": f"{cost} b"})
    found = scan_frame(resolve_session(table._spark), store, plan_read(store, store.snapshots.latest(), None), ["id"])
    assert len(found.inputFiles()) == scanned
    assert len(parquet_scans(found)) == min(scanned, 1)
    assert rows_of(found) == sorted(WANTED, key=repr)
    assert rows_of(found.where("v >= 18")) == [row for row in sorted(WANTED, key=repr) if row[2] >= 18]


@pytest.mark.usefixtures("classic_functions")
def test_rows_are_the_same_if_two_files_have_the_same_size(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelsm.frames.scan_frame._sizes_identify_chunks", lambda files: False)
    store = TableStore.open(f"file:{table._opened.paths.root}").with_options({"source.split.open-file-cost": "1 b"})
    found = scan_frame(resolve_session(table._spark), store, plan_read(store, store.snapshots.latest(), None), ["id"])
    assert rows_of(found) == sorted(WANTED, key=repr)


def test_distinct_sizes_that_fit_a_number_with_the_chunk_identify_files() -> None:
    def file(size: int, rows: int = 1) -> RunFile:
        return RunFile(f"x/{size}", schema_id=0, row_count=rows, file_size=size)

    assert _sizes_identify_chunks([]) and _sizes_identify_chunks([file(7), file(8), file((1 << 47) - 1, (1 << 32) - 1)])
    assert not _sizes_identify_chunks([file(7), file(8), file(7)])
    assert not _sizes_identify_chunks([file(1 << 47)])
    assert not _sizes_identify_chunks([file(7, 1 << 32)])


@pytest.mark.usefixtures("classic_functions")
def test_tasks_read_sections_whole_unless_few_columns_are_requested(table: Table) -> None:
    store = TableStore.open(f"file:{table._opened.paths.root}").with_options({"source.split.open-file-cost": "1 b"})
    plan = plan_read(store, store.snapshots.latest(), None)
    for columns, scanned in ((None, 0), (["id", "s", "v"], 0), (["s", "v"], 0), (["v"], 3)):
        found = scan_frame(resolve_session(table._spark), store, plan, columns)
        assert len(found.inputFiles()) == scanned
        assert rows_of(found) == sorted(WANTED, key=repr)
    assert table.read().inputFiles() == []
    assert rows_of(table.read(columns=["s"])) == sorted([row[1:2] for row in WANTED], key=repr)


def written(folder: Path, *values: str) -> tuple[Table, list[Path]]:
    """Write a table with one natively scanned file for each bucket; return it and its files, the oldest first."""
    local = LocalTable(folder, file__compression="none", bucket="1")
    for number, value in enumerate(values):
        local.write(*((number * 1000 + key, f"{value}{key}") for key in range(400)))
    entries = sorted(local.live(), key=lambda entry: entry.file.min_sequence_number)
    return Table.for_path(str(folder)), [local.path_of(entry) for entry in entries]


def test_a_flipped_bit_in_a_natively_scanned_file_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    table, (file,) = written(tmp_path / "t", "a")
    assert table.read().count() == 400
    data = bytearray(file.read_bytes())
    data[pq.read_metadata(file).row_group(0).column(4).data_page_offset + 200] ^= 1
    file.write_bytes(data)
    with pytest.raises(Exception) as error:
        table.read().collect()
    line = next(line for line in str(error.value).splitlines() if "Exception" in line or "[" in line)
    assert str(file) in line and "FAILED_READ_FILE" in line
    assert table.read(columns=["id"]).count() == 400


def test_a_natively_scanned_file_that_was_exchanged_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    table, (old, new) = written(tmp_path / "t", "a", "b")
    shutil.copy(old, new)
    with pytest.raises(CorruptTableError, match=f"Data file {new} is damaged or replaced"):
        table.read()
    new.write_bytes(b"")
    with pytest.raises(CorruptTableError, match=f"Data file {new} has 0 bytes"):
        table.read()
    new.unlink()
    with pytest.raises(CorruptTableError, match=f"Data file {new}.* does not exist"):
        table.read()


def overlapping(folder: Path, **options: str) -> tuple[Table, Path]:
    """Write a table whose rows a task merges; return it and one of its files, with a damaged key column."""
    local = LocalTable(folder, file__compression="none", **options)
    for value in ("a", "b"):
        local.write(*((key, value) for key in range(400)))
    file = local.path_of(local.live()[0])
    data = bytearray(file.read_bytes())
    data[pq.read_metadata(file).row_group(0).column(3).data_page_offset + 200] ^= 1
    file.write_bytes(data)
    return Table.for_path(str(folder)), file


@pytest.mark.parametrize(
    ("engine", "action"),
    [
        ("deduplicate", lambda frame: frame.collect()),
        ("partial-update", lambda frame: frame.where("id > 5 AND v = 'a'").collect()),
        ("partial-update", lambda frame: frame.where("id IS NOT NULL").groupBy("v").count().collect()),
    ],
    ids=["collect", "where", "count"],
)
def test_the_first_line_of_sparks_error_is_the_message(
    spark: SparkSession, tmp_path: Path, engine: str, action: Callable[[DataFrame], object]
) -> None:
    table, file = overlapping(tmp_path / "t", merge_engine=engine)
    with pytest.raises(PySparkException) as error:
        action(table.read())
    first = str(error.value).splitlines()[0]
    assert "lakelsm.errors.CorruptTableError: Data file" in first and str(file) in first


def test_an_error_within_an_action_of_lakelsm_is_typed(spark: SparkSession, tmp_path: Path) -> None:
    table, file = overlapping(tmp_path / "t")
    with pytest.raises(CorruptTableError, match=f"^Data file {file}"):
        table.delete("id < 9")


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_a_snapshot_that_expired_before_the_action_is_reported(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    table = versioned_table(tmp_path, 3, **{"merge-engine": engine})
    table.write(rows((1, "new"), (3, "new")))
    read = Table.for_path(str(tmp_path / "db.db" / "t"), spark).at(snapshot=4).read()
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1, older_than="0 s")
    with pytest.raises(PySparkException, match=r"SnapshotNotFoundError.* snapshot 4 was deleted while it was read"):
        read.collect()
