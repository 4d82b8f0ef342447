"""The calls that clients have open at a server: how many there are, and how long each of them lets the server wait.

A thread that reads from a client, or writes to it, cannot be given a deadline by Flight. So the connection of a call that
waits for too long is closed, which ends the call.
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

#: The key of the calls among a server's middleware.
CALLS = "calls"
_METHODS = (flight.FlightMethod.DO_EXCHANGE, flight.FlightMethod.DO_ACTION)

#: Seconds that a call may wait for its client while there is no room for others.
_IDLE_WHEN_FULL = 1.0

#: A client's IP address and port.
Peer = tuple[str, int]


class OpenCall(flight.ServerMiddleware):  # type: ignore[misc]
    """One call. It waits for its client from its start, until `handled`."""

    def __init__(self, calls: OpenCalls, now: float) -> None:
        super().__init__()
        self._calls = calls
        self.waiting_since: float | None = now
        self.peer: Peer | None = None

    def handled(self, peer: str) -> None:
        """The server works. ``peer`` is the client as gRPC writes it."""
        host, _, port = unquote(peer).partition(":")[2].rpartition(":")
        self.peer = _address(host.strip("[]"), int(port)) if port.isdecimal() else None
        self.waiting_since = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The server waits for the client."""
        self.waiting_since = self._calls.now()
        try:
            yield
        finally:
            self.waiting_since = None

    def call_completed(self, exception: Exception | None) -> None:
        """See Flight's."""
        self._calls.ended(self)


class OpenCalls(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets a call in, if it shows the token and there is room for it."""

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
        """Raise a FlightError for a call that is not let in."""
        try:
            return self._admitted(info, headers)
        except flight.FlightError as error:
            _LOG.warning("Table %s: its query service refused a call: %s", self._table, logged_text(error))
            raise

    def _admitted(self, info: Any, headers: dict[str, list[str | bytes]]) -> OpenCall:
        self._access.check_token(headers)
        if info.method not in _METHODS:  # Others would keep a thread until a first message comes.
            raise _refusal("it accepts only lookups and actions")
        call = OpenCall(self, self.now())
        with self._lock:
            if len(self._calls) >= self._max_calls:
                raise _refusal(
                    f"it answers {self._max_calls} calls at a time ('lakelsm.lookup-service.max-calls'); raise the option, "
                    "or start more servers"
                )
            self._calls.add(call)
            self.started += 1
        return call

    def ended(self, call: OpenCall) -> None:
        """A call has ended."""
        with self._lock:
            self._calls.discard(call)

    def close_overdue(self, port: int) -> int:
        """Close the connections to a port of calls that have waited for longer than `idle_seconds`, or for a second while
        no call is let in; how many those are.

        Whose call it is becomes known with its first message. For one without, the connections of all clients are closed
        that have no other call: their next one makes a new connection.
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
    """Close the connections of this process that clients made to a port of it; how many they were."""
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
    """The socket of a descriptor that others own, under a new descriptor. Raises OSError if it is not a socket."""
    own = os.dup(descriptor)
    try:
        connection = socket.socket(fileno=own)
    except OSError:
        os.close(own)
        raise
    with connection:
        yield connection


def _address(host: str, port: int) -> Peer:
    """An address as both gRPC and the system have it: IPv4 as such where it is mapped into IPv6."""
    address = ipaddress.ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address), port


def _refusal(text: str) -> flight.FlightError:
    return flight.FlightUnavailableError(text, extra_info=encoded_error(LookupServiceError(text)))
