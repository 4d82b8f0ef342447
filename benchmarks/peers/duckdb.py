"""DuckDB on the same Parquet files as lakelsm's table: a window over the key selects the newest row.

It knows no table format. The list of files is lakelsm's, and an upsert is one more file.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

from benchmarks.config import KEY, WHERE, BenchConfig
from benchmarks.first_row import first_row_contender
from benchmarks.names import DUCKDB
from benchmarks.timing import Contender
from benchmarks.workspace import check_count, check_sums, remove

_SUMS = "count(*), sum(id), sum(quantity), sum(amount)"
_SYSTEM = '"_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND"'
_TINY = ("tiny", "tiny-run")
_COPY = "FORMAT parquet, COMPRESSION zstd"


def newest_rows(files: list[str]) -> str:
    """Return the query of the newest row of each key, without deleted ones."""
    listed = ", ".join(f"'{file}'" for file in files)
    return (
        f"SELECT * EXCLUDE ({_SYSTEM}) FROM (SELECT * FROM read_parquet([{listed}]) "
        f'QUALIFY row_number() OVER (PARTITION BY {KEY} ORDER BY "_SEQUENCE_NUMBER" DESC) = 1) '
        'WHERE "_VALUE_KIND" IN (0, 2)'
    )


class DuckdbPeer:
    """One connection, in memory, that spills below the scratch folder."""

    def __init__(self, config: BenchConfig) -> None:
        self.config = config
        self.scratch = config.scratch / "duckdb"
        remove(self.scratch)
        self.scratch.mkdir(parents=True)
        self.connection: Any = importlib.import_module("duckdb").connect()
        self.connection.execute(f"SET threads = {config.cores}")
        self.connection.execute(f"SET temp_directory = '{self.scratch / 'spill'}'")
        self.connection.execute("SET enable_progress_bar = false")

    def prepare(self) -> None:
        """Do nothing: the files are lakelsm's."""
        assert self.config.live_files.exists(), "lakelsm's tables are not prepared"

    def _drain(self, query: str) -> int:
        return sum(batch.num_rows for batch in self.connection.execute(query).to_arrow_reader())

    def contenders(self, operation: str) -> list[Contender]:
        """Return those of load and compact as sorted copies, read, where, count, first-row."""
        config, target = self.config, self.scratch / "written.parquet"
        if operation == "first-row":
            parts = (f"SELECT *, {at} AS v FROM '{config.data(name)}/*.parquet'" for at, name in enumerate(_TINY))
            newest = f"row_number() OVER (PARTITION BY {KEY} ORDER BY v DESC) = 1"
            query = f"FROM ({' UNION ALL '.join(parts)}) QUALIFY {newest} LIMIT 1"
            return [first_row_contender(DUCKDB, "duckdb", query)]
        merged = newest_rows(json.loads(config.live_files.read_text(encoding="utf-8")))

        def clear() -> None:
            target.unlink(missing_ok=True)

        def copy(query: str) -> Any:
            return self.connection.execute(f"COPY ({query} ORDER BY {KEY}) TO '{target}' ({_COPY})")

        def check_read(_: object) -> None:
            check_sums(config, *self.connection.execute(f"SELECT {_SUMS} FROM ({merged})").fetchone())

        def count() -> int:
            return int(self.connection.execute(f"SELECT count(*) FROM ({merged})").fetchone()[0])

        if operation == "load":
            source = f"FROM read_parquet('{config.data('base')}/*.parquet')"
            return [Contender(f"{DUCKDB} (sorted file)", lambda: copy(source), clear, clear)]
        if operation == "compact":
            return [Contender(f"{DUCKDB} (sorted file)", lambda: copy(merged), clear, clear)]
        if operation == "read":
            return [Contender(DUCKDB, lambda: self._drain(merged), check=check_read)]
        if operation == "where":
            check = lambda rows: check_count(config, "where", rows)  # noqa: E731
            return [Contender(DUCKDB, lambda: self._drain(f"SELECT * FROM ({merged}) WHERE {WHERE}"), check=check)]
        if operation == "count":
            check_rows = lambda rows: check_count(config, "rows", rows)  # noqa: E731
            return [Contender(DUCKDB, count, check=check_rows)]
        return []


def open_peer(config: BenchConfig) -> DuckdbPeer:
    """Return the peer for :mod:`benchmarks.peer_runner`."""
    return DuckdbPeer(config)
