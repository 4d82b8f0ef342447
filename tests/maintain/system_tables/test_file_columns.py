"""Keys and statistics of files of several schemas, as Java prints them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.maintain.system_tables import file_columns
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from lakelsm.types import parse_type


def rows(k: list[int], **columns: list[object]) -> pa.Table:
    given = {"k": k, **columns}
    return pa.table({name: pa.array(each, pa.int32() if name in "kv" else None) for name, each in given.items()})


@pytest.mark.parametrize("at_once", [1, 100])
def test_statistics_follow_columns_that_were_renamed_widened_added_or_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(file_columns, "_FILES_AT_ONCE", at_once)
    catalog = Catalog(str(tmp_path))
    options = {"bucket": "1", "write-only": "true", "fields.few.stats-mode": "none"}
    table = catalog.create_table("db.t", "k INT, v INT, gone STRING, few STRING", primary_key=["k"], options=options)
    table.write(rows([1, 2, 3], v=[5, -7, 6], gone=["x", "y", "z"], few=["a", "b", "c"]))
    catalog.alter_table(
        "db.t",
        RenameColumn("v", "w"),
        UpdateColumnType("w", parse_type("BIGINT")),
        DropColumn("gone"),
        AddColumn("new", parse_type("DATE")),
    )
    table.write(pa.table({"k": pa.array([9], pa.int32()), "w": [8], "few": ["d"], "new": pa.array([3], pa.date32())}))
    found = table.system_arrow("files").to_pylist()
    assert [(row["min_key"], row["max_key"], row["schema_id"]) for row in found] == [("[1]", "[3]", 0), ("[9]", "[9]", 1)]
    assert [row["min_value_stats"] for row in found] == [
        "{few=null, k=1, new=null, w=-7}",
        "{few=null, k=9, new=3, w=8}",
    ]
    assert [row["null_value_counts"] for row in found] == ["{few=null, k=0, new=3, w=0}", "{few=null, k=0, new=0, w=0}"]
