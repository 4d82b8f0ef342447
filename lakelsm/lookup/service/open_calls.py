"""The open calls of a server: their number, and how long the server has waited for the client of each.

Flight has no deadline for a thread that reads from a client or writes to it. So the connection of a call that waits too
long is closed, which ends the call.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import unquote

from pyarrow import flight

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import LookupServiceError
from lakelsm.failures import logged_text
from lakelsm.lookup.service.protocol import encoded_error
from lakelsm.lookup.service.service_access import ServerAccess
from lakelsm.options import TableOptions

_LOG = logging.getLogger(__name__)

#: The name of the calls among a server's middleware.
CALLS = "calls"
_METHODS = (flight.FlightMethod.DO_EXCHANGE, flight.FlightMethod.DO_ACTION)

#: Seconds that a call may wait for its client while the server is full.
_IDLE_WHEN_FULL = 1.0

#: A client's IP address and port.
Peer = tuple[str, int]


class OpenCall(flight.ServerMiddleware):  # type: ignore[misc]
    """One call. The server waits for its client from the start until `handled`."""

    def __init__(self, calls: OpenCalls, now: float) -> None:
        super().__init__()
        self._calls = calls
        self.waiting_since: float | None = now
        self.peer: Peer | None = None

    def handled(self, peer: str) -> None:
        """Note that the server works on the call. ``peer`` is the client, as gRPC writes it."""
        host, _, port = unquote(peer).partition(":")[2].rpartition(":")
        self.peer = _address(host.strip("[]"), int(port)) if port.isdecimal() else None
        self.waiting_since = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Note that the server waits for the client, within the context."""
        self.waiting_since = self._calls.now()
        try:
            yield
        finally:
            self.waiting_since = None

    def call_completed(self, exception: Exception | None) -> None:
        """See `flight.ServerMiddleware`."""
        self._calls.ended(self)


class OpenCalls(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Admits a call if it has the token and if there is room for it."""

    def __init__(
        self, table: str, access: ServerAccess, options: TableOptions, environment: Environment = SYSTEM
    ) -> None:
        super().__init__()
        self._table = table
        self._access = access
        self._max_calls = options.lakelsm_lookup_service_max_calls
        self.idle_seconds = options.lakelsm_lookup_service_idle_timeout / 1000
        self.now = environment.monotonic
        self._lock = threading.Lock()
        self._calls: set[OpenCall] = set()
        self.started = 0

    def __len__(self) -> int:
        return len(self._calls)

    def start_call(self, info: Any, headers: dict[str, list[str | bytes]]) -> OpenCall:
        """Admit a call; raise a FlightError if it is refused."""
        try:
            return self._admitted(info, headers)
        except flight.FlightError as error:
            _LOG.warning("Table %s: its query service refused a call: %s", self._table, logged_text(error))
            raise

    def _admitted(self, info: Any, headers: dict[str, list[str | bytes]]) -> OpenCall:
        self._access.check_token(headers)
        if info.method not in _METHODS:  # Other calls would occupy a thread until their first message.
            raise _refusal("it accepts only lookups and actions")
        call = OpenCall(self, self.now())
        with self._lock:
            if len(self._calls) >= self._max_calls:
                raise _refusal(
                    f"it answers {self._max_calls} calls at a time ('lakelsm.lookup-service.max-calls'); "
                    "raise the option, or start more servers"
                )
            self._calls.add(call)
            self.started += 1
        return call

    def ended(self, call: OpenCall) -> None:
        """Remove a call that has ended."""
        with self._lock:
            self._calls.discard(call)

    def close_overdue(self, port: int) -> int:
        """Close the connections, to a port, of calls that have waited longer than `idle_seconds`, or longer than a second
        while the server is full. Return how many were closed.

        The client of a call is known from its first message on. For a call without one, the connections of all clients
        that have no other call are closed; their next call connects again.
        """
        with self._lock:
            calls = list(self._calls)
        is_full = len(calls) >= self._max_calls
        oldest = self.now() - (min(self.idle_seconds, _IDLE_WHEN_FULL) if is_full else self.idle_seconds)
        late = [call for call in calls if call.waiting_since is not None and call.waiting_since < oldest]
        peers = {call.peer for call in late}
        others = {call.peer for call in calls} - peers
        if not late:
            return 0
        return close_connections(port, lambda peer: peer in peers or (None in peers and peer not in others))


def close_connections(port: int, chosen: Callable[[Peer], bool] = lambda peer: True) -> int:
    """Close the connections that clients made to a port of this process; return how many were closed."""
    closed = 0
    for name in os.listdir("/dev/fd"):
        with suppress(OSError), _duplicate(int(name)) as connection:
            if connection.family not in (socket.AF_INET, socket.AF_INET6):
                continue
            host, its_port, *_ = connection.getpeername()
            if connection.getsockname()[1] == port and chosen(_address(host, its_port)):
                connection.shutdown(socket.SHUT_RDWR)
                closed += 1
    return closed


@contextmanager
def _duplicate(descriptor: int) -> Iterator[socket.socket]:
    """Yield the socket of another owner's descriptor, under a new one. Raises OSError if it is not a socket."""
    own = os.dup(descriptor)
    try:
        connection = socket.socket(fileno=own)
    except OSError:
        os.close(own)
        raise
    with connection:
        yield connection


def _address(host: str, port: int) -> Peer:
    """Return an address in one form: IPv4 addresses that are mapped into IPv6 become IPv4."""
    address = ipaddress.ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address), port


def _refusal(text: str) -> flight.FlightError:
    return flight.FlightUnavailableError(text, extra_info=encoded_error(LookupServiceError(text)))
