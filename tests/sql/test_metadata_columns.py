"""The partition and the bucket of a row, as columns that ``*`` does not stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
        ("SELECT __paimon_file_path FROM db.p", "'__paimon_file_path' is not supported: a merged row has no single file"),
        ("SELECT *, __paimon_row_index FROM db.d", "'__paimon_row_index' is not supported"),
        ("SELECT __paimon_partition FROM db.d", "the table has no partitions"),
        ("SELECT __paimon_bucket FROM db.p NATURAL JOIN db.d", "with NATURAL"),
        ("FROM db.p WHERE __paimon_bucket = 1", "need a SELECT list"),
        ("SELECT * FROM (db.p a JOIN db.d b ON a.id = b.id) WHERE a.__paimon_bucket = 1", "without parentheses"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=problem):
            filled.sql(text, engine=engine.name)
