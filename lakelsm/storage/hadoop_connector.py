"""How Hadoop's connector, which Spark reads files with, reaches the bucket that a store was opened for.

Of S3 it is `s3a`, whose settings can be of one bucket: others keep theirs. Those of Google and Azure are not used, as
their settings are of a whole process.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelsm.storage.object_place import ObjectPlace, StoreKind
from lakelsm.storage.storage_options import StoreOptions

_PROVIDERS = "org.apache.hadoop.fs.s3a."


def connector_root(place: ObjectPlace) -> str | None:
    """The URI of the place as the connector takes it; None where no connector is used."""
    is_known = place.kind is StoreKind.S3 and place.bucket == place.bucket.lower()
    return f"s3a://{place.bucket}" if is_known else None


def connector_settings(options: StoreOptions) -> Mapping[str, str]:
    """The settings of s3a that mean what the options mean, without the prefix `fs.s3a.` or that of a bucket."""
    stored = dict(options.settings)
    settings = {"endpoint.region": stored["region"]}
    endpoint = stored.get("endpoint")
    if endpoint is not None:
        settings["endpoint"] = endpoint
        settings["connection.ssl.enabled"] = str(not options.allows_http).lower()
    if endpoint is not None or "virtual_hosted_style_request" in stored:
        settings["path.style.access"] = str(stored.get("virtual_hosted_style_request") != "true").lower()
    if stored.get("skip_signature", "").strip().lower() == "true":
        settings["aws.credentials.provider"] = f"{_PROVIDERS}AnonymousAWSCredentialsProvider"
    elif options.credentials is not None:
        identity, secret, token = options.credentials
        name = "Simple" if token is None else "Temporary"
        settings["aws.credentials.provider"] = f"{_PROVIDERS}{name}AWSCredentialsProvider"
        settings |= {"access.key": identity, "secret.key": secret}
        if token is not None:
            settings["session.token"] = token
    return settings
