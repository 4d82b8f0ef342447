"""A query service: its servers' addresses are published while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from lakelsm.errors import CorruptTableError, TableNotFoundError
from lakelsm.lookup.service.lookup_request import TableIdentity
from lakelsm.lookup.service.server_lease import ServerLease
from lakelsm.lookup.service.service_addresses import ServerAddress, publish, published_addresses, withdraw
from lakelsm.snapshots.table_store import TableStore

#: Seconds between two looks at the servers and at the file of addresses.
_TICK = 0.5

Addresses = tuple[ServerAddress, ...]


class Servers(Protocol):
    """The running servers of a service."""

    def addresses(self) -> Addresses | None:
        """Their addresses; None while not all of them have started. Raises LakelsmError where they cannot run."""

    def stop(self) -> None:
        """End them all."""


def run_service(
    store: TableStore,
    servers: Servers,
    stop: threading.Event,
    say: Callable[[str], None],
    older: Sequence[ServerLease] = (),
) -> bool:
    """Keep the addresses of servers published until ``stop`` is set, then end them. ``older`` are leases of services that
    were started before: they end once these servers have taken over.

    True if it was; False where another service was started for the table meanwhile, which ends this one. ``say`` is told
    of each change, one line at a time. Whatever ends it, addresses go before servers do.
    """
    published: Addresses | None = None
    try:
        table = TableIdentity.of(store)
        while not stop.is_set():
            found = _published(store)
            if published is not None and found is not None and found != published:
                say(f"{store.name}: another query service has taken over at {_listed(found)}")
                return False
            addresses = servers.addresses()
            if addresses is not None and addresses != found:
                if published is None and found is not None:
                    say(f"{store.name}: takes over from the query service at {_listed(found)}")
                _check_there(store, table)
                publish(store, addresses)
                published = addresses
                for lease in older:
                    lease.end()
                say(f"{store.name}: {len(addresses)} servers answer at {_listed(addresses)}")
            stop.wait(_TICK)
        return True
    finally:
        try:
            if published is not None:
                withdraw(store, published)
        finally:
            servers.stop()


def _check_there(store: TableStore, table: TableIdentity) -> None:
    """Raise TableNotFoundError where the table was dropped: its directory is not to be made again."""
    try:
        same = TableIdentity.of(store) == table
    except CorruptTableError:
        same = False
    if not same:
        raise TableNotFoundError(f"Table {store.name} was dropped while its query service ran, which ends therefore.")


def _published(store: TableStore) -> Addresses | None:
    """The addresses in the file; a damaged one is as good as none, as it is written anew."""
    try:
        return published_addresses(store)
    except CorruptTableError:
        return None


def _listed(addresses: Addresses) -> str:
    shown = ", ".join(map(str, addresses[:4]))
    return f"{shown}, …" if len(addresses) > 4 else shown
