"""``python first_row_of.py ENGINE PLACE``: print the first row of a table, then wait until standard input ends.

Run by its path, so that a fresh process imports the engine and nothing else.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def _lakelsm_local(place: str) -> Any:
    table: Any = import_module("lakelsm").Table.for_path(place)
    return next(iter(table.to_reader())).slice(0, 1).to_pylist()


def _lakelsm_spark(place: str) -> Any:
    return import_module("lakelsm").Table.for_path(place).read().first()


def _pypaimon(place: str) -> Any:
    catalog: Any = import_module("pypaimon").CatalogFactory.create({"warehouse": place})
    builder = catalog.get_table("bench.t").new_read_builder()
    splits = builder.new_scan().plan().splits()
    return builder.new_read().to_arrow_batch_reader(splits).read_next_batch().slice(0, 1).to_pylist()


def _deltalake(place: str) -> Any:
    table: Any = import_module("deltalake").DeltaTable(place)
    return next(table.to_pyarrow_dataset().to_batches()).slice(0, 1).to_pylist()


def _chdb(place: str) -> Any:
    session: Any = import_module("chdb.session").Session(place)
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
    del sys.path[0]  # this folder's modules are no engine's
    row = _ENGINES[sys.argv[1]](sys.argv[2])
    sys.stdout.write(json.dumps(str(row)) + "\n" if row else "\n")
    sys.stdout.flush()
    sys.stdin.read()
