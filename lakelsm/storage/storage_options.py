"""Endpoints and credentials of object stores: from the caller, else the environment, else Spark's settings.

They are never written into a table, a log or an error: the repr of `StoreOptions` shows none of its values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lakelsm.errors import InvalidInputError
from lakelsm.storage.object_location import ObjectLocation, ObjectStoreKind

#: The library's names of S3's credentials. All of them come from one source.
_S3_CREDENTIALS = ("access_key_id", "secret_access_key", "session_token")

#: Each setting of a kind of store under the library's name, with its spellings in `storage_options` and Hadoop (after a
#: prefix, with '-' read as '.') and its environment variables, which `storage_options` also accepts as keys.
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
#: Settings that become part of a server's address; the characters of such a part, and of a whole address.
_IN_ADDRESSES = ("region", "tenant_id")
_ADDRESS_PART = re.compile(r"[A-Za-z0-9._-]*")
_ADDRESS = re.compile(r"[A-Za-z0-9._~:/\[\]%!$&'()*+,;=@-]+")
_FLAGS = ("path_style", "ssl", "skip_signature")


@dataclass(frozen=True)
class StoreOptions:
    """The library's settings of a store, with S3's credentials apart. Only pickles sent to tasks contain them."""

    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    credentials: tuple[str, str, str | None] | None = field(default=None, repr=False)
    #: The endpoint is not the provider's: it must prove conditional creation before the first commit.
    is_own_endpoint: bool = False
    allows_http: bool = False


def store_options(location: ObjectLocation, given: Mapping[str, str], session: Mapping[str, str]) -> StoreOptions:
    """Return the options of a store: each setting from ``given``, else the environment, else a Spark session.

    ``session`` has Hadoop's keys (those under `spark.hadoop.`); settings of this bucket or account have priority over
    general ones. Unknown keys raise InvalidInputError in ``given``, and are ignored in the other two.
    """
    kind = location.kind
    sources = [
        _from_options(kind, given),
        _from_environment(kind),
        *(_from_session(kind, settings) for settings in (_location_settings(location, session), session)),
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
            f"{location.root}: a setting from storage_options, the environment or Spark has a character that a request "
            f"cannot have (a line break, a blank in a region, or one outside ASCII): {', '.join(unsendable)}. Correct it."
        )
    endpoint = found.get("endpoint") or found.get("base_url")
    if endpoint is not None and not _is_address(endpoint):
        raise InvalidInputError(
            f"{location.root}: the endpoint from storage_options, the environment or Spark is not an address of a "
            "server. Write it as http://host:port or https://host, without a user, a query or blanks."
        )
    return StoreOptions(
        settings=tuple(sorted(found.items())),
        credentials=credentials,
        is_own_endpoint=endpoint is not None,
        allows_http=endpoint is not None and endpoint.lower().startswith("http://"),
    )


def _is_sendable(name: str, value: str | None) -> bool:
    """Return whether a setting can be part of a request; the library panics otherwise. JSON may have line breaks."""
    if value is None or value.lstrip().startswith("{"):
        return True
    if name in _IN_ADDRESSES:
        return _ADDRESS_PART.fullmatch(value) is not None
    return value.isascii() and value.isprintable()


def _is_address(endpoint: str) -> bool:
    """Return whether an endpoint is a URL of a server. Any other text is never shown: it may contain a password."""
    if _ADDRESS.fullmatch(endpoint) is None:
        return False
    try:
        parts = urlsplit(endpoint)
        return parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc and (
            parts.port is None or 0 < parts.port < 65536
        )
    except ValueError:
        return False


def _from_options(kind: ObjectStoreKind, given: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in given.items():
        name = _name_of(kind, key, variables=True)
        if name is None:
            raise InvalidInputError(
                f"storage_options: {key!r} is not a setting of {kind.value}. Settings: {', '.join(_spellings(kind))}."
            )
        if name in found:
            raise InvalidInputError(f"storage_options: {key!r} is given under two spellings. Leave one of them out.")
        if name in _FLAGS and value.strip().lower() not in _BOOLEANS:
            raise InvalidInputError(f"storage_options: {key!r} has a value that is neither 'true' nor 'false'.")
        found[name] = value.strip()
    return found


def _location_settings(location: ObjectLocation, session: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings for one bucket or account, under the keys of the general ones."""
    if location.kind is ObjectStoreKind.S3:
        own = f"fs.s3a.bucket.{location.bucket}."
        return {f"fs.s3a.{key[len(own) :]}": value for key, value in session.items() if key.startswith(own)}
    own = f"fs.azure.account.key.{location.account}."
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
    """Return the library's name of a setting from any spelling, or None."""
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
        # Hadoop's key contains the account.
        plain = "account.key"
    return next((name for name, (spellings, _) in settings.items() if plain in spellings), None)


def _spellings(kind: ObjectStoreKind) -> Iterable[str]:
    prefix = _PREFIXES[kind][-1]
    for spellings, variables in _SETTINGS[kind].values():
        yield from ([prefix + spelling.replace(".key", "-key") for spelling in spellings[:1]] or variables[:1])


def _s3_credentials(sources: Iterable[Mapping[str, str]]) -> tuple[str, str, str | None] | None:
    """Return the credentials of the first source that has any; parts of two sources do not match."""
    for source in sources:
        if not any(name in source for name in _S3_CREDENTIALS):
            continue
        identity, secret, token = (source.get(name) or None for name in _S3_CREDENTIALS)
        if identity is None or secret is None:
            raise InvalidInputError(
                "storage_options: credentials of S3 are an access key and a secret key, and one of them is missing. "
                "Pass both (s3.access-key, s3.secret-key)."
            )
        return identity, secret, token
    return None


def _s3_settings(found: dict[str, str]) -> dict[str, str]:
    """Return the settings in the library's form."""
    endpoint, encrypts = found.get("endpoint"), found.pop("ssl", "true").strip().lower() != "false"
    if endpoint is not None and "://" not in endpoint:
        found["endpoint"] = f"{'https' if encrypts else 'http'}://{endpoint}"
    path_style = found.pop("path_style", None)
    if path_style is not None:
        found["virtual_hosted_style_request"] = "false" if path_style.strip().lower() == "true" else "true"
    found.setdefault("region", "us-east-1")
    return found
