"""Which texts may be secrets, and messages without them.

A key whose name has one of a few words may have a secret as its value. A URI may have one before '@', and in the query of
a signed address.
"""

from __future__ import annotations

import re
from reprlib import Repr
from typing import Any

#: What stands for a secret in a message.
REDACTED = "…"

_WORDS = "secret|token|passw|pwd|key|credential|sas|signature|auth|private"
_WORD = re.compile(_WORDS, re.IGNORECASE)
#: What is left of such a key behind the word, and what separates it from its value.
_REST, _SEPARATOR = re.compile(r"[\w.-]*"), re.compile(r"['\"]?\s{0,8}[=:,]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}$")
_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PARAMETER = re.compile(r"([?&;])([^=&;#?]*)=([^&#]*)")


def is_secret(key: str) -> bool:
    """Whether the value of a key may be a secret, by the key's name."""
    return key.lower() == "sig" or _WORD.search(key) is not None


def shown_uri(uri: str) -> str:
    """A location without a user, a password and what signs a query."""
    at, end = uri.find("://"), uri.rfind("@")
    scheme = _SCHEME.search(uri[max(at - 20, 0) : max(at, 0)])
    if scheme is not None and end > at and not _is_plain(scheme[0].lower(), uri[at + 3 : end]):
        uri = f"{uri[:at]}://{REDACTED}{uri[end:]}"
    return _PARAMETER.sub(_shown_parameter, uri)


def shown_text(text: str) -> str:
    """A text that may hold a location or pairs of keys and values, without secrets; it takes linear time."""
    text, place = shown_uri(text), 0
    while (word := _WORD.search(text, place)) is not None:
        rest = _REST.match(text, word.end())
        place = word.end() if rest is None else rest.end()
        separator = _SEPARATOR.match(text, place)
        if separator is not None:
            return f"{text[: separator.end()]} {REDACTED}"  # Where a value ends is not known.
    return text


def _is_plain(scheme: str, user: str) -> bool:
    """Whether what stands before '@' is the container of an Azure location, or part of a path."""
    if scheme in ("abfs", "abfss"):
        return _CONTAINER.fullmatch(user) is not None
    return scheme == "file" and user.startswith("/")


def _shown_parameter(found: re.Match[str]) -> str:
    mark, name, _ = found.groups()
    return f"{mark}{name}={REDACTED}" if is_secret(name) else found[0]


class ShownRepr(Repr):
    """Short representations of what users pass; the values of keys that may be secrets are hidden at any depth."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = length

    def repr_str(self, value: str, level: int) -> str:
        """A text without secrets, cut in the middle where it is long."""
        return super().repr_str(shown_text(value), level)

    def repr_bytes(self, value: bytes, level: int) -> str:
        """The same for bytes."""
        return "b" + super().repr_str(shown_text(value.decode("latin-1")), level)

    def repr_dict(self, value: dict[Any, Any], level: int) -> str:
        """A dictionary, each secret value hidden."""
        return super().repr_dict({key: _Hidden() if _is_secret(key) else each for key, each in value.items()}, level)

    def repr_list(self, value: list[Any], level: int) -> str:
        """A list; one that is a key with its value is shown without that."""
        return super().repr_list(_pair(value), level)

    def repr_tuple(self, value: tuple[Any, ...], level: int) -> str:
        """The same for a tuple."""
        return super().repr_tuple(tuple(_pair(list(value))), level)


class _Hidden:
    def __repr__(self) -> str:
        return REDACTED


def _is_secret(key: object) -> bool:
    if isinstance(key, bytes):
        key = key.decode("latin-1")
    return isinstance(key, str) and is_secret(key)


def _pair(value: list[Any]) -> list[Any]:
    is_pair = len(value) > 1 and _is_secret(value[0])
    return [value[0], *(_Hidden() for _ in value[1:])] if is_pair else value
