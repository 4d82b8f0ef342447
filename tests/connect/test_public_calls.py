"""Every public call on a session of Spark Connect, in a process without Java, Py4J and classic sessions.

Calls that use Spark return the rows of the same call in this process; the others run with a Connect session. A call that
needs a JVM is refused by name.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from lakelsm import Catalog, Lookup, Table
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.results import CommitResult, CountResult
from tests.engines import in_order, plain_rows
from tests.test_spark_starts import BY_ENGINE, CLASSES, MAY_START, OTHERS, CallWarehouse, failure

ROOT = Path(__file__).resolve().parents[2]
Rows = list[tuple[Any, ...]]
OnRows: TypeAlias = Callable[[CallWarehouse, Any], object]

#: The calls that return DataFrames, and the same rows in this process.
SAME_ROWS: Mapping[str, Callable[[CallWarehouse], object]] = {
    "Table.read": lambda at: at.table.to_arrow(),
    "TableView.read": lambda at: at.view.to_arrow("id = 1"),
    "Table.changelog": lambda at: at.table.changelog_reader(),
    "TableView.changelog": lambda at: at.view.changelog_reader(where="id = 1"),
    "ResultTable.to_spark": lambda at: at.table.inspect.files().to_arrow(),
}
#: The verbs that run with ``--engine spark``; the others make the same calls.
VERBS = ("lakelsm sql", "lakelsm compact")
#: The calls that Spark Connect does not have, and their errors.
REFUSED = {
    "lakelsm query-service": "Spark Connect: a query service in tasks of Spark is not supported. Use engine 'local'."
}
ROWS = pa.table({"id": pa.array([2, 3], pa.int32()), "dt": ["b", "b"], "v": ["n", "m"]})
#: The calls that take rows, with these as a DataFrame of the session and as an Arrow table.
WITH_ROWS: Mapping[str, OnRows] = {
    "Catalog.create_table": lambda at, rows: at.catalog.create_table("db.n", rows, primary_key="id", load=True),
    "Catalog.sql": lambda at, rows: at.warehouse_of_table.sql("SELECT t.v, r.v FROM db.t JOIN r USING (id)", r=rows),
    "Table.delete": lambda at, rows: at.table.delete(keys=rows.select(["id", "dt"])),
    "Table.lookup_join": lambda at, rows: _joined(at.table, rows.select(["id", "dt"])),
    "Table.merge": lambda at, rows: _merged(at.table, rows),
    "Table.overwrite": lambda at, rows: at.table.overwrite(rows, {"dt": "b"}),
    "Table.write": lambda at, rows: at.table.write(rows, merge_schema=True),
}
#: The names of arguments that are rows.
_ROW_ARGUMENTS = {"frame", "keys", "source", "frames", "schema"}


def _joined(table: Table, facts: Any) -> Any:
    if is_spark_frame(facts):
        return facts.transform(table.lookup_join(["id", "dt"]))
    return facts.join(table.to_arrow(), ["id", "dt"], join_type="left outer")


def _merged(table: Table, rows: Any) -> CommitResult:
    return table.merge(rows, ["id", "dt"]).when_matched_update().when_not_matched_insert().execute()


class _WithoutJvm(MetaPathFinder):
    """Hides what pyspark-client, a client for Spark Connect alone, does not have."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name.partition(".")[0] == "py4j" or name == "pyspark.core" or name.startswith("pyspark.core."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def rows_of(found: object) -> Rows | None:
    """Return the rows of a result, or the number that it counts; None for other results."""
    if isinstance(found, CountResult):
        return [(int(found),)]
    if is_spark_frame(found):
        return in_order([tuple(row) for row in found.collect()])  # type: ignore[attr-defined]
    if hasattr(found, "to_arrow"):
        found = found.to_arrow()
    if isinstance(found, pa.RecordBatchReader):
        found = found.read_all()
    return in_order(plain_rows(found)) if isinstance(found, pa.Table) else None


