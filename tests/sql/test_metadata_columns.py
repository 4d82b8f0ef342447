"""Metadata columns: the partition, the bucket, the file and the row index of a row. ``*`` does not stand for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm import Catalog
from lakelsm.errors import UnsupportedFeatureError
from tests.engines import TableEngine

Rows = list[tuple[object, ...]]
#: Queries on p, which has partitions and 3 buckets, and on d, which has one bucket of merged and one of raw files.
QUERIES: dict[str, Rows] = {
    "SELECT *, __paimon_partition.p AS w, __PAIMON_BUCKET AS b FROM db.p ORDER BY id": [
        (1, "new", "x", "x", 1),
        (2, "b", "y", "y", 2),
        (3, "c", "x", "x", 1),
        (4, "d", "y", "y", 0),
    ],
    "SELECT __paimon_bucket, count(*) FROM db.p GROUP BY 1 ORDER BY 1": [(0, 1), (1, 2), (2, 1)],
    "SELECT id FROM db.p WHERE __paimon_bucket = 1 AND p = 'x' ORDER BY id": [(1,), (3,)],
    "SELECT * EXCEPT (v) FROM db.p WHERE __paimon_bucket = 2": [(2, "y")],
    "SELECT a.*, d.* FROM db.p a JOIN db.d ON a.id = d.id AND a.__paimon_bucket = 2": [(2, "b", "y", 2, "b")],
    "SELECT * FROM (SELECT id, __paimon_bucket FROM db.p) WHERE id = 4": [(4, 0)],
    "SELECT id, __paimon_bucket FROM db.p VERSION AS OF 1 WHERE id = 1": [(1, 1)],
    "SELECT __paimon_bucket FROM db.empty": [],
}


def rows(found: Any) -> Rows:
    table = found.toArrow() if hasattr(found, "toArrow") else found.to_arrow()
    return list(zip(*(column.to_pylist() for column in table.columns)))


@pytest.fixture
def filled(tmp_path: Path, engine: TableEngine) -> Catalog:
    c = Catalog(str(tmp_path), engine.spark)
    for text in (
        "CREATE TABLE db.p (id INT, v STRING, p STRING) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '3', 'write-only' = 'true')",
        "INSERT INTO db.p VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'x'), (4, 'd', 'y')",
        "INSERT INTO db.p VALUES (1, 'new', 'x')",
        "CREATE TABLE db.d (id INT, v STRING) "
        "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2', 'deletion-vectors.enabled' = 'true')",
        "INSERT INTO db.d VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE db.empty LIKE db.d",
    ):
        c.sql(text, engine="local")
    return c


def test_rows_have_the_partition_and_the_bucket_of_their_files(filled: Catalog, engine: TableEngine) -> None:
    # Each query costs seconds on Spark: some have the others' parts too.
    queries = QUERIES if engine.name == "local" else dict(list(QUERIES.items())[::4])
    assert {text: rows(filled.sql(text, engine=engine.name)) for text in queries} == queries
    for text, problem in (
        ("SELECT __paimon_file_path FROM db.p", "need files without a merge, and the query merges 2 files"),
        ("SELECT *, __paimon_row_index FROM db.p WHERE p = 'x'", "need files without a merge"),
        ("SELECT __paimon_partition FROM db.d", "the table has no partitions"),
        ("SELECT __paimon_bucket FROM db.p NATURAL JOIN db.d", "with NATURAL"),
        ("FROM db.p WHERE __paimon_bucket = 1", "need a SELECT list"),
        ("SELECT * FROM (db.p a JOIN db.d b ON a.id = b.id) WHERE a.__paimon_bucket = 1", "without parentheses"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=problem):
            rows(filled.sql(text, engine=engine.name))


def test_files_without_a_merge_have_paths_and_row_indexes(tmp_path: Path, engine: TableEngine) -> None:
    c = Catalog(str(tmp_path), engine.spark)
    for name, options in (("v", "'deletion-vectors.enabled' = 'true'"), ("f", "'data-file.prefix' = '_'")):
        c.sql(
            f"CREATE TABLE db.{name} (id INT, v STRING, p STRING) PARTITIONED BY (p) "
            f"TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '2', {options})",
            engine="local",
        )
        partitions = ["x y" if at % 2 else "z" for at in range(2000)]
        c.table(f"db.{name}").write(pa.table({"id": range(2000), "v": ["a"] * 2000, "p": partitions}))
    c.sql("DELETE FROM db.v WHERE id IN (7, 9, 12, 500)", engine="local")
    c.sql("UPDATE db.v SET v = 'new' WHERE id = 11", engine="local")
    assert any(file.vector for file in c.table("db.v").explain().raw_files)
    for name, count in (("v", 1996), ("f", 2000)):
        text = f"SELECT id, p, v, __paimon_file_path, __paimon_row_index, __paimon_bucket FROM db.{name}"
        found = rows(c.sql(text, engine=engine.name))
        assert found and len(found) == count
        files = {path: pq.ParquetFile(path).read(["id", "p", "v"]).to_pylist() for path in {str(row[3]) for row in found}}
        stored = [files[str(row[3])][int(str(row[4]))] for row in found]
        assert [(row["id"], row["p"], row["v"]) for row in stored] == [row[:3] for row in found]
        assert all(f"/bucket-{row[5]}/" in str(row[3]) for row in found)
        text = f"SELECT id, __paimon_row_index FROM db.{name} WHERE id IN (10, 11, 13) AND v = 'a' "
        more = "AND __paimon_row_index >= 0 AND __paimon_file_path LIKE '%/p=%/bucket-%'"
        expected = {row[0]: row[4] for row in found if row[0] in (10, 11, 13) and row[2] == "a"}
        assert dict(rows(c.sql(text + more, engine=engine.name))) == expected
    joined = "SELECT count(*) FROM db.v JOIN db.`v$files` f ON v.__paimon_file_path = f.file_path"
    assert rows(c.sql(joined, engine=engine.name)) == [(1996,)]
    assert rows(c.sql("SELECT __paimon_row_index FROM db.v WHERE p = 'none'", engine=engine.name)) == []
