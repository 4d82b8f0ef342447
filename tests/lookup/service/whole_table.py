"""A cache for tests of the service: the whole table as `to_arrow` has it, looked up in a dict."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.lookup.cache import FoundRows, LookupSpec, Refreshed
from lakelsm.lookup.service.protocol import row_schema
from lakelsm.lookup.service.query_server import QueryServer, ServedTable
from lakelsm.lookup.service.service_access import ServerAccess, publish
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table import Table
from tests.processes import PATIENCE

OPEN = ServerAccess()


class WholeTable:
    """A `Cache`."""

    kind = "full"
    rows = disk_bytes = None

    def __init__(self, spec: LookupSpec) -> None:
        self.spec = spec
        self.closed = False
        self.refresh()

    def refresh(self) -> Refreshed:
        self.snapshot = self.spec.store.snapshots.latest()
        rows = Table.for_path(self.spec.store.paths.root).to_arrow()
        stored = row_schema(self.spec.store.schema, self.spec.key)
        keys = zip(*(cast_column(rows.column(field.name), field.type).to_pylist() for field in stored))
        self._places = {key: place for place, key in enumerate(keys)}
        schema = row_schema(self.spec.store.schema, self.spec.columns)
        self._rows = rows.select(list(self.spec.columns)).cast(schema)
        return Refreshed(self.snapshot, changed=None)

    def find(self, keys: pa.Table) -> FoundRows:
        assert not self.closed
        asked = zip(*(keys.column(name).to_pylist() for name in self.spec.key))
        found = [(probe, self._places[key]) for probe, key in enumerate(asked) if key in self._places]
        probes, places = np.array(found, np.int64).reshape(-1, 2).T
        return FoundRows(probes, self._rows.take(pa.array(places)))

    def find_one(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        raise AssertionError("servers look up batches")

    def close(self) -> None:
        self.closed = True


def started(
    store: TableStore, servers: int = 1, access: ServerAccess = OPEN, refresh: float = 3600.0, host: str = "127.0.0.1"
) -> list[QueryServer]:
    """Servers of a table in this process, published."""
    made = [
        QueryServer(
            ServedTable(store, WholeTable), number=number, servers=servers, host=host, access=access, refresh=refresh
        )
        for number in range(servers)
    ]
    publish(store, [server.address for server in made])
    return made


@contextmanager
def service(store: TableStore, servers: int = 1, access: ServerAccess = OPEN, refresh: float = 3600.0) -> Iterator[
    list[QueryServer]
]:
    """The same for as long as the context lasts."""
    made = started(store, servers, access, refresh)
    try:
        yield made
    finally:
        for server in made:
            server.stop()


class Pausing(WholeTable):
    """A cache whose lookups wait until they are let go on."""

    entered = threading.Event()
    go_on = threading.Event()

    def find(self, keys: pa.Table) -> FoundRows:
        self.entered.set()
        assert self.go_on.wait(PATIENCE)
        return super().find(keys)
