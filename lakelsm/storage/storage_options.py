"""Endpoints and credentials of object stores: from the caller, else the environment, else Spark's settings.

Nothing of them is ever written into a table, a log or an error: `StoreOptions` shows none of its values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lakelsm.errors import InvalidInputError
from lakelsm.storage.object_location import ObjectLocation, ObjectStoreKind

#: Names of the library for S3's credentials, which are taken together from one source or not at all.
_S3_CREDENTIALS = ("access_key_id", "secret_access_key", "session_token")

#: Each setting of a kind of store under the library's name: how `storage_options` and Hadoop spell it (after a prefix,
#: '-' read as '.'), and the environment variables that hold it, which `storage_options` takes as keys too.
_SETTINGS: Mapping[ObjectStoreKind, Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    ObjectStoreKind.S3: {
        "endpoint": (("endpoint",), ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")),
        "access_key_id": (("access.key",), ("AWS_ACCESS_KEY_ID",)),
        "secret_access_key": (("secret.key",), ("AWS_SECRET_ACCESS_KEY",)),
        "session_token": (("session.token",), ("AWS_SESSION_TOKEN",)),
        "region": (("region", "endpoint.region"), ("AWS_REGION", "AWS_DEFAULT_REGION")),
        "path_style": (("path.style.access",), ("AWS_PATH_STYLE_ACCESS",)),
        "ssl": (("connection.ssl.enabled",), ()),
        "skip_signature": (("anonymous",), ("AWS_SKIP_SIGNATURE",)),
    },
    ObjectStoreKind.GCS: {
        "service_account": (("auth.service.account.json.keyfile",), ("GOOGLE_SERVICE_ACCOUNT",)),
        "service_account_key": (("auth.service.account.json",), ("GOOGLE_SERVICE_ACCOUNT_KEY",)),
        "application_credentials": ((), ("GOOGLE_APPLICATION_CREDENTIALS",)),
        "base_url": (("storage.root.url", "endpoint"), ("GOOGLE_BASE_URL",)),
        "skip_signature": (("anonymous",), ("GOOGLE_SKIP_SIGNATURE",)),
    },
    ObjectStoreKind.AZURE: {
        "account_key": (("account.key",), ("AZURE_STORAGE_ACCOUNT_KEY",)),
        "sas_key": (("sas.token", "sas.fixed.token"), ("AZURE_STORAGE_SAS_TOKEN",)),
        "client_id": (("account.oauth2.client.id",), ("AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID")),
        "client_secret": (("account.oauth2.client.secret",), ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET")),
        "tenant_id": (("tenant.id",), ("AZURE_STORAGE_TENANT_ID", "AZURE_TENANT_ID")),
        "endpoint": (("endpoint",), ("AZURE_STORAGE_ENDPOINT",)),
        "skip_signature": (("anonymous",), ("AZURE_SKIP_SIGNATURE",)),
    },
}
_PREFIXES = {
    ObjectStoreKind.S3: ("fs.s3a.", "fs.s3.", "s3a.", "s3."),
    ObjectStoreKind.GCS: ("fs.gs.", "gs."),
    ObjectStoreKind.AZURE: ("fs.azure.", "azure."),
}
_BOOLEANS = {"true": True, "false": False}
#: Settings that are part of a server's address, and the characters of such a part and of a whole address.
_IN_ADDRESSES = ("region", "tenant_id")
_ADDRESS_PART = re.compile(r"[A-Za-z0-9._-]*")
_ADDRESS = re.compile(r"[A-Za-z0-9._~:/\[\]%!$&'()*+,;=@-]+")
_FLAGS = ("path_style", "ssl", "skip_signature")


@dataclass(frozen=True)
class StoreOptions:
    """What opens a store: the library's settings, and S3's credentials apart. It travels to tasks in memory alone."""

    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    credentials: tuple[str, str, str | None] | None = field(default=None, repr=False)
    #: The endpoint is not the provider's own: what it understands is proven before the first commit.
    is_own_endpoint: bool = False
    allows_http: bool = False


def store_options(place: ObjectLocation, given: Mapping[str, str], session: Mapping[str, str]) -> StoreOptions:
    """Return what opens ``place``: each setting from ``given``, else the environment, else a Spark session's settings.

    ``session`` has Hadoop's keys (those under `spark.hadoop.`); what it says of this bucket or account alone comes
    before what it says of all. Of it and the environment only what is known is taken; an unknown key that is given
    raises InvalidInputError.
    """
    kind = place.kind
    sources = [
        _given(kind, given),
        _from_environment(kind),
        *(_from_session(kind, settings) for settings in (_of_location(place, session), session)),
    ]
    found: dict[str, str] = {}
    for source in reversed(sources):
        found.update(source)
    credentials = _s3_credentials(sources) if kind is ObjectStoreKind.S3 else None
    if kind is ObjectStoreKind.S3:
        found = _s3_settings({name: value for name, value in found.items() if name not in _S3_CREDENTIALS})
    sent = [*found.items(), *zip(_S3_CREDENTIALS, credentials or ())]
    unsendable = [name for name, value in sent if not _is_sendable(name, value)]
    if unsendable:
        raise InvalidInputError(
            f"A setting for {place.root}, from storage_options, the environment or Spark, has characters that no request "
            f"can have there (a line break, one that is not plain ASCII, a blank in a region): {', '.join(unsendable)}. "
            "Pass it without them."
        )
    endpoint = found.get("endpoint") or found.get("base_url")
    if endpoint is not None and not _is_address(endpoint):
        raise InvalidInputError(
            f"The endpoint for {place.root}, from storage_options, the environment or Spark, is no address of a server: "
            "write it as http://host:port or https://host, without a user, a query or blanks in it."
        )
    return StoreOptions(
        settings=tuple(sorted(found.items())),
        credentials=credentials,
        is_own_endpoint=endpoint is not None,
        allows_http=endpoint is not None and endpoint.lower().startswith("http://"),
    )


def _is_sendable(name: str, value: str | None) -> bool:
    """Whether a setting can be part of a request; the library ends in a panic for another. JSON may have line breaks."""
    if value is None or value.lstrip().startswith("{"):
        return True
    if name in _IN_ADDRESSES:
        return _ADDRESS_PART.fullmatch(value) is not None
    return value.isascii() and value.isprintable()


def _is_address(endpoint: str) -> bool:
    """Whether an endpoint is a URL of a server; it is not shown where it is none, as it may hold a password."""
    if _ADDRESS.fullmatch(endpoint) is None:
        return False
    try:
        parts = urlsplit(endpoint)
        return parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc and (
            parts.port is None or 0 < parts.port < 65536
        )
    except ValueError:
        return False


def _given(kind: ObjectStoreKind, given: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in given.items():
        name = _name_of(kind, key, variables=True)
        if name is None:
            raise InvalidInputError(
                f"storage_options has the key {key!r}, which {kind.value} does not take here; it takes "
                f"{', '.join(_spellings(kind))}."
            )
        if name in found:
            raise InvalidInputError(f"storage_options has {key!r} under two spellings: leave one of them out.")
        if name in _FLAGS and value.strip().lower() not in _BOOLEANS:
            raise InvalidInputError(f"storage_options: {key!r} is 'true' or 'false'; what was given is neither.")
        found[name] = value.strip()
    return found


def _of_location(place: ObjectLocation, session: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's settings for one bucket or account, under the keys of those for all."""
    if place.kind is ObjectStoreKind.S3:
        own = f"fs.s3a.bucket.{place.bucket}."
        return {f"fs.s3a.{key[len(own) :]}": value for key, value in session.items() if key.startswith(own)}
    own = f"fs.azure.account.key.{place.account}."
    keys = [value for key, value in session.items() if key.startswith(own)]
    return {"fs.azure.account.key": keys[0]} if keys else {}


