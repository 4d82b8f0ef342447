"""The object store and bucket of a URI."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.secret_values import shown_uri


class ObjectStoreKind(Enum):
    """The protocol of a store."""

    S3 = "S3"
    GCS = "Google Cloud Storage"
    AZURE = "Azure Data Lake Storage"


#: The kind of each scheme, and the scheme used in paths: Spark's `s3a` and S3's own `s3` are one location.
_SCHEMES = {
    "s3": (ObjectStoreKind.S3, "s3"),
    "s3a": (ObjectStoreKind.S3, "s3"),
    "gs": (ObjectStoreKind.GCS, "gs"),
    "abfss": (ObjectStoreKind.AZURE, "abfss"),
    "abfs": (ObjectStoreKind.AZURE, "abfs"),
}
_HDFS = "hdfs"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")


@dataclass(frozen=True)
class ObjectLocation:
    """A bucket, or a container of Azure. ``root`` is its URI without a slash at the end, such as 's3://bucket'."""

    kind: ObjectStoreKind
    root: str
    bucket: str
    account: str | None = None

    def key(self, path: str) -> str:
        """Return the key of the object with a URI in this bucket; '' for the bucket itself."""
        if path != self.root and not path.startswith(f"{self.root}/"):
            raise ValueError(f"{path} is not in {self.root}")
        return path[len(self.root) + 1 :]


def is_object_uri(uri: str) -> bool:
    """Return whether a location is a URI of an object store, or of HDFS, which `object_location` refuses by name."""
    scheme, colon, _ = uri.partition(":")
    return bool(colon) and (scheme.lower() in _SCHEMES or scheme.lower() == _HDFS)


def object_location(uri: str) -> tuple[ObjectLocation, str]:
    """Return the bucket of a URI and the URI as a path, without a slash at the end or two in a row.

    Raises InvalidInputError for a URI without a bucket, or with other parts than a path.
    """
    scheme, slashes, rest = uri.partition("://")
    if scheme.lower() == _HDFS or uri.lower().startswith(f"{_HDFS}:"):
        raise UnsupportedFeatureError(
            f"{shown_uri(uri)}: HDFS is not supported. Use a path of a mounted file system, or an object store (s3://, "
            "gs://, abfss://)."
        )
    kind, scheme = _SCHEMES[scheme.partition(":")[0].lower()]
    wanted = "abfss://container@account.dfs.core.windows.net/path" if kind is ObjectStoreKind.AZURE else f"{scheme}://bucket/path"
    authority, _, path = rest.partition("/")
    container, at, host = authority.rpartition("@")
    bucket = container if kind is ObjectStoreKind.AZURE else host
    are_names = _NAME.fullmatch(bucket) and _NAME.fullmatch(host)
    if not slashes or bool(at) != (kind is ObjectStoreKind.AZURE) or not are_names:
        # The text before '@', and behind a slash in it, may be a secret: no part of the URI is shown.
        raise InvalidInputError(
            f"A location that begins with {scheme}:// has a wrong form. Write {wanted}, with names of letters, digits, "
            "'.', '-' and '_'."
        )
    if shown_uri(uri) != uri:
        raise InvalidInputError(
            f"{shown_uri(uri)} is a signed URL. Write {wanted} without a query, and pass credentials in storage_options."
        )
    names = [name for name in path.split("/") if name]
    if any(name in (".", "..") or not name.isprintable() for name in names):
        raise InvalidInputError(
            f"{uri!r} has '.', '..' or control characters in its path. Write the path without them."
        )
    root = f"{scheme}://{authority}"
    account = host.split(".")[0] if kind is ObjectStoreKind.AZURE else None
    return ObjectLocation(kind, root, bucket, account), "/".join([root, *names])
