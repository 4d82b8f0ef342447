"""Servers on this machine, each in a process of its own."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from lakelsm.errors import LakelsmError, LookupServiceError
from lakelsm.lookup.service.lookup_request import decoded_error, encoded_error
from lakelsm.lookup.service.server_setup import Addresses, ServerSetup
from lakelsm.lookup.service.service_addresses import ServerAddress

_LOG = logging.getLogger(__name__)

#: Seconds that a server has to end by itself.
_LONGEST_END = 3.0
#: Ends a process without a word: calls of clients that hold on to them are not waited for.
_ended_at_once = os._exit


@dataclass
class _Process:
    """A server's process. It ends when the pipe to it is closed, be it because this process was killed."""

    process: SpawnProcess
    pipe: Connection
    address: ServerAddress | None = None


class LocalServers:
    """Fulfils `Servers`. A server that ends by itself is replaced by a new one, at another port."""

    def __init__(self, setup: ServerSetup, say: Callable[[str], None]) -> None:
        self._setup = setup
        self._say = say
        self._context = multiprocessing.get_context("spawn")
        self._processes = [self._started(number) for number in range(setup.servers)]

    def addresses(self) -> Addresses | None:
        """See `Servers.addresses`."""
        for number, server in enumerate(self._processes):
            if server.address is None:
                self._hear(number, server)
            elif not server.process.is_alive():
                ended = f"server {number} at {server.address} has ended (exit code {server.process.exitcode})"
                _LOG.warning("Table %s: %s, and a new one starts", self._setup.store.name, ended)
                self._say(f"{self._setup.store.name}: {ended}, and a new one starts")
                server.pipe.close()
                self._processes[number] = self._started(number)
        known = tuple(server.address for server in self._processes if server.address is not None)
        return known if len(known) == len(self._processes) else None

    def stop(self) -> None:
        """See `Servers.stop`."""
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

    def _hear(self, number: int, server: _Process) -> None:
        """Take the address of a server that has started. Raises what keeps it from that."""
        if not server.pipe.poll():
            return
        try:
            told = server.pipe.recv_bytes()
        except EOFError:
            server.process.join(_LONGEST_END)
            raise LookupServiceError(
                f"Table {self._setup.store.name}: server {number} of its query service ended before it answered (exit "
                f"code {server.process.exitcode}): start the service again."
            ) from None
        error = decoded_error(told)
        if error is not None:
            raise error
        server.address = ServerAddress.parse(told.decode())


def _run(setup: ServerSetup, number: int, pipe: Connection) -> None:
    """What a server's process does: it tells its address, or why it has none, and answers until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Of a terminal it reaches all processes; the service's own decides.
    try:
        server = setup.server(number)
    except LakelsmError as error:
        pipe.send_bytes(encoded_error(error))
        return
    clean = False
    try:
        pipe.send_bytes(str(server.address).encode())
        pipe.poll(None)  # Nothing is ever sent: this waits for the end of the pipe.
    finally:
        clean = server.stop()
        if not clean:
            _ended_at_once(0)
