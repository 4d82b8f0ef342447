"""System tables by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.system_tables.named_tables import SYSTEM_TABLES, checked_system_table
from lakelsm.system_tables.system_table import SystemTable
from tests import golden_tables


def written(tmp_path: Path, spark: SparkSession | None = None) -> Catalog:
    catalog = Catalog(str(tmp_path), spark)
    table = catalog.create_table(
        "db.t", "dt STRING, k INT, v INT", primary_key=["dt", "k"], partition_by=["dt"], options={"bucket": "1"}
    )
    for number in range(2):
        columns = {"dt": ["a", "b"], "k": pa.array([1, 2], pa.int32()), "v": pa.array([number] * 2, pa.int32())}
        table.write(pa.table(columns))
    return catalog


def test_a_name_is_accepted_in_any_case_and_an_error_lists_the_names(tmp_path: Path) -> None:
    assert checked_system_table("FILES") is SYSTEM_TABLES["files"]
    table = written(tmp_path).table("db.t")
    for wrong in ("file", "row_tracking", "", None, 7):
        with pytest.raises(InvalidInputError, match=r"name .*snapshots.*") as error:
            table.inspect.system(wrong).to_arrow()  # type: ignore[arg-type]
        assert all(name in str(error.value) for name in SYSTEM_TABLES)


def test_a_system_table_of_one_snapshot_can_show_an_older_one(tmp_path: Path) -> None:
    table = written(tmp_path).table("db.t")
    assert (
        table.inspect.system("files").to_arrow().num_rows,
        table.at(snapshot=1).inspect.system("files").to_arrow().num_rows,
    ) == (4, 2)
    with pytest.raises(InvalidInputError, match="System table tags cannot show a chosen snapshot"):
        table.at(snapshot=1).inspect.system("tags").to_arrow()
    with pytest.raises(SnapshotNotFoundError):
        table.at(tag="none").inspect.system("manifests").to_arrow()


def test_a_branch_shows_its_own_state(tmp_path: Path) -> None:
    table = written(tmp_path).table("db.t")
    table.tags.create("kept", snapshot=1)
    table.branches.create("b", tag="kept")
    branch = table.branches.open("b")
    branch.write(pa.table({"dt": ["c"], "k": pa.array([1], pa.int32()), "v": pa.array([1], pa.int32())}))
    assert branch.inspect.system("snapshots").to_arrow()["snapshot_id"].to_pylist() == [1, 2]
    assert branch.inspect.system("partitions").to_arrow()["partition"].to_pylist() == ["dt=a", "dt=b", "dt=c"]
    assert table.inspect.system("partitions").to_arrow()["partition"].to_pylist() == ["dt=a", "dt=b"]
    assert [shown.inspect.system("branches").to_arrow()["branch_name"].to_pylist() for shown in (table, branch)] == [
        ["b"],
        ["b"],
    ]
    assert branch.maintenance.analyze(engine="local").rows == 3
    assert (
        branch.inspect.system("statistics").to_arrow().num_rows,
        table.inspect.system("statistics").to_arrow().num_rows,
    ) == (1, 0)
    assert len(branch.inspect.system("audit_log").to_arrow()) == 3


def test_an_error_of_the_catalog_explains_how_to_read_a_system_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"table\('database.table'\).inspect.system\('files'\)"):
        written(tmp_path).table("db.t$files")


@pytest.mark.skipif(not golden_tables.available(), reason="the golden tables are not here")
@pytest.mark.parametrize("version", golden_tables.VERSIONS)
def test_every_system_table_of_every_golden_table_has_its_columns(version: str, tmp_path: Path) -> None:
    from lakelsm.errors import UnsupportedFeatureError
    from lakelsm.table import Table

    shown = 0
    for path in sorted(golden_tables.unpack(version, tmp_path).iterdir()):
        try:
            table = Table.for_path(str(path))
        except UnsupportedFeatureError:
            continue
        for name, system in SYSTEM_TABLES.items():
            if path.name == "all_orc" and name in ("audit_log", "binlog"):
                with pytest.raises(UnsupportedFeatureError, match="has the format ORC"):
                    table.inspect.system(name).to_arrow()
                continue
            rows = table.inspect.system(name).to_arrow()
            if isinstance(system, SystemTable):
                assert rows.schema == system.schema
            rows.validate(full=True)
            assert not any(rows[field.name].null_count for field in rows.schema if not field.nullable)
        files = table.inspect.system("files").to_arrow().to_pandas()
        partitions, buckets = (table.inspect.system(name).to_arrow().to_pandas() for name in ("partitions", "buckets"))
        for column in ("record_count", "file_size_in_bytes"):
            assert files[column].sum() == partitions[column].sum() == buckets[column].sum()
        shown += 1
    assert shown


def test_a_session_shows_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = written(tmp_path, spark).table("db.t")
    for name in ("files", "snapshots", "table_indexes"):
        frame, rows = table.inspect.system(name).to_spark(), table.inspect.system(name).to_arrow()
        assert [field.nullable for field in frame.schema] == [field.nullable for field in rows.schema]
        assert [row.asDict(recursive=True) for row in frame.collect()] == rows.to_pylist()
    table.compact(full=True, engine="local")
    table.delete("k = 1", engine="local")
    for name, count in (("audit_log", 2), ("binlog", 2), ("ro", 2)):
        shown = [row.asDict() for row in table.inspect.system(name).to_spark().collect()]
        rows = table.inspect.system(name).to_arrow().to_pylist()
        assert sorted(shown, key=repr) == sorted(rows, key=repr) and len(shown) == count