def _from_session(kind: ObjectStoreKind, session: Mapping[str, str]) -> dict[str, str]:
    return {name: value for key, value in session.items() if (name := _name_of(kind, key, variables=False)) is not None}


def _from_environment(kind: ObjectStoreKind) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, (_, variables) in _SETTINGS[kind].items():
        values = [os.environ[variable] for variable in variables if os.environ.get(variable)]
        if values:
            found[name] = values[0]
    return found


def _name_of(kind: ObjectStoreKind, key: str, *, variables: bool) -> str | None:
    """The library's name of a setting, however it is spelled."""
    settings = _SETTINGS[kind]
    if variables:
        for name, (_, names) in settings.items():
            if key.upper() in names:
                return name
    prefix = next((prefix for prefix in _PREFIXES[kind] if key.startswith(prefix)), None)
    if prefix is None:
        return None
    plain = key[len(prefix) :].replace("-", ".")
    if variables and kind is ObjectStoreKind.AZURE and plain.startswith("account.key."):
        # Hadoop names the account in the key.
        plain = "account.key"
    return next((name for name, (spellings, _) in settings.items() if plain in spellings), None)


def _spellings(kind: ObjectStoreKind) -> Iterable[str]:
    prefix = _PREFIXES[kind][-1]
    for spellings, variables in _SETTINGS[kind].values():
        yield from ([prefix + spelling.replace(".key", "-key") for spelling in spellings[:1]] or variables[:1])


def _s3_credentials(sources: Iterable[Mapping[str, str]]) -> tuple[str, str, str | None] | None:
    """The credentials of the first source that has any: parts of two make no credentials."""
    for source in sources:
        if not any(name in source for name in _S3_CREDENTIALS):
            continue
        identity, secret, token = (source.get(name) or None for name in _S3_CREDENTIALS)
        if identity is None or secret is None:
            raise InvalidInputError(
                "Credentials of S3 are an access key with its secret key, and one of the two is missing where the other "
                "or a session token is given: pass both (s3.access-key, s3.secret-key) in storage_options."
            )
        return identity, secret, token
    return None


def _s3_settings(found: dict[str, str]) -> dict[str, str]:
    """The settings as the library has them."""
    endpoint, encrypts = found.get("endpoint"), found.pop("ssl", "true").strip().lower() != "false"
    if endpoint is not None and "://" not in endpoint:
        found["endpoint"] = f"{'https' if encrypts else 'http'}://{endpoint}"
    path_style = found.pop("path_style", None)
    if path_style is not None:
        found["virtual_hosted_style_request"] = "false" if path_style.strip().lower() == "true" else "true"
    found.setdefault("region", "us-east-1")
    return found
