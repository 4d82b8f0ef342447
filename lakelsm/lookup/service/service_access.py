"""The addresses of the servers of a table's query service, and the credentials to access them.

Addresses are in a file, as Paimon's ServiceManager keeps them (docs/format.md 1.4). On a cluster a lease is beside it:
the servers run as long as that file exists. Access uses a token and TLS.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import flight

from lakelsm.arguments import wrong_argument
from lakelsm.errors import CorruptTableError, InvalidInputError
from lakelsm.json_document import parse_texts
from lakelsm.options import TableOptions
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO

_HEADER = "authorization"
_SCHEME = "Bearer "
_MAX_TOKEN = 4096
_REMEDY = "Start the query service again to replace the file, or delete it."
_MAX_CERTIFICATES = 4 << 20
_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LAST_PORT = 65_535

#: Maximum servers, and maximum bytes, of a file of addresses.
MAX_SERVERS = 10_000
_MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class ServerAddress:
    """The address of one server; ``host`` is a name or an IP address, IPv6 without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @staticmethod
    def parse(text: str) -> ServerAddress | None:
        """Parse an address of the file; return None if it is invalid."""
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
    """Return the addresses of a table's servers, in the order of their numbers; None if no service is published.

    Raises CorruptTableError for a file that is not a list of addresses.
    """
    path = store.paths.lookup_service
    try:
        data = store.file_io.read(path, _MAX_BYTES)
    except FileNotFoundError:
        return None
    try:
        texts = parse_texts(data, path)
    except CorruptTableError as error:
        raise CorruptTableError(f"{path} is not a list of addresses. {_REMEDY}") from error
    if not 0 < len(texts) <= MAX_SERVERS:
        raise CorruptTableError(f"{path} has {len(texts)} addresses. {_REMEDY}")
    addresses = {text: ServerAddress.parse(text) for text in texts}
    for text, address in addresses.items():
        if address is None:
            raise CorruptTableError(f"{path} has {text[:100]!a}, which is not 'host:port'. {_REMEDY}")
    return tuple(address for text in texts if (address := addresses[text]) is not None)


def readable_addresses(store: TableStore) -> tuple[ServerAddress, ...] | None:
    """Do the same as `published_addresses`, but return None for a damaged file."""
    try:
        return published_addresses(store)
    except CorruptTableError:
        return None


def publish(store: TableStore, addresses: Sequence[ServerAddress]) -> None:
    """Publish the addresses of the table's servers in one step, replacing others."""
    texts = ", ".join(json.dumps(str(address)) for address in addresses)
    store.file_io.write(store.paths.lookup_service, f"[ {texts} ]".encode())  # Laid out as Jackson writes a list.


def withdraw(store: TableStore, addresses: Sequence[ServerAddress]) -> bool:
    """Delete the file of addresses if it has these; return False if it has others or does not exist."""
    if readable_addresses(store) != tuple(addresses):
        return False
    store.file_io.delete(store.paths.lookup_service)
    return True


@dataclass(frozen=True)
class ServerLease:
    """The lease of a service's servers: a file at ``path``. It can be pickled."""

    file_io: FileIO
    path: str

    @staticmethod
    def of(store: TableStore, uuid: str) -> ServerLease:
        """Return the lease of a service, before it is written."""
        return ServerLease(store.file_io, store.paths.lookup_lease(uuid))

    @property
    def exists(self) -> bool:
        """Whether the lease exists, so that servers continue."""
        return self.file_io.exists(self.path)

    def write(self, addresses: Sequence[str]) -> None:
        """Write the lease. ``addresses`` are those of the servers that have started."""
        self.file_io.write(self.path, json.dumps(list(addresses)).encode(), durable=False)

    def addresses(self) -> tuple[ServerAddress, ...] | None:
        """Return the servers that have started, in the order of their numbers; None if none have."""
        try:
            texts = parse_texts(self.file_io.read(self.path, _MAX_BYTES), self.path)
        except FileNotFoundError:
            return None
        found = [ServerAddress.parse(text) for text in texts]
        return tuple(address for address in found if address is not None) or None

    def end(self) -> None:
        """Delete the lease, so that the servers end."""
        self.file_io.delete(self.path)


