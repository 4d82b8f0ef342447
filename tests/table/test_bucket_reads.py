"""Rows with their bucket, and rows of files without a merge with their file and row index."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.errors import UnsupportedFeatureError
from lakelsm.table.bucket_reads import bucket_rows
from lakelsm.table.readable_table import RowsRequest


def test_rows_have_the_bucket_and_the_location_of_their_files(tmp_path: Path) -> None:
    options = {"bucket": "2", "write-only": "true"}
    table = Catalog(str(tmp_path)).create_table("db.t", "k INT", primary_key="k", options=options)
    table.write([{"k": key} for key in range(100)])
    found = list(bucket_rows(table, RowsRequest(), located=False))
    assert sorted(key for part in found for key in part.rows.column("k").to_pylist()) == list(range(100))
    assert {part.bucket for part in found} == {0, 1}
    located = list(bucket_rows(table, RowsRequest("k > 50"), located=True))
    indexes: dict[str, list[int]] = {}
    for part in located:
        assert f"/bucket-{part.bucket}/" in str(part.path)
        assert part.indexes is not None
        indexes.setdefault(str(part.path), []).extend(part.indexes.to_pylist())
    assert len(indexes) == 2
    assert all(found == list(range(len(found))) for found in indexes.values())
    assert sum(map(len, indexes.values())) == sum(len(part.rows) for part in located) == 100
    table.write([{"k": 1}])
    with pytest.raises(UnsupportedFeatureError, match="need files without a merge, and the query merges 2 files"):
        list(bucket_rows(table, RowsRequest(), located=True))
