"""``python first_row_of.py ENGINE LOCATION``: print the first row of a table, then wait until standard input ends.

Run by its path, so that a fresh process imports the engine and nothing else.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def _lakelsm_local(location: str) -> Any:
    table: Any = import_module("lakelsm").Table.for_path(location)
    return next(iter(table.to_reader())).slice(0, 1).to_pylist()


def _lakelsm_spark(location: str) -> Any:
    return import_module("lakelsm").Table.for_path(location).read().first()


def _pypaimon(location: str) -> Any:
    catalog: Any = import_module("pypaimon").CatalogFactory.create({"warehouse": location})
    builder = catalog.get_table("bench.t").new_read_builder()
    splits = builder.new_scan().plan().splits()
    return builder.new_read().to_arrow_batch_reader(splits).read_next_batch().slice(0, 1).to_pylist()


def _deltalake(location: str) -> Any:
    table: Any = import_module("deltalake").DeltaTable(location)
    return next(table.to_pyarrow_dataset().to_batches()).slice(0, 1).to_pylist()


def _chdb(location: str) -> Any:
    session: Any = import_module("chdb.session").Session(location)
    return str(session.query("SELECT * FROM bench.tiny FINAL LIMIT 1", "TabSeparated"))


def _duckdb(query: str) -> Any:
    return import_module("duckdb").connect().execute(query).fetchone()


_ENGINES: dict[str, Callable[[str], Any]] = {
    "lakelsm-local": _lakelsm_local,
    "lakelsm-spark": _lakelsm_spark,
    "pypaimon": _pypaimon,
    "deltalake": _deltalake,
    "chdb": _chdb,
    "duckdb": _duckdb,
}

if __name__ == "__main__":
    del sys.path[0]  # An engine must not import a module of this folder.
    row = _ENGINES[sys.argv[1]](sys.argv[2])
    sys.stdout.write(json.dumps(str(row)) + "\n" if row else "\n")
    sys.stdout.flush()
    sys.stdin.read()
