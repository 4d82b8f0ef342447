"""Who may ask a server, and whom a client trusts: a token, and TLS."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import flight

from lakelsm.arguments import wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.lookup.service.service_addresses import ServerAddress
from lakelsm.options import TableOptions

_HEADER = "authorization"
_SCHEME = "Bearer "
_MAX_TOKEN = 4096
_MAX_CERTIFICATES = 4 << 20


@dataclass(frozen=True, kw_only=True)
class ServerAccess:
    """What a server asks for. ``certificate`` and ``private_key`` are PEM, both or none."""

    token: str | None = field(default=None, repr=False)
    certificate: bytes | None = None
    private_key: bytes | None = field(default=None, repr=False)

    @staticmethod
    def of_files(token: str | None, certificate: str | None, private_key: str | None) -> ServerAccess:
        """What files say. Raises InvalidInputError for one that cannot be read, or of a pair without the other."""
        if (certificate is None) != (private_key is None):
            raise InvalidInputError("TLS needs a certificate and its key: name both files, or none.")
        return ServerAccess(
            token=None if token is None else token_of(token),
            certificate=None if certificate is None else _content(certificate, "certificate", _MAX_CERTIFICATES),
            private_key=None if private_key is None else _content(private_key, "private key", _MAX_CERTIFICATES),
        )

    @property
    def scheme(self) -> str:
        """How a location begins."""
        return _scheme(self.certificate is not None)

    def check_host(self, host: str) -> None:
        """Raise InvalidInputError for what is no address, and for one that others reach unless they must show a token."""
        if ServerAddress.parse(str(ServerAddress(host, 1))) is None:
            raise wrong_argument("host", host, "the name or IP address of a machine, without a port")
        if self.token is None and not is_loopback(host):
            raise InvalidInputError(
                f"host is {host!r}, which other machines reach, and without a token anybody could read the table there: "
                "give a token file, or leave the host out for 127.0.0.1."
            )

    def server_options(self) -> dict[str, Any]:
        """What Flight's server is told."""
        return {} if self.certificate is None else {"tls_certificates": [(self.certificate, self.private_key)]}

    def check_token(self, headers: dict[str, list[str | bytes]]) -> None:
        """Raise FlightUnauthenticatedError unless a call with these headers may be made."""
        expected = f"{_SCHEME}{self.token}".encode()
        shown = (text if isinstance(text, bytes) else text.encode() for text in headers.get(_HEADER, ()))
        if self.token is not None and not any(hmac.compare_digest(text, expected) for text in shown):
            raise flight.FlightUnauthenticatedError("the token is missing or another one")


@dataclass(frozen=True, kw_only=True)
class ClientAccess:
    """What a client shows, whom it trusts, and for how many seconds it waits."""

    token: str | None = field(default=None, repr=False)
    roots: bytes | None = None
    timeout: float

    @staticmethod
    def of(options: TableOptions) -> ClientAccess:
        """As the options say. Raises InvalidInputError for a file that cannot be read."""
        token, roots = options.lakelsm_lookup_service_token_file, options.lakelsm_lookup_service_tls_roots
        return ClientAccess(
            token=None if token is None else token_of(token),
            roots=None if roots is None else _content(roots, "certificates", _MAX_CERTIFICATES),
            timeout=options.lakelsm_lookup_service_timeout / 1000,
        )

    @property
    def scheme(self) -> str:
        """How a location begins."""
        return _scheme(self.roots is not None)

    def call_options(self) -> flight.FlightCallOptions:
        """What each call is told."""
        headers = [] if self.token is None else [(_HEADER.encode(), f"{_SCHEME}{self.token}".encode())]
        return flight.FlightCallOptions(timeout=self.timeout, headers=headers)


def token_of(path: str) -> str:
    """The token in a file: its only line. Raises InvalidInputError for a file without one."""
    text = _content(path, "token", _MAX_TOKEN).strip()
    if not text or any(not 0x21 <= byte <= 0x7E for byte in text):
        raise InvalidInputError(f"Token file {path} must have one word of visible ASCII characters and nothing else.")
    return text.decode()


def is_loopback(host: str) -> bool:
    """Whether an address is one that this machine alone reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _scheme(tls: bool) -> str:
    return "grpc+tls" if tls else "grpc"


def _content(path: str, what: str, limit: int) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"The {what} file {path} cannot be read: {error}. Name one that can.") from error
    if not data or len(data) > limit:
        raise InvalidInputError(f"The {what} file {path} is empty or has more than {limit} bytes: name another.")
    return data
