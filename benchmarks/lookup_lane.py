"""Lookups by key in this process, and the cost of their caches: ``python -m benchmarks.lookup_lane CONFIG OUT``.

The table is the compacted base. No session is started.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.config import KEY, LOOKUP_BATCH, LOOKUP_COLUMNS, LOOKUP_HITS, BenchConfig
from benchmarks.engine import create, open_table
from benchmarks.lane import run_lane
from benchmarks.lookup_keys import check_found, keys_of, prepare_keys
from benchmarks.names import ARROW_SCAN, FULL_CACHE, PARTIAL_CACHE, QUERY_SERVICE, reloaded
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.workspace import build, copy_table, remove

_COMMAND = "import sys; from lakelsm.cli.main import console; sys.exit(console())"
_SERVICE_FILE = "service/service-primary-key-lookup-flight"
_LONGEST_START = 60.0


class LookupLane:
    """The caches of one table, each opened once and kept warm."""

    def __init__(self, config: BenchConfig) -> None:
        self.config = config
        self.path = config.table("lookup")
        self.scratch = config.scratch / "lookup"
        self.open = ExitStack()
        self.lookups: dict[str, Any] = {}

    def prepare(self) -> None:
        """Build the table, and draw the keys, once for each shape of the data."""

        def make(target: Path) -> None:
            loaded = self.scratch / "loaded"
            remove(loaded)
            table = create(self.config, loaded)
            table.write(ds.dataset(self.config.data("base")).scanner().to_reader())
            table.compact(full=True, engine="local")
            copy_table(loaded / "bench.db" / "t", target)
            remove(loaded)

        build(self.path, make)
        prepare_keys(self.config)

    def contenders(self, operation: str) -> list[Contender]:
        """Return the contenders of one of LOOKUP_OPERATIONS."""
        if operation == "lookup-refresh":
            return self._refresh()
        if operation in ("lookup-cold", "lookup-bootstrap"):
            kind = "partial" if operation == "lookup-cold" else "full"
            return [self._scan(), self._opened(kind)]
        names = (FULL_CACHE, PARTIAL_CACHE, QUERY_SERVICE)
        looked_up = self._gets if operation.startswith("lookup-get") else self._batches
        return [looked_up(operation, name) for name in names]

    def _lookup(self, name: str) -> Any:
        """Return the lookup of a contender, and open it at the first call."""
        if name not in self.lookups:
            if name == QUERY_SERVICE:
                self.open.enter_context(service(self.path))
            kinds = {FULL_CACHE: "full", PARTIAL_CACHE: "partial", QUERY_SERVICE: "auto"}
            # A cached row would not be looked up again.
            lookup = open_table(self.path).lookup(
                LOOKUP_COLUMNS, cache=kinds[name], refresh="never", options={"lookup.cache-rows": "0"}
            )
            self.lookups[name] = self.open.enter_context(lookup)
        return self.lookups[name]

    def _batches(self, operation: str, name: str) -> Contender:
        keys = keys_of(self.config, operation)
        batches = [pa.table({KEY: keys[at : at + LOOKUP_BATCH]}) for at in range(0, len(keys), LOOKUP_BATCH)]

        def run() -> int:
            lookup = self._lookup(name)
            return sum(lookup.get_many(batch, how="inner").num_rows for batch in batches)

        return Contender(
            name, run, lambda: self._lookup(name), check=lambda found: check_found(self.config, operation, found)
        )

    def _gets(self, operation: str, name: str) -> Contender:
        keys = keys_of(self.config, operation).tolist()

        def run() -> int:
            get = self._lookup(name).get
            return sum(get(key) is not None for key in keys)

        return Contender(
            name, run, lambda: self._lookup(name), check=lambda found: check_found(self.config, operation, found)
        )

    def _scan(self) -> Contender:
        files = [file.path.removeprefix("file://") for file in open_table(self.path).explain().raw_files]

        def scan() -> int:
            reader = ds.dataset(files).scanner(columns=[KEY, *LOOKUP_COLUMNS]).to_reader()
            return sum(batch.num_rows for batch in reader)

        return Contender(ARROW_SCAN, scan)

    def _opened(self, kind: str) -> Contender:
        keys = pa.table({KEY: keys_of(self.config, "lookup-hits")[:LOOKUP_BATCH]})

        def run() -> int:
            with open_table(self.path).lookup(LOOKUP_COLUMNS, cache=kind, refresh="never") as lookup:
                return int(lookup.get_many(keys, how="inner").num_rows)

        return Contender(FULL_CACHE if kind == "full" else PARTIAL_CACHE, run)

    def _refresh(self) -> list[Contender]:
        """Return the refresh of a cache after an upsert, beside a cache that loads the same snapshot again."""
        copy = self.scratch / "upserted"
        held = ExitStack()
        lookups: list[Any] = []

        def open_lookup() -> Any:
            return open_table(copy).lookup(LOOKUP_COLUMNS, cache="full", refresh="never")

        def upsert() -> None:
            open_table(copy).write(pq.read_table(self.config.data("upsert")))

        def setup() -> None:
            copy_table(self.path, copy)
            lookups[:] = [held.enter_context(open_lookup())]
            upsert()

        def setup_reloaded() -> None:
            copy_table(self.path, copy)
            upsert()

        def teardown() -> None:
            held.close()
            remove(copy)

        return [
            Contender(reloaded(FULL_CACHE), lambda: held.enter_context(open_lookup()), setup_reloaded, teardown),
            Contender(FULL_CACHE, lambda: lookups[0].refresh(), setup, teardown),
        ]


@contextmanager
def service(path: Path) -> Iterator[None]:
    """Run the query service of a table in separate processes, within the block."""
    (path / _SERVICE_FILE).unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, "-c", _COMMAND, "query-service", "--path", path.as_uri()])
    try:
        deadline = time.monotonic() + _LONGEST_START
        while not (path / _SERVICE_FILE).exists():
            assert process.poll() is None, "the query service ended"
            assert time.monotonic() < deadline, "the query service did not start"
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def run(config: BenchConfig) -> list[Measurement]:
    """Measure LOOKUP_OPERATIONS."""
    pa.set_cpu_count(config.cores)
    lane = LookupLane(config)
    lane.prepare()
    results: list[Measurement] = []
    with lane.open:
        for operation in sorted(config.operations, key=lambda name: name in LOOKUP_HITS):
            results += measure(operation, lane.contenders(operation), config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(run, sys.argv[1:]))
