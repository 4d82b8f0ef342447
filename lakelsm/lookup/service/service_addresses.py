"""Where the servers of a table's query service are: a file as Paimon's ServiceManager keeps them (docs/format.md 1.4).

On a cluster a lease lies beside it: the servers run as long as that file exists.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakelsm.errors import CorruptTableError
from lakelsm.json_document import parse_texts
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO

_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LAST_PORT = 65_535

#: What no file of addresses has: that many servers, that many bytes.
MOST_SERVERS = 10_000
_MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class ServerAddress:
    """The address of one server; ``host`` is a name or an IP address, an IPv6 one without its brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @staticmethod
    def parse(text: str) -> ServerAddress | None:
        """The address that a text of the file means; None where it is none."""
        host, _, port = text.rpartition(":")
        if _PORT.fullmatch(port) is None or int(port) > _LAST_PORT:
            return None
        if not host.startswith("[") or not host.endswith("]"):
            return ServerAddress(host, int(port)) if _NAME.fullmatch(host) else None
        try:
            has_scope = ipaddress.IPv6Address(host[1:-1]).scope_id is not None
        except ValueError:
            return None
        return None if has_scope else ServerAddress(host[1:-1], int(port))


def published_addresses(store: TableStore) -> tuple[ServerAddress, ...] | None:
    """The addresses of a table's servers, in the order of their numbers; None where no service is published.

    Raises CorruptTableError for a file that is no list of addresses.
    """
    path = store.paths.lookup_service
    try:
        data = store.file_io.read(path, _MAX_BYTES)
    except FileNotFoundError:
        return None
    try:
        texts = parse_texts(data, path)
    except CorruptTableError as error:
        raise CorruptTableError(f"{path} is no list of addresses: {_REMEDY}") from error
    if not 0 < len(texts) <= MOST_SERVERS:
        raise CorruptTableError(f"{path} has {len(texts)} addresses: {_REMEDY}")
    addresses = {text: ServerAddress.parse(text) for text in texts}
    for text, address in addresses.items():
        if address is None:
            raise CorruptTableError(f"{path} has {text[:100]!a}, which is no 'host:port': {_REMEDY}")
    return tuple(address for text in texts if (address := addresses[text]) is not None)


_REMEDY = "start the query service again, which writes the file anew, or delete it."


def publish(store: TableStore, addresses: Sequence[ServerAddress]) -> None:
    """Make these the table's servers, in place of any others, in one step: readers see the old ones or these."""
    texts = ", ".join(json.dumps(str(address)) for address in addresses)
    store.file_io.write(store.paths.lookup_service, f"[ {texts} ]".encode())  # As Jackson lays a list out.


def withdraw(store: TableStore, addresses: Sequence[ServerAddress]) -> bool:
    """Delete the file of addresses if it has these; False where another service's stand there, or none."""
    try:
        if published_addresses(store) != tuple(addresses):
            return False
    except CorruptTableError:
        return False  # Whatever it is, it is not what was published.
    store.file_io.delete(store.paths.lookup_service)
    return True


@dataclass(frozen=True)
class ServerLease:
    """The lease at ``path``. It pickles."""

    file_io: FileIO
    path: str

    @staticmethod
    def of(store: TableStore, uuid: str) -> ServerLease:
        """A service's lease, not yet written."""
        return ServerLease(store.file_io, store.paths.lookup_lease(uuid))

    @property
    def lasts(self) -> bool:
        """Whether servers go on."""
        return self.file_io.exists(self.path)

    def write(self, addresses: Sequence[str]) -> None:
        """Let servers run. ``addresses``: those that have started."""
        self.file_io.write(self.path, json.dumps(list(addresses)).encode(), durable=False)

    def addresses(self) -> tuple[ServerAddress, ...] | None:
        """The servers that have started, in the order of their numbers; None where none have."""
        try:
            texts = parse_texts(self.file_io.read(self.path, _MAX_BYTES), self.path)
        except FileNotFoundError:
            return None
        found = [ServerAddress.parse(text) for text in texts]
        return tuple(address for address in found if address is not None) or None

    def end(self) -> None:
        """Let servers end."""
        self.file_io.delete(self.path)


def leases(store: TableStore) -> list[ServerLease]:
    """The leases of a table: of services that run, and of those that were killed."""
    folder, _, prefix = store.paths.lookup_lease("").rpartition("/")
    names = store.file_io.list(folder)
    return [ServerLease(store.file_io, f"{folder}/{name}") for name in sorted(names) if name.startswith(prefix)]
