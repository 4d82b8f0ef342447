"""The settings with which Hadoop's connector, through which Spark reads files, reaches the bucket of a table.

Only the connector of S3, `s3a`, is used: its settings can apply to one bucket and leave others alone. Those of Google
and Azure apply to the whole process.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelsm.storage.object_location import ObjectLocation, ObjectStoreKind
from lakelsm.storage.storage_options import StoreOptions

_PROVIDERS = "org.apache.hadoop.fs.s3a."
_PROVIDER = "aws.credentials.provider"
_ANONYMOUS = f"{_PROVIDERS}AnonymousAWSCredentialsProvider"
_AMAZONS_OWN = "amazonaws.com"
#: Settings that identify the store and the credentials.
CONNECTION_KEYS = ("endpoint", "access.key", "secret.key", "session.token", _PROVIDER)


def connector_root(location: ObjectLocation) -> str | None:
    """Return the URI for the connector, or None for a store without a connector."""
    is_known = location.kind is ObjectStoreKind.S3 and location.bucket == location.bucket.lower()
    return f"s3a://{location.bucket}" if is_known else None


def connector_settings(options: StoreOptions) -> Mapping[str, str]:
    """Return the settings of s3a for some options, without the prefix `fs.s3a.` or that of a bucket."""
    stored = dict(options.settings)
    settings = {"endpoint.region": stored["region"]}
    endpoint = stored.get("endpoint")
    if endpoint is not None:
        settings["endpoint"] = endpoint
        settings["connection.ssl.enabled"] = str(not options.allows_http).lower()
    if endpoint is not None or "virtual_hosted_style_request" in stored:
        settings["path.style.access"] = str(stored.get("virtual_hosted_style_request") != "true").lower()
    if stored.get("skip_signature", "").strip().lower() == "true":
        settings[_PROVIDER] = _ANONYMOUS
    elif options.credentials is not None:
        identity, secret, token = options.credentials
        name = "Simple" if token is None else "Temporary"
        settings[_PROVIDER] = f"{_PROVIDERS}{name}AWSCredentialsProvider"
        settings |= {"access.key": identity, "secret.key": secret}
        if token is not None:
            settings["session.token"] = token
    return settings


def is_same_connection(wanted: Mapping[str, str], opened: Mapping[str, str]) -> bool:
    """Return whether a connection has the wanted store and credentials, by its `CONNECTION_KEYS`."""
    if any(wanted.get(key, "") != opened.get(key, "") for key in ("access.key", "secret.key")):
        return False
    is_anonymous = [_ANONYMOUS in settings.get(_PROVIDER, "") for settings in (wanted, opened)]
    token = wanted.get("session.token")
    return (
        _host(wanted) == _host(opened)
        and is_anonymous[0] == is_anonymous[1]
        and (token is None or token == opened.get("session.token"))
    )


def _host(settings: Mapping[str, str]) -> str:
    """Return the host of the endpoint; '' for Amazon's own."""
    host = settings.get("endpoint", "").partition("://")[2] or settings.get("endpoint", "")
    return "" if host.rstrip("/").endswith(_AMAZONS_OWN) else host.rstrip("/")
