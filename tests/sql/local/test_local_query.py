"""Queries run on DuckDB: each run reads one snapshot again, errors are those of the reads, and nothing is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Timer
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from lakelsm.sql.local import local_query
from tests.sql.local.bound import ONE_ROW, table_of
from tests.sql.queries import catalog


def test_a_result_keeps_its_snapshot_and_runs_again(tmp_path: Path) -> None:
    c = catalog(str(tmp_path))
    found = c.sql("SELECT count(*) FROM db.flights a JOIN db.flights b ON a.id = b.id", engine="local")
    c.table("db.flights").delete("id = 1", engine="local")
    for _ in range(2):
        assert found.to_arrow().column(0).to_pylist() == [5]


def test_a_damaged_file_is_the_error_of_the_read(tmp_path: Path) -> None:
    c = catalog(str(tmp_path))
    for path in tmp_path.rglob("data-*.parquet"):
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptTableError, match=r"data-.*parquet"):
        c.sql("SELECT sum(seats) FROM db.flights", engine="local").to_arrow()


def test_a_failed_and_an_abandoned_query_leave_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InvalidInputError, match="division by zero"):
        table_of("SELECT 1 / 0 FROM t")
    rows = pa.concat_tables([ONE_ROW] * 10)
    assert table_of("SELECT one FROM t", rows).num_rows == 10
    assert list(tmp_path.glob("lakelsm-sql-*")) == []


def test_a_query_cannot_read_files_or_call_functions_of_duckdb(tmp_path: Path) -> None:
    c = Catalog(str(tmp_path))
    for text in (
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_settings()",
    ):
        with pytest.raises((InvalidInputError, UnsupportedFeatureError), match="SQL"):
            c.sql(text, engine="local")


def test_without_the_extra_the_error_names_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from lakelsm import Catalog\n"
        f"print(Catalog({str(tmp_path)!r}).sql('SELECT 1', engine='local').to_arrow())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "lakelsm[sql]" in done.stderr


def test_a_query_starts_no_spark(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom lakelsm import Catalog\n"
        f"Catalog({str(tmp_path)!r}).sql('SELECT 1', engine='local').to_arrow()\n"
        "print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_names_of_tables_and_values_are_no_sql(tmp_path: Path) -> None:
    c = Catalog(str(tmp_path))
    name = 'a"; DROP TABLE x; --'
    c.create_table("db.t", f"`{name}` INT", primary_key=name).write([{name: 7}])
    found = c.sql(f"SELECT `{name}` AS `x';--` FROM db.t WHERE `{name}` <> 1 AND 'a'';--' <> ''", engine="local")
    assert found.to_arrow().to_pylist() == [{"x';--": 7}]


def test_no_progress_bar_is_printed_among_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB enables its progress bar in processes without a main file, for queries of more than two seconds."""
    import duckdb

    connect, executed = duckdb.connect, []

    class Recording:
        def __init__(self, *given: Any, **named: Any) -> None:
            self._connection = connect(*given, **named)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

        def execute(self, text: str) -> None:
            executed.append(text)
            self._connection.execute(text)

    monkeypatch.setattr(duckdb, "connect", Recording)
    assert Catalog(str(tmp_path)).sql("SELECT 1 AS a", "local").to_arrow().to_pydict() == {"a": [1]}
    assert "SET enable_progress_bar = false" in executed


def test_a_stream_deletes_its_directory_also_if_it_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = Catalog(str(tmp_path / "wh")).sql("SELECT * FROM VALUES (1), (2) AS v(a)", "local")
    assert result.columns == ["a"]
    result.to_reader().close()
    stream = result.to_reader()
    assert len(list(tmp_path.iterdir())) == 1
    stream.read_next_batch()
    del stream
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_a_read_is_not_the_error_of_a_later_run(tmp_path: Path) -> None:
    c = catalog(str(tmp_path))
    found = c.sql("SELECT 1 / (id - 1) FROM db.flights", engine="local")
    files = {path: path.read_bytes() for path in tmp_path.rglob("data-*.parquet")}
    for path, content in files.items():
        path.write_bytes(content[:-20])
    with pytest.raises(CorruptTableError):
        found.to_arrow()
    for path, content in files.items():
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="division by zero"):
        found.to_arrow()


def test_names_of_columns_and_plans_read_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("rows are read")

    c = catalog(str(tmp_path))
    monkeypatch.setattr(local_query, "numbered_stream", fail)
    found = c.sql("SELECT id, carrier AS c FROM db.flights", engine="local")
    assert found.columns == ["id", "c"]
    assert [str(kind) for kind in found.schema.types] == ["int32", "string"]
    assert "ARROW_SCAN" in str(c.sql("EXPLAIN SELECT id FROM db.flights", engine="local").to_arrow())


def test_conditions_that_reads_apply_are_not_evaluated_again(tmp_path: Path) -> None:
    c = catalog(str(tmp_path))
    text = "SELECT id FROM db.flights f WHERE id > 1 AND f.id <> 3 AND abs(id) < 5 ORDER BY id"
    assert c.sql(text, engine="local").to_arrow().column(0).to_pylist() == [2, 4]
    plan = "\n".join(c.sql(f"EXPLAIN {text}", engine="local").to_arrow().column(0).to_pylist())
    assert "where (id > 1) AND (id <> 3)" in plan and "abs" in plan.split("\n\n")[-1]
    assert "<> 3" not in plan.split("where", 1)[1].split("\n", 1)[1] and "!= 3" not in plan
    text = "SELECT f.id FROM db.flights f, db.flights g WHERE 2 NOT BETWEEN 5 AND 10 AND f.id = g.id AND g.id < 3"
    assert sorted(c.sql(text, engine="local").to_arrow().column(0).to_pylist()) == [1, 2]
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int32())})
    assert c.sql("SELECT id FROM q WHERE id > 1 AND id <> 3", engine="local", q=rows).to_arrow().num_rows == 1


def test_thousands_of_terms_are_read_within_seconds(tmp_path: Path) -> None:
    c = catalog(str(tmp_path))
    for where in (
        " OR ".join(f"id = {number}" for number in range(4, 3_000)),
        f"id IN ({', '.join(map(str, range(4, 20_000)))})",
        " OR ".join(f"(id = {number} AND seats + 0 > 0)" for number in range(4, 500)),
    ):
        found = c.sql(f"SELECT id FROM db.flights WHERE {where} ORDER BY id", engine="local").to_arrow()
        assert found.column(0).to_pylist() == [4, 5]


def test_ctrl_c_ends_a_query_as_a_keyboard_interrupt(tmp_path: Path) -> None:
    c = Catalog(str(tmp_path))
    c.create_table("db.t", "k INT", primary_key="k").write([{"k": key} for key in range(2000)])
    timer = Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        c.sql("SELECT count(*) FROM db.t a, db.t b, db.t c WHERE a.k + b.k > c.k", engine="local").to_arrow()
    timer.join()