def leases(store: TableStore) -> list[ServerLease]:
    """Return the leases of a table: of running services, and of killed ones."""
    folder, _, prefix = store.paths.lookup_lease("").rpartition("/")
    names = store.file_io.list(folder)
    return [ServerLease(store.file_io, f"{folder}/{name}") for name in sorted(names) if name.startswith(prefix)]


@dataclass(frozen=True, kw_only=True)
class ServerAccess:
    """The requirements of a server: a token, and TLS with ``certificate`` and ``private_key`` (PEM; both or none)."""

    token: str | None = field(default=None, repr=False)
    certificate: bytes | None = None
    private_key: bytes | None = field(default=None, repr=False)

    @staticmethod
    def of_files(token: str | None, certificate: str | None, private_key: str | None) -> ServerAccess:
        """Read the files. Raises InvalidInputError if one cannot be read, or if only one of the pair is given."""
        if (certificate is None) != (private_key is None):
            raise InvalidInputError("TLS needs a certificate and its key. Give both files, or none.")
        return ServerAccess(
            token=None if token is None else read_token(token),
            certificate=None if certificate is None else _content(certificate, "certificate", _MAX_CERTIFICATES),
            private_key=None if private_key is None else _content(private_key, "private key", _MAX_CERTIFICATES),
        )

    @property
    def scheme(self) -> str:
        """The scheme of a location."""
        return "grpc" if self.certificate is None else "grpc+tls"

    def check_host(self, host: str) -> None:
        """Raise InvalidInputError for an invalid host, and for one that other machines reach if there is no token."""
        if ServerAddress.parse(str(ServerAddress(host, 1))) is None:
            raise wrong_argument("host", host, "the name or IP address of a machine, without a port")
        if self.token is None and not is_loopback(host):
            raise InvalidInputError(
                f"host: other machines can reach {host!r}, and without a token anybody could read the table there. "
                "Give a token file, or leave the host out for 127.0.0.1."
            )

    def server_options(self) -> dict[str, Any]:
        """Return the arguments for Flight's server."""
        return {} if self.certificate is None else {"tls_certificates": [(self.certificate, self.private_key)]}

    def check_token(self, headers: dict[str, list[str | bytes]]) -> None:
        """Raise FlightUnauthenticatedError unless the headers of a call have the token."""
        expected = f"{_SCHEME}{self.token}".encode()
        shown = (text if isinstance(text, bytes) else text.encode() for text in headers.get(_HEADER, ()))
        if self.token is not None and not any(hmac.compare_digest(text, expected) for text in shown):
            raise flight.FlightUnauthenticatedError("the token is missing or wrong")


@dataclass(frozen=True, kw_only=True)
class ClientAccess:
    """The token of a client, the certificates that it trusts (``roots``), and its timeout in seconds."""

    token: str | None = field(default=None, repr=False)
    roots: bytes | None = None
    timeout: float

    @staticmethod
    def of(options: TableOptions) -> ClientAccess:
        """Return the access that options define. Raises InvalidInputError for a file that cannot be read."""
        token, roots = options.lakelsm_lookup_service_token_file, options.lakelsm_lookup_service_tls_roots
        return ClientAccess(
            token=None if token is None else read_token(token),
            roots=None if roots is None else _content(roots, "certificates", _MAX_CERTIFICATES),
            timeout=options.lakelsm_lookup_service_timeout / 1000,
        )

    @property
    def scheme(self) -> str:
        """The scheme of a location."""
        return "grpc" if self.roots is None else "grpc+tls"

    def call_options(self) -> flight.FlightCallOptions:
        """Return the options of a call."""
        headers = [] if self.token is None else [(_HEADER.encode(), f"{_SCHEME}{self.token}".encode())]
        return flight.FlightCallOptions(timeout=self.timeout, headers=headers)


def read_token(path: str) -> str:
    """Read the token of a file: its only line. Raises InvalidInputError for a file without a token."""
    text = _content(path, "token", _MAX_TOKEN).strip()
    if not text or any(not 0x21 <= byte <= 0x7E for byte in text):
        raise InvalidInputError(f"Token file {path} is invalid: it must have one word of visible ASCII characters.")
    return text.decode()


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _content(path: str, what: str, limit: int) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"The {what} file {path} cannot be read: {error}. Name a readable file.") from error
    if not data or len(data) > limit:
        raise InvalidInputError(f"The {what} file {path} is empty or has more than {limit} bytes. Name another file.")
    return data
