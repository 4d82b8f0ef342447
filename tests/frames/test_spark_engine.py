"""The engine of a Spark session: a session starts only when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelsm.errors import CorruptTableError, InvalidInputError, SnapshotNotFoundError
from tests.compact.local_table import LocalTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_engine_starts_no_session_before_it_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from lakelsm.frames import spark_engine

    started = []
    monkeypatch.setattr(spark_engine, "resolve_session", lambda spark, _: started.append(spark))
    engine = spark_engine.SparkEngine(None)
    assert started == []
    engine.runner  # noqa: B018
    assert started == [None]


@pytest.mark.parametrize("options", [{}, {"merge-engine": "partial-update"}, {"deletion-vectors.enabled": "true"}])
def test_a_count_equals_the_read_and_reports_how_it_was_computed(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    from lakelsm import Table

    made = LocalTable(
        tmp_path / "t", "p INT, id INT, v STRING", primary_key=["p", "id"], partition_by=["p"], **options
    )
    made.write(*((number % 2, number, "a") for number in range(100)))
    made.compact(full=True)
    made.write(*((1, number, "b") for number in range(81, 121, 2)))
    table = Table.for_path(str(tmp_path / "t"), spark)
    hidden = "deletion-vectors.enabled" in options
    for where, metadata in ((None, hidden), ("p = 0", True), ("p = 1 AND v = 'b'", False)):
        for fresh in (False, True):
            found = table.count(where, fresh=fresh)
            assert int(found) == table.read(where, fresh=fresh).count()
            from_metadata = metadata and (where == "p = 0" or not fresh)
            assert found.snapshot_id == 3 and (found.how == "metadata") == (found.files_opened == 0)
            assert found.how == "metadata" or not from_metadata
    if not options:
        assert table.count("p = 1").files_opened == 2 and table.count().files_opened == 2
    assert (table.at(snapshot=2).count().rows, table.at(snapshot=2).count().how) == (100, "metadata")
    for where in ("nobody = 1", "p =", "v + 1"):
        with pytest.raises(InvalidInputError):
            table.count(where)


def test_a_count_from_metadata_needs_neither_a_session_nor_data_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from lakelsm import Table

    made = LocalTable(tmp_path / "t", "p INT, id INT", primary_key=["p", "id"], partition_by=["p"])
    table = Table.for_path(str(tmp_path / "t"))
    resolver = "lakelsm.frames.spark_engine.resolve_session"
    monkeypatch.setattr(resolver, lambda *_: pytest.fail("a session was requested"))
    assert (table.count().rows, table.count().snapshot_id) == (0, None)
    made.write((1, 1), (2, 1), (2, 2))
    for file in (tmp_path / "t").rglob("data-*"):
        file.unlink()
    assert int(table.count()) == 3 and int(table.at(snapshot=1).count("p = 2")) == 2
    with pytest.raises(SnapshotNotFoundError):
        table.at(snapshot=7).count()
    with pytest.raises(InvalidInputError, match="fresh: expected True or False, got 1"):
        table.count(fresh=1)  # type: ignore[arg-type]


def test_a_missing_file_fails_a_count_that_needs_it(spark: SparkSession, tmp_path: Path) -> None:
    from lakelsm import Table

    made = LocalTable(tmp_path / "t")
    made.write((1, "a"))
    made.write((1, "b"))
    made.path_of(made.live()[0]).unlink()
    with pytest.raises(CorruptTableError):
        Table.for_path(str(tmp_path / "t"), spark).count()