def outcome(at: CallWarehouse, call: Callable[[CallWarehouse], object]) -> str:
    """Return the rows that a call returns, and then those of all tables."""
    found = [rows_of(call(at))]
    catalog = Catalog(at.warehouse)
    found += [rows_of(catalog.table(name).to_arrow()) for name in catalog.list_tables()]
    return str(found).replace(at.warehouse, "")


def work(directory: str) -> None:
    """Run the calls on the server that SPARK_REMOTE names, and print their faults."""
    assert "pyspark" not in sys.modules, "PySpark decides at its import which classes it has"
    sys.meta_path.insert(0, _WithoutJvm())
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    assert type(spark).__module__ == "pyspark.sql.connect.session"
    frame = spark.createDataFrame(ROWS)

    def compare(name: str, on_spark: Callable[[CallWarehouse], object], here: Callable[[CallWarehouse], object]) -> None:
        try:
            found = outcome(CallWarehouse(f"{directory}/{name} there", spark), on_spark)
            wanted = outcome(CallWarehouse(f"{directory}/{name} here"), here)
            if found != wanted:
                print(f"{name}: {found} instead of {wanted}")
        except Exception as error:  # noqa: BLE001  All are reported.
            print(f"{name}: {type(error).__name__}: {error}")

    for name, same in SAME_ROWS.items():
        compare(name, MAY_START[name][0], same)
    for name, of_engine in BY_ENGINE.items():
        if name.startswith("lakelsm ") and name not in VERBS:
            continue
        compare(name, lambda at, of=of_engine: of(at, "spark"), lambda at, of=of_engine: of(at, "local"))  # type: ignore[misc]
    for name, of_rows in WITH_ROWS.items():
        compare(f"{name} of rows", lambda at, of=of_rows: of(at, frame), lambda at, of=of_rows: of(at, ROWS))  # type: ignore[misc]
    others = {name: (call, "none") for name, call in OTHERS.items() if not name.startswith("lakelsm ")}
    refused = {name: (MAY_START[name][0], text) for name, text in REFUSED.items()}
    for name, (call, text) in {**others, **refused}.items():
        if text not in (found := failure(call, f"{directory}/{name}", spark)):
            print(f"{name}: {found}")
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        run_page(directory)
    if "|       1|" not in shown.getvalue():
        print(f"the page shows {shown.getvalue()}")
    sys.stdout.flush()
    os._exit(0)  # The threads of gRPC need not end.


def run_page(directory: str) -> None:
    """Run the snippets of the page on Spark Connect, in one namespace."""
    text = (ROOT / "docs" / "spark-connect.md").read_text(encoding="utf-8")
    own = {"sc://localhost:15002": os.environ["SPARK_REMOTE"], "/tmp/": f"{directory}/page/"}
    for before, after in own.items():
        text = text.replace(before, after)
    names: dict[str, Any] = {}
    for snippet in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(snippet, names)


def test_every_call_that_uses_spark_or_takes_rows_is_listed() -> None:
    assert {*SAME_ROWS, *REFUSED} == {*MAY_START}
    taking = {
        f"{owner.__name__}.{name}"
        for owner in CLASSES
        if owner is not Lookup
        for name, each in inspect.getmembers(owner, callable)
        if not name.startswith("_") and _ROW_ARGUMENTS & {*inspect.signature(each).parameters}
    }
    assert {*taking, "Table.lookup_join"} == {*WITH_ROWS}


def test_every_call_works_on_spark_connect_or_is_refused_by_name(connect_url: str, tmp_path: Any) -> None:
    program = "import sys; from tests.connect.test_public_calls import work; work(sys.argv[1])"
    env = {"PATH": "", "JAVA_HOME": "/nowhere", "PYTHONPATH": str(ROOT), "SPARK_REMOTE": connect_url, "TZ": "UTC"}
    command = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", "", 0)
