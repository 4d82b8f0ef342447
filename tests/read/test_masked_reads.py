"""No read returns rows that deletion vectors mask, and every read returns all others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelsm import Table
from lakelsm.errors import CorruptTableError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.schema_changes import AddColumn
from tests.commit.commit_table import upgrade
from tests.compact.local_table import LocalTable
from tests.engines import TableEngine, in_order
from tests.masked_files import commit_vectors, mask
from tests.read.tables import rows_of
from tests.read.test_pushed_down import parquet_scans


def waiting(table: LocalTable) -> ManifestEntry:
    """Return the newest file of level 0."""
    files = [entry for entry in table.live() if entry.file.level == 0]
    return max(files, key=lambda entry: entry.file.min_sequence_number)


def moved_up(table: LocalTable, level: int) -> str:
    """Upgrade the newest file of level 0 without a rewrite; return its name."""
    entry = waiting(table)
    commit_vectors(table.store, files=upgrade(entry, level))
    return entry.file.file_name


def versions(folder: Path, **options: str) -> LocalTable:
    """Keys 0 to 9 on level 5; 2, 3 and 9 are masked because level 4 has newer rows; still newer rows wait on level 0."""
    table = LocalTable(folder, write_only="true", deletion_vectors__enabled="true", **options)
    table.write(*((key, f"old{key}") for key in range(10)))
    old = moved_up(table, 5)
    table.write((2, "new2"), (3, "new3"), (20, "new20"))
    moved_up(table, 4)
    mask(table.store, {old: [2, 3, 9]})
    table.write((3, "newest3"), (4, "newest4"), (30, "newest30"))
    table.delete((5, None))
    return table


MERGED = {key: f"old{key}" for key in range(9)} | {2: "new2", 3: "new3", 20: "new20"}
FRESH = {key: value for key, value in MERGED.items() if key != 5} | {3: "newest3", 4: "newest4", 30: "newest30"}


def listed(rows: dict[int, str]) -> list[tuple[int, str]]:
    return in_order(list(rows.items()))


@pytest.mark.parametrize("prefix", ["data-", "_hidden-"], ids=["Spark's scan", "tasks"])
def test_level_0_is_hidden_unless_it_is_merged_and_each_snapshot_has_its_own_vectors(
    engine: TableEngine, tmp_path: Path, prefix: str
) -> None:
    table = engine.opened(versions(tmp_path / "t", data_file__prefix=prefix).root)
    assert engine.rows(table) == listed(MERGED)
    assert engine.rows(table, fresh=True) == listed(FRESH)
    assert int(table.count(engine=engine.name)) == len(MERGED)
    assert int(table.count("v <> ''", fresh=True, engine=engine.name)) == len(FRESH)
    old = [row for row in listed(MERGED) if row[1].startswith("old")]
    assert engine.rows(table, "v LIKE 'old%'") == old
    assert len(engine.rows(table.at(snapshot=2))) == 10
    if engine.spark is not None:
        assert sum(row["masked_record_count"] for row in table.inspect.files().to_spark().collect()) == 3
    assert engine.changes(table, 4, 5, mode="diff") == [("-D", 9, "old9")]
    assert engine.delete(table, "v = 'newest30'").matched_rows == 1
    assert engine.rows(table, fresh=True) == [row for row in listed(FRESH) if row[0] != 30]


def test_small_files_that_tasks_read_lack_their_masked_rows(spark: SparkSession, tmp_path: Path) -> None:
    local = versions(
        tmp_path / "t", merge_engine="partial-update", partial_update__remove_record_on_delete="true",
        deletion_vectors__merge_on_read="true",
    )
    table = Table.for_path(str(local.root), spark)
    assert table.read().inputFiles() == []
    assert in_order(rows_of(table.read())) == listed(FRESH)
    local_engine = TableEngine("local")
    assert local_engine.rows(local_engine.opened(local.root)) == listed(FRESH)


def test_masked_rows_stay_masked_in_a_file_of_an_older_schema_and_many_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", write_only="true", file__block_size="256 kb")
    count = 150_000
    ids = pa.array(range(count), pa.int32())
    table.write_columns(pa.table({"id": ids, "v": ids.cast(pa.string())}))
    masked = [0, 1, 63, 64, 65_535, 65_536, 131_071, *range(140_000, 145_000), count - 1]
    mask(table.store, {moved_up(table, 5): masked})
    table.alter(AddColumn("w", "INT"))
    left = sorted(set(range(count)) - set(masked))
    here = Table.for_path(str(table.root)).to_arrow(columns=["id", "w"], ordered=True)
    assert here.column("id").to_pylist() == left and here.column("w").null_count == len(left)
    found = Table.for_path(str(table.root), spark).read()
    assert sorted(row.id for row in found.select("id").collect()) == left
    few = found.where("id > 144990 AND v < '145003' AND w IS NULL")
    assert sorted(row.id for row in few.collect()) == [145_000, 145_001, 145_002]
    assert "GreaterThan(id,144990)" in parquet_scans(few)[0][1]


def test_a_damaged_index_file_is_reported_with_its_data_file(engine: TableEngine, tmp_path: Path) -> None:
    local = versions(tmp_path / "t")
    (path,) = (local.root / "index").iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CorruptTableError if engine.spark is None else (PySparkException, CorruptTableError)) as error:
        engine.rows(engine.opened(local.root))
    first = str(error.value).splitlines()[0]
    assert "Deletion vector of data file data-" in first and str(path) in first and "instead of" in first
