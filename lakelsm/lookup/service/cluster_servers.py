"""Servers in the tasks of one Spark stage, on the machines of a cluster."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelsm.engine import spark_errors
from lakelsm.errors import InvalidInputError, LakelsmError, LookupServiceError
from lakelsm.failures import logged_text
from lakelsm.lookup.service.server_setup import Addresses, ServerSetup
from lakelsm.lookup.service.service_addresses import ServerLease
from lakelsm.secret_values import shown_uri
from lakelsm.surroundings import SYSTEM, Surroundings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)

#: Seconds between two looks of a task for its lease.
_TICK = 0.5
#: Seconds that tasks have to end by themselves.
_LONGEST_END = 15.0


class ClusterServers:
    """Fulfils `Servers`.

    When all have started, the first task writes their addresses into the service's lease; where Spark begins the stage
    anew, it does so again.
    """

    def __init__(self, setup: ServerSetup, spark: SparkSession, surroundings: Surroundings = SYSTEM) -> None:
        if setup.access.token is None and not str(spark.sparkContext.master).startswith("local"):
            raise InvalidInputError(
                "Servers on a cluster are reached from other machines, and without a token anybody could read the table "
                "there: give a token file."
            )
        self._store = setup.store
        self._spark = spark
        uuid = surroundings.new_uuid()
        self._tag = f"lakelsm-{uuid}"
        self._lease = ServerLease.of(setup.store, uuid)
        self._task = ServerTask(setup, self._lease)
        self._error: Exception | None = None
        self._lease.write(())
        self._job = threading.Thread(target=self._run, name="query-service", daemon=True)
        self._job.start()

    def addresses(self) -> Addresses | None:
        """See `Servers.addresses`."""
        if not self._job.is_alive():
            reason = self._error
            if isinstance(reason, LakelsmError):
                raise reason
            if reason is not None:
                why = f" ({str(reason).splitlines()[0]})"
            elif self._lease.lasts:
                why = ""
            else:
                why = f", as {self._lease.path} is gone (another service was started meanwhile, or the file was deleted)"
            raise LookupServiceError(
                f"Table {self._store.name}: the stage of its query service has ended{why}: start the service again."
            ) from reason
        return self._lease.addresses()

    def stop(self) -> None:
        """See `Servers.stop`."""
        self._lease.end()
        self._job.join(_LONGEST_END)
        if self._job.is_alive():
            self._spark.sparkContext.cancelJobsWithTag(self._tag)
            self._job.join(_LONGEST_END)
        self._lease.end()  # The first task may have written it just when it went.

    def _run(self) -> None:
        from lakelsm.spark.barrier_stage import run_together
        from lakelsm.spark.task_errors import translated

        known: tuple[type[Exception], ...] = (LakelsmError, *spark_errors())
        try:
            with translated(self._store.paths.root):
                run_together(self._spark, self._task.setup.servers, self._task, self._tag)
        except known as error:  # It is raised where the service asks for addresses.
            _LOG.warning("Table %s: the stage of its query service failed: %s", self._store.name, logged_text(error))
            self._error = error


@dataclass(frozen=True)
class ServerTask:
    """What each task of the stage does: it answers as the server of its number for as long as the lease is there."""

    setup: ServerSetup
    lease: ServerLease

    def __call__(self, number: int, host: str, gather: Callable[[str], list[str]]) -> None:
        """``host`` is the machine that the task runs on."""
        server = self.setup.server(number, host if self.setup.access.token is not None else None)
        try:
            addresses = gather(str(server.address))
            if number == 0 and self.lease.lasts:
                self.lease.write(addresses)
            gather("")  # The first task has written.
            never = threading.Event()
            while self.lease.lasts:
                never.wait(_TICK)
            _LOG.info("Table %s: server %d ends: %s is gone", self.setup.store.name, number, shown_uri(self.lease.path))
        except Exception as error:
            name = self.setup.store.name
            _LOG.warning("Table %s: server %d of its query service ends: %s", name, number, logged_text(error))
            raise
        finally:
            server.stop()
