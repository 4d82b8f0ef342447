"""A query service of a table, ready to run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelsm.errors import InvalidInputError
from lakelsm.lookup.cache import Cache, LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.partial_cache import PartialCache
from lakelsm.lookup.refresh_policy import discovery_interval
from lakelsm.lookup.service.cluster_servers import ClusterServers
from lakelsm.lookup.service.local_servers import LocalServers
from lakelsm.lookup.service.server_lease import leases
from lakelsm.lookup.service.server_setup import ServerSetup
from lakelsm.lookup.service.service_access import ServerAccess
from lakelsm.lookup.service.service_run import run_service
from lakelsm.snapshots.table_store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class QueryService:
    """Servers that answer lookups of a table by its primary key. They run while `run` does, in tasks of ``spark`` or
    (None) in processes of this machine.
    """

    setup: ServerSetup
    spark: SparkSession | None = None

    @staticmethod
    def of(
        store: TableStore,
        servers: int,
        *,
        host: str | None,
        access: ServerAccess,
        refresh: float | None,
        spark: SparkSession | None,
    ) -> QueryService:
        """``refresh``: seconds between two looks for a newer snapshot; None: as the table's options say."""
        seconds = discovery_interval(store.options) if refresh is None else refresh
        if seconds <= 0:
            raise InvalidInputError(f"refresh is {seconds:g} seconds; it must be more than 0.")
        setup = ServerSetup(
            store=store, servers=servers, host=host, access=access, refresh=seconds, opened=opened_partial_cache
        )
        return QueryService(setup, spark)

    def run(self, stop: threading.Event, say: Callable[[str], None]) -> bool:
        """Run until ``stop`` is set (True) or another service takes over (False); ``say`` is told what happens.

        Raises LookupServiceError where servers do not start or do not go on, and InvalidInputError where they cannot be
        had as they were asked for.
        """
        setup = self.setup
        older = leases(setup.store)
        servers = LocalServers(setup, say) if self.spark is None else ClusterServers(setup, self.spark)
        return run_service(setup.store, servers, stop, say, older)


def opened_partial_cache(spec: LookupSpec) -> Cache:
    """The cache that a server answers from. Its directory goes with it."""
    return PartialCache.open(spec, CacheDirectory.private())
