"""The statistics that an analysis writes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.commit.committer import Committer
from lakelsm.errors import CommitConflictError, CommitOutcomeUnknownError, CorruptTableError, InvalidInputError
from lakelsm.format.snapshot import CommitKind
from lakelsm.format.statistics_file import ColumnStatistics
from lakelsm.maintain.history import maintenance_runs
from lakelsm.schema_changes import AddColumn
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.metadata_tables import statistics_of
from lakelsm.types import parse_type
from tests.engines import TableEngine

COLUMNS = "p STRING, k INT, d DECIMAL(20, 2), t TIMESTAMP(3), day DATE, b BYTES, f DOUBLE, a ARRAY<INT>"


def table_of(folder: Path, **options: str) -> Table:
    given = {"bucket": "2", "write-only": "true", **options}
    return Catalog(str(folder)).create_table("db.t", COLUMNS, primary_key=["p", "k"], partition_by=["p"], options=given)


def rows(*keys: int, d: Any = None) -> pa.Table:
    return pa.table(
        {
            "p": ["a" if key % 2 else "b" for key in keys],
            "k": pa.array(keys, pa.int32()),
            "d": pa.array([d] * len(keys), pa.decimal128(20, 2)),
            "t": pa.array([dt.datetime(2020, 1, key) for key in keys], pa.timestamp("ms")),
            "day": pa.array([None] * len(keys), pa.date32()),
            "b": [b"x" * key for key in keys],
            "f": [float(key) for key in keys],
            "a": pa.array([[1]] * len(keys), pa.list_(pa.int32())),
        }
    )


def store_in(folder: Path) -> TableStore:
    return TableStore.open(str(folder / "db.db" / "t"))


def kept(folder: Path) -> set[str]:
    return {path.name for path in (folder / "db.db" / "t" / "statistics").glob("*")}


def test_statistics_are_of_merged_rows_on_either_engine(tmp_path: Path, engine: TableEngine) -> None:
    table_of(tmp_path)
    table = engine.opened(tmp_path / "db.db" / "t")
    local = Table.for_path(str(tmp_path / "db.db" / "t"))
    local.write(rows(1, 2, 3, 4))
    local.write(rows(2, 9, d=Decimal("1.50")))
    local.delete("k = 1", engine="local")
    result = table.maintenance.analyze(commit_user="me", engine=engine.name)
    assert (result.rows, result.analyzed_snapshot_id, result.snapshot_id) == (4, 3, 4)
    assert result.columns == ("p", "k", "d", "t", "day", "b", "f")
    (run,) = maintenance_runs(table._store(), 50)
    assert (run.operation, run.user, run.files, run.snapshot_ids) == ("analyze", "me", 1, (4,))
    store = store_in(tmp_path)
    snapshot = store.snapshots.get(4)
    assert (snapshot.commit_kind, snapshot.commit_user, snapshot.total_record_count) == (CommitKind.ANALYZE, "me", 7)
    found = statistics_of(store, snapshot)
    assert found is not None and (found.snapshot_id, found.schema_id, found.merged_record_count) == (3, 0, 4)
    size = sum(table.inspect.system("files").to_arrow()["file_size_in_bytes"].to_pylist())
    assert found.merged_record_size == result.bytes == size * 4 // 7
    #: Distinct values, minimum, maximum, NULLs, average length, maximum length.
    expected: dict[str, tuple[Any, ...]] = {
        "p": (2, None, None, 0, 1, 1),
        "k": (4, "2", "9", 0, 4, 4),
        "d": (1, "1.50", "1.50", 2, 16, 16),
        "t": (4, "2020-01-02 00:00:00.000", "2020-01-09 00:00:00.000", 0, 8, 8),
        "day": (0, None, None, 4, 4, 4),
        "b": (4, None, None, 0, 5, 9),
        "f": (4, "2.0", "9.0", 0, 8, 8),
    }
    names = ("distinct_count", "min", "max", "null_count", "avg_len", "max_len")
    assert dict(found.columns) == {
        name: ColumnStatistics(col_id=at, **dict(zip(names, values)))
        for at, (name, values) in enumerate(expected.items())
    }
    (shown,) = table.inspect.system("statistics").to_arrow().to_pylist()
    assert (shown["snapshot_id"], shown["mergedRecordCount"], shown["colstat"]) == (3, 4, found.columns_json())
    assert table.at(snapshot=3).inspect.system("statistics").to_arrow().num_rows == 0


def test_columns_are_chosen_in_any_case_and_nested_ones_are_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.write(rows(1, 2))
    assert table.maintenance.analyze(["F", "k"], engine="local").columns == ("k", "f")
    result = table.maintenance.analyze([], engine="local")
    assert (result.rows, result.columns) == (2, ())
    assert table.inspect.system("statistics").to_arrow()["colstat"].to_pylist() == ["{ }"]
    with pytest.raises(InvalidInputError, match=r"'a' of type ARRAY<INT> cannot be analyzed. Use p, k, d"):
        table.maintenance.analyze(["a"], engine="local")
    with pytest.raises(InvalidInputError, match="column 'x' does not exist"):
        table.maintenance.analyze(["x"], engine="local")


def test_a_table_without_snapshots_gets_no_statistics_and_one_without_rows_gets_zeros(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    result = table.maintenance.analyze(engine="local")
    assert (result.snapshot_id, result.analyzed_snapshot_id) == (None, None) and kept(tmp_path) == set()
    table.write(rows(1))
    table.delete("k = 1", engine="local")
    table.compact(full=True, engine="local")
    result = table.maintenance.analyze(["k"], engine="local")
    assert (result.rows, result.bytes) == (0, 0)
    found = statistics_of(store_in(tmp_path), store_in(tmp_path).snapshots.latest())
    expected = ColumnStatistics(col_id=1, distinct_count=0, null_count=0, avg_len=4, max_len=4)
    assert found is not None and found.columns["k"] == expected


def test_the_file_is_deleted_after_a_failed_commit_and_kept_after_an_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path)
    table.write(rows(1))
    for error, files in ((CommitConflictError("lost"), 0), (CommitOutcomeUnknownError("unknown"), 1)):

        def failing(self: Committer, *_: Any, error: Exception = error, **__: Any) -> None:
            assert len(kept(tmp_path)) == 1
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(Committer, "commit", failing)
            with pytest.raises(type(error)):
                table.maintenance.analyze(engine="local")
        assert len(kept(tmp_path)) == files


def test_statistics_are_inherited_until_the_schema_changes_and_a_missing_file_is_reported(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.write(rows(1))
    table.maintenance.analyze(engine="local")
    table.write(rows(2))
    assert table.inspect.system("statistics").to_arrow()["snapshot_id"].to_pylist() == [1]
    (name,) = kept(tmp_path)
    path = tmp_path / "db.db" / "t" / "statistics" / name
    path.write_text("{}")
    with pytest.raises(CorruptTableError, match=f"{name} is damaged: it has no colStats"):
        table.inspect.system("statistics").to_arrow()
    path.unlink()
    with pytest.raises(CorruptTableError, match=f"{name} does not exist, but snapshot 3 names it"):
        table.inspect.system("statistics").to_arrow()
    Catalog(str(tmp_path)).alter_table("db.t", AddColumn("z", parse_type("INT")))
    table.write(rows(3).append_column("z", pa.array([1], pa.int32())))
    assert table.inspect.system("statistics").to_arrow().num_rows == 0


def test_statistics_name_the_schema_that_contains_their_columns(tmp_path: Path) -> None:
    """Java finds the types of the columns in this schema, and cannot plan a query of the table if one is missing."""
    table = table_of(tmp_path)
    table.write(rows(1, 2))
    table = Catalog(str(tmp_path)).alter_table("db.t", AddColumn("z", parse_type("INT")))
    assert table.maintenance.analyze(engine="local").snapshot_id == 2
    found = statistics_of(store_in(tmp_path), store_in(tmp_path).snapshots.latest())
    assert found is not None and (found.schema_id, "z" in found.columns) == (1, True)
    table.write(rows(3).append_column("z", pa.array([1], pa.int32())))
    assert table.inspect.system("statistics").to_arrow()["schema_id"].to_pylist() == [1], (
        "inherited: the schema is the same"
    )
