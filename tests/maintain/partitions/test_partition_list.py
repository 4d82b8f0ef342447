"""The partitions of a table with rows, files, bytes and their last update."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog, InvalidInputError
from tests.maintain.partitions.partitioned_table import fill, partitioned


def test_partitions_are_listed_with_what_their_files_come_to(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    assert table.partitions() == []
    fill(table, "b", "a")
    fill(table, "a", "a")
    first, second = table.partitions()
    assert [(first.partition, first.rows, first.files), (second.partition, second.rows)] == [("dt=a", 3, 2), ("dt=b", 1)]
    assert first.bytes > second.bytes > 0
    assert first.updated_at is not None and abs((first.updated_at - datetime.now()).total_seconds()) < 600
    assert [info.partition for info in table.partitions("dt > 'a'")] == ["dt=b"]
    assert first.as_dict()["updated_at"] == first.updated_at.isoformat()
    with pytest.raises(InvalidInputError, match="partition columns"):
        table.partitions("id = 1")


def test_a_table_without_partitions_is_one(tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table("db.t", "id INT", primary_key=["id"])
    table.write(pa.table({"id": pa.array([1], pa.int32())}))
    assert [(info.partition, info.rows) for info in table.partitions()] == [("", 1)]
