"""The engine that a call uses, and that Spark is loaded only if it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakelsm import engine
from lakelsm.engine import chosen_engine, has_session
from lakelsm.errors import InvalidInputError
from lakelsm.local.local_engine import LocalEngine
from lakelsm.storage.object_store import ObjectFileIO
from tests.compact.local_table import LocalTable

COMPACT = """
import sys
import lakelsm
from lakelsm import Table
assert Table.for_path(sys.argv[1]).compact(full=True).status == "done"
print(sorted({name.split(".")[0] for name in sys.modules} & {"pyspark", "py4j", "sqlglot", "obstore"}))
"""


def test_a_compaction_in_this_process_loads_no_unneeded_package(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "a"))
    table.write((1, "b"), (2, "c"))
    ran = subprocess.run(
        [sys.executable, "-c", COMPACT, str(table.root)], capture_output=True, text=True, check=False, env={"PATH": ""}
    )
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")
    assert table.rows() == [(1, "b"), (2, "c")]
    assert table.levels() == [table.store.options.num_levels - 1]


def test_the_public_names_load_no_pandas_no_sql_parser_and_no_spark() -> None:
    # pyarrow imports pandas when it first creates an array of Python values: no module may do that at import.
    program = (
        "import sys; from lakelsm import Catalog, Table; import lakelsm.cli.main; "
        "print({name.split('.')[0] for name in sys.modules} & {'pyspark', 'py4j', 'pandas', 'sqlglot'})"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_without_a_session_a_call_uses_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelsm.engine._active_session", lambda: None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert not has_session(None)
    assert isinstance(chosen_engine(None, None), LocalEngine)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert has_session(None)
    assert isinstance(chosen_engine("local", None), LocalEngine), "the name has priority"


def test_an_unknown_engine_is_refused_by_name(tmp_path: Path) -> None:
    from lakelsm import Table

    LocalTable(tmp_path / "t")
    with pytest.raises(InvalidInputError, match="engine: expected 'local' or 'spark', got 'flink'"):
        Table.for_path(str(tmp_path / "t")).compact(engine="flink")


class GivenConfiguration:
    """The part of a Spark session that has its settings."""

    sparkContext = property(lambda self: self)

    def getConf(self) -> GivenConfiguration:
        return self

    def getAll(self) -> list[tuple[str, str]]:
        return [
            ("spark.hadoop.fs.s3a.endpoint", "http://session:1"),
            ("spark.hadoop.fs.s3a.access.key", "its key"),
            ("spark.hadoop.fs.s3a.secret.key", "its secret"),
            ("spark.master", "local"),
        ]


def test_an_object_store_uses_settings_of_the_active_session(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(engine, "_active_session", GivenConfiguration)
    storage, root = engine.opened_storage("s3://bucket/w", None, {"s3.region": "here"})
    assert root == "s3://bucket/w" and isinstance(storage, ObjectFileIO)
    assert dict(storage.options.settings) == {"endpoint": "http://session:1", "region": "here"}
    assert storage.options.credentials == ("its key", "its secret", None)
    assert "its" not in repr(storage)
