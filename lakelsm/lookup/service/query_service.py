"""A query service of a table: servers whose addresses are published while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelsm.errors import CorruptTableError, TableNotFoundError
from lakelsm.lookup.service.protocol import TableIdentity
from lakelsm.lookup.service.servers import Addresses, ClusterServers, LocalServers, Servers, ServerSetup
from lakelsm.lookup.service.service_access import ServerLease, leases, publish, readable_addresses, withdraw
from lakelsm.snapshots.table_store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Seconds between checks of the servers and of the file of addresses.
_TICK = 0.5


@dataclass(frozen=True)
class QueryService:
    """Servers that answer lookups of a table by its primary key. They run while `run` does, in tasks of ``spark`` or
    (None) in processes of this machine. Raises UnsupportedFeatureError for a session of Spark Connect.
    """

    setup: ServerSetup
    spark: SparkSession | None = None

    def __post_init__(self) -> None:
        if self.spark is not None:
            from lakelsm.spark.connect import require_classic

            require_classic(self.spark, "a query service in tasks of Spark", "Use engine 'local'.")

    def run(self, stop: threading.Event, report: Callable[[str], None]) -> bool:
        """Run until ``stop`` is set (return True) or another service replaces this one (False). ``report`` gets events.

        Raises LookupServiceError if servers do not start or end early, and InvalidInputError if they cannot be started as
        requested.
        """
        setup = self.setup
        older = leases(setup.store)
        servers = LocalServers(setup, report) if self.spark is None else ClusterServers(setup, self.spark)
        return run_service(setup.store, servers, stop, report, older)


def run_service(
    store: TableStore,
    servers: Servers,
    stop: threading.Event,
    report: Callable[[str], None],
    older: Sequence[ServerLease] = (),
) -> bool:
    """Keep the addresses of servers published until ``stop`` is set, then end the servers.

    ``older`` are leases of earlier services, which end when these servers have replaced them. ``report`` gets one line
    for each event. Return True if ``stop`` was set, False if a newer service has replaced this one. Addresses are
    always removed before the servers end.
    """
    published: Addresses | None = None
    try:
        table = TableIdentity.of(store)
        while not stop.is_set():
            found = readable_addresses(store)
            if published is not None and found is not None and found != published:
                report(f"{store.name}: another query service has replaced this one, at {_listed(found)}")
                return False
            addresses = servers.addresses()
            if addresses is not None and addresses != found:
                if published is None and found is not None:
                    report(f"{store.name}: replaces the query service at {_listed(found)}")
                _check_exists(store, table)
                publish(store, addresses)
                published = addresses
                for lease in older:
                    lease.end()
                report(f"{store.name}: {len(addresses)} servers answer at {_listed(addresses)}")
            stop.wait(_TICK)
        return True
    finally:
        try:
            if published is not None:
                withdraw(store, published)
        finally:
            servers.stop()


def _check_exists(store: TableStore, table: TableIdentity) -> None:
    """Raise TableNotFoundError if the table was dropped: its directory must not be created again."""
    try:
        same = TableIdentity.of(store) == table
    except CorruptTableError:
        same = False
    if not same:
        raise TableNotFoundError(f"Table {store.name} was dropped. Its query service ends.")


def _listed(addresses: Addresses) -> str:
    shown = ", ".join(map(str, addresses[:4]))
    return f"{shown}, …" if len(addresses) > 4 else shown
