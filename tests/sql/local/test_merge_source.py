"""Sources of merges that are streams, and columns of NULL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lakelsm.errors import LakelsmError, StorageError
from lakelsm.sql.local.merge_source import checked_source, opened_source, source_names
from lakelsm.sql.pushdown import Need
from tests.engines import TableEngine


def test_columns_of_null_have_the_type_of_the_table(local: TableEngine, tmp_path: Path) -> None:
    schema = local.create(tmp_path, "k INT, d DATE", ["k"]).schema
    source = checked_source({"K": [1], "D": [None], "x": [None]}, schema)
    opened = opened_source(source)
    assert [field.type.sql() for field in opened.fields] == ["BIGINT", "DATE", "STRING"]
    assert source_names(source) == ["K", "D", "x"]
    assert opened.reader(Need(["D"], None)).read_all().schema == pa.schema([("D", pa.date32())])


def test_a_stream_is_read_once_and_merged_more_often(local: TableEngine, tmp_path: Path) -> None:
    table = local.create(tmp_path, "k INT, n INT", ["k"])
    local.write(table, [(1, 1), (2, 2)])
    rows = pa.table({"k": [1, 3], "n": [10, 30]})
    merge = table.merge(rows.to_reader(), "k").when_matched_update({"n": "t.n + s.n"})
    assert [merge.execute().updated_rows for _ in range(2)] == [1, 1]
    assert table.to_arrow().sort_by("k").to_pydict() == {"k": [1, 2], "n": [21, 2]}
    pq.write_table(rows, tmp_path / "rows.parquet")
    files = ds.dataset(tmp_path / "rows.parquet")
    merge = table.merge(files, "k", duplicates="last").when_not_matched_insert()
    (tmp_path / "rows.parquet").unlink()
    assert merge.execute().inserted_rows == 1
    nothing = table.merge(rows.slice(0, 0).to_reader(), "k").when_matched_delete()
    assert nothing.execute().snapshot_id is None


def test_a_stream_that_fails_or_needs_too_much_disk_is_refused(local: TableEngine, tmp_path: Path) -> None:
    table = local.create(tmp_path, "k INT, n INT", ["k"], options={"write-buffer-spill.max-disk-size": "1 kb"})
    with pytest.raises(StorageError, match=r"write-buffer-spill\.max-disk-size"):
        table.merge(pa.table({"k": range(1000)}).to_reader(), "k")
    bad = pa.RecordBatchReader.from_batches(pa.schema([("k", pa.int32())]), iter([pa.record_batch({"x": [1]})]))
    with pytest.raises(LakelsmError):
        table.merge(bad, "k")
