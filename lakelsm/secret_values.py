"""Texts for messages and logs, without secrets.

The value of a key may be a secret if the key's name has one of a few words, such as 'token'. A URI may have a secret
before '@', and in the query of a signed URL.
"""

from __future__ import annotations

import re
from reprlib import Repr
from typing import Any

#: The replacement for a secret in a message.
REDACTED = "…"

_WORDS = "secret|token|passw|pwd|key|credential|sas|signature|auth|private"
_WORD = re.compile(_WORDS, re.IGNORECASE)
#: The rest of such a key after the word, and the separator between key and value.
_REST, _SEPARATOR = re.compile(r"[\w.-]*"), re.compile(r"['\"]?\s{0,8}[=:,]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}$")
_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PARAMETER = re.compile(r"([?&;])([^=&;#?]*)=([^&#]*)")


def is_secret(key: str) -> bool:
    """Return whether the value of a key may be a secret, judged by the name of the key."""
    return key.lower() == "sig" or _WORD.search(key) is not None


def shown_uri(uri: str) -> str:
    """Return a location without user, password and signature."""
    at, end = uri.find("://"), uri.rfind("@")
    scheme = _SCHEME.search(uri[max(at - 20, 0) : max(at, 0)])
    if scheme is not None and end > at and not _is_plain(scheme[0].lower(), uri[at + 3 : end]):
        uri = f"{uri[:at]}://{REDACTED}{uri[end:]}"
    return _PARAMETER.sub(_shown_parameter, uri)


def shown_text(text: str) -> str:
    """Return a text without the secrets of its locations and key-value pairs. The time is linear."""
    text, position = shown_uri(text), 0
    while (word := _WORD.search(text, position)) is not None:
        rest = _REST.match(text, word.end())
        position = word.end() if rest is None else rest.end()
        separator = _SEPARATOR.match(text, position)
        if separator is not None:
            return f"{text[: separator.end()]} {REDACTED}"  # The end of the value is unknown.
    return text


def _is_plain(scheme: str, user: str) -> bool:
    """Return whether the text before '@' is the container of an Azure location, or part of a path."""
    if scheme in ("abfs", "abfss"):
        return _CONTAINER.fullmatch(user) is not None
    return scheme == "file" and user.startswith("/")


def _shown_parameter(found: re.Match[str]) -> str:
    separator, name, _ = found.groups()
    return f"{separator}{name}={REDACTED}" if is_secret(name) else found[0]


class ShownRepr(Repr):
    """Short representations of users' values. Values of keys that may be secrets are hidden at any depth."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = length

    def repr_str(self, value: str, level: int) -> str:
        """Return a text without secrets; a long one is shortened in the middle."""
        return super().repr_str(shown_text(value), level)

    def repr_bytes(self, value: bytes, level: int) -> str:
        """Return bytes like a text."""
        return "b" + super().repr_str(shown_text(value.decode("latin-1")), level)

    def repr_dict(self, value: dict[Any, Any], level: int) -> str:
        """Return a dictionary with hidden secrets."""
        return super().repr_dict({key: _Hidden() if _is_secret(key) else each for key, each in value.items()}, level)

    def repr_list(self, value: list[Any], level: int) -> str:
        """Return a list; if its first member is the key of a secret, the others are hidden."""
        return super().repr_list(_pair(value), level)

    def repr_tuple(self, value: tuple[Any, ...], level: int) -> str:
        """Return a tuple like a list."""
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
