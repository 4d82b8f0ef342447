"""``lakelsm sql``."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakelsm import Catalog, Table
from lakelsm.cli.main import main
from lakelsm.results import CompactionResult, CompactionStatus, Failure
from tests.cli.fake_table import last_object

CREATE = "CREATE TABLE db.t (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
INSERT = "INSERT INTO db.t VALUES (1, 'a'), (2, NULL)"


class CalledSql:
    """Calls the verb on a warehouse."""

    def __init__(self, warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.warehouse, self.capsys = warehouse, capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        """Return the output of a call; of one that fails, its line on standard error."""
        self.capsys.readouterr()
        assert main(["sql", "--warehouse", str(self.warehouse), *arguments]) == status
        output = self.capsys.readouterr()
        assert output.err.count("\n") == (1 if status else 0)
        return output.err if status else output.out

    def json(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        """Return the JSON report of a call."""
        assert main(["sql", "--warehouse", str(self.warehouse), *arguments, "--report", "json"]) == status
        found = last_object(self.capsys.readouterr().out)
        assert found["exit_status"] == status
        return found

    def usage(self, *arguments: str) -> str:
        """Return the error of a wrong command line."""
        with pytest.raises(SystemExit) as ended:
            main(["sql", "--warehouse", str(self.warehouse), *arguments])
        assert ended.value.code == 2
        return self.capsys.readouterr().err.splitlines()[-1]


@pytest.fixture
def sql(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CalledSql:
    return CalledSql(tmp_path / "wh", capsys)


@pytest.fixture
def filled(sql: CalledSql) -> CalledSql:
    sql(f"{CREATE}; {INSERT};")
    return sql


def typed(monkeypatch: pytest.MonkeyPatch, text: bytes, *, is_terminal: bool = False) -> None:
    stream = io.TextIOWrapper(io.BytesIO(text))
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(sys, "stdin", stream)


def test_a_query_prints_its_rows_in_each_format(filled: CalledSql) -> None:
    query = "SELECT * FROM db.t ORDER BY id"
    assert filled(query) == "id  v\n1   a\n2   -\n(2 rows)\n"
    assert filled(query, "--format", "csv") == "id,v\n1,a\n2,\n"
    assert filled(query, "--format", "json") == '{"id":1,"v":"a"}\n{"id":2,"v":null}\n'
    report = filled.json(query)
    assert report == {"status": "done", "columns": ["id", "v"], "rows": 2, "exit_status": 0}


def test_other_statements_print_the_report_of_their_verb(sql: CalledSql) -> None:
    assert sql(CREATE) == "db.t: schema 0\n"
    assert sql(INSERT).startswith("snapshot 1: 2 rows in 1 file, ")
    assert json.loads(sql("DELETE FROM db.t WHERE id = 1", "--format", "json"))["matched_rows"] == 1
    assert sql.json("CALL sys.compact(table => 'db.t')")["table"] == "db.t"
    assert sql("CALL sys.compact(table => 'db.t')").startswith("db.t: ")
    assert sql.json("UPDATE db.t SET v = 'x' WHERE id = 77")["status"] == "nothing"
    assert sql("DROP TABLE db.t") == "done\n"


def test_a_script_runs_in_order_and_stops_at_the_first_failure(sql: CalledSql, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text(f"-- setup\n{CREATE};\n{INSERT};\n\nSELECT no\nFROM db.t;\nDROP TABLE db.t;", encoding="utf-8")
    error = sql("--file", str(script), status=1)
    assert error.startswith("lakelsm sql: Statement 3, line 5 (SELECT no): SQL: column 'no' does not exist.")
    assert Catalog(str(sql.warehouse)).table("db.t").count().rows == 2
    script.write_text("SELECT 1;\nSELECT 'open", encoding="utf-8")
    report = sql.json("--file", str(script), status=1)
    assert report["error"].startswith("Statement 2, line 2 (SELECT 'open): SQL, line 1, column 8: ' has no closing '")
    assert [each["rows"] for each in report["statements"]] == [1]


def test_a_script_stops_at_a_result_that_is_a_failure(
    filled: CalledSql, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = Failure(step="c", error="CommitConflictError", kind="retry", text="Table db.t: lost.", remedy="Again.")
    result = CompactionResult(table="db.t", status=CompactionStatus.CONFLICT, error=lost, conflicts=(lost,))
    monkeypatch.setattr(Table, "compact", lambda *arguments, **more: result)
    script = "CALL sys.compact(table => 'db.t');\nDROP TABLE db.t"
    assert main(["sql", "--warehouse", str(filled.warehouse), script]) == 4
    place = "Statement 1, line 1 (CALL sys.compact(table => 'db.t'))"
    assert capsys.readouterr().err == f"lakelsm sql: {place}: Table db.t: lost.\n"
    assert Catalog(str(filled.warehouse)).list_tables() == ["db.t"]


def test_a_script_reports_each_statement(sql: CalledSql, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text(f"{CREATE};\n{INSERT};\nSELECT id FROM db.t;", encoding="utf-8-sig")
    report = sql.json("--file", str(script), "--format", "csv")
    assert [(each["statement"], each["line"], each["status"]) for each in report["statements"]] == [
        (1, 1, "done"), (2, 2, "done"), (3, 3, "done")
    ]  # fmt: skip
    script.write_text("-- nothing\n", encoding="utf-8")
    assert sql("--file", str(script)) == "no statements\n"
    assert main(["sql", "--warehouse", str(sql.warehouse), "--file", str(script), "--distinct-exit-status"]) == 3


def test_standard_input_is_a_script_unless_it_is_a_terminal(
    sql: CalledSql, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed(monkeypatch, b"SELECT 1 AS a;\nSELECT 2 AS b")
    assert sql() == "a\n1\n(1 row)\nb\n2\n(1 row)\n"
    typed(monkeypatch, b"SELECT 1;\nSELEC")
    assert "Statement 2, line 2 (SELEC): " in sql(status=1)
    typed(monkeypatch, b"\xff")
    assert "standard input cannot be read as text" in sql(status=1)
    monkeypatch.setattr(sys, "stdin", None)
    assert sql() == "no statements\n"
    typed(monkeypatch, b"", is_terminal=True)
    assert "--output needs STATEMENT" in sql.usage("--output", str(tmp_path / "f"))
    assert "--report json needs STATEMENT" in sql.usage("--report", "json")


def test_arguments_without_an_effect_are_refused(sql: CalledSql, tmp_path: Path) -> None:
    assert "--format parquet needs --output" in sql.usage("SELECT 1", "--format", "parquet")
    assert "--history is for the prompt" in sql.usage("SELECT 1", "--history", "h")
    assert "not allowed with" in sql.usage("SELECT 1", "--file", "f")
    assert "unrecognized arguments: --database d" in sql.usage("SELECT 1", "--database", "d")
    assert "unrecognized arguments: --table db.t" in sql.usage("SELECT 1", "--table", "db.t")
    assert "got an empty text" in sql(" ; ", status=1)
    assert f"file: '{tmp_path}/no' cannot be read" in sql("--file", str(tmp_path / "no"), status=1)
    with pytest.raises(SystemExit):
        main(["sql", "SELECT 1"])
    assert "name the warehouse with --warehouse" in sql.capsys.readouterr().err


def test_rows_are_written_to_a_file(filled: CalledSql, tmp_path: Path) -> None:
    target = tmp_path / "rows.parquet"
    assert filled("SELECT * FROM db.t ORDER BY id", "--output", str(target)) == f"2 rows written to {target}\n"
    assert pq.read_table(target).to_pydict() == {"id": [1, 2], "v": ["a", None]}
    report = filled.json("SELECT id FROM db.t WHERE id = 1", "--output", str(target), "--format", "csv")
    assert (report["rows"], report["output"], target.read_text(encoding="utf-8")) == (1, str(target), "id\n1\n")
    error = filled("SELECT CAST(v AS INT) FROM db.t", "--output", str(tmp_path / "new.csv"), status=1)
    assert "SQL: " in error
    assert [path.name for path in tmp_path.iterdir() if path.name != "wh"] == ["rows.parquet"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("DELETE FROM db.t", "--output: expected one statement that returns rows, found 0"),
        ("DELETE FROM db.t; SELECT 1; SHOW DATABASES", "--output: expected one statement that returns rows, found 2"),
        ("DELETE FROM db.t; SELEC 1", "Statement 2, line 1 (SELEC 1): SQL, line 1"),
    ],
)
def test_a_file_is_refused_before_the_first_statement(
    filled: CalledSql, tmp_path: Path, script: str, message: str
) -> None:
    assert message in filled(script, "--output", str(tmp_path / "f"), status=1)
    assert "output: directory" in filled("DELETE FROM db.t; SELECT 1", "--output", str(tmp_path / "no" / "f"), status=1)
    assert Catalog(str(filled.warehouse)).table("db.t").count().rows == 2
    assert filled("DELETE FROM db.t WHERE id = 1; SELECT id FROM db.t", "--output", str(tmp_path / "f.csv"))
    assert (tmp_path / "f.csv").read_text(encoding="utf-8") == "id\n2\n"


def test_a_closed_output_is_one_line_and_no_traceback(sql: CalledSql) -> None:
    command = [sys.executable, "-m", "lakelsm", "sql", "--warehouse", str(sql.warehouse), "--format", "csv"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, error = process.communicate("SELECT 1")
    assert (process.returncode, error.count("\n")) == (1, 1)
    assert "Standard output was closed" in error


def test_this_process_runs_it_without_pyspark(sql: CalledSql) -> None:
    program = (
        "import sys; from lakelsm.cli.main import main; "
        f"main(['sql', '--warehouse', {str(sql.warehouse)!r}, 'SELECT 1 AS a', '--format', 'csv']); "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'pyspark', 'py4j'}))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "a\n1\n[]\n"


@pytest.mark.spark
def test_spark_prints_the_same(filled: CalledSql, spark: Any) -> None:
    for query in ("SELECT * FROM db.t ORDER BY id", "SHOW TABLES IN db", "SELECT id FROM db.t WHERE id > 5"):
        for form in ("table", "csv", "json"):
            assert filled(query, "--format", form, "--engine", "spark") == filled(query, "--format", form)
