"""Servers of a table for tests of the service; their cache reads the table unless a test gives another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.service.query_server import QueryServer, ServedTable
from lakelsm.lookup.service.service_access import ServerAccess, publish
from lakelsm.snapshots.table_store import TableStore
from tests.lookup.scanned_cache import ScannedCache
from tests.processes import PATIENCE

OPEN = ServerAccess()


def started(
    store: TableStore,
    servers: int = 1,
    access: ServerAccess = OPEN,
    refresh: float = 3600.0,
    *,
    host: str = "127.0.0.1",
    opener: Any = ScannedCache,
) -> list[QueryServer]:
    """Start servers of a table in this process, and publish them."""
    one = partial(QueryServer, servers=servers, host=host, access=access, refresh=refresh)
    made = [one(ServedTable(store, opener), number=number) for number in range(servers)]
    publish(store, [server.address for server in made])
    return made


@contextmanager
def service(store: TableStore, servers: int = 1, access: ServerAccess = OPEN, **more: Any) -> Iterator[list[QueryServer]]:
    """Run servers as `started` does, within the context."""
    made = started(store, servers, access, **more)
    try:
        yield made
    finally:
        for server in made:
            server.stop()


class Pausing(ScannedCache):
    """A cache whose lookups wait until the test releases them."""

    entered = threading.Event()
    go_on = threading.Event()

    def find(self, keys: pa.Table) -> FoundRows:
        self.entered.set()
        assert self.go_on.wait(PATIENCE)
        return super().find(keys)
