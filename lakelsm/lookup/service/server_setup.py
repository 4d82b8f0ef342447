"""What all servers of a service have in common, wherever they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lakelsm.errors import InvalidInputError
from lakelsm.lookup.cache import Opener
from lakelsm.lookup.service.query_server import QueryServer
from lakelsm.lookup.service.served_table import ServedTable
from lakelsm.lookup.service.service_access import ServerAccess
from lakelsm.lookup.service.service_addresses import MOST_SERVERS, ServerAddress
from lakelsm.snapshots.table_store import TableStore

#: Where servers are that no other machine reaches.
LOOPBACK = "127.0.0.1"

Addresses: TypeAlias = tuple[ServerAddress, ...]


class Servers(Protocol):
    """The running servers of a service."""

    def addresses(self) -> Addresses | None:
        """Their addresses; None while not all of them have started. Raises LakelsmError where they cannot run."""

    def stop(self) -> None:
        """End them all."""


@dataclass(frozen=True, kw_only=True)
class ServerSetup:
    """``servers`` of a table. It pickles, to reach the processes that run them.

    ``host`` is the address of each (None: see `LOOPBACK`), ``refresh`` the seconds between two looks for a newer
    snapshot; ``opener`` opens the caches that they answer from.
    """

    store: TableStore
    servers: int
    host: str | None
    access: ServerAccess
    refresh: float
    opener: Opener

    def __post_init__(self) -> None:
        self.access.check_host(LOOPBACK if self.host is None else self.host)
        if self.servers > MOST_SERVERS:
            raise InvalidInputError(f"servers is {self.servers}; it must be {MOST_SERVERS} at most.")

    def server(self, number: int, host: str | None = None) -> QueryServer:
        """A new server; ``host``: where it is, unless the setup says so."""
        return QueryServer(
            ServedTable(self.store, self.opener),
            number=number,
            servers=self.servers,
            host=self.host or host or LOOPBACK,
            access=self.access,
            refresh=self.refresh,
        )
