"""Totals of buckets and partitions, and the history of a table."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError
from tests.maintain.partitions.partitioned_table import fill, partitioned


def names(table: Table, where: str | None = None) -> list[str]:
    return table.inspect.partitions(where).to_arrow()["partition"].to_pylist()


def test_partitions_are_listed_with_the_totals_of_their_files(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    assert names(table) == []
    fill(table, "b", "a")
    fill(table, "a", "a")
    first, second = table.inspect.partitions().to_arrow().to_pylist()
    assert (first["partition"], first["rows"], first["files"]) == ("dt=a", 3, 2)
    assert (second["partition"], second["rows"]) == ("dt=b", 1)
    assert first["bytes"] > second["bytes"] > 0
    assert abs((first["updated_at"] - datetime.now()).total_seconds()) < 600
    assert names(table, "dt > 'a'") == ["dt=b"] and names(table.at(snapshot=1)) == ["dt=a", "dt=b"]
    with pytest.raises(InvalidInputError, match="partition columns"):
        table.inspect.partitions("id = 1")


def test_a_table_without_partitions_is_one_partition(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table("db.t", "id INT", primary_key=["id"])
    table.write(pa.table({"id": pa.array([1], pa.int32())}))
    assert names(table) == [""]


def test_buckets_are_totals_by_level(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    fill(table, "a", "a")
    fill(table, "a")
    (row,) = table.inspect.buckets().to_arrow().to_pylist()
    files = table.inspect.files().to_arrow()
    assert row == {
        "partition": "dt=a", "bucket": 0, "level": 0, "files": 2, "records": 3,
        "bytes": sum(files["file_size_in_bytes"].to_pylist()),
    }


def test_the_history_has_commits_and_runs_of_maintenance_newest_first(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    fill(table, "a")
    table.compact(full=True, engine="local")
    table.tags.create("one")
    found = table.inspect.history().to_arrow().to_pylist()
    assert [(row["operation"], row["snapshot_ids"]) for row in found] == [
        ("create_tag", []),
        ("compact", [2]),
        ("WRITE", [1]),
    ]
    assert (found[2]["rows"], found[2]["outcome"]) == (1, "done")
    assert [row["operation"] for row in table.inspect.history(1).to_arrow().to_pylist()] == ["create_tag"]
