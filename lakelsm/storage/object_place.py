"""Which bucket of which object store a URI means, and the objects in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote, urlsplit

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError


class StoreKind(Enum):
    """The interface that a store speaks."""

    S3 = "S3"
    GCS = "Google Cloud Storage"
    AZURE = "Azure Data Lake Storage"


#: What each scheme means, and the scheme that paths are kept under: Spark's `s3a` and S3's own `s3` are one place.
_SCHEMES = {
    "s3": (StoreKind.S3, "s3"),
    "s3a": (StoreKind.S3, "s3"),
    "gs": (StoreKind.GCS, "gs"),
    "abfss": (StoreKind.AZURE, "abfss"),
    "abfs": (StoreKind.AZURE, "abfs"),
}
_HDFS = "hdfs"


@dataclass(frozen=True)
class ObjectPlace:
    """A bucket (a container of Azure's). ``root`` is its URI without a slash at the end, such as 's3://bucket'."""

    kind: StoreKind
    root: str
    bucket: str
    account: str | None = None

    def key(self, path: str) -> str:
        """The key of the object that a URI of this place names; '' for the place itself."""
        if path != self.root and not path.startswith(f"{self.root}/"):
            raise ValueError(f"{path} is not in {self.root}")
        return path[len(self.root) + 1 :]


def is_object_uri(uri: str) -> bool:
    """Whether a location is a URI of an object store (or of HDFS, which `object_location` refuses by its name)."""
    scheme, colon, _ = uri.partition(":")
    return bool(colon) and (scheme.lower() in _SCHEMES or scheme.lower() == _HDFS)


def object_location(uri: str) -> tuple[ObjectPlace, str]:
    """Return the place that a URI is in and the URI as paths have it: no slash at its end and none twice.

    Raises InvalidInputError for a URI without a bucket, or with more than a path in it.
    """
    try:
        parts = urlsplit(uri, allow_fragments=False)
    except ValueError as error:
        raise InvalidInputError(f"{uri}: a location must be the URI of a bucket and a path in it ({error})") from error
    if parts.scheme.lower() == _HDFS:
        raise UnsupportedFeatureError(
            f"{uri}: lakelsm has not built HDFS. Use a path of a mounted file system, or an object store (s3://, gs://, "
            "abfss://)."
        )
    kind, scheme = _SCHEMES[parts.scheme.lower()]
    wanted = "abfss://container@account.dfs.core.windows.net/path" if kind is StoreKind.AZURE else f"{scheme}://bucket/path"
    container, at, host = parts.netloc.rpartition("@")
    bucket = container if kind is StoreKind.AZURE else host
    if bool(at) != (kind is StoreKind.AZURE) or not bucket or not host or ":" in parts.netloc:
        # What stands before '@' may be a secret: it is not shown.
        raise InvalidInputError(f"{parts.scheme}://…{parts.path} is no location: write {wanted}, with nothing else.")
    root = f"{scheme}://{parts.netloc}"
    # urlsplit cuts a query off, which is a part of the path here.
    path = uri.split("://", 1)[1][len(parts.netloc) :]
    names = [name for name in path.split("/") if name]
    if any(name in (".", "..") for name in names):
        raise InvalidInputError(f"{uri} has '.' or '..' in its path: write the path without them.")
    account = unquote(host).split(".")[0] if kind is StoreKind.AZURE else None
    return ObjectPlace(kind, root, bucket, account), "/".join([root, *names])
