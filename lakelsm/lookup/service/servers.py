"""The servers of a query service: processes of this machine (`LocalServers`), or tasks of a Spark stage on the machines
of a cluster (`ClusterServers`).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING, Protocol, TypeAlias

from lakelsm.engine import spark_errors
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import InvalidInputError, LakelsmError, LookupServiceError
from lakelsm.failures import logged_text
from lakelsm.lookup.cache import Cache, LookupSpec, Opener
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.lookup_definition import discovery_interval
from lakelsm.lookup.partial.partial_cache import PartialCache
from lakelsm.lookup.service.protocol import decoded_error, encoded_error
from lakelsm.lookup.service.query_server import QueryServer, ServedTable
from lakelsm.lookup.service.service_access import MAX_SERVERS, ServerAccess, ServerAddress, ServerLease
from lakelsm.snapshots.table_store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)

#: The default address of servers: other machines cannot reach it.
LOOPBACK = "127.0.0.1"
#: Maximum seconds until a server's process ends, and until the tasks of a stage end.
_LONGEST_END = 3.0
_LONGEST_STAGE_END = 15.0
#: Seconds between checks of a task for its lease.
_TICK = 0.5
#: Ends a process without waiting for calls of clients that do not finish.
_exit_now = os._exit

Addresses: TypeAlias = tuple[ServerAddress, ...]


class Servers(Protocol):
    """The running servers of a query service."""

    def addresses(self) -> Addresses | None:
        """Return their addresses; None until all of them have started. Raises LakelsmError if they cannot run."""

    def stop(self) -> None:
        """End all servers."""


def opened_partial_cache(spec: LookupSpec) -> Cache:
    """Open the cache that a server answers from."""
    return PartialCache.open(spec, CacheDirectory.private())


@dataclass(frozen=True, kw_only=True)
class ServerSetup:
    """The ``servers`` to run for a table. It can be pickled, to be sent to their processes.

    ``host`` is the address of each (None: see `LOOPBACK`), ``refresh`` the seconds between checks for a newer snapshot
    (None: from the table's options); ``opener`` opens the caches of the servers.
    """

    store: TableStore
    servers: int = 1
    host: str | None = None
    access: ServerAccess = field(default_factory=ServerAccess)
    refresh: float | None = None
    opener: Opener = opened_partial_cache

    @property
    def interval(self) -> float:
        """The seconds between checks for a newer snapshot."""
        return discovery_interval(self.store.options) if self.refresh is None else self.refresh

    def __post_init__(self) -> None:
        self.access.check_host(LOOPBACK if self.host is None else self.host)
        if self.servers > MAX_SERVERS:
            raise InvalidInputError(f"servers: {self.servers} is more than {MAX_SERVERS}.")
        if self.interval <= 0:
            raise InvalidInputError(f"refresh: {self.interval:g} seconds is not more than 0.")

    def server(self, number: int, host: str | None = None) -> QueryServer:
        """Start a server. ``host`` is its address, unless the setup has one."""
        return QueryServer(
            ServedTable(self.store, self.opener),
            number=number,
            servers=self.servers,
            host=self.host or host or LOOPBACK,
            access=self.access,
            refresh=self.interval,
        )


@dataclass
class _Process:
    """A server's process. It ends when the pipe to it is closed, also if this process is killed."""

    process: SpawnProcess
    pipe: Connection
    address: ServerAddress | None = None


class LocalServers:
    """Implements `Servers` with processes. A server that ends is replaced by a new one at another port."""

    def __init__(self, setup: ServerSetup, report: Callable[[str], None]) -> None:
        self._setup = setup
        self._report = report
        self._context = multiprocessing.get_context("spawn")
        self._processes = [self._started(number) for number in range(setup.servers)]

    def addresses(self) -> Addresses | None:
        for number, server in enumerate(self._processes):
            if server.address is None:
                self._receive_address(number, server)
            elif not server.process.is_alive():
                ended = f"server {number} at {server.address} has ended (exit code {server.process.exitcode})"
                _LOG.warning("Table %s: %s; a new one is started", self._setup.store.name, ended)
                self._report(f"{self._setup.store.name}: {ended}; a new one is started")
                server.pipe.close()
                self._processes[number] = self._started(number)
        known = tuple(server.address for server in self._processes if server.address is not None)
        return known if len(known) == len(self._processes) else None

    def stop(self) -> None:
        for server in self._processes:
            server.pipe.close()
        for server in self._processes:
            server.process.join(_LONGEST_END)
            if server.process.is_alive():
                server.process.kill()
                server.process.join()

    def _started(self, number: int) -> _Process:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_run, args=(self._setup, number, theirs), name=f"lookup-server-{number}")
        process.start()
        theirs.close()
        return _Process(process, ours)

    def _receive_address(self, number: int, server: _Process) -> None:
        """Receive the address of a server that has started. Raises the error that prevents it from starting."""
        if not server.pipe.poll():
            return
        try:
            message = server.pipe.recv_bytes()
        except EOFError:
            server.process.join(_LONGEST_END)
            raise LookupServiceError(
                f"Table {self._setup.store.name}: server {number} of its query service ended before it answered (exit "
                f"code {server.process.exitcode}). Start the service again."
            ) from None
        if (error := decoded_error(message)) is not None:
            raise error
        server.address = ServerAddress.parse(message.decode())


