"""Sources of a query: points in time and hints."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm import Catalog
from lakelsm.errors import LakelsmError, SnapshotNotFoundError, UnsupportedFeatureError
from lakelsm.sql.pushdown import Need
from lakelsm.sql.query_sources import table_source
from lakelsm.sql.syntax.query_text import QueryText
from tests.sql.queries import catalog


def count(c: Catalog, suffix: str) -> int:
    (reference,) = QueryText.of(f"SELECT * FROM db.flights {suffix}").references
    source = table_source(c.table("db.flights"), reference)
    return source.reader(Need(["id"], None)).read_all().num_rows


def test_points_in_time(tmp_path: Path) -> None:
    c = catalog(str(tmp_path))
    flights = c.table("db.flights")
    flights.tags.create("2", 1)
    versions = ("", "VERSION AS OF 1", "VERSION AS OF '1'", "VERSION AS OF 2")
    assert [count(c, suffix) for suffix in versions] == [5, 3, 3, 3]
    assert count(c, "/*+ OPTIONS('scan.snapshot-id' = '1') */") == 3
    assert count(c, "/*+ OPTIONS('scan.tag-name' = '2') */") == 3
    assert count(c, "TIMESTAMP AS OF '2999-01-01'") == 5
    assert count(c, "TIMESTAMP AS OF 32472144000") == 5


@pytest.mark.parametrize(
    ("suffix", "error", "problem"),
    [
        ("VERSION AS OF 9", SnapshotNotFoundError, "9"),
        ("VERSION AS OF 'nope'", SnapshotNotFoundError, "tag 'nope' does not exist"),
        ("TIMESTAMP AS OF '1999-01-01'", SnapshotNotFoundError, "1999"),
        ("TIMESTAMP AS OF 'x'", LakelsmError, "'x'"),
        ("/*+ OPTIONS('scan.mode' = 'latest') */", UnsupportedFeatureError, "'scan.mode' of a hint is not supported"),
    ],
)
def test_points_that_do_not_exist(tmp_path: Path, suffix: str, error: type[LakelsmError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        count(catalog(str(tmp_path)), suffix)


def test_fresh_rows_of_a_table_with_deletion_vectors_are_read_on_request(tmp_path: Path) -> None:
    options = {"deletion-vectors.enabled": "true", "write-only": "true"}
    c = Catalog(str(tmp_path))
    c.create_table("db.flights", {"id": "INT"}, primary_key="id", options=options).write([{"id": 1}])
    assert count(c, "") == 0
    assert count(c, "/*+ OPTIONS('deletion-vectors.merge-on-read' = 'true') */") == 1


def test_rows_are_counted_from_metadata_if_no_column_is_needed(tmp_path: Path) -> None:
    c = Catalog(str(tmp_path))
    table = c.create_table("db.t", {"id": "INT"}, primary_key="id", options={"bucket": "1", "write-only": "true"})
    table.write([{"id": number} for number in range(7)])
    table.compact(full=True)
    for file in tmp_path.rglob("data-*.parquet"):
        file.unlink()
    assert c.sql("SELECT count(*) AS n FROM db.t", engine="local").to_arrow().to_pydict() == {"n": [7]}
    assert c.sql("SELECT 1 AS one FROM db.t a CROSS JOIN db.t b", engine="local").to_arrow().num_rows == 49
    with pytest.raises(LakelsmError, match="parquet"):
        c.sql("SELECT max(id) FROM db.t", engine="local").to_arrow()


def test_rows_of_partitions_are_counted_from_metadata(tmp_path: Path) -> None:
    c = Catalog(str(tmp_path))
    columns, options = {"day": "INT", "id": "INT"}, {"bucket": "1", "write-only": "true"}
    table = c.create_table("db.t", columns, primary_key=["day", "id"], partition_by=["day"], options=options)
    table.write([{"day": number % 3, "id": number} for number in range(8)])
    for file in tmp_path.rglob("data-*.parquet"):
        file.unlink()
    for where, rows in (("day = 1", 3), ("day IN (0, 2) AND day > 1", 2), ("day = 7", 0), ("day IS NULL", 0)):
        found = c.sql(f"SELECT count(*) AS n FROM db.t AS x WHERE {where}", engine="local").to_arrow()
        assert found.to_pydict() == {"n": [rows]}
    with pytest.raises(LakelsmError, match="parquet"):
        c.sql("SELECT count(*) FROM db.t WHERE id = 1", engine="local").to_arrow()


def test_only_visible_rows_are_counted_if_files_must_be_merged(tmp_path: Path) -> None:
    c = catalog(str(tmp_path))
    flights = c.table("db.flights")
    flights.delete("id = 1")
    rows = flights.to_arrow().num_rows
    assert c.sql("SELECT count(*) AS n FROM db.flights", engine="local").to_arrow().to_pydict() == {"n": [rows]}
    (line, *_) = c.sql("EXPLAIN SELECT count(*) FROM db.flights", engine="local").to_arrow()["plan"].to_pylist()
    assert "columns none (rows are counted)" in line