def _run(setup: ServerSetup, number: int, pipe: Connection) -> None:
    """Run in a server's process: send the address or the error, then answer until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; only the service handles it.
    try:
        server = setup.server(number)
    except LakelsmError as error:
        pipe.send_bytes(encoded_error(error))
        return
    try:
        pipe.send_bytes(str(server.address).encode())
        pipe.poll(None)  # Nothing is sent: this waits until the pipe is closed.
    finally:
        if not server.stop():
            _exit_now(0)


class ClusterServers:
    """Implements `Servers` with tasks of a Spark stage.

    When all servers have started, the first task writes their addresses to the service's lease. If Spark restarts the
    stage, it writes them again.
    """

    def __init__(self, setup: ServerSetup, spark: SparkSession, environment: Environment = SYSTEM) -> None:
        if setup.access.token is None and not str(spark.sparkContext.master).startswith("local"):
            raise InvalidInputError(
                "token: other machines can reach servers on a cluster, and without a token anybody could read the "
                "table. Give a token file."
            )
        self._store = setup.store
        self._spark = spark
        uuid = environment.new_uuid()
        self._tag = f"lakelsm-{uuid}"
        self._lease = ServerLease.of(setup.store, uuid)
        self._task = ServerTask(setup, self._lease)
        self._error: Exception | None = None
        self._lease.write(())
        self._job = threading.Thread(target=self._run, name="query-service", daemon=True)
        self._job.start()

    def addresses(self) -> Addresses | None:
        if self._job.is_alive():
            return self._lease.addresses()
        reason = self._error
        if isinstance(reason, LakelsmError):
            raise reason
        why = "" if reason is None else f" ({str(reason).splitlines()[0]})"
        if reason is None and not self._lease.exists:
            why = f", because {self._lease.path} was deleted, perhaps by a newer service"
        raise LookupServiceError(
            f"Table {self._store.name}: the stage of its query service has ended{why}. Start the service again."
        ) from reason

    def stop(self) -> None:
        self._lease.end()
        self._job.join(_LONGEST_STAGE_END)
        if self._job.is_alive():
            self._spark.sparkContext.cancelJobsWithTag(self._tag)
            self._job.join(_LONGEST_STAGE_END)
        self._lease.end()  # The first task may have written it during the deletion.

    def _run(self) -> None:
        from lakelsm.spark.barrier_stage import run_barrier_stage
        from lakelsm.spark.task_errors import translated_errors

        known: tuple[type[Exception], ...] = (LakelsmError, *spark_errors())
        try:
            with translated_errors(self._store.paths.root):
                run_barrier_stage(self._spark, self._task.setup.servers, self._task, self._tag)
        except known as error:  # The next call of `addresses` raises it.
            _LOG.warning("Table %s: the stage of its query service failed: %s", self._store.name, logged_text(error))
            self._error = error


@dataclass(frozen=True)
class ServerTask:
    """The task of each server: it answers as the server of its number while the lease exists."""

    setup: ServerSetup
    lease: ServerLease

    def __call__(self, number: int, host: str, gather: Callable[[str], list[str]]) -> None:
        """Run server ``number`` on the machine ``host``."""
        server = self.setup.server(number, host if self.setup.access.token is not None else None)
        try:
            addresses = gather(str(server.address))
            if number == 0 and self.lease.exists:
                self.lease.write(addresses)
            gather("")  # Wait until the first task has written the addresses.
            while self.lease.exists:
                threading.Event().wait(_TICK)
        except Exception as error:
            name = self.setup.store.name
            _LOG.warning("Table %s: server %d of its query service ends: %s", name, number, logged_text(error))
            raise
        finally:
            server.stop()
